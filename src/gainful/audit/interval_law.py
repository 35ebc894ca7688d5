"""What an audit knows about an environment on an interval: the law at points of the agent's cells, by its distribution.

x ↦ p(J|x,a) is kept as polynomials on pieces of every cell, so that p(·|x,a)·v is cheap at every visited point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gainful.audit.cell_tables import CellTables, PointCounter, TableArrays
from gainful.audit.findings import Floats
from gainful.audit.points import (
    BIAS,
    COUNTS,
    NODES,
    POINTS,
    TRUE_VALUES,
    Bands,
    BiasLine,
    CellSums,
    Grid,
    LawPieces,
    LoggedTransitions,
    compare_points,
    count_levels,
    take,
)
from gainful.audit.rows import CountedRows
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.continuous.oracle import OracleSolution

SHARES = np.array([1e-9, 0.25, 0.5, 0.75, 1.0])
PIECES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Pieces per cell that are tried in turn."""
INTERPOLATED = 1e-10
"""The largest accepted Σ_J |p(J|x,a) - its polynomial|; above it, the next number of pieces is tried."""
MOST_PIECE_NUMBERS = 20_000_000
"""Numbers that the tables of all pieces may hold."""
NEGLIGIBLE = 1e-17


@dataclass(frozen=True, eq=False)
class IntervalTables(CellTables):
    """The true model seen from the cells of an interval."""

    solved: OracleSolution = field(repr=False)
    to_unit: tuple[float, float]
    """(origin, length): a coordinate y of the agent is (y - origin)/length in the unit interval."""
    laws: Bands
    """Rows (x, a): p(J|x,a)."""
    pieces: int
    """Pieces per cell; 0 if no number of them was good enough."""
    polynomials: Bands
    """Rows (a, piece, Chebyshev point): p(J|x,a)."""

    @property
    def level(self) -> int:
        """How much of the true model is known at every point."""
        return TRUE_VALUES if self.pieces else BIAS

    def counter(self) -> IntervalCounter:
        """Counts transitions on these cells."""
        nodes = self.solved.nodes
        n = nodes.size
        guide = np.searchsorted(nodes, np.arange(4 * n + 1) / (4 * n), "left")
        line = BiasLine(nodes, self.solved.bias, np.clip(guide - 1, 0, n - 2), *self.to_unit)
        rows = max(1, self.rewards.size // POINTS * self.pieces)
        return IntervalCounter(self, line, law_pieces(self.pieces, self.polynomials, rows))


def law_pieces(pieces: int, polynomials: Bands, rows: int) -> LawPieces:
    """Polynomials of x ↦ p(·|x,a)·v_k, with room for the coefficients of one episode."""
    return LawPieces(pieces, polynomials, to_coefficients(), np.zeros((rows, NODES)), np.full(rows, -1, dtype=np.int64))


class IntervalCounter(PointCounter):
    """Counts the transitions of a run in an interval; without tables, nothing but the transitions."""

    def __init__(self, tables: IntervalTables | None, line: BiasLine, law: LawPieces) -> None:
        super().__init__(COUNTS if tables is None else tables.level)
        self._tables, self._line, self._law = tables, line, law

    @classmethod
    def without_a_law(cls) -> IntervalCounter:
        """For environments of any dimension whose law is unknown."""
        nothing, zero = np.zeros(2), np.zeros(1, dtype=np.int64)
        nothing.flags.writeable = False  # as the oracle's arrays: one compiled kernel for both
        line = BiasLine(nothing, nothing, np.zeros(2, dtype=np.int64), 0.0, 1.0)
        return cls(None, line, law_pieces(0, Bands(zero, zero, np.zeros(1)), 1))

    def take(
        self, moves: LoggedTransitions, between: tuple[int, int], grid: Grid, level: int, plan: Any, out: CellSums
    ) -> float:
        """Count some transitions, add h(x') up, and return Σ (p(·|x,a)·v - v(x))."""
        return float(take(moves, between, grid, level, self._line, self._law, plan, out))

    def compare(self, rows: CountedRows, possible: Any, values: Floats, true_values: Floats, distance: Floats) -> None:
        """p(·|x,a)·v and ‖p̂ - p(·|x,a)‖₁ at the sampled points."""
        if self._tables is not None:
            laws, inside = self._tables.laws, self._tables.inside
            compare_points(rows, possible, laws, inside, values, true_values, distance)

    def count_levels(self, moves: LoggedTransitions, end: int, grid: Grid, levels: Floats, out: Any) -> None:
        """Count h(x') of the first `end` transitions, rounded down to `levels`, for the pair of each."""
        count_levels(tuple(moves), end, tuple(grid), tuple(self._line), levels, out)


def tabulate_interval(
    env: ContinuousEnvironment, solved: OracleSolution, edges: Floats, to_unit: tuple[float, float]
) -> IntervalTables:
    """The tables of right-closed cells between `edges`, in the unit interval."""
    left, right = np.maximum(edges[:-1], 0.0), np.minimum(edges[1:], 1.0)
    places = (left[:, None] + np.maximum(right - left, 0.0)[:, None] * SHARES).reshape(-1)
    there = (left < right) | ((left == right) & (right == edges[1:]))
    actions = range(env.n_actions)
    laws = np.stack([cell_law(env, places, a, edges) for a in actions], axis=1)  # (S*POINTS, A, S)
    expected = np.stack([expected_bias(env, solved, places, a) for a in actions], axis=1)
    pieces, polynomials, error = fitted_pieces(env, edges)
    return IntervalTables(
        *TableArrays.of(env, places[:, None], there, expected),
        anchor=mean_between(solved, edges[0], edges[1]),
        error=error,
        solved=solved,
        to_unit=to_unit,
        laws=banded(laws.reshape(-1, laws.shape[-1])),
        pieces=pieces,
        polynomials=polynomials,
    )


def fitted_pieces(env: ContinuousEnvironment, edges: Floats) -> tuple[int, Bands, float]:
    """Polynomials in x of all p(J|x,a), on so many pieces per cell that they are right between their points too."""
    S = edges.size - 1
    points, between, through = chebyshev()
    error = math.inf
    for m in PIECES:
        if S * m * NODES * env.n_actions * S > MOST_PIECE_NUMBERS:
            break
        ends = np.append((edges[:-1, None] + np.diff(edges)[:, None] * np.arange(m) / m).reshape(-1), edges[-1])
        x, y = (
            ends[:-1, None] + np.diff(ends)[:, None] * (1.0 + s) / 2.0 for s in (points, between)
        )  # (S*m, NODES), (S*m, NODES + 1)
        at, error = [], 0.0
        for a in range(env.n_actions):
            p = cell_law(env, x.reshape(-1), a, edges).reshape(S * m, NODES, S)
            wanted = cell_law(env, y.reshape(-1), a, edges).reshape(S * m, NODES + 1, S)
            off = np.abs(np.einsum("ij,kjs->kis", through, p) - wanted).sum(axis=2)
            error = max(error, float(off[(y >= 0.0) & (y <= 1.0)].max(initial=0.0)))
            at.append(p.reshape(-1, S))
        if error <= INTERPOLATED:
            return m, banded(np.concatenate(at)), error
    return 0, banded(np.ones((1, 1))), error


def cell_law(env: ContinuousEnvironment, x: Floats, action: int, edges: Floats) -> Floats:
    """(N, S) p(J|x,a) of right-closed cells: P(X' ≤ e) at the inner edges, where X' is clipped to [0, 1]."""
    assert env.law is not None
    inner = edges[1:-1]
    cdf = np.zeros((x.size, edges.size))
    cdf[:, -1] = 1.0
    for begin in range(0, x.size, 1024):
        part = slice(begin, begin + 1024)
        if inner.size:
            cdf[part, 1:-1] = env.law(x[part, None], action, np.clip(inner, 0.0, 1.0)[None, :])[0]
    cdf[:, 1:-1] = np.where(inner < 0.0, 0.0, np.where(inner >= 1.0, 1.0, cdf[:, 1:-1]))
    return np.maximum(np.diff(cdf, axis=1), 0.0)


def expected_bias(env: ContinuousEnvironment, solved: OracleSolution, x: Floats, action: int) -> Floats:
    """E[h(X') | x, a] = h(1) - Σ_j (h_{j+1} - h_j)·(mean of the distribution function over [z_j, z_{j+1}])."""
    assert env.law is not None
    found = np.empty(x.size)
    for begin in range(0, x.size, 256):
        part = slice(begin, begin + 256)
        _, integral = env.law(x[part, None], action, solved.nodes[None, :])
        mean = np.clip(np.diff(integral, axis=1) / np.diff(solved.nodes), 0.0, 1.0)
        found[part] = solved.bias[-1] - mean @ np.diff(solved.bias)
    return found


def mean_between(solved: OracleSolution, low: float, high: float) -> float:
    """The mean of h over [low, high]; beyond [0, 1], h is constant."""
    z = solved.nodes
    at = np.concatenate([[low], z[(z > low) & (z < high)], [high]])
    h = np.interp(at, z, solved.bias)
    return float(np.sum((h[1:] + h[:-1]) / 2.0 * np.diff(at)) / (high - low))


def banded(rows: Floats) -> Bands:
    """Rows without their ends below 1e-17."""
    used = rows > NEGLIGIBLE
    first = used.argmax(axis=1)
    last = rows.shape[1] - used[:, ::-1].argmax(axis=1)
    columns = np.arange(rows.shape[1])
    kept = (columns >= first[:, None]) & (columns < last[:, None])
    return Bands(first.astype(np.int64), np.append(0, np.cumsum(last - first)).astype(np.int64), rows[kept])


def chebyshev() -> tuple[Floats, Floats, Floats]:
    """Chebyshev's points of [-1, 1], points between and at the ends of them, and the way from values to values there.

    >>> points, between, through = chebyshev()
    >>> bool(np.allclose(through @ points**5, between**5, rtol=0, atol=1e-13))
    True
    """
    points = -np.cos(np.pi * (2.0 * np.arange(NODES) + 1.0) / (2.0 * NODES))
    between = -np.cos(np.pi * np.arange(NODES + 1) / NODES)
    return points, between, np.vander(between, NODES, increasing=True) @ to_coefficients()


def to_coefficients() -> Floats:
    """(NODES, NODES) from values at Chebyshev's points to the coefficients of 1, s, …, s⁷."""
    points = -np.cos(np.pi * (2.0 * np.arange(NODES) + 1.0) / (2.0 * NODES))
    return np.linalg.inv(np.vander(points, NODES, increasing=True))
