"""What the kernels of confidence sets have in common: what they read, their constants, and what they fill in.

The kernels are handed plain tuples, which cost nothing to pass, and name their fields themselves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined
from gainful.agents.statistics import Statistics

SIMPLEX = 2.0
"""The radius from which an ℓ₁ ball holds every distribution."""


class Sums(NamedTuple):
    """Visits N, and sums of the rewards and of their squares, (S*A,)."""

    visits: Any
    rewards: Any
    squares: Any


class SetConstants(NamedTuple):
    """Everything but the step and the visits on which widths and radii depend."""

    n_states: int
    n_actions: int
    delta: float
    scale: float
    """Multiplies every width and radius; 1 is the theorem's."""
    reward_max: float


class Balls(NamedTuple):
    """The radius of a ball around the row of every pair, and optimistic rewards, (S*A,)."""

    radius: NDArray[np.float64]
    rewards: NDArray[np.float64]


class EntryIntervals(NamedTuple):
    """Bounds of every entry of the rows; bounds of the states that a row does not list, and rewards, (S*A,)."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    unseen: NDArray[np.float64]
    rewards: NDArray[np.float64]


def sums_of(statistics: Statistics) -> tuple[Any, ...]:
    """`Sums` as a plain tuple: what the kernels read."""
    return (statistics.visits, statistics.reward_sum, statistics.reward_squares)


def empty_balls(n_pairs: int) -> Balls:
    """Allocate the balls of `n_pairs` pairs."""
    return Balls(np.empty(n_pairs), np.empty(n_pairs))


def empty_intervals(n_pairs: int, n_entries: int) -> EntryIntervals:
    """Allocate the intervals of `n_pairs` pairs with `n_entries` entries in total."""
    return EntryIntervals(np.empty(n_entries), np.empty(n_entries), np.empty(n_pairs), np.empty(n_pairs))


@inlined
def capped_reward(sums: Sums, k: int, width: float, reward_max: float) -> float:
    """min{r_max, r̄ + width} of pair k."""
    reward: float = min(reward_max, sums.rewards[k] / sums.visits[k] + width)
    return reward


@inlined
def allow_everything(indptr: Any, k: int, reward_max: float, out: EntryIntervals) -> None:
    """The intervals of a pair that was never visited: it may move anywhere, for the greatest reward."""
    out.unseen[k], out.rewards[k] = 1.0, reward_max
    for j in range(indptr[k], indptr[k + 1]):
        out.lower[j], out.upper[j] = 0.0, 1.0


@inlined
def bound_entry(p: Any, j: int, width: float, out: EntryIntervals) -> None:
    """[p̄ - width, p̄ + width], cut to [0, 1], for entry j."""
    out.lower[j], out.upper[j] = max(0.0, p[j] - width), min(1.0, p[j] + width)
