"""How often an episode may still execute each pair."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episode_plan import EpisodePlan, group_limits
from gainful.agents.statistics import Statistics

NO_GROUPS = np.empty(0, dtype=np.int64)
"""In place of the limits of groups, if every pair has a limit of its own."""


class ExecutionLimits:
    """The part of an agent that knows when the visits of a pair have grown enough for a new episode.

    The limit of a pair is max{1, ⌊f·N_k⌋}, N_k being its visits before the episode; pairs of one group of the plan
    share a limit. The limit of a pair is written when the episode first executes it.
    """

    statistics: Statistics
    current: EpisodePlan | None
    remaining: NDArray[np.int64]
    """How often each pair may still be executed in this episode; set when the episode first executes the pair."""
    visits_before: NDArray[np.int64]
    """N_k: the visits of each pair before this episode."""
    group_left: NDArray[np.int64]
    """How often the pairs of each group of the plan may still be executed; empty if it has none."""

    def _begin_limits(self, n_pairs: int) -> None:
        """The limits of an agent that has observed nothing: every pair once."""
        self.remaining = np.ones(n_pairs, dtype=np.int64)
        self.visits_before = np.zeros(n_pairs, dtype=np.int64)
        self.group_left = NO_GROUPS

    def limit_reached(self, pair: int) -> bool:
        """Tell whether executing a pair is up to the next episode of the present plan, which there must be.

        Parameters
        ----------
        pair : int
            The number of the pair, state · A + action.

        Returns
        -------
        bool
        """
        plan = self.current
        assert plan is not None
        left = self.remaining[pair] if plan.groups is None else self.group_left[plan.groups[pair]]
        return bool(plan.doubling and left <= 0)

    def note_executed(self, pairs: Any) -> None:
        """Count executions of pairs against the limits that they share, if they do.

        Parameters
        ----------
        pairs : int or ndarray of int64
            The pairs executed.
        """
        if self.group_left.size:
            assert self.current is not None
            assert self.current.groups is not None
            np.subtract.at(self.group_left, self.current.groups[pairs], 1)

    def renew_group_limits(self) -> None:
        """Set how often each group of the present plan may still be executed, from the visits before it and now."""
        plan = self.current
        self.group_left = NO_GROUPS
        if plan is not None and plan.groups is not None:
            self.group_left = group_limits(plan, self.visits_before, self.statistics.visits)

    def executions_left(self, pair: int) -> int:
        """Tell how often the present episode may still execute a pair, if it has limits.

        Parameters
        ----------
        pair : int
            The number of the pair, state · A + action.

        Returns
        -------
        int
            0 or less if executing it is up to the next episode.
        """
        if self.current is not None and self.current.groups is not None:
            return int(self.group_left[self.current.groups[pair]])
        if self.current is None or self.statistics.is_changed[pair]:
            return int(self.remaining[pair])
        return self.current.execution_limit(int(self.visits_before[pair]))

    def write_limits(self) -> None:
        """Set `remaining` for the pairs that this episode has not executed, too."""
        untouched = np.flatnonzero(~self.statistics.is_changed)
        multiplier = 1.0 if self.current is None else self.current.multiplier
        visits = self.visits_before[untouched]
        limits = visits if multiplier == 1.0 else np.floor(multiplier * visits).astype(np.int64)
        self.remaining[untouched] = np.maximum(limits, 1)

    def reset_limits(self) -> None:
        """Take the present visits as those before the episode, of which nothing has been executed."""
        self.visits_before[:] = self.statistics.visits
        self.remaining[:] = np.maximum(self.statistics.visits, 1)
