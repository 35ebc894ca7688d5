"""What an agent does until an episode ends, and how often it may do it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.statistics import Statistics

NEVER = np.iinfo(np.int64).max
"""A step that no run reaches."""


@dataclass(frozen=True)
class EpisodePlan:
    """What an agent does until the episode ends, and what the planner reports about it (in the user's units)."""

    actions: NDArray[np.int64]
    """(S,) the action of each state; ignored where `probabilities` is given."""
    gain_bounds: tuple[float, float]
    values: NDArray[np.float64]
    sweeps: int
    probabilities: NDArray[np.float64] | None = None
    """(S,A) for a policy that mixes actions."""
    doubling: bool = True
    """Whether the episode ends when a pair has been executed max{1, ⌊f·N_k⌋} times."""
    multiplier: float = 1.0
    """f: 1 doubles the visits of a pair, less makes episodes shorter."""
    last_step: int = NEVER
    """The step (from 1) after which a new episode begins in any case."""
    stop_on_new_state: bool = False
    """Whether reaching a state never visited before ends the episode (TUCRL)."""
    span: float | None = None
    """sp(values), for a planner that knows it."""
    groups: NDArray[np.int64] | None = None
    """(S*A,) numbers below S*A: pairs of one number share their limit, N_k being the visits of all of them."""
    details: dict[str, Any] = field(default_factory=dict)
    """What else `on_episode` may show: bonus, optimistic rewards, ..."""

    @cached_property
    def cumulative(self) -> NDArray[np.float64]:
        """(S,A) cumulative probabilities, 1 from the last positive one on; empty for a deterministic policy."""
        if self.probabilities is None:
            return np.empty((0, 0))
        total = np.cumsum(self.probabilities, axis=1)
        total[total >= total[:, -1:] - 1e-12] = 1.0
        return total

    def execution_limit(self, visits: int) -> int:
        """max{1, ⌊f·N_k⌋}: how often this episode may execute a pair that was visited N_k times before it."""
        return max(1, visits if self.multiplier == 1.0 else math.floor(self.multiplier * visits))


@dataclass(frozen=True)
class EpisodeView:
    """One episode's beginning, shown to `agent.on_episode`."""

    episode: int
    step: int
    plan: EpisodePlan
    statistics: Statistics


def group_limits(plan: EpisodePlan, before: NDArray[np.int64], visits: NDArray[np.int64]) -> NDArray[np.int64]:
    """max{1, ⌊f·N_k⌋} less what was executed since, for every group of a plan."""
    assert plan.groups is not None
    n = before.size
    first = np.bincount(plan.groups, weights=before, minlength=n)
    executed = np.bincount(plan.groups, weights=visits - before, minlength=n)
    limit = first if plan.multiplier == 1.0 else np.floor(plan.multiplier * first)
    return np.asarray(np.maximum(limit, 1.0) - executed, dtype=np.int64)
