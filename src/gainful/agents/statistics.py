"""The data of a learner: visits, reward sums, and sparse transition counts that grow as needed.

Transition counts lie in growable rows (`gainful.growable_rows`), one per pair k = s*A + a: memory follows the number of
distinct transitions seen, never S²A.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.growable_rows import FIRST_ROOM, GrowableRows, add, add_one


class Statistics:
    """Visits, reward sums, sums of squares (S*A,) and the rows of transition counts."""

    def __init__(self, n_states: int, n_actions: int) -> None:
        pairs = n_states * n_actions
        self.n_states, self.n_actions = n_states, n_actions
        self.visits: NDArray[np.int64] = np.zeros(pairs, dtype=np.int64)
        self.reward_sum: NDArray[np.float64] = np.zeros(pairs)
        self.reward_squares: NDArray[np.float64] = np.zeros(pairs)
        self.begin: NDArray[np.int64] = np.zeros(pairs, dtype=np.int64)
        self.length: NDArray[np.int64] = np.zeros(pairs, dtype=np.int64)
        self.room: NDArray[np.int64] = np.zeros(pairs, dtype=np.int64)
        self.used: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self.next_state: NDArray[np.uint32] = np.zeros(max(16, FIRST_ROOM * pairs), dtype=np.uint32)
        self.count: NDArray[np.int64] = np.zeros(self.next_state.size, dtype=np.int64)
        self.is_changed: NDArray[np.bool_] = np.zeros(pairs, dtype=bool)
        self.changed: NDArray[np.int64] = np.zeros(pairs, dtype=np.int64)
        """The first `n_changed[0]` are the pairs observed since the last plan, each once."""
        self.n_changed: NDArray[np.int64] = np.zeros(1, dtype=np.int64)

    @property
    def rows(self) -> tuple[Any, ...]:
        """The transition counts as `GrowableRows` in a plain tuple; `enlarge` replaces two of the arrays."""
        return self.begin, self.length, self.room, self.used, self.next_state, self.count

    def changed_pairs(self) -> NDArray[np.int64]:
        """The pairs observed since the last plan, in increasing order."""
        return np.sort(self.changed[: self.n_changed[0]])

    def forget_changes(self) -> None:
        """Record that a plan has been made and nothing has changed since."""
        self.is_changed[self.changed[: self.n_changed[0]]] = False
        self.n_changed[0] = 0

    def set_changes(self, pairs: NDArray[np.int64]) -> None:
        """Set which pairs have been observed since the last plan, each once."""
        self.forget_changes()
        self.is_changed[pairs] = True
        self.changed[: pairs.size], self.n_changed[0] = pairs, pairs.size

    def observe(self, pair: int, next_state: int, reward: float) -> bool:
        """Count one transition, `reward` in internal units; whether it is the pair's first since the last plan."""
        while not add_one(self.begin, self.length, self.room, self.used, self.next_state, self.count, pair, next_state):
            self.enlarge()
        first = not self.is_changed[pair]
        if first:
            self.is_changed[pair] = True
            self.changed[self.n_changed[0]] = pair
            self.n_changed[0] += 1
        self.visits[pair] += 1
        self.reward_sum[pair] += reward
        self.reward_squares[pair] += reward * reward
        return first

    def enlarge(self) -> None:
        """Double the room for transition counts."""
        for name in ("next_state", "count"):
            old = getattr(self, name)
            new = np.zeros(2 * old.size, dtype=old.dtype)
            new[: old.size] = old
            setattr(self, name, new)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All counts, with the rows packed without gaps."""
        lengths = self.length
        where = np.repeat(self.begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
        return {
            "visits": self.visits,
            "reward_sum": self.reward_sum,
            "reward_squares": self.reward_squares,
            "length": lengths,
            "next_state": self.next_state[where],
            "count": self.count[where],
        }

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore what `to_arrays` returned; ValueError if it does not fit together."""
        pairs = self.n_states * self.n_actions
        length, to, count = arrays["length"], arrays["next_state"], arrays["count"]
        for name in ("visits", "reward_sum", "reward_squares", "length"):
            if arrays[name].shape != (pairs,) or arrays[name].dtype != getattr(self, name).dtype:
                raise ValueError(f"array '{name}' has shape {arrays[name].shape} and dtype {arrays[name].dtype}")
        if not length.min() >= 0 or to.shape != (int(length.sum()),) or count.shape != to.shape:
            raise ValueError(f"{to.size} next states and {count.size} counts for {int(length.sum())} transitions")
        if to.dtype != np.uint32 or count.dtype != np.int64:
            raise ValueError(f"next states of dtype {to.dtype}, counts of dtype {count.dtype}")
        rows = np.repeat(np.arange(pairs), length)
        if to.size and (to.max() >= self.n_states or count.min() < 1):
            raise ValueError("a next state or a count is out of range")
        if not (np.isfinite(arrays["reward_sum"]).all() and np.isfinite(arrays["reward_squares"]).all()):
            raise ValueError("a sum of rewards is not finite")
        if not np.array_equal(np.bincount(rows, weights=count, minlength=pairs), arrays["visits"]):
            raise ValueError("the counts do not add up to the visits")
        if np.any((to[1:] <= to[:-1]) & (rows[1:] == rows[:-1])):
            raise ValueError("the rows are not sorted")
        for name in ("visits", "reward_sum", "reward_squares", "length"):
            getattr(self, name)[:] = arrays[name]
        self.room[:] = length
        self.begin[:] = np.cumsum(length) - length
        self.used[0] = to.size
        self.next_state = np.zeros(max(self.next_state.size, 2 * to.size), dtype=np.uint32)
        self.count = np.zeros(self.next_state.size, dtype=np.int64)
        self.next_state[: to.size], self.count[: to.size] = to, count

    def row(self, pair: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Next states seen from `pair`, in increasing order, and how often."""
        where = slice(self.begin[pair], self.begin[pair] + self.length[pair])
        return self.next_state[where], self.count[where]


class AgentCounts(NamedTuple):
    """All arrays in which an agent counts what it observes, for the kernels that count in its place.

    Groups of arrays come from Python as plain tuples, which Numba accepts 0.6 µs faster than named ones, and kernels
    begin by naming them: `TransitionTable(*table)`, `named(counts)`.
    """

    rows: GrowableRows
    visits: Any
    reward_sum: Any
    reward_squares: Any
    is_changed: Any
    changed: Any
    n_changed: Any
    remaining: Any
    visits_before: Any
    visited: Any
    n_actions: int
    multiplier: float


@inlined
def named(counts: Any) -> AgentCounts:
    """The counts of an agent by name, from a plain tuple."""
    return AgentCounts(GrowableRows(*counts[0]), *counts[1:])


@inlined
def execution_limit(multiplier: float, visits_before: int) -> int:
    """max{1, ⌊f·N_k⌋}: how often an episode may execute a pair that was visited N_k times before it."""
    if multiplier == 1.0:
        return max(1, visits_before)  # exact, however many visits
    return max(1, math.floor(multiplier * visits_before))


@inlined
def touch(counts: AgentCounts, pair: int) -> None:
    """Note that `pair` is being observed; at its first time in the episode, set how often it may be executed."""
    if not counts.is_changed[pair]:
        counts.remaining[pair] = execution_limit(counts.multiplier, counts.visits_before[pair])
        counts.is_changed[pair] = True
        counts.changed[counts.n_changed[0]] = pair
        counts.n_changed[0] += 1


@inlined
def count_visit(counts: AgentCounts, pair: int, reward: float) -> None:
    """Count one execution of a touched `pair` and its reward, in internal units."""
    counts.visits[pair] += 1
    counts.reward_sum[pair] += reward
    counts.reward_squares[pair] += reward * reward
    counts.remaining[pair] -= 1


@kernel
def count_transitions(counts: AgentCounts, pairs: Any, targets: Any, rewards: Any, first: int) -> tuple[int, bool]:
    """Count the transitions from number `first` on, rewards in internal units.

    Returns the number of the first that found no room (or their number), and whether a new state was reached.
    """
    counts = named(counts)
    new = False
    for i in range(first, pairs.size):
        pair, to = pairs[i], targets[i]
        if not add(counts.rows, pair, to, 1):
            return i, new
        touch(counts, pair)
        count_visit(counts, pair, rewards[i])
        counts.visited[pair // counts.n_actions] = True
        new = new or not counts.visited[to]
        counts.visited[to] = True
    return int(pairs.size), new
