"""What a compiled loop counts, packed so that a step touches one line of memory, and how the agent gets it.

Each pair has one record of 64 bytes: how often it may still be executed, its mean reward, the sums of rewards and
of their squares, and one 32-bit counter per next state (in a list of their own where a pair may have more than 8).
A record is a cache: a loop loads it from the agent at the first visit and lists the pair in `touched`; `fold` writes
back the pairs listed, and only those. Between two loops nothing is loaded, and the agent knows everything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.agents.statistics import AgentCounts, execution_limit, named, touch
from gainful.growable_rows import add
from gainful.rng import Key
from gainful.simulation.transition_table import RewardLaw, TransitionTable, env_step

WORDS = 8
"""Of 8 bytes, per pair: executions left, mean reward, sum, sum of squares, and then counters of 4 bytes."""
MEAN, SUM, SQUARES = np.uint64(1), np.uint64(2), np.uint64(3)
RECORD_SHIFT, SEEN = np.uint64(3), np.uint64(8)
"""Pair k's record begins at word k << 3; its counters 8 half words from there."""
NOT_LOADED = -(1 << 62)
UNLIMITED = 1 << 62
"""Executions left of a pair whose episode has no limits."""
STATE, STEP, TOUCHED, NEW_STATE = 0, 1, 2, 3
_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Counters(NamedTuple):
    """The records, seen as integers, as floats and as 32-bit counters; the counters of long rows; the pairs loaded."""

    record: Any
    real: Any
    counter: Any
    seen: Any
    touched: Any


class Clock(NamedTuple):
    """Where a run is: `now` has its state, its step, the number of pairs loaded and whether a new state stopped it.

    `earned` has the sum of rewards, added one by one wherever a loop pauses, and `key` the stream from which the
    environment draws. They are arrays because Ctrl-C takes what a kernel would return.
    """

    now: Any
    earned: Any
    key: Key


def new_counters(means: NDArray[np.float64], n_long: int) -> Counters:
    """Records of one run, none loaded; `n_long` is the number of transitions of an MDP with long rows, or else 0."""
    return counters_in(new_records(means, 1)[0], np.empty(means.size, dtype=np.int64), n_long)


def counters_in(record: NDArray[np.int64], touched: NDArray[np.int64], n_long: int) -> Counters:
    """The counters that these records make."""
    return Counters(record, record.view(np.float64), record.view(np.uint32), np.zeros(n_long, dtype=np.uint32), touched)


def new_records(means: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """(n, pairs*8) records, none loaded; aligned to the lines of memory."""
    size = n * means.size * WORDS
    raw = np.zeros(size + WORDS, dtype=np.int64)
    skip = (-raw.ctypes.data // 8) % WORDS
    block = raw[skip : skip + size]
    block[::WORDS] = NOT_LOADED
    block.view(np.float64)[1::WORDS] = np.tile(means, n)
    return block.reshape(n, -1)


@inlined
def executions_left(limited: bool, touched: bool, remaining: int, multiplier: float, visits_before: int) -> int:
    """How often a pair may still be executed: what the episode has left of its limit, or the limit if untouched."""
    if not limited:
        return UNLIMITED
    return remaining if touched else execution_limit(multiplier, visits_before)


@inlined
def counted_step(
    table: TransitionTable, law: RewardLaw, counters: Counters, pair: Any, at: Any, left: int, low: float, bits: Any
) -> tuple[Any, float]:
    """One step from `pair`, counted in its record, which begins at `at` and will have `left` executions left.

    Returns the next state and the reward; `low` is the agent's least reward. As in `env_step`, no branch depends
    on data.
    """
    rank, to, reward = env_step(table, law, pair, counters.real[at + MEAN], bits)
    if len(table.padding) > 0:
        counters.counter[at + at + SEEN + rank] += np.uint32(1)
    else:
        counters.seen[table.first[pair] + rank] += np.uint32(1)
    inner = reward - low
    counters.record[at] = left
    counters.real[at + SUM] += inner
    counters.real[at + SQUARES] += inner * inner
    return to, reward


@kernel
def fold(table: TransitionTable, counters: Counters, counts: AgentCounts, now: Any) -> bool:
    """Write the records of the `now[TOUCHED]` pairs in `touched` back to the agent; False if it has no room.

    A counter is cleared when the agent has its count, so the call can be repeated once there is more room.
    """
    table, counters, counts = TransitionTable(*table), Counters(*counters), named(counts)
    rows, first, wide = counts.rows, table.first, len(table.padding) > 0
    while now[TOUCHED] > 0:
        k = counters.touched[now[TOUCHED] - 1]
        pair = np.uint64(k)  # unsigned: no test for indices from the end
        at = pair << RECORD_SHIFT
        row = first[pair]
        p = rows.begin[pair]  # both rows are sorted by next state: walk them together
        taken, room_left = np.int64(0), True
        for j in range(_ZERO, first[pair + _ONE] - row):
            times = np.int64(counters.counter[at + at + SEEN + j] if wide else counters.seen[row + j])
            if times == 0:
                continue
            to = table.next_states[row + j]
            end = rows.begin[pair] + rows.length[pair]
            while p < end and rows.key[p] < to:
                p += 1
            if p < end and rows.key[p] == to:
                rows.count[p] += times
            else:
                room_left = add(rows, k, np.int64(to), times)
                if not room_left:
                    break
                p = rows.begin[pair]
            if wide:
                counters.counter[at + at + SEEN + j] = 0
            else:
                counters.seen[row + j] = 0
            taken += times
            counts.visited[to] = True
        if taken > 0:
            touch(counts, k)
            counts.visits[pair] += taken
            counts.remaining[pair] -= taken
            counts.visited[pair // table.n_actions] = True
        if not room_left:
            return False
        counts.reward_sum[pair] = counters.real[at + SUM]
        counts.reward_squares[pair] = counters.real[at + SQUARES]
        counters.record[at] = NOT_LOADED
        now[TOUCHED] -= 1
    return True


@kernel
def total_over_pairs(visits: Any, before: Any, amount: Any) -> float:
    """Σ (visits - before)·amount, pair after pair."""
    total = 0.0
    for k in range(visits.size):
        if visits[k] > before[k]:
            total += (visits[k] - before[k]) * amount[k]
    return total
