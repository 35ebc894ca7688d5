"""What an audit knows about a mixture environment: p(·|x,a)·v = p₀·v + w_a(x)·(p₁·v - p₀·v) at every point, exactly.

In one dimension events are checked at the same points of each cell as elsewhere, in two at its corners and its centre.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined, kernel
from gainful.audit.cell_tables import CellTables, PointCounter, TableArrays
from gainful.audit.findings import Floats
from gainful.audit.interval_law import SHARES
from gainful.audit.points import COUNTS, POINTS, TRUE_VALUES, CellSums, Grid, LoggedTransitions, cell_of, level_of
from gainful.audit.rows import ANCHOR, CountedRows
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.continuous.mixture import MixtureSolution, good_chance, work_reward

CORNERS = np.array([[1e-9, 1e-9], [1e-9, 1.0], [1.0, 1e-9], [1.0, 1.0], [0.5, 0.5]])
"""Shares of the sides of a cell in two dimensions: just inside its left and lower ends, its other ends, its centre."""


class MixtureBias(NamedTuple):
    """h(x) = max(least, lost + (1 - lost)·φ(x)), with the parameters of the step function."""

    parameters: Any
    least: float
    lost: float


class MixturePoints(NamedTuple):
    """The sampled points: which are in the box, w_a(x) as (S*POINTS, A), and p₀(J), p₁(J) as (2, S)."""

    inside: Any
    weights: Any
    parts: Any


@inlined
def mixture_bias(x: Any, bias: MixtureBias) -> float:
    """The bias h(x)."""
    h: float = max(bias.least, bias.lost + (1.0 - bias.lost) * work_reward(bias.parameters, x))
    return h


@kernel
def take_in_mixture(
    moves: LoggedTransitions, between: Any, grid: Grid, level: int, bias: MixtureBias, plan: Any, out: CellSums
) -> float:
    """Count some transitions, and add h(x') up; returns Σ (p(·|x,a)·v - v(x)).

    `plan` is (v, p₀·v, p₁·v) of the present episode.
    """
    moves, grid, bias, out = LoggedTransitions(*moves), Grid(*grid), MixtureBias(*bias), CellSums(*out)
    v, at_0, at_1 = plan
    drift = 0.0
    for i in range(between[0], between[1]):
        cell, a = cell_of(moves.origin[i], grid), moves.action[i]
        pair = cell * grid.n_actions + a
        out.counts[pair] += 1
        if level == COUNTS:
            continue
        out.bias[pair] += mixture_bias(moves.target[i], bias)
        if level == TRUE_VALUES:
            drift += at_0 + good_chance(bias.parameters, moves.origin[i], a) * (at_1 - at_0) - v[cell]
    return drift


@kernel
def mixture_levels(moves: LoggedTransitions, end: int, grid: Grid, bias: MixtureBias, levels: Any, out: Any) -> None:
    """Count h(x') of the first `end` transitions, rounded down to `levels`, for the pair of each."""
    moves, grid, bias = LoggedTransitions(*moves), Grid(*grid), MixtureBias(*bias)
    for i in range(end):
        pair = cell_of(moves.origin[i], grid) * grid.n_actions + moves.action[i]
        out[pair, level_of(mixture_bias(moves.target[i], bias), levels)] += 1


@kernel
def compare_in_mixture(
    rows: CountedRows, possible: Any, points: MixturePoints, values: Any, true_values: Any, distance: Any
) -> None:
    """p(·|x,a)·v and ‖p̂ - p(·|x,a)‖₁ at the sampled points x of every cell, into (S*A, POINTS) each.

    Points outside the environment's box, and pairs that are not possible, get 0.
    """
    rows, points = CountedRows(*rows), MixturePoints(*points)
    S, parts = values.size, points.parts
    A = possible.size // S
    q = np.zeros(S)
    for k in range(possible.size):
        if not possible[k]:
            true_values[k, :] = 0.0
            distance[k, :] = 0.0
            continue
        share, row_end = 1.0 / (rows.visits[k] + 1.0), rows.begin[k] + rows.length[k]
        for i in range(rows.begin[k], row_end):
            q[rows.next_state[i]] = rows.count[i] * share
        q[ANCHOR] += share
        for j in range(POINTS):
            point = (k // A) * POINTS + j
            w, pv, l1 = points.weights[point, k % A], 0.0, 0.0
            if points.inside[point]:
                for to in range(S):
                    p = parts[0, to] + w * (parts[1, to] - parts[0, to])
                    pv += p * values[to]
                    l1 += abs(q[to] - p)
            true_values[k, j], distance[k, j] = pv, l1
        for i in range(rows.begin[k], row_end):
            q[rows.next_state[i]] = 0.0
        q[ANCHOR] = 0.0


@dataclass(frozen=True, eq=False)
class MixtureTables(CellTables):
    """The true model of a mixture environment seen from cells."""

    solved: MixtureSolution = field(repr=False)
    weights: Floats
    """(S*POINTS, A) w_a(x)."""
    parts: Floats
    """(2, S) p₀(J) and p₁(J)."""

    @property
    def level(self) -> int:
        """Everything is known at every point."""
        return TRUE_VALUES

    def counter(self) -> MixtureCounter:
        """Counts transitions on these cells."""
        return MixtureCounter(self)


class MixtureCounter(PointCounter):
    """Counts the transitions of a run in a mixture environment.

    Parameters
    ----------
    tables : MixtureTables
        The true model on the cells.
    """

    def __init__(self, tables: MixtureTables) -> None:
        super().__init__(tables.level)
        self._tables, solved = tables, tables.solved
        least, lost = solved.ends[0], solved.law.parameters[-1] * solved.difference
        self._bias = MixtureBias(np.array(solved.law.parameters), least, lost)

    def take(
        self, moves: LoggedTransitions, between: tuple[int, int], grid: Grid, level: int, plan: Any, out: CellSums
    ) -> float:
        """Count some transitions, add h(x') up, and return Σ (p(·|x,a)·v - v(x))."""
        _, v = plan
        at_0, at_1 = self._tables.parts @ v
        known = tuple(self._bias), (v, float(at_0), float(at_1))
        return float(take_in_mixture(tuple(moves), between, tuple(grid), level, *known, tuple(out)))

    def compare(self, rows: CountedRows, possible: Any, values: Floats, true_values: Floats, distance: Floats) -> None:
        """p(·|x,a)·v and ‖p̂ - p(·|x,a)‖₁ at the sampled points."""
        points = self._tables.inside, self._tables.weights, self._tables.parts
        compare_in_mixture(tuple(rows), possible, points, values, true_values, distance)

    def count_levels(self, moves: LoggedTransitions, end: int, grid: Grid, levels: Floats, out: Any) -> None:
        """Count h(x') of the first `end` transitions, rounded down to `levels`, for the pair of each."""
        mixture_levels(tuple(moves), end, tuple(grid), tuple(self._bias), levels, out)


def tabulate_mixture(env: ContinuousEnvironment, solved: MixtureSolution, edges: list[Floats]) -> MixtureTables:
    """The tables of right-closed cells between the edges of each axis, in the unit cube."""
    inner = [np.clip(e, 0.0, 1.0) for e in edges]
    there = _has_points(edges)
    places = _sampled(inner)
    actions = range(env.n_actions)
    return MixtureTables(
        *TableArrays.of(env, places, there, np.stack([solved.expected(places, a) for a in actions], axis=1)),
        anchor=_anchor(solved, edges),
        error=0.0,
        solved=solved,
        weights=np.stack([solved.law.weight(places, a) for a in actions], axis=1),
        parts=solved.law.masses(inner),
    )


def _sampled(edges: list[Floats]) -> Floats:
    """(S*POINTS, d) the sampled points of every cell."""
    sides = [(e[:-1], np.diff(e)) for e in edges]
    if len(edges) == 1:
        low, width = sides[0]
        return np.asarray((low[:, None] + width[:, None] * SHARES).reshape(-1, 1))
    grids = []
    for axis, (low, width) in enumerate(sides):
        along = low[:, None] + width[:, None] * CORNERS[:, axis]  # (n, POINTS)
        n = [edges[0].size - 1, edges[1].size - 1]
        shape = (n[0], 1, POINTS) if axis == 0 else (1, n[1], POINTS)
        grids.append(np.broadcast_to(along.reshape(shape), (*n, POINTS)).reshape(-1))
    return np.stack(grids, axis=1)


def _has_points(edges: list[Floats]) -> Any:
    """(S,) whether the right-closed cells have points of the unit cube."""
    axes = []
    for e in edges:
        left, right = np.maximum(e[:-1], 0.0), np.minimum(e[1:], 1.0)
        axes.append((left < right) | ((left == right) & (right == e[1:])))
    return axes[0] if len(axes) == 1 else np.logical_and.outer(*axes).reshape(-1)


def _anchor(solved: MixtureSolution, edges: list[Floats]) -> float:
    """The mean of h over the first cell, as far as it lies in the unit cube."""
    low, high = (np.array([np.clip(e[i], 0.0, 1.0) for e in edges]) for i in (0, 1))
    return solved.mean_between(low, high) if np.all(low < high) else float(solved.bias(low[None, :])[0])
