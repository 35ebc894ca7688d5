"""An MDP as a picture: states as nodes, transitions as arrows; a map of cells or of pairs where it is too large."""

from __future__ import annotations

import math
import re
import textwrap
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.plan import Plan
from gainful.plot.style import (
    HAIR,
    INK,
    bare,
    calm,
    checked_axes,
    colour_bar,
    figure_of,
    fitted,
    framed,
    heading,
    look,
    named_legend,
    needs_matplotlib,
    plain,
    shown,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Layout: TypeAlias = Literal["auto", "chain", "circle", "grid"]
Floats: TypeAlias = NDArray[np.float64]

READABLE_STATES = 40
READABLE_ARROWS = 200
MOST_STATES = 300
"""Nodes of the largest graph that an explicit layout draws."""
MOST_PAIRS = 20_000_000
SMALLEST = 5.5
"""Points of the smallest label inside a node."""
RADIUS = 0.3
"""Of a node; neighbours of a chain or a grid are a little more than 1 apart."""
INSIDE = 0.75 * RADIUS
"""Of the smallest node that holds its label."""
_GLYPHS = {
    "up": "↑", "north": "↑", "down": "↓", "south": "↓", "left": "←", "west": "←", "right": "→", "east": "→",
}  # fmt: skip


def mdp(
    mdp: MDP, plan: Plan | None = None, *, visits: ArrayLike | None = None, layout: Layout = "auto",
    action: int | str | None = None, labels: bool = True, ax: Axes | None = None,
) -> Figure:  # fmt: skip
    """The MDP as a graph: one node per state, one arrow per transition, in the colour of its action.

    With a `plan` the arrows are those of its policy and nodes are coloured by its bias; without, arrows are those of
    all actions; `action` (label or index) shows that action alone. An arrow is as wide as its probability, which for a
    policy that mixes is the product with the action's. `visits`, (S,) or (S,A) or an agent's flat (S*A,), are the areas
    of the nodes.

    `layout` "auto" puts states in a grid if their labels are two numbers each ("row 1, column 2"), in a chain if they
    only move to neighbours and to one common state, else in a circle. Above 40 states, or 200 arrows, it draws a map
    instead: of the grid's cells with the action in each, or of states and actions, coloured by what an action loses
    (with a plan) or by mean rewards. An explicit layout draws up to 300 states.
    """
    needs_matplotlib()
    if not isinstance(mdp, MDP):
        hint = "; it is in plan.mdp" if isinstance(mdp, Plan) else ""
        raise InvalidArgumentError(f"mdp is {type(mdp).__name__}, expected an MDP{hint}")
    shape_of_plan = getattr(getattr(plan, "policy", None), "shape", None)
    if plan is not None and shape_of_plan != mdp.allowed.shape:
        raise InvalidArgumentError("plan is not one of this MDP, expected what gf.solve(mdp) returns")
    if layout not in get_args(Layout):
        raise InvalidArgumentError(f"layout is {layout!r}, expected one of {', '.join(get_args(Layout))}")
    chosen = None if action is None else mdp.action_index(action)
    seen = _visits(mdp, visits)
    grid = _grid(mdp) if layout in ("auto", "grid") else None
    if layout == "grid" and grid is None:
        raise InvalidArgumentError(
            "layout is 'grid', but the labels of the states are not two whole numbers each, expected such as "
            "'row 0, column 1'; take 'chain' or 'circle'"
        )
    small = mdp.n_states <= READABLE_STATES
    if layout != "auto" and mdp.n_states > MOST_STATES and not (layout == "grid"):
        raise InvalidArgumentError(
            f"a {layout} of {mdp.n_states:,} states cannot be read, expected at most {MOST_STATES}; "
            "take layout='auto', which draws a map"
        )
    if not small and grid is not None:
        return _map_of_cells(mdp, plan, grid, seen, ax)
    if layout == "auto" and not small:
        return _map_of_pairs(mdp, plan, f"{mdp.n_states:,} states are too many for a graph", ax)
    arrows = _arrows(mdp, plan, chosen)
    if layout == "auto" and len(arrows) > READABLE_ARROWS:
        return _map_of_pairs(mdp, plan, f"{len(arrows):,} transitions are too many for a graph", ax)
    shape = layout
    if layout == "auto":
        shape = "grid" if grid is not None else "chain" if _is_chain(mdp) else "circle"
    return _Graph(mdp, plan, arrows, seen, shape, grid, labels, chosen).draw(ax)


# ---------------------------------------------------------------------- what is drawn


@dataclass(frozen=True)
class Arrow:
    """One transition; `weight` is its probability under what is drawn."""

    origin: int
    action: int
    target: int
    weight: float


def _arrows(mdp: MDP, plan: Plan | None, action: int | None) -> list[Arrow]:
    """Transitions of one action, of a policy, or of all actions, by state, action and next state."""
    found = []
    for s in range(mdp.n_states):
        for a in range(mdp.n_actions):
            if not mdp.allowed[s, a] or (action is not None and a != action):
                continue
            share = float(plan.policy[s, a]) if plan is not None and action is None else 1.0
            if share <= 0.0:
                continue
            k = s * mdp.n_actions + a
            law: dict[int, float] = defaultdict(float)
            for j in range(int(mdp.indptr[k]), int(mdp.indptr[k + 1])):
                law[int(mdp.indices[j])] += float(mdp.probabilities[j])
            found += [Arrow(s, a, target, share * p) for target, p in sorted(law.items()) if p > 0.0]
    return found


def _visits(mdp: MDP, visits: Any) -> Floats | None:
    if visits is None:
        return None
    given = np.asarray(visits, dtype=np.float64)
    S, A = mdp.n_states, mdp.n_actions
    if given.shape == (S * A,) or given.shape == (S, A):
        given = given.reshape(S, A).sum(axis=1) if given.shape != (S,) else given
    if given.shape != (S,) or not np.isfinite(given).all() or (given < 0).any():
        raise InvalidArgumentError(
            f"visits have shape {np.shape(visits)}, expected ({S},), ({S}, {A}) or ({S * A},), none negative"
        )
    return given


@dataclass(frozen=True, eq=False)
class _Grid:
    """Where the labels say that states are: row and column numbers, and what they are called."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    row_values: tuple[int, ...]
    column_values: tuple[int, ...]
    row_name: str
    column_name: str


def _grid(mdp: MDP) -> _Grid | None:
    """Labels that are two whole numbers in the same words each, all different."""
    if mdp.state_labels is None or mdp.n_states < 4:
        return None
    numbers, words = [], set()
    for label in mdp.state_labels:
        found = re.findall(r"\d+", label)
        words.add(tuple(re.split(r"\d+", label)))
        if len(found) != 2 or len(words) > 1 or max(map(len, found)) > 6:
            return None
        numbers.append((int(found[0]), int(found[1])))
    values = np.array(numbers)
    if len(set(numbers)) < len(numbers) or min(len(set(values[:, i].tolist())) for i in (0, 1)) < 2:
        return None
    rows, row_of = np.unique(values[:, 0], return_inverse=True)
    columns, column_of = np.unique(values[:, 1], return_inverse=True)
    before, between, after = (re.sub(r"[^\w ,]", " ", word) for word in words.pop())
    if "," in between:  # "row 0, column 1", "0 free, priority 1"
        end, begin = between.split(",", 1)
        first, second = before + end, begin + after
    else:  # "0 and 1"
        first, second = before, after
    first, second = first.strip(" ,") or "first", second.strip(" ,") or "second"
    return _Grid(
        row_of.reshape(-1), column_of.reshape(-1), tuple(rows.tolist()), tuple(columns.tolist()), shown(first, 30),
        shown(second, 30),
    )  # fmt: skip


def _is_chain(mdp: MDP) -> bool:
    """Every action moves to neighbours only, but for jumps to one common state."""
    origin = np.repeat(np.arange(mdp.n_states * mdp.n_actions) // mdp.n_actions, np.diff(mdp.indptr))
    target = mdp.indices.astype(np.int64)
    return mdp.n_states > 2 and np.unique(target[np.abs(origin - target) > 1]).size <= 1


# ---------------------------------------------------------------------- the graph


class _Graph:
    """Positions, curves and labels, in units in which neighbours are 1 apart."""

    def __init__(
        self, mdp: MDP, plan: Plan | None, arrows: list[Arrow], visits: Floats | None, shape: str, grid: _Grid | None,
        labels: bool, action: int | None,
    ) -> None:  # fmt: skip
        self.mdp, self.plan, self.arrows, self.shape, self.grid = mdp, plan, arrows, shape, grid
        self.labels, self.action = labels, action
        self.visits = visits
        n = mdp.n_states
        self.at = self._positions(n)
        self.radius = np.full(n, RADIUS)
        if visits is not None:
            largest = float(visits.max(initial=0.0)) or 1.0
            self.radius = np.maximum(0.1, 1.15 * RADIUS * np.sqrt(visits / largest))
        self.outside = False
        """Whether labels stand beside the nodes, not in them."""
        self.controls = self._control_points()
        self.curves = self._curves()

    def _positions(self, n: int) -> Floats:
        if self.shape == "grid":
            assert self.grid is not None
            return np.stack([self.grid.columns, -self.grid.rows], axis=1) * 1.25
        if self.shape == "chain" or n <= 2:
            return np.stack([np.arange(n) * 1.15, np.zeros(n)], axis=1)
        reach = max(0.85, 1.15 / (2 * math.sin(math.pi / n)))
        angle = math.pi / 2 - 2 * math.pi * np.arange(n) / n
        return reach * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    def _control_points(self) -> dict[int, Floats]:
        """Of every arrow between two states the middle point of its quadratic curve; parallels bend further."""
        used: dict[tuple[int, int], int] = defaultdict(int)
        both = {(a.origin, a.target) for a in self.arrows}
        found = {}
        for i, arrow in enumerate(self.arrows):
            if arrow.origin == arrow.target:
                continue
            nth = used[arrow.origin, arrow.target]
            used[arrow.origin, arrow.target] += 1
            start, end = self.at[arrow.origin], self.at[arrow.target]
            way = end - start
            left = np.array([-way[1], way[0]])
            far = float(np.hypot(*way))
            if self.shape == "chain":
                bend = 0.42 * far**-0.25 + 0.24 * nth / far
            else:
                alone = (arrow.target, arrow.origin) not in both
                bend = self._clear_bend(arrow, (0.1 if alone else 0.2) + 0.22 * nth / far)
            found[i] = (start + end) / 2 + bend * left
        return found

    def _clear_bend(self, arrow: Arrow, wanted: float) -> float:
        """The bend nearest to the wanted one with which the arrow passes beside all other nodes, if there is one."""
        start, end = self.at[arrow.origin], self.at[arrow.target]
        left = np.array([start[1] - end[1], end[0] - start[0]])
        others = np.delete(np.arange(len(self.at)), [arrow.origin, arrow.target])
        best, best_room = wanted, -math.inf
        for more in (0.0, 0.12, 0.24, -0.3, 0.36, -0.42, 0.48):
            curve = np.array([start, (start + end) / 2 + (wanted + more) * left, end])
            gaps = np.hypot(*(_points(curve, 40)[:, None] - self.at[others]).transpose(2, 0, 1)) - self.radius[others]
            room = min(0.06, float(gaps.min(initial=math.inf)))
            if room > best_room:
                best, best_room = wanted + more, room
        return best

    def _curves(self) -> list[Floats]:
        """Bézier points of every arrow, from the rim of one node to the rim of the other: (3,2), loops (4,2)."""
        around: dict[int, list[float]] = defaultdict(list)
        for i, control in self.controls.items():
            for s in (self.arrows[i].origin, self.arrows[i].target):
                around[s].append(math.atan2(*(control - self.at[s])[::-1]))
        found = []
        for i, arrow in enumerate(self.arrows):
            if arrow.origin == arrow.target:
                angle = self._free_angle(arrow.origin, around[arrow.origin])
                around[arrow.origin].append(angle)
                found.append(_loop(self.at[arrow.origin], float(self.radius[arrow.origin]), angle))
            else:
                ends = self.at[arrow.origin], self.controls[i], self.at[arrow.target]
                radii = float(self.radius[arrow.origin]), float(self.radius[arrow.target])
                found.append(_between(np.array(ends), *radii))
        return found

    def _free_angle(self, s: int, taken: list[float]) -> float:
        """The direction farthest from all others at this node; outwards or upwards among equals."""
        centre = self.at.mean(axis=0)
        out = self.at[s] - centre
        liked = math.pi / 2 if self.shape != "circle" or not out.any() else math.atan2(out[1], out[0])
        best, best_score = liked, -math.inf
        for k in range(72):
            angle = liked + k * math.pi / 36
            room = min((_turn(angle, other) for other in taken), default=math.pi)
            score = min(room, 1.2) - 0.15 * _turn(angle, liked)
            if score > best_score + 1e-9:
                best, best_score = angle, score
        return best

    # ---------------------------------------------------------------- drawing

    def draw(self, ax: Axes | None) -> Figure:
        from matplotlib.patches import Circle, FancyArrowPatch
        from matplotlib.path import Path

        low, high = self._limits(outside=False)
        self.outside = self.labels and self._font(self._unit(high - low, ax)) < SMALLEST
        low, high = self._limits(outside=self.outside)
        unit = self._unit(high - low, ax)
        names = self._action_names()
        if ax is None:
            width = max(4.2, float(high[0] - low[0]) * unit)
            columns = _columns(list(names.values()), width)
            rows = math.ceil(len(names) / columns)
            spare = width / unit - (high[0] - low[0])  # narrow drawings stand in the middle
            low[0], high[0] = low[0] - spare / 2, high[0] + spare / 2
            inside = width, float(high[1] - low[1]) * unit
            below = textwrap.fill(self._title()[1], int(width / 0.068))
            top = 0.42 + 0.18 * (1 + below.count("\n"))
            _, axes = framed(inside, 0.15, 0.95 if self.plan is not None else 0.15, 0.15 + 0.21 * rows, top)
        else:
            axes, columns = checked_axes(ax), 4
            below = fitted(axes, self._title()[1])
        bare(axes)
        axes.set_aspect("equal")
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        scale = max(0.55, min(1.0, unit / 0.8))
        codes: dict[int, list[Any]] = {
            3: [Path.MOVETO, Path.CURVE3, Path.CURVE3],
            4: [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
        }
        for arrow, points in zip(self.arrows, self.curves, strict=True):
            colour, dashes = look(arrow.action)
            patch = FancyArrowPatch(
                path=Path(points, codes[len(points)]), arrowstyle="-|>",
                mutation_scale=(6.0 + 5.0 * math.sqrt(arrow.weight)) * scale, color=colour,
                linewidth=(0.5 + 2.0 * arrow.weight) * scale, linestyle=dashes,
                alpha=0.45 + 0.5 * min(1.0, arrow.weight), shrinkA=0, shrinkB=0, zorder=2, capstyle="butt",
                joinstyle="miter",
            )  # fmt: skip
            axes.add_patch(patch)
        faces = self._faces(axes, beside=0.12 if ax is None else None)
        for s, (x, y) in enumerate(self.at):
            axes.add_patch(
                Circle((x, y), self.radius[s], facecolor=faces[s], edgecolor=INK, linewidth=0.8 * scale, zorder=3)
            )
        if self.labels:
            self._write_labels(axes, unit, faces)
        self._legend(axes, names, columns)
        heading(axes, self._title()[0], below)
        return figure_of(axes)

    def _unit(self, size: Floats, ax: Axes | None) -> float:
        """Inches per unit."""
        if ax is None:
            return float(min(1.05, 11.5 / size[0], 7.0 / size[1]))
        box = checked_axes(ax).get_window_extent()
        return float(min(box.width / size[0], box.height / size[1])) / figure_of(ax).dpi

    def _limits(self, *, outside: bool) -> tuple[Floats, Floats]:
        rims = [self.at - self.radius[:, None], self.at + self.radius[:, None]]
        sampled = [_points(curve, 24) for curve in self.curves]
        every = np.concatenate([*rims, *sampled])
        low, high = every.min(axis=0) - 0.12, every.max(axis=0) + 0.12
        if outside:  # room for labels of 7 points at a small scale
            long = max(len(self._name(s)) for s in range(self.mdp.n_states))
            if self.shape == "chain":
                low[1] -= 0.15 + 0.09 * long
                low[0] -= max(0.0, 0.08 * len(self._name(0)) - 0.3)
            elif self.shape == "circle":
                low, high = low - 0.25 - 0.1 * min(long, 20), high + 0.25 + 0.1 * min(long, 20)
        elif self.labels and self.shape == "circle" and (self.radius < INSIDE).any():
            low, high = low - 0.3, high + 0.3
        return low, high

    def _faces(self, axes: Axes, beside: float | None) -> list[Any]:
        if self.plan is None:
            return ["#f2f2f2"] * self.mdp.n_states
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable

        colours = ScalarMappable(_spread(self.plan.bias), colormaps["viridis"])
        name = "bias" if self.mdp.units.objective == "reward" else "bias (cost)"
        colour_bar(axes, colours, name, beside=beside)
        return [tuple(c) for c in colours.to_rgba(self.plan.bias)]

    def _name(self, s: int) -> str:
        if self.shape == "grid":
            assert self.grid is not None
            return f"{self.grid.row_values[self.grid.rows[s]]}, {self.grid.column_values[self.grid.columns[s]]}"
        return shown(self.mdp.state_name(s), 24)

    def _lines(self, s: int) -> str:
        """The label of a state as it stands in its node."""
        name = self._name(s)
        return name if len(name) <= 4 or self.shape == "grid" else "\n".join(name.split())

    def _font(self, unit: float) -> float:
        """The largest size, up to 10 points, in which every label fits into a node."""
        room = 72 * unit * 2 * RADIUS * 0.86
        size = 10.0
        for s in range(self.mdp.n_states):
            lines = self._lines(s).split("\n")
            size = min(size, room / (0.58 * max(1, *map(len, lines))), room / (1.25 * len(lines)))
        return size

    def _write_labels(self, axes: Axes, unit: float, faces: list[Any]) -> None:
        size = self._font(unit)
        for s, (x, y) in enumerate(self.at):
            if self.outside or self.radius[s] < INSIDE:
                self._label_beside(axes, s)
                continue
            text = axes.text(x, y, self._lines(s), ha="center", va="center", fontsize=size, zorder=4)
            plain(text).set_color(_ink_on(faces[s]))
            text.set_linespacing(0.95)

    def _label_beside(self, axes: Axes, s: int) -> None:
        """Below a chain, slanted; outside a circle; under a node of a grid."""
        (x, y), r = self.at[s], float(self.radius[s])
        if self.shape == "chain" and self.outside:
            long = max(len(self._name(t)) for t in range(self.mdp.n_states))
            top = axes.get_ylim()[0] + 0.1 + 0.09 * long
            text = axes.text(x + 0.1, top, self._name(s), ha="right", va="top", rotation=40, fontsize=7)
            text.set_rotation_mode("anchor")
        elif self.shape != "circle":
            text = axes.text(x, y - r - 0.03, self._name(s), ha="center", va="top", fontsize=7)
        else:
            out = self.at[s] - self.at.mean(axis=0)
            out = out / (float(np.hypot(*out)) or 1.0)
            spot = self.at[s] + out * (r + 0.1)
            align = "left" if out[0] > 0.3 else "right" if out[0] < -0.3 else "center"
            over = "bottom" if out[1] > 0.3 else "top" if out[1] < -0.3 else "center"
            text = axes.text(float(spot[0]), float(spot[1]), self._name(s), ha=align, va=over, fontsize=7)
        plain(text).set_color(INK)
        text.set_zorder(5)
        text.set_bbox({"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.8})

    def _action_names(self) -> dict[int, str]:
        used = sorted({arrow.action for arrow in self.arrows})
        return {a: shown(self.mdp.action_name(a) if self.mdp.action_labels else f"action {a}", 30) for a in used}

    def _legend(self, axes: Axes, names: dict[int, str], columns: int) -> None:
        from matplotlib.lines import Line2D

        looks = [look(a) for a in names]
        handles = [Line2D([], [], color=colour, linestyle=dashes, linewidth=2.0) for colour, dashes in looks]
        named_legend(
            axes, handles, list(names.values()), loc="upper center", bbox_to_anchor=(0.5, 0.01), ncols=columns,
            columnspacing=1.4, borderaxespad=0.2,
        )  # fmt: skip

    def _title(self) -> tuple[str, str]:
        if self.action is not None:
            what = f"action {self.mdp.action_name(self.action)}"
        else:
            what = "all actions" if self.plan is None else f"policy of gain {self.plan.gain:.6g}"
        sized = "" if self.visits is None else "; areas: visits"
        return shown(self.mdp.name or "MDP", 45), shown(f"{what}; widths: probabilities{sized}", 120)


def _columns(names: list[str], width: float) -> int:
    """How many names fit side by side into a legend."""
    widest = 0.62 + 0.075 * max(map(len, names))
    return max(1, min(len(names), int(width / widest)))


def _turn(a: float, b: float) -> float:
    """The angle between two directions."""
    return abs((a - b + math.pi) % (2 * math.pi) - math.pi)


def _points(curve: Floats, n: int) -> Floats:
    """(n, 2) points of a Bézier curve."""
    t = np.linspace(0.0, 1.0, n)[:, None]
    degree = len(curve) - 1
    weights = [math.comb(degree, k) * t**k * (1 - t) ** (degree - k) for k in range(degree + 1)]
    total: Floats = np.sum([w * p for w, p in zip(weights, curve, strict=True)], axis=0)
    return total


def _between(curve: Floats, r_start: float, r_end: float) -> Floats:
    """The part of a quadratic curve between the rims of the two nodes at its ends."""
    sampled = _points(curve, 401)
    after = np.flatnonzero(np.hypot(*(sampled - curve[0]).T) >= r_start + 0.01)
    before = np.flatnonzero(np.hypot(*(sampled - curve[2]).T) >= r_end + 0.02)
    t0, t1 = (after[0] if after.size else 0) / 400, (before[-1] if before.size else 400) / 400

    def polar(a: float, b: float) -> Floats:  # the blossom: its values are the control points of the part
        p, q, r = curve
        found: Floats = (1 - a) * ((1 - b) * p + b * q) + a * ((1 - b) * q + b * r)
        return found

    return np.array([polar(t0, t0), polar(t0, t1), polar(t1, t1)])


def _loop(centre: Floats, r: float, angle: float) -> Floats:
    """A cubic curve out of a node and back into it."""
    half, wide, far = 0.42, 0.62, r + 0.42

    def at(turn: float, reach: float) -> Floats:
        found: Floats = centre + reach * np.array([math.cos(angle + turn), math.sin(angle + turn)])
        return found

    return np.array([at(half, r + 0.01), at(wide, far), at(-wide, far), at(-half, r + 0.02)])


# ---------------------------------------------------------------------- colours


def _spread(values: Floats) -> Any:
    from matplotlib.colors import Normalize

    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    return Normalize(low, high if high > low else low + 1.0)


def _ink_on(face: Any) -> str:
    if isinstance(face, str):
        return INK
    red, green, blue = face[:3]
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"


# ---------------------------------------------------------------------- maps


def _map_of_cells(mdp: MDP, plan: Plan | None, grid: _Grid, visits: Floats | None, ax: Axes | None) -> Figure:
    """States as the cells of a grid, coloured by bias (else visits, else best mean reward), with their action."""
    R, C = len(grid.row_values), len(grid.column_values)
    if plan is not None:
        values, name = plan.bias, "bias" if mdp.units.objective == "reward" else "bias (cost)"
    elif visits is not None:
        values, name = visits, "visits"
    else:
        best = np.where(mdp.allowed, mdp.rewards, -np.inf).max(axis=1)
        values, name = mdp.units.amount(best), f"best mean {mdp.units.objective}"
    table = np.full((R, C), np.nan)
    table[grid.rows, grid.columns] = values
    glyphs = _glyphs(mdp) if plan is not None and max(R, C) <= 40 else {}
    says = f"{mdp.n_states:,} states are too many for a graph: the map of {name}"
    if glyphs:
        used = sorted({int(a) for a in plan.policy.argmax(axis=1)}) if plan is not None else []
        plainly = set(glyphs.values()) <= set(_GLYPHS.values())
        meaning = "" if plainly else ": " + ", ".join(f"{glyphs[a]} = {mdp.action_name(a)}" for a in used)
        says += f", with the policy's actions{meaning}"
    unit = min(0.5, 9.0 / C, 8.0 / R)
    if ax is None:
        width, height = C * unit, R * unit
        right = max(0.95, 4.6 - 0.65 - width)
        below = textwrap.fill(shown(says, 160), int((width + right) / 0.072))
        _, axes = framed((width, height), 0.65, right, 0.55, 0.45 + 0.18 * (1 + below.count("\n")))
    else:
        axes = checked_axes(ax)
        below = fitted(axes, shown(says, 160))
    calm(axes, grid=False)
    drawn = axes.imshow(np.ma.masked_invalid(table), cmap="viridis", norm=_spread(values), interpolation="nearest")
    axes.set_facecolor(HAIR)
    colour_bar(axes, drawn, name, beside=0.12 if ax is None else None)
    sides = ((axes.xaxis, grid.column_values, grid.column_name), (axes.yaxis, grid.row_values, grid.row_name))
    for axis, numbers, called in sides:
        step = max(1, math.ceil(len(numbers) / 12))
        axis.set_ticks(range(0, len(numbers), step), [str(x) for x in numbers[::step]])
        plain(axis.label).set_text(called)
    if plan is not None:
        for s in range(mdp.n_states if glyphs else 0):
            face = drawn.cmap(drawn.norm(values[s]))
            at = float(grid.columns[s]), float(grid.rows[s])
            glyph = glyphs[int(plan.policy[s].argmax())]
            text = axes.text(at[0], at[1], glyph, ha="center", va="center")
            plain(text).set_color(_ink_on(face))
            text.set_fontsize(max(5.0, 26 * unit))
    heading(axes, shown(mdp.name or "MDP", 45), below)
    return figure_of(axes)


def _glyphs(mdp: MDP) -> dict[int, str]:
    """An arrow per action if all of them are directions, else their first letters if those differ, else numbers."""
    names = [mdp.action_name(a).strip() for a in range(mdp.n_actions)]
    found = [_GLYPHS.get(name.lower(), "") for name in names]
    if not all(found):
        found = [shown(name, 8)[:1] for name in names]
    if len(set(found)) < len(found) or not all(found):
        found = [str(a) for a in range(mdp.n_actions)]
    return dict(enumerate(found))


def _map_of_pairs(mdp: MDP, plan: Plan | None, why: str, ax: Axes | None) -> Figure:
    """States to the right, actions upwards, coloured by what an action loses once, or by mean rewards."""
    from matplotlib.ticker import MaxNLocator

    S, A = mdp.n_states, mdp.n_actions
    if S * A > MOST_PAIRS:
        raise InvalidArgumentError(f"{S * A:,} pairs, expected at most {MOST_PAIRS:,}; draw mdp.restricted(states)")
    if plan is not None:
        q = mdp.q_values(mdp.units.amount(plan.bias))
        table, name = q.max(axis=1, keepdims=True) - np.where(mdp.allowed, q, np.nan), "loss of the action"
    else:
        table, name = np.where(mdp.allowed, mdp.units.amount(mdp.rewards), np.nan), f"mean {mdp.units.objective}"
    dots = plan is not None and S <= 150
    says = f"{why}: {name} by state and action" + (" (dots: the policy)" if dots else "")
    actions = [shown(mdp.action_name(a), 24) for a in range(A)]
    states = [shown(mdp.state_name(s), 24) for s in range(S)] if S <= READABLE_STATES and mdp.state_labels else []
    if ax is None:
        left, bottom = 0.5 + 0.07 * max(map(len, actions)), 0.55 + 0.07 * max(map(len, states), default=0)
        _, axes = framed((6.4, min(5.0, max(1.2, 0.3 * A))), left, 0.95, bottom, 0.65)
    else:
        axes = checked_axes(ax)
    calm(axes, grid=False)
    drawn = axes.imshow(
        np.ma.masked_invalid(table.T), cmap="viridis" if plan is None else "viridis_r", norm=_spread(table),
        aspect="auto", interpolation="nearest", origin="lower",
    )  # fmt: skip
    axes.set_facecolor(HAIR)
    colour_bar(axes, drawn, name, beside=0.12 if ax is None else None)
    if plan is not None and dots:
        s, a = np.nonzero(plan.policy > 0.0)
        axes.plot(s, a, "o", color="white", markeredgecolor=INK, markersize=3.5, markeredgewidth=0.6, label="_policy")
    step = max(1, math.ceil(A / 24))
    axes.set_yticks(range(0, A, step), actions[::step])
    if states:
        axes.set_xticks(range(S), states, rotation=90)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for tick in [*axes.get_yticklabels(), *(axes.get_xticklabels() if states else [])]:
        plain(tick)
    axes.set_xlabel("state", fontsize=10)
    axes.set_ylabel("action", fontsize=10)
    heading(axes, shown(mdp.name or "MDP", 60), shown(says, 110) if ax is None else fitted(axes, shown(says, 110)))
    return figure_of(axes)
