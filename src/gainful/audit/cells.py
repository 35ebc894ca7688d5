"""What an audit knows about a continuous environment: gain, bias, and the law at points of the agent's cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from gainful.audit.cell_tables import CellTables
from gainful.audit.findings import Floats
from gainful.audit.interval_law import tabulate_interval
from gainful.audit.mixture_law import tabulate_mixture
from gainful.audit.points import Grid
from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.environments.continuous.mixture import MixtureSolution
from gainful.environments.continuous.oracle import OracleSolution, oracle_gain, oracle_solution
from gainful.partition import Partition

KEPT = 16
"""Partitions whose tables are kept for the next run."""


@dataclass(frozen=True, eq=False)
class CellsTruth:
    """A continuous environment, solved as far as its law is known.

    h is the oracle's: the optimal bias of a mixture, otherwise linear between nodes and near it. This loses nothing.
    Lemma (a) is a concentration inequality that holds for every fixed function of span ≤ c, and where it holds
    L̂h ≥ Lh ≥ h + m with m = min (Lh - h) = `gain_low`, so that the planned gain is at least m: optimism is exact for
    the proven lower end.
    """

    environment: ContinuousEnvironment
    gain: float | None
    """g*, proven to lie within the oracle's bounds, or its estimate (a grid model); None if it is unknown."""
    gain_low: float
    """The proven lower end of g*: optimism and regret are compared with it; NaN if nothing is proven."""
    span: float | None
    """sp(h), or None."""
    solution: OracleSolution | MixtureSolution | None = field(repr=False, default=None)
    """None if the law is unknown: statements about the true model then are not applicable."""
    _tables: dict[Partition, CellTables] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def of(cls, env: ContinuousEnvironment, bins: int | None = None) -> CellsTruth:
        """Solve an environment on the grids of `oracle_gain(env, bins)`, as far as it has an oracle."""
        if env.mixture is not None:
            best = env.mixture.solution
            return cls(env, best.gain, best.bounds[0], best.span, best)
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

    def uncovered(self, agent: Any, partition: Partition, what: str = "the theorem assumes") -> str:
        """Why what is proven of an agent on cells does not cover it here; empty if it does.

        `what` assumes a Hölder constant of at least the true one.
        """
        env, least = self.environment, self.lipschitz_for(partition, agent.reward_range)
        if self.solution is None:
            return f"{env.name}: {env.no_guarantee or 'the law of its steps is unknown'}"
        if least is None or env.holder is None:
            return f"{env.name}: {env.no_guarantee}"
        if agent.lipschitz is None or agent.holder is None:
            return str(agent.smoothness.reason_void)
        if agent.lipschitz < least * (1.0 - 1e-12) or agent.holder > env.holder:
            return (
                f"the agent was given L = {agent.lipschitz:.6g}, α = {agent.holder:g}, the environment has "
                f"{least:.6g} and {env.holder:g}: {what} an L at least, and an α at most, the true one"
            )
        if partition.outside == "clip":
            return "outside is 'clip': the outermost cells hold states that are farther apart than their width"
        return ""

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
        edges, units = [], [self.to_unit(partition, i) for i in range(partition.dim)]
        for i, (origin, length) in enumerate(units):
            edges.append((right_closed_edges(partition, i) - origin) / length)
        if isinstance(solved, MixtureSolution):
            return tabulate_mixture(env, solved, edges)
        return tabulate_interval(env, solved, edges[0], units[0])


def in_unit_cube(partition: Partition) -> bool:
    """Whether the agent sees points of the unit cube; else it sees the environment's own units."""
    return all(a == 0.0 for a in partition.low) and all(b == 1.0 for b in partition.high)


def grid_of(partition: Partition, n_actions: int) -> Grid:
    """The right-closed cells of a partition, for kernels."""
    edges = [right_closed_edges(partition, i) for i in range(partition.dim)]
    offset = np.append(0, np.cumsum([e.size for e in edges]))[:-1].astype(np.int64)
    return Grid(np.array(partition.bins, dtype=np.int64), np.concatenate(edges), offset, n_actions)


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
