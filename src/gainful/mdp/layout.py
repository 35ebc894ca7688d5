"""Where the states of an MDP go in a drawing, and how arrows run between them. Needs no matplotlib.

The figures of `gainful.plot` and the report page draw the same layout. Coordinates have y upwards; neighbours in a
chain or a grid are a little more than 1 apart, and a node has the radius `NODE_RADIUS`.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful.mdp.model import MDP

Shape: TypeAlias = Literal["chain", "circle", "grid"]
Floats: TypeAlias = NDArray[np.float64]

NODE_RADIUS = 0.3
CHAIN_STEP = 1.15
GRID_STEP = 1.25
CLEARANCE = 0.06
"""The gap between an arrow and a node it passes; more than this is no better."""


@dataclass(frozen=True, eq=False)
class LabelGrid:
    """Row and column of every state, read from its label, and what rows and columns are called."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    row_values: tuple[int, ...]
    column_values: tuple[int, ...]
    row_name: str
    column_name: str


def label_grid(mdp: MDP) -> LabelGrid | None:
    """The grid that state labels such as "row 0, column 1" describe: the same words, two different whole numbers."""
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
    row_name, column_name = _axis_names(words.pop())
    return LabelGrid(
        row_of.reshape(-1),
        column_of.reshape(-1),
        tuple(rows.tolist()),
        tuple(columns.tolist()),
        row_name,
        column_name,
    )


def _axis_names(words: tuple[str, ...]) -> tuple[str, str]:
    """What the words around two numbers call them."""
    before, between, after = (re.sub(r"[^\w ,]", " ", word) for word in words)
    if "," in between:  # "row 0, column 1", "0 free, priority 1"
        end, begin = between.split(",", 1)
        first, second = before + end, begin + after
    else:  # "0 and 1"
        first, second = before, after
    return first.strip(" ,") or "first", second.strip(" ,") or "second"


