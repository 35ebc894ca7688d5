"""An MDP as a graph: states as nodes, transitions as arrows."""

from __future__ import annotations

import math
import textwrap
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError
from gainful.mdp.layout import (
    NODE_RADIUS,
    GraphLayout,
    LabelGrid,
    Shape,
    between_rims,
    label_grid,
    loop_at,
    natural_shape,
    points_on,
)
from gainful.mdp.model import MDP
from gainful.planning.plan import Plan
from gainful.plot.maps import ink_on, linear_colours, map_of_cells, map_of_pairs
from gainful.plot.style import (
    INK,
    bare,
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
LARGEST_GRAPH = 300
"""States of the largest graph that an explicit layout draws."""
SMALLEST_FONT = 5.5
"""Points of the smallest label inside a node."""
INSIDE = 0.75 * NODE_RADIUS
"""Radius of the smallest node that holds its label."""


def mdp(
    mdp: MDP,
    plan: Plan | None = None,
    *,
    visits: ArrayLike | None = None,
    layout: Layout = "auto",
    action: int | str | None = None,
    labels: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """Draw an MDP as a graph: one node per state, one arrow per transition, in the colour of its action.

    The width of an arrow is its probability; for a policy that mixes actions, the product with the probability of the
    action. An MDP that is too large for a graph is drawn as a map: of the cells of its grid with the action in each,
    or of states and actions, coloured by what an action loses (with a plan) or by mean rewards.

    Parameters
    ----------
    mdp : MDP
        The decision process.
    plan : Plan, optional
        Its policy decides which arrows are drawn, and its bias colours the nodes. Without a plan the arrows of all
        actions are drawn.
    visits : array_like, optional
        Numbers of visits, shown as the areas of the nodes: per state, (S,), or per state and action, (S, A) or an
        agent's flat (S*A,).
    layout : {"auto", "chain", "circle", "grid"}
        "auto" takes a grid if every state label holds two numbers ("row 1, column 2"), a chain if states only move to
        neighbours and to one common state, and a circle otherwise; above 40 states or 200 arrows it draws a map. An
        explicit layout draws up to 300 states.
    action : int or str, optional
        Draw the arrows of this action alone; its index or its label.
    labels : bool
        Whether to write the names of the states.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        A notebook shows it; `figure.savefig("name.pdf")` writes it.

    Raises
    ------
    InvalidArgumentError
        If the plan belongs to another MDP, or the layout does not fit.

    Examples
    --------
    >>> import gainful as gf
    >>> river = gf.environments.riverswim(6)
    >>> figure = gf.plot.mdp(river, gf.solve(river))
    >>> [ax.get_ylabel() for ax in figure.axes]
    ['', 'bias']
    """
    needs_matplotlib()
    _check_arguments(mdp, plan, layout)
    chosen = None if action is None else mdp.action_index(action)
    seen = _state_visits(mdp, visits)
    grid = label_grid(mdp) if layout in ("auto", "grid") else None
    if layout == "grid" and grid is None:
        raise InvalidArgumentError(
            "layout",
            layout,
            "labels such as 'row 0, column 1'",
            "choose 'chain' or 'circle'",
            problem="layout is 'grid', but the labels of the states do not hold two whole numbers each",
        )
    small = mdp.n_states <= READABLE_STATES
    if layout in ("chain", "circle") and mdp.n_states > LARGEST_GRAPH:
        raise InvalidArgumentError(
            "layout",
            layout,
            f"at most {LARGEST_GRAPH}",
            "choose layout='auto', which draws a map",
            problem=f"a {layout} of {mdp.n_states:,} states cannot be read",
        )
    if not small and grid is not None:
        return map_of_cells(mdp, plan, grid, seen, ax)
    if layout == "auto" and not small:
        return map_of_pairs(mdp, plan, f"{mdp.n_states:,} states are too many for a graph", ax, names=False)
    arrows = _arrows(mdp, plan, chosen)
    if layout == "auto" and len(arrows) > READABLE_ARROWS:
        return map_of_pairs(mdp, plan, f"{len(arrows):,} transitions are too many for a graph", ax, names=small)
    shape = natural_shape(mdp, grid) if layout == "auto" else layout
    return _Graph(mdp, plan, arrows, seen, shape, grid, labels, chosen).draw(ax)


def _check_arguments(mdp: Any, plan: Any, layout: Any) -> None:
    if not isinstance(mdp, MDP):
        raise InvalidArgumentError(
            "mdp",
            mdp,
            "an MDP",
            "it is in plan.mdp" if isinstance(mdp, Plan) else "",
            problem=f"mdp is {type(mdp).__name__}",
        )
    shape_of_plan = getattr(getattr(plan, "policy", None), "shape", None)
    if plan is not None and shape_of_plan != mdp.allowed.shape:
        raise InvalidArgumentError("plan", plan, "what gf.solve(mdp) returns", problem="plan is not one of this MDP")
    if layout not in get_args(Layout):
        raise InvalidArgumentError("layout", layout, f"one of {', '.join(get_args(Layout))}")


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


def _state_visits(mdp: MDP, visits: Any) -> Floats | None:
    if visits is None:
        return None
    given = np.asarray(visits, dtype=np.float64)
    S, A = mdp.n_states, mdp.n_actions
    if given.shape == (S * A,) or given.shape == (S, A):
        given = given.reshape(S, A).sum(axis=1) if given.shape != (S,) else given
    if given.shape != (S,) or not np.isfinite(given).all() or (given < 0).any():
        raise InvalidArgumentError(
            "visits",
            visits,
            f"({S},), ({S}, {A}) or ({S * A},), none negative",
            problem=f"visits have shape {np.shape(visits)}",
        )
    return given


# ---------------------------------------------------------------------- the graph


class _Graph:
    """The parts of a drawing: nodes, curves and labels, in the units of `GraphLayout`."""

    def __init__(
        self,
        mdp: MDP,
        plan: Plan | None,
        arrows: list[Arrow],
        visits: Floats | None,
        shape: Shape,
        grid: LabelGrid | None,
        labels: bool,
        action: int | None,
    ) -> None:
        self.mdp, self.plan, self.arrows, self.shape, self.grid = mdp, plan, arrows, shape, grid
        self.labels, self.action = labels, action
        self.visits = visits
        n = mdp.n_states
        self.radius = np.full(n, NODE_RADIUS)
        if visits is not None:
            largest = float(visits.max(initial=0.0)) or 1.0
            self.radius = np.maximum(0.1, 1.15 * NODE_RADIUS * np.sqrt(visits / largest))
        self.outside = False
        """Whether labels stand beside the nodes, not in them."""
        layout = GraphLayout(n, shape, grid)
        self.at = layout.positions
        self.curves = self._curves(layout)

    def _curves(self, layout: GraphLayout) -> list[Floats]:
        """Bézier points of every arrow, from the rim of one node to the rim of the other: (3,2), loops (4,2)."""
        routes = layout.routes([(arrow.origin, arrow.target) for arrow in self.arrows], self.radius)
        found = []
        for i, arrow in enumerate(self.arrows):
            start, end = self.at[arrow.origin], self.at[arrow.target]
            radii = float(self.radius[arrow.origin]), float(self.radius[arrow.target])
            if i in routes.loop_angles:
                found.append(loop_at(start, radii[0], routes.loop_angles[i]))
            else:
                found.append(between_rims(np.array([start, routes.controls[i], end]), *radii))
        return found

    def draw(self, ax: Axes | None) -> Figure:
        low, high = self._limits(outside=False)
        self.outside = self.labels and self._font(self._unit(high - low, ax)) < SMALLEST_FONT
        low, high = self._limits(outside=self.outside)
        unit = self._unit(high - low, ax)
        names = self._action_names()
        if ax is None:
            axes, columns, below = self._new_axes(low, high, unit, names)
        else:
            axes, columns = checked_axes(ax), 4
            below = fitted(axes, self._title()[1])
        bare(axes)
        axes.set_aspect("equal")
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        scale = max(0.55, min(1.0, unit / 0.8))
        self._draw_arrows(axes, scale)
        faces = self._faces(axes, beside=0.12 if ax is None else None)
        self._draw_nodes(axes, faces, scale)
        if self.labels:
            self._write_labels(axes, unit, faces)
        self._legend(axes, names, columns)
        heading(axes, self._title()[0], below)
        return figure_of(axes)

    def _new_axes(self, low: Floats, high: Floats, unit: float, names: dict[int, str]) -> tuple[Axes, int, str]:
        """Axes of a new figure, the columns of its legend and its subtitle; a narrow drawing is centred in place."""
        width = max(4.2, float(high[0] - low[0]) * unit)
        columns = _columns(list(names.values()), width)
        rows = math.ceil(len(names) / columns)
        spare = width / unit - (high[0] - low[0])
        low[0], high[0] = low[0] - spare / 2, high[0] + spare / 2
        inside = width, float(high[1] - low[1]) * unit
        below = textwrap.fill(self._title()[1], int(width / 0.068))
        top = 0.42 + 0.18 * (1 + below.count("\n"))
        _, axes = framed(inside, 0.15, 0.95 if self.plan is not None else 0.15, 0.15 + 0.21 * rows, top)
        return axes, columns, below

    def _draw_arrows(self, axes: Axes, scale: float) -> None:
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        codes: dict[int, list[Any]] = {
            3: [Path.MOVETO, Path.CURVE3, Path.CURVE3],
            4: [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
        }
        for arrow, points in zip(self.arrows, self.curves, strict=True):
            colour, dashes = look(arrow.action)
            patch = FancyArrowPatch(
                path=Path(points, codes[len(points)]),
                arrowstyle="-|>",
                mutation_scale=(6.0 + 5.0 * math.sqrt(arrow.weight)) * scale,
                color=colour,
                linewidth=(0.5 + 2.0 * arrow.weight) * scale,
                linestyle=dashes,
                alpha=0.45 + 0.5 * min(1.0, arrow.weight),
                shrinkA=0,
                shrinkB=0,
                zorder=2,
                capstyle="butt",
                joinstyle="miter",
            )
            axes.add_patch(patch)

    def _draw_nodes(self, axes: Axes, faces: list[Any], scale: float) -> None:
        from matplotlib.patches import Circle

        for s, (x, y) in enumerate(self.at):
            axes.add_patch(
                Circle((x, y), self.radius[s], facecolor=faces[s], edgecolor=INK, linewidth=0.8 * scale, zorder=3)
            )

    def _unit(self, size: Floats, ax: Axes | None) -> float:
        """Inches per unit."""
        if ax is None:
            return float(min(1.05, 11.5 / size[0], 7.0 / size[1]))
        box = checked_axes(ax).get_window_extent()
        return float(min(box.width / size[0], box.height / size[1])) / figure_of(ax).dpi

    def _limits(self, *, outside: bool) -> tuple[Floats, Floats]:
        rims = [self.at - self.radius[:, None], self.at + self.radius[:, None]]
        sampled = [points_on(curve, 24) for curve in self.curves]
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

        colours = ScalarMappable(linear_colours(self.plan.bias), colormaps["viridis"])
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
        room = 72 * unit * 2 * NODE_RADIUS * 0.86
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
            plain(text).set_color(ink_on(faces[s]))
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
            axes,
            handles,
            list(names.values()),
            loc="upper center",
            bbox_to_anchor=(0.5, 0.01),
            ncols=columns,
            columnspacing=1.4,
            borderaxespad=0.2,
        )

    def _title(self) -> tuple[str, str]:
        if self.action is not None:
            what = f"action {self.mdp.action_name(self.action)}"
        else:
            name = "gain" if self.mdp.units.objective == "reward" else "average cost"
            what = "all actions" if self.plan is None else f"policy of {name} {self.plan.gain:.6g}"
        sized = "" if self.visits is None else "; areas: visits"
        return shown(self.mdp.name or "MDP", 45), shown(f"{what}; widths: probabilities{sized}", 120)


def _columns(names: list[str], width: float) -> int:
    """How many names fit side by side into a legend."""
    widest = 0.62 + 0.075 * max(map(len, names))
    return max(1, min(len(names), int(width / widest)))
