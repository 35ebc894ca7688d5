"""The path of an agent through its states, folded into segments from one state to another, for bias differences."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.agents.saved_arrays import check_saved

NOWHERE = -1
LAST_STATE, STEPS_NOTED, PATH_PIECES = 0, 1, 2


class Segments(NamedTuple):
    """Segments (s, s'), s ≠ s': from a visit of s to the next visit of s', after which the next visit of s begins one.

    A break of the path cuts the segments under way short. Rewards count from 0. (S, S) each, but the last two.
    """

    completed: Any
    """How many segments are complete."""
    cut: Any
    """How many, of at least one step, a break cut short."""
    steps: Any
    """The steps of both."""
    earned: Any
    """The rewards of both."""
    begun: Any
    """The number of steps before the segment under way; -1 if there is none."""
    earned_before: Any
    """The rewards before it."""
    clock: Any
    """(3,) the last state reached, or -1; all steps; the pieces of the path."""
    total: Any
    """(1,) all rewards."""


@inlined
def depart(segments: Segments, state: int) -> None:
    """Begin the segments from a state that is being visited."""
    for y in range(segments.begun.shape[0]):
        if y != state and segments.begun[state, y] < 0:
            segments.begun[state, y] = segments.clock[STEPS_NOTED]
            segments.earned_before[state, y] = segments.total[0]


@inlined
def end_segment(segments: Segments, s: int, y: int) -> None:
    """Count the steps and the rewards of the segment (s, y) under way; there is none after it."""
    segments.steps[s, y] += segments.clock[STEPS_NOTED] - segments.begun[s, y]
    segments.earned[s, y] += segments.total[0] - segments.earned_before[s, y]
    segments.begun[s, y] = NOWHERE


@inlined
def cut_all(segments: Segments) -> None:
    """Cut short all segments under way."""
    n = segments.begun.shape[0]
    for s in range(n):
        for y in range(n):
            if segments.begun[s, y] >= 0:
                segments.cut[s, y] += segments.clock[STEPS_NOTED] > segments.begun[s, y]
                end_segment(segments, s, y)


@inlined
def follow(segments: Segments, state: int, reward: float, to: int) -> None:
    """Make one step; one that does not begin where the last one ended begins a new piece of the path."""
    n, clock = segments.begun.shape[0], segments.clock
    if clock[LAST_STATE] != state:
        cut_all(segments)
        clock[PATH_PIECES] += 1
        depart(segments, state)
    clock[STEPS_NOTED] += 1
    segments.total[0] += reward
    for s in range(n):
        if s != to and segments.begun[s, to] >= 0:
            segments.completed[s, to] += 1
            end_segment(segments, s, to)
    depart(segments, to)
    clock[LAST_STATE] = to


@kernel
def follow_one(segments: Segments, state: int, reward: float, to: int) -> None:
    """One step."""
    follow(Segments(*segments), state, reward, to)


@kernel
def follow_many(segments: Segments, pairs: Any, targets: Any, rewards: Any, n_actions: int) -> None:
    """Many steps, in their order."""
    segments = Segments(*segments)
    for i in range(pairs.size):
        follow(segments, pairs[i] // n_actions, rewards[i], targets[i])


class StatePath:
    """What an agent keeps of the order in which it visited states: O(S) work for each step, six S × S tables.

    Parameters
    ----------
    n_states : int
        The number of states S.
    """

    def __init__(self, n_states: int) -> None:
        shape = (n_states, n_states)
        self.segments = Segments(
            completed=np.zeros(shape, dtype=np.int64),
            cut=np.zeros(shape, dtype=np.int64),
            steps=np.zeros(shape, dtype=np.int64),
            earned=np.zeros(shape),
            begun=np.full(shape, NOWHERE, dtype=np.int64),
            earned_before=np.zeros(shape),
            clock=np.array([NOWHERE, 0, 0], dtype=np.int64),
            total=np.zeros(1),
        )

    def follow(self, state: int, reward: float, to: int) -> None:
        """Note one step; the reward counts from 0."""
        follow_one(tuple(self.segments), state, reward, to)

    def follow_many(
        self, pairs: NDArray[np.int64], targets: NDArray[np.int64], rewards: NDArray[np.float64], n_actions: int
    ) -> None:
        """Note many steps in their order."""
        follow_many(tuple(self.segments), pairs, targets, rewards, n_actions)

    @property
    def under_way(self) -> NDArray[np.int64]:
        """(S, S) the steps of all segments, those under way included."""
        s = self.segments
        found: NDArray[np.int64] = s.steps + np.where(s.begun >= 0, s.clock[STEPS_NOTED] - s.begun, 0)
        return found

    @property
    def n_steps(self) -> int:
        """All steps noted."""
        return int(self.segments.clock[STEPS_NOTED])

    @property
    def n_pieces(self) -> int:
        """The pieces of the path: one unless steps were given out of order."""
        return int(self.segments.clock[PATH_PIECES])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, for a file."""
        return {f"path_log_{name}": array for name, array in self.segments._asdict().items()}

    def restore(self, arrays: dict[str, NDArray[Any]], n_steps: int) -> None:
        """Take the arrays of a file; a ValueError if they do not fit."""
        if "path_log_cut" not in arrays:  # a file from before segments cut short were counted: they are left out of all
            arrays = {**arrays, "path_log_cut": np.zeros_like(self.segments.cut)}
        for name, own in self.segments._asdict().items():
            check_saved(arrays, f"path_log_{name}", own)
        n, (last, steps, pieces) = self.segments.begun.shape[0], arrays["path_log_clock"].tolist()
        if not (NOWHERE <= last < n and 0 <= steps <= n_steps and 0 <= pieces <= steps):
            raise ValueError(f"array 'path_log_clock' holds {[last, steps, pieces]}")
        for name in ("completed", "cut", "steps", "begun"):
            check_saved(arrays, f"path_log_{name}", getattr(self.segments, name), low=NOWHERE, high=steps)
        for name, own in self.segments._asdict().items():
            own[:] = arrays[f"path_log_{name}"]