def is_chain(mdp: MDP) -> bool:
    """Whether every action moves to neighbouring states only, apart from jumps to one common state."""
    origin = np.repeat(np.arange(mdp.n_states * mdp.n_actions) // mdp.n_actions, np.diff(mdp.indptr))
    target = mdp.indices.astype(np.int64)
    return mdp.n_states > 2 and np.unique(target[np.abs(origin - target) > 1]).size <= 1


def natural_shape(mdp: MDP, grid: LabelGrid | None) -> Shape:
    """A grid where the labels describe one, else a chain where moves are local, else a circle."""
    if grid is not None:
        return "grid"
    return "chain" if is_chain(mdp) else "circle"


class Routes(NamedTuple):
    """How arrows run, by their position in the list of arrows."""

    controls: dict[int, Floats]
    """The middle control point of the quadratic curve of every arrow between two states."""
    loop_angles: dict[int, float]
    """The direction of every arrow from a state to itself, in radians."""


class GraphLayout:
    """Positions of `n` states, and routes for arrows between them."""

    def __init__(self, n: int, shape: Shape, grid: LabelGrid | None = None) -> None:
        self.shape, self.grid = shape, grid
        self.positions = _positions(n, shape, grid)  # (n, 2)

    def routes(self, arrows: Sequence[tuple[int, int]], radius: Floats) -> Routes:
        """Routes for arrows given as (origin, target), around nodes with these radii; parallel arrows bend further."""
        controls = self._control_points(arrows, radius)
        taken: dict[int, list[float]] = defaultdict(list)
        for i, control in controls.items():
            for s in arrows[i]:
                taken[s].append(math.atan2(*(control - self.positions[s])[::-1]))
        angles = {}
        for i, (origin, target) in enumerate(arrows):
            if origin == target:
                angles[i] = self._free_angle(origin, taken[origin])
                taken[origin].append(angles[i])
        return Routes(controls, angles)

    def _control_points(self, arrows: Sequence[tuple[int, int]], radius: Floats) -> dict[int, Floats]:
        used: dict[tuple[int, int], int] = defaultdict(int)
        both = set(arrows)
        found = {}
        for i, (origin, target) in enumerate(arrows):
            if origin == target:
                continue
            nth = used[origin, target]
            used[origin, target] += 1
            start, end = self.positions[origin], self.positions[target]
            way = end - start
            left = np.array([-way[1], way[0]])
            far = float(np.hypot(*way))
            if self.shape == "chain":
                bend = 0.42 * far**-0.25 + 0.24 * nth / far
            else:
                alone = (target, origin) not in both
                bend = self._clear_bend(origin, target, (0.1 if alone else 0.2) + 0.22 * nth / far, radius)
            found[i] = (start + end) / 2 + bend * left
        return found

    def _clear_bend(self, origin: int, target: int, wanted: float, radius: Floats) -> float:
        """The bend nearest to the wanted one with which the arrow passes beside all other nodes, if there is one."""
        start, end = self.positions[origin], self.positions[target]
        left = np.array([start[1] - end[1], end[0] - start[0]])
        others = np.delete(np.arange(len(self.positions)), [origin, target])
        best, best_room = wanted, -math.inf
        for more in (0.0, 0.12, 0.24, -0.3, 0.36, -0.42, 0.48):
            curve = np.array([start, (start + end) / 2 + (wanted + more) * left, end])
            away = points_on(curve, 40)[:, None] - self.positions[others]
            gaps = np.hypot(*away.transpose(2, 0, 1)) - radius[others]
            room = min(CLEARANCE, float(gaps.min(initial=math.inf)))
            if room > best_room:
                best, best_room = wanted + more, room
            if room == CLEARANCE:
                break
        return best

    def _free_angle(self, s: int, taken: list[float]) -> float:
        """The direction farthest from all others at this node; outwards or upwards among equals."""
        out = self.positions[s] - self.positions.mean(axis=0)
        liked = math.pi / 2 if self.shape != "circle" or not out.any() else math.atan2(out[1], out[0])
        best, best_score = liked, -math.inf
        for k in range(72):
            angle = liked + k * math.pi / 36
            room = min((_angle_between(angle, other) for other in taken), default=math.pi)
            score = min(room, 1.2) - 0.15 * _angle_between(angle, liked)
            if score > best_score + 1e-9:
                best, best_score = angle, score
        return best


def _positions(n: int, shape: Shape, grid: LabelGrid | None) -> Floats:
    if shape == "grid":
        assert grid is not None
        return np.stack([grid.columns, -grid.rows], axis=1) * GRID_STEP
    if shape == "chain" or n <= 2:
        return np.stack([np.arange(n) * CHAIN_STEP, np.zeros(n)], axis=1)
    reach = max(0.85, CHAIN_STEP / (2 * math.sin(math.pi / n)))
    angle = math.pi / 2 - 2 * math.pi * np.arange(n) / n
    return reach * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _angle_between(a: float, b: float) -> float:
    return abs((a - b + math.pi) % (2 * math.pi) - math.pi)


# ---------------------------------------------------------------------- Bézier curves


def points_on(curve: Floats, n: int) -> Floats:
    """(n, 2) points of a Bézier curve given by its control points."""
    t = np.linspace(0.0, 1.0, n)[:, None]
    degree = len(curve) - 1
    weights = [math.comb(degree, k) * t**k * (1 - t) ** (degree - k) for k in range(degree + 1)]
    total: Floats = np.sum([w * p for w, p in zip(weights, curve, strict=True)], axis=0)
    return total


def between_rims(curve: Floats, r_start: float, r_end: float) -> Floats:
    """The part of a quadratic curve between the rims of the two nodes at its ends."""
    sampled = points_on(curve, 401)
    after = np.flatnonzero(np.hypot(*(sampled - curve[0]).T) >= r_start + 0.01)
    before = np.flatnonzero(np.hypot(*(sampled - curve[2]).T) >= r_end + 0.02)
    t0, t1 = (after[0] if after.size else 0) / 400, (before[-1] if before.size else 400) / 400

    def polar(a: float, b: float) -> Floats:  # the blossom: its values are the control points of the part
        p, q, r = curve
        found: Floats = (1 - a) * ((1 - b) * p + b * q) + a * ((1 - b) * q + b * r)
        return found

    return np.array([polar(t0, t0), polar(t0, t1), polar(t1, t1)])


def loop_at(centre: Floats, r: float, angle: float) -> Floats:
    """A cubic curve out of a node and back into it."""
    half, wide, far = 0.42, 0.62, r + 0.42

    def at(turn: float, reach: float) -> Floats:
        found: Floats = centre + reach * np.array([math.cos(angle + turn), math.sin(angle + turn)])
        return found

    return np.array([at(half, r + 0.01), at(wide, far), at(-wide, far), at(-half, r + 0.02)])
