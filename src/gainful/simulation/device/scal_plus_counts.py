"""SCAL+'s planner stages the counts of an agent in the arrays of a block, and adds the agent's log to them.

The counts that the log has changed are written back to the agent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, uint32, uint64

from gainful._compiled import inlined
from gainful.cuda_device import cuda, device_function
from gainful.simulation.device.packed_counting import LoggedExecutions, deterministic_reward, updated_reward_sum
from gainful.simulation.device.packed_layout import ENTRIES_PER_WORD, PackedRuns, logged_action, reward_sum_index
from gainful.simulation.device.packed_log import entry_state, read_log_word
from gainful.simulation.device.runs import MAX_UINT16, DeviceCounts
from gainful.simulation.device.scal_plus_space import (
    ActionMajorRows,
    BlockArrays,
    DevicePlanConstants,
    count_of_actions,
    pitch_of,
    slot_of,
    visits_at,
)
from gainful.simulation.transition_table import RewardLaw

WORDS_IN_FLIGHT, PAIRS_IN_FLIGHT = 13, 7
"""Words of counts, and pairs, that a thread loads before it stores the first."""


class PlanWork(NamedTuple):
    """Further arrays of the kernel that plans for SCAL+."""

    numbers: Any
    """(blocks, numbers) the float64 arrays of all blocks, if they do not fit shared memory; else empty."""
    counts: Any
    """(blocks, words) the same for their counts."""
    transitions: Any
    """The agents' transition counts, two per word if they are paired."""
    packed: PackedRuns
    """Packed runs with their logs, if the planner counts them."""
    law: RewardLaw


@device_function
def stage_counts(c: DevicePlanConstants, rows: ActionMajorRows, transitions: Any, block: BlockArrays) -> None:
    """Copy an agent's transition counts to the block; each thread has many loads in flight."""
    n, n_threads = np.uint32(rows.destinations.size), np.uint32(cuda.blockDim.x)
    loaded, last = cuda.local.array(WORDS_IN_FLIGHT, uint64), np.uint32(n - np.uint32(1))
    i = np.uint32(cuda.threadIdx.x)
    while i < n:  # beyond the end, the last word is copied again
        for j in range(WORDS_IN_FLIGHT):
            loaded[j] = transitions[min(np.uint32(i + np.uint32(j) * n_threads), last)]
        for j in range(WORDS_IN_FLIGHT):
            to = np.uint64(rows.destinations[min(np.uint32(i + np.uint32(j) * n_threads), last)])
            block.counts[to] = np.uint32(loaded[j])
            if len(c.paired) > 0:
                block.counts[to + np.uint64(1)] = np.uint32(loaded[j] >> np.uint64(32))
        i = np.uint32(i + np.uint32(WORDS_IN_FLIGHT) * n_threads)


@device_function
def stage_pairs(c: DevicePlanConstants, counts: DeviceCounts, run: int, block: BlockArrays) -> None:
    """Copy an agent's visits and sums of rewards to the block; each thread has many loads in flight."""
    visits, sums = counts.visits[run], counts.reward_sum[run]
    n, n_threads = np.uint32(visits.size), np.uint32(cuda.blockDim.x)
    loaded_visits, loaded_sums = cuda.local.array(PAIRS_IN_FLIGHT, uint32), cuda.local.array(PAIRS_IN_FLIGHT, float64)
    i, last = np.uint32(cuda.threadIdx.x), np.uint32(n - np.uint32(1))
    while i < n:
        for j in range(PAIRS_IN_FLIGHT):
            k = min(np.uint32(i + np.uint32(j) * n_threads), last)
            loaded_visits[j], loaded_sums[j] = visits[k], sums[k]
        for j in range(PAIRS_IN_FLIGHT):
            slot = slot_of(c, block, min(np.uint32(i + np.uint32(j) * n_threads), last))
            block.counts[visits_at(c, block, slot)], block.rewards[slot] = loaded_visits[j], loaded_sums[j]
        i = np.uint32(i + np.uint32(PAIRS_IN_FLIGHT) * n_threads)


