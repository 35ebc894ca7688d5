"""The true model seen from the cells of a partition: what the auditors of agents on points compare with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.audit.findings import Floats
from gainful.audit.points import POINTS, CellSums, Grid, LoggedTransitions
from gainful.audit.rows import CountedRows
from gainful.environments.continuous.environment import ContinuousEnvironment


class PointCounter(ABC):
    """Counts the transitions of a run on one partition, with what the true model says about their points.

    Parameters
    ----------
    level : int
        How much of the true model is known: `points.COUNTS`, `BIAS` or `TRUE_VALUES`.
    """

    def __init__(self, level: int) -> None:
        self.level = level

    @abstractmethod
    def take(
        self, moves: LoggedTransitions, between: tuple[int, int], grid: Grid, level: int, plan: Any, out: CellSums
    ) -> float:
        """Count some transitions, add h(x') up, and return Σ (p(·|x,a)·v - v(x)); `plan` is (k, v_k)."""

    @abstractmethod
    def compare(self, rows: CountedRows, possible: Any, values: Floats, true_values: Floats, distance: Floats) -> None:
        """p(·|x,a)·v and ‖p̂ - p(·|x,a)‖₁ at the sampled points."""

    @abstractmethod
    def count_levels(self, moves: LoggedTransitions, end: int, grid: Grid, levels: Floats, out: Any) -> None:
        """Count h(x') of the first `end` transitions, rounded down to `levels`, for the pair of each."""


@dataclass(frozen=True, eq=False)
class CellTables(ABC):
    """The true model at the sampled points of all cells of one partition, in the environment's units of reward."""

    places: Floats
    """(S*POINTS, d) the sampled points, in the unit cube."""
    inside: NDArray[np.bool_]
    """(S*POINTS,) False if the cell has no point of the environment's box."""
    rewards: Floats
    """(S*POINTS, A) r(x,a)."""
    expected: Floats
    """(S*POINTS, A) E[h(X') | x, a]."""
    anchor: float
    """The mean of h over I(s̄), the first cell: what p̂ has of h there."""
    error: float
    """The largest error found of Σ_J p(J|x,a)·v at points between the tabulated ones, for |v| ≤ 1."""

    @property
    @abstractmethod
    def level(self) -> int:
        """How much of the true model is known at every point."""

    @abstractmethod
    def counter(self) -> PointCounter:
        """Counts transitions on these cells."""


class TableArrays(NamedTuple):
    """The first fields of CellTables."""

    places: Floats
    inside: NDArray[np.bool_]
    rewards: Floats
    expected: Floats

    @classmethod
    def of(cls, env: ContinuousEnvironment, places: Floats, there: NDArray[np.bool_], expected: Floats) -> TableArrays:
        """From the points, whether each cell has any, and E[h(X')|x,a]."""
        rewards = np.stack([env.rewards(places, a) for a in range(env.n_actions)], axis=1)
        return cls(places, np.repeat(there, POINTS), rewards, expected)
