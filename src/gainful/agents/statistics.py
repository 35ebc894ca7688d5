"""What a learner has seen: visits, reward sums, and sparse transition counts that grow as they need to.

Counts lie in one arena (`gainful.growable_rows`), a row per pair k = s*A + a: memory follows the number of distinct
transitions seen, never S²A.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined
from gainful.growable_rows import FIRST_ROOM
from gainful.growable_rows import add as add


class Statistics:
    """Visits, reward sums, sums of squares (S*A,) and the arena of transition counts."""

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
    def arena(self) -> tuple[Any, ...]:
        """The arrays `add` works on."""
        return self.begin, self.length, self.room, self.used, self.next_state, self.count

    @property
    def changes(self) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        """The arrays `mark` works on."""
        return self.is_changed, self.changed, self.n_changed

    def changed_pairs(self) -> NDArray[np.int64]:
        """The pairs observed since the last plan, in increasing order."""
        return np.sort(self.changed[: self.n_changed[0]])

    def forget_changes(self) -> None:
        """A plan has been made: nothing has changed since."""
        self.is_changed[self.changed[: self.n_changed[0]]] = False
        self.n_changed[0] = 0

    def set_changes(self, pairs: NDArray[np.int64]) -> None:
        """Say which pairs have been observed since the last plan, each once."""
        self.forget_changes()
        self.is_changed[pairs] = True
        self.changed[: pairs.size], self.n_changed[0] = pairs, pairs.size

    def observe(self, pair: int, next_state: int, reward: float) -> None:
        """One transition, `reward` in internal units."""
        while not add(self.begin, self.length, self.room, self.used, self.next_state, self.count, pair, next_state, 1):
            self.enlarge()
        if not self.is_changed[pair]:
            self.is_changed[pair] = True
            self.changed[self.n_changed[0]] = pair
            self.n_changed[0] += 1
        self.visits[pair] += 1
        self.reward_sum[pair] += reward
        self.reward_squares[pair] += reward * reward

    def enlarge(self) -> None:
        """Twice the arena."""
        for name in ("next_state", "count"):
            old = getattr(self, name)
            new = np.zeros(2 * old.size, dtype=old.dtype)
            new[: old.size] = old
            setattr(self, name, new)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything seen, rows side by side without the room between them."""
        lengths = self.length
        where = np.repeat(self.begin - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
        return {
            "visits": self.visits, "reward_sum": self.reward_sum, "reward_squares": self.reward_squares,
            "length": lengths, "next_state": self.next_state[where], "count": self.count[where],
        }  # fmt: skip

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what `to_arrays` gave; ValueError where it does not fit together."""
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


@inlined
def mark(is_changed: Any, changed: Any, n_changed: Any, pair: int) -> None:
    """Note that `pair` has been observed."""
    if not is_changed[pair]:
        is_changed[pair] = True
        changed[n_changed[0]] = pair
        n_changed[0] += 1