@device_function
def count_log_entries(
    c: DevicePlanConstants, packed: PackedRuns, run: int, block: BlockArrays, act: Any, executed: Any
) -> None:
    """Add the transitions of a log to the counts of a block.

    The low 16 bits of executed[s] count executions in state s, the high ones the successes of Bernoulli rewards.
    """
    n, n_threads = np.uint32(packed.n_logged[run]), np.uint32(cuda.blockDim.x)
    i = np.uint32(cuda.threadIdx.x)
    while i * np.uint32(ENTRIES_PER_WORD) < n:
        word, left = read_log_word(packed, run, n, i)
        while left > 0:
            entry, increment = np.uint32(word & np.uint64(MAX_UINT16)), np.uint32(1)
            if len(packed.bernoulli) > 0:
                increment = np.uint32(1 + ((entry & np.uint32(1)) << np.uint32(16)))
                entry >>= np.uint32(1)
            s = entry_state(packed.layout, entry)
            slot = np.uint64(act[s]) * np.uint64(block.v.size) + np.uint64(s)
            at = slot * pitch_of(c, block) + np.uint64(np.uint32(entry) - s * packed.layout.pitch)
            cuda.atomic.add(block.counts, np.int64(at), np.uint32(1))
            cuda.atomic.add(executed, np.int64(s), increment)
            word >>= np.uint64(16)
            left = np.uint32(left - np.uint32(1))
        i = np.uint32(i + n_threads)


@inlined
def write_back(
    c: DevicePlanConstants,
    counts: DeviceCounts,
    work: PlanWork,
    logged: LoggedExecutions,
    action: Any,
    block: BlockArrays,
) -> None:
    """Write what was logged of a state to its agent; the transitions of the block already include the log."""
    run, s, packed, n_states = logged.run, logged.s, work.packed, block.v.size
    pair = s * np.int64(count_of_actions(c, block)) + np.int64(action)
    slot = np.int64(action) * n_states + s
    at = visits_at(c, block, slot)
    visits, total = np.uint32(block.counts[at] + logged.number), block.rewards[slot]
    if len(packed.sums) > 0:
        total = packed.as_float64[reward_sum_index(packed, run, s)]
    reward = deterministic_reward(work.law, packed, pair)
    total = updated_reward_sum(work.law, packed, logged, total, reward, c.reward_min)
    block.counts[at], counts.visits[run, pair] = visits, visits
    block.rewards[slot], counts.reward_sum[run, pair] = total, total
    if len(c.width) > 0:
        width = np.int64(len(c.width))
    else:
        width = np.int64(counts.transitions.shape[1] // counts.visits.shape[1])
    at = np.uint64(slot) * pitch_of(c, block)
    for j in range(width):
        counts.transitions[run, pair * width + np.int64(j)] = block.counts[at]
        at += np.uint64(1)


@device_function
def add_log(c: DevicePlanConstants, counts: DeviceCounts, work: PlanWork, run: int, block: BlockArrays) -> None:
    """Add the log of a run to the counts of a block, and write the changed counts back to its agent.

    The memory of w, which is free before the first sweep, holds two words per state: its executions and its action.
    """
    words, packed, n_states = cuda.shared.array(0, uint32), work.packed, block.v.size
    executed, act = words[2 * n_states : 3 * n_states], words[3 * n_states : 4 * n_states]
    n_threads, s = np.int64(cuda.blockDim.x), np.int64(cuda.threadIdx.x)
    while s < n_states:
        executed[s], act[s] = 0, logged_action(packed, run, s)
        s += n_threads
    cuda.syncthreads()
    count_log_entries(c, packed, run, block, act, executed)
    cuda.syncthreads()
    s = np.int64(cuda.threadIdx.x)
    while s < n_states:
        n = np.uint32(executed[s] & np.uint32(MAX_UINT16))
        if n > 0:
            logged = LoggedExecutions(run, s, n, np.uint32(executed[s] >> np.uint32(16)))
            write_back(c, counts, work, logged, act[s], block)
        s += n_threads
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        packed.n_logged[run] = 0
