"""Refining a partition during a run: finer cells whenever the number of steps has doubled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episodic import EpisodicAgent
from gainful.partition import Partition

FIRST_HORIZON = 1024
"""T_0: stage i of the doubling schedule serves the steps up to 2^i·T_0."""


class TransitionLog:
    """Raw transitions in the order in which they were observed, in arrays that double: 16·d + 12 bytes each."""

    NAMES = ("origin", "target", "action", "reward")

    def __init__(self, dim: int) -> None:
        self.n = 0
        self.origin: NDArray[np.float64] = np.empty((256, dim))
        self.target: NDArray[np.float64] = np.empty((256, dim))
        self.action: NDArray[np.int32] = np.empty(256, dtype=np.int32)
        self.reward: NDArray[np.float64] = np.empty(256)

    def reserve(self, more: int) -> None:
        """Make room for `more` transitions."""
        size = self.action.size
        while size < self.n + more:
            size *= 2
        if size > self.action.size:
            for name in self.NAMES:
                old = getattr(self, name)
                new = np.empty((size, *old.shape[1:]), dtype=old.dtype)
                new[: self.n] = old[: self.n]
                setattr(self, name, new)

    def append(self, x: ArrayLike, action: int, reward: float, to: ArrayLike) -> None:
        """Add one transition."""
        self.reserve(1)
        self.origin[self.n], self.target[self.n] = x, to
        self.action[self.n], self.reward[self.n] = action, reward
        self.n += 1

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The transitions as arrays, for a file."""
        return {f"log_{name}": getattr(self, name)[: self.n] for name in self.NAMES}

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore what `to_arrays` returned; a ValueError if it does not fit together."""
        n = arrays["log_action"].size
        for name in self.NAMES:
            found, wanted = arrays[f"log_{name}"], getattr(self, name)
            if found.shape != (n, *wanted.shape[1:]) or found.dtype != wanted.dtype:
                raise ValueError(f"array 'log_{name}' has shape {found.shape} and dtype {found.dtype}")
        if n and (
            arrays["log_action"].min() < 0 or not all(np.isfinite(arrays[f"log_{name}"]).all() for name in self.NAMES)
        ):
            raise ValueError("a logged transition is out of range")
        self.n = 0
        self.reserve(n)
        for name in self.NAMES:
            getattr(self, name)[:n] = arrays[f"log_{name}"]
        self.n = n


class RefiningPartition:
    """The cells of a box for an unknown horizon: stage i has those of T = 2^i·T_0, and ends after that many steps.

    `bins_for(T)` returns the number of intervals per axis for the horizon T.
    """

    def __init__(self, box: Partition, bins_for: Callable[[int], int], stage: int = 0) -> None:
        self._box, self._bins_for = box, bins_for
        self.start(stage)

    def start(self, stage: int) -> None:
        """Take the cells of this stage."""
        self.stage = stage
        self.partition = self._box.with_bins(self._bins_for(self.horizon))

    @property
    def horizon(self) -> int:
        """The steps after which the present stage is over."""
        return FIRST_HORIZON << self.stage

    def advance(self, t: int) -> bool:
        """Advance to the stage of step t + 1; return whether its cells differ."""
        stage, old = self.stage, self.partition
        while t >= FIRST_HORIZON << stage:
            stage += 1
        self.start(stage)
        if self.partition.bins == old.bins:
            self.partition = old
        return self.partition is not old


def count_again(log: TransitionLog, partition: Partition, agent: EpisodicAgent) -> None:
    """Give a new agent on the cells of `partition` all transitions of `log`, in the order of observation."""
    accepted = replace(partition, outside="clip")  # whatever is in the log was accepted, as a float32 perhaps
    cells, to = (accepted.index_many(points[: log.n]) for points in (log.origin, log.target))
    rewards = log.reward[: log.n] - agent.reward_min
    pairs = cells * agent.n_actions + log.action[: log.n]
    n = agent.statistics.visits.size
    entries, counts = np.unique(pairs * agent.n_states + to, return_counts=True)
    agent.statistics.from_arrays(
        {
            "visits": np.bincount(pairs, minlength=n).astype(np.int64),
            "reward_sum": np.bincount(pairs, weights=rewards, minlength=n),
            "reward_squares": np.bincount(pairs, weights=rewards * rewards, minlength=n),
            "length": np.bincount(entries // agent.n_states, minlength=n).astype(np.int64),
            "next_state": (entries % agent.n_states).astype(np.uint32),
            "count": counts.astype(np.int64),
        }
    )
    agent.reset_limits()
    agent.visited[cells], agent.visited[to] = True, True
