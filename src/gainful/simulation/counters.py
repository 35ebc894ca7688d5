"""What a compiled loop counts, packed so that a step touches one line of memory, and how the agent gets it.

Each pair has one record of 64 bytes: how often it may still be executed, its mean reward, the sums of rewards and
of their squares, and one 32-bit counter per next state (in a list of their own where a pair may have more than 8).
A record is a cache: a loop loads it from the agent at the first visit and lists the pair in `touched`; `fold` writes
back the pairs listed, and only those. Between two loops nothing is loaded, and the agent knows everything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.statistics import mark
from gainful.growable_rows import add

WORDS = 8
"""Of 8 bytes, per pair: executions left, mean reward, sum, sum of squares, and then counters of 4 bytes."""
MEAN, SUM, SQUARES = np.uint64(1), np.uint64(2), np.uint64(3)
RECORD_SHIFT, SEEN = np.uint64(3), np.uint64(8)
"""Pair k's record begins at word k << 3; its counters 8 half words from there."""
NOT_LOADED = -(1 << 62)
UNLIMITED = 1 << 62
"""Executions left of a pair whose episode has no doubling rule."""
_ZERO, _ONE = np.uint64(0), np.uint64(1)


def records(mean: NDArray[np.float64], n: int = 1) -> NDArray[np.int64]:
    """(n, pairs*8) records, none loaded; aligned to the lines of memory."""
    size = n * mean.size * WORDS
    raw = np.zeros(size + WORDS, dtype=np.int64)
    skip = (-raw.ctypes.data // 8) % WORDS
    block = raw[skip : skip + size]
    block[::WORDS] = NOT_LOADED
    block.view(np.float64)[1::WORDS] = np.tile(mean, n)
    return block.reshape(n, -1)


@kernel
def fold(
    width: Any, first: Any, indices: Any, n_actions: Any, record: Any, real: Any, counter: Any, seen: Any, touched: Any,
    clock: Any, visited: Any, remaining: Any, visits: Any, reward_sum: Any, reward_squares: Any, begin: Any,
    length: Any, room: Any, used: Any, next_state: Any, count: Any, is_changed: Any, changed: Any, n_changed: Any,
) -> bool:  # fmt: skip
    """Write the records of the `clock[2]` pairs in `touched` back to the agent; False where its arena is full.

    A counter is cleared when the agent has its count, so the call can be repeated once the arena is larger.
    """
    while clock[2] > 0:
        k = touched[clock[2] - 1]
        pair = np.uint64(k)  # unsigned: no test for indices from the end
        at = pair << RECORD_SHIFT
        row = first[pair]
        p = begin[pair]  # both rows are sorted by next state: walk them together
        taken, room_left = np.int64(0), True
        for j in range(_ZERO, first[pair + _ONE] - row):
            times = np.int64(counter[at + at + SEEN + j] if width else seen[row + j])
            if times == 0:
                continue
            to = indices[row + j]
            end = begin[pair] + length[pair]
            while p < end and next_state[p] < to:
                p += 1
            if p < end and next_state[p] == to:
                count[p] += times
            else:
                room_left = add(begin, length, room, used, next_state, count, k, np.int64(to), times)
                if not room_left:
                    break
                p = begin[pair]
            if width:
                counter[at + at + SEEN + j] = 0
            else:
                seen[row + j] = 0
            taken += times
            visited[to] = True
        if taken > 0:
            visits[pair] += taken
            remaining[pair] -= taken
            visited[pair // n_actions] = True
            mark(is_changed, changed, n_changed, k)
        if not room_left:
            return False
        reward_sum[pair] = real[at + SUM]
        reward_squares[pair] = real[at + SQUARES]
        record[at] = NOT_LOADED
        clock[2] -= 1
    return True


@kernel
def total_of_means(visits: Any, before: Any, mean: Any) -> float:
    """Σ (visits - before)·mean, pair after pair."""
    total = 0.0
    for k in range(visits.size):
        if visits[k] > before[k]:
            total += (visits[k] - before[k]) * mean[k]
    return total
