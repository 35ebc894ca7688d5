"""What an audit knows about a continuous environment: gain, bias, and the law at points of the agent's cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gainful.audit.findings import Floats
from gainful.audit.points import NODES, POINTS, Bands
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.continuous.oracle import OracleSolution, oracle_gain, oracle_solution
from gainful.partition import Partition

SHARES = np.array([1e-9, 0.25, 0.5, 0.75, 1.0])
PIECES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Pieces per cell that are tried in turn."""
INTERPOLATED = 1e-10
"""The largest accepted Σ_J |p(J|x,a) - its polynomial|; above it, the next number of pieces is tried."""
MOST_PIECE_NUMBERS = 20_000_000
"""Numbers that the tables of all pieces may hold."""
KEPT = 16
"""Partitions whose tables are kept for the next run."""
NEGLIGIBLE = 1e-17


@dataclass(frozen=True, eq=False)
class CellTables:
    """The true model seen from the cells of one partition (d = 1), in the environment's units of reward."""

    places: Floats
    """(S*POINTS,) the sampled points, in the unit interval."""
    inside: NDArray[np.bool_]
    """(S*POINTS,) False if the cell has no point of the environment's box."""
    rewards: Floats
    """(S*POINTS, A) r(x,a)."""
    expected: Floats
    """(S*POINTS, A) E[h(X') | x, a]."""
    laws: Bands
    """Rows (x, a): p(J|x,a)."""
    anchor: float
    """n·∫ h over I(s̄), the first cell: what p̂ has of h there."""
    pieces: int
    """Pieces per cell; 0 if no number of them was good enough."""
    polynomials: Bands
    """Rows (a, piece, Chebyshev point): p(J|x,a)."""
    error: float
    """The largest Σ_J |p(J|x,a) - its polynomial| found between the Chebyshev points."""


@dataclass(frozen=True, eq=False)
class CellsTruth:
    """A continuous environment, solved as far as its law is known.

    h is the oracle's: linear between its nodes, near the optimal bias. This loses nothing. Lemma (a) is a
    concentration inequality that holds for every fixed function of span ≤ c, and where it holds L̂h ≥ Lh ≥ h + m with
    m = min (Lh - h) = `gain_low`, so that the planned gain is at least m: optimism is exact for the proven lower end.
    """

    environment: ContinuousEnvironment
    gain: float | None
    """g*, proven to lie within the oracle's bounds (d = 1), or its estimate (d = 2); None if it is unknown."""
    gain_low: float
    """The proven lower end of g*: optimism and regret are compared with it; NaN if nothing is proven."""
    span: float | None
    """sp(h), or None."""
    solution: OracleSolution | None = field(repr=False, default=None)
    """None if the law is unknown: statements about the true model then are not applicable."""
    _tables: dict[Partition, CellTables] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def of(cls, env: ContinuousEnvironment, bins: int | None = None) -> CellsTruth:
        """Solve an environment on the grids of `oracle_gain(env, bins)`, as far as it has an oracle."""
        if env.law is None:
            if env.grid_model is None:
                return cls(env, None, math.nan, None)
            found = oracle_gain(env, bins)
            return cls(env, found.gain, math.nan, found.span)
        solved = oracle_solution(env, bins)
        return cls(env, solved.gain, solved.bounds[0], solved.span, solved)

    def to_unit(self, partition: Partition, axis: int = 0) -> tuple[float, float]:
        """(origin, length): a coordinate y of the partition is (y - origin)/length in the unit interval."""
        if in_unit_cube(partition):
            return 0.0, 1.0
        low, high = float(self.environment.low[axis]), float(self.environment.high[axis])
        return low, high - low

    def lipschitz_for(self, partition: Partition, reward_range: float) -> float | None:
        """The least L of the environment on the partition's box scaled to the unit cube, for rewards of this range."""
        env = self.environment
        if env.reward_lipschitz is None or env.transition_lipschitz is None or env.holder is None:
            return None
        ratio = max(
            (high - low) / self.to_unit(partition, i)[1]
            for i, (low, high) in enumerate(zip(partition.low, partition.high, strict=True))
        )
        return max(env.reward_lipschitz / reward_range, env.transition_lipschitz) * math.pow(ratio, env.holder)

    def on(self, partition: Partition) -> CellTables:
        """The tables of a partition; kept for the next run."""
        if partition not in self._tables:
            while len(self._tables) >= KEPT:
                del self._tables[next(iter(self._tables))]
            self._tables[partition] = self._tabulate(partition)
        return self._tables[partition]

    def _tabulate(self, partition: Partition) -> CellTables:
        env, solved = self.environment, self.solution
        assert solved is not None
        origin, length = self.to_unit(partition)
        edges = (right_closed_edges(partition, 0) - origin) / length
        left, right = np.maximum(edges[:-1], 0.0), np.minimum(edges[1:], 1.0)
        places = (left[:, None] + np.maximum(right - left, 0.0)[:, None] * SHARES).reshape(-1)
        there = (left < right) | ((left == right) & (right == edges[1:]))
        actions = range(env.n_actions)
        laws = np.stack([cell_law(env, places, a, edges) for a in actions], axis=1)  # (S*POINTS, A, S)
        pieces, polynomials, error = self._pieces(edges)
        return CellTables(
            places=places,
            inside=np.repeat(there, POINTS),
            rewards=np.stack([env.rewards(places, a) for a in actions], axis=1),
            expected=np.stack([expected_bias(env, solved, places, a) for a in actions], axis=1),
            laws=banded(laws.reshape(-1, laws.shape[-1])),
            anchor=mean_between(solved, edges[0], edges[1]),
            pieces=pieces,
            polynomials=polynomials,
            error=error,
        )

    def _pieces(self, edges: Floats) -> tuple[int, Bands, float]:
        """Polynomials in x of all p(J|x,a), on so many pieces per cell that they are right between their points too."""
        env, S = self.environment, edges.size - 1
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


def in_unit_cube(partition: Partition) -> bool:
    """Whether the agent sees points of the unit cube; else it sees the environment's own units."""
    return all(a == 0.0 for a in partition.low) and all(b == 1.0 for b in partition.high)


def exact_edges(partition: Partition, axis: int) -> Floats:
    """(low·(n-k) + high·k)/n for k = 0 … n, rounded once from the exact fraction."""
    n, low, high = partition.bins[axis], Fraction(partition.low[axis]), Fraction(partition.high[axis])
    return np.array([float((low * (n - k) + high * k) / n) for k in range(n + 1)])


def right_closed_edges(partition: Partition, axis: int) -> Floats:
    """The edges by definition: on [0, 1] the doubles nearest to k/n, on another box the partition's own.

    A decimal edge such as 0.07 has no exact binary form. The double nearest to 7/100 stands for it and belongs to the
    cell on its left.
    """
    plain = (partition.low[axis], partition.high[axis]) == (0.0, 1.0)
    return exact_edges(partition, axis) if plain else partition.edges(axis)


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
