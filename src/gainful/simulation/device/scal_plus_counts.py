"""Counts on their way between an agent and a block that plans for it on a GPU; the agent's log is added there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, uint32, uint64

from gainful._compiled import inlined
from gainful.cuda_device import cuda, device_function
from gainful.simulation.device.packed import (
    ENTRIES,
    PackedRuns,
    Settled,
    card_place,
    mean_before,
    real_place,
    settled_sum,
    state_of_entry,
    word_of_log,
)
from gainful.simulation.device.runs import MOST_HALF, DeviceCounts
from gainful.simulation.device.scal_plus_space import (
    DevicePlanConstants,
    PlacedRows,
    TeamSpace,
    count_of_actions,
    pitch_of,
    place_of,
    visits_at,
)
from gainful.simulation.transition_table import RewardLaw

WORDS_IN_FLIGHT, PAIRS_IN_FLIGHT = 13, 7
"""Words of counts, and pairs, that a thread asks for before it waits for the first."""


class PlanWork(NamedTuple):
    """What else the plans of SCAL+ need."""

    numbers: Any
    counts: Any
    """The vectors of all blocks, and their counts and visits, where they do not fit shared memory; else empty."""
    seen: Any
    """The agents' counts, two of them in a word if they are paired."""
    packed: PackedRuns
    law: RewardLaw
    """Logs that are added to the agents' counts before plans are made, and the law of their rewards."""


@device_function
def stage_counts(c: DevicePlanConstants, rows: PlacedRows, seen: Any, space: TeamSpace) -> None:
    """Copy an agent's counts, words of one or of two of them; many words are on their way at a time."""
    n, team = np.uint32(rows.homes.size), np.uint32(cuda.blockDim.x)
    held, last = cuda.local.array(WORDS_IN_FLIGHT, uint64), np.uint32(n - np.uint32(1))
    i = np.uint32(cuda.threadIdx.x)
    while i < n:  # beyond the end, the last word is copied again
        for j in range(WORDS_IN_FLIGHT):
            held[j] = seen[min(np.uint32(i + np.uint32(j) * team), last)]
        for j in range(WORDS_IN_FLIGHT):
            home = np.uint64(rows.homes[min(np.uint32(i + np.uint32(j) * team), last)])
            space.counts[home] = np.uint32(held[j])
            if len(c.paired) > 0:
                space.counts[home + np.uint64(1)] = np.uint32(held[j] >> np.uint64(32))
        i = np.uint32(i + np.uint32(WORDS_IN_FLIGHT) * team)


@device_function
def stage_pairs(c: DevicePlanConstants, counts: DeviceCounts, run: int, space: TeamSpace) -> None:
    """Copy an agent's visits and sums of rewards; many numbers are on their way at a time."""
    visits, sums = counts.visits[run], counts.reward_sum[run]
    n, team = np.uint32(visits.size), np.uint32(cuda.blockDim.x)
    held, reals = cuda.local.array(PAIRS_IN_FLIGHT, uint32), cuda.local.array(PAIRS_IN_FLIGHT, float64)
    i, last = np.uint32(cuda.threadIdx.x), np.uint32(n - np.uint32(1))
    while i < n:
        for j in range(PAIRS_IN_FLIGHT):
            k = min(np.uint32(i + np.uint32(j) * team), last)
            held[j], reals[j] = visits[k], sums[k]
        for j in range(PAIRS_IN_FLIGHT):
            place = place_of(c, space, min(np.uint32(i + np.uint32(j) * team), last))
            space.counts[visits_at(c, space, place)], space.rewards[place] = held[j], reals[j]
        i = np.uint32(i + np.uint32(PAIRS_IN_FLIGHT) * team)


@device_function
def count_steps(c: DevicePlanConstants, packed: PackedRuns, run: int, space: TeamSpace, act: Any, done: Any) -> None:
    """Add the transitions of a log to the counts of a block; done[s] counts steps, and rewards of 1 from bit 16 on."""
    n, team = np.uint32(packed.logged[run]), np.uint32(cuda.blockDim.x)
    i = np.uint32(cuda.threadIdx.x)
    while i * np.uint32(ENTRIES) < n:
        word, j = word_of_log(packed, run, n, i)
        while j > 0:
            entry, steps = np.uint32(word & np.uint64(MOST_HALF)), np.uint32(1)
            if len(packed.wins) > 0:
                steps = np.uint32(1 + ((entry & np.uint32(1)) << np.uint32(16)))
                entry >>= np.uint32(1)
            s = state_of_entry(packed.layout, entry)
            place = np.uint64(act[s]) * np.uint64(space.v.size) + np.uint64(s)
            at = place * pitch_of(c, space) + np.uint64(np.uint32(entry) - s * packed.layout.pitch)
            cuda.atomic.add(space.counts, np.int64(at), np.uint32(1))
            cuda.atomic.add(done, np.int64(s), steps)
            word >>= np.uint64(16)
            j = np.uint32(j - np.uint32(1))
        i = np.uint32(i + team)


@inlined
def give_back(
    c: DevicePlanConstants, counts: DeviceCounts, work: PlanWork, seen: Settled, action: Any, space: TeamSpace
) -> None:
    """Give an agent what was logged about a state and its action: its counts in the block have the log already."""
    run, s, packed, n_states = seen.run, seen.s, work.packed, space.v.size
    pair = s * np.int64(count_of_actions(c, space)) + np.int64(action)
    place = np.int64(action) * n_states + s
    at = visits_at(c, space, place)
    visits, total = np.uint32(space.counts[at] + seen.done), space.rewards[place]
    if len(packed.sums) > 0:
        total = packed.reals[real_place(packed, run, s)]
    total = settled_sum(work.law, packed, seen, total, mean_before(work.law, packed, pair), c.reward_min)
    space.counts[at], counts.visits[run, pair] = visits, visits
    space.rewards[place], counts.reward_sum[run, pair] = total, total
    width = np.int64(counts.seen.shape[1] // counts.visits.shape[1]) if len(c.width) == 0 else np.int64(len(c.width))
    at = np.uint64(place) * pitch_of(c, space)
    for j in range(width):
        counts.seen[run, pair * width + np.int64(j)] = space.counts[at]
        at += np.uint64(1)


@device_function
def add_log(c: DevicePlanConstants, counts: DeviceCounts, work: PlanWork, run: int, space: TeamSpace) -> None:
    """Add the log of a run to the counts of a block, and give its agent what has changed.

    Until plans begin, w has room for the steps of each state and for its action, a word each.
    """
    words, packed, n_states = cuda.shared.array(0, uint32), work.packed, space.v.size
    done, act = words[2 * n_states : 3 * n_states], words[3 * n_states : 4 * n_states]
    team, s = np.int64(cuda.blockDim.x), np.int64(cuda.threadIdx.x)
    while s < n_states:
        done[s], act[s] = 0, packed.halves[card_place(packed, run, s)] & (packed.layout.one - np.uint32(1))
        s += team
    cuda.syncthreads()
    count_steps(c, packed, run, space, act, done)
    cuda.syncthreads()
    s = np.int64(cuda.threadIdx.x)
    while s < n_states:
        n = np.uint32(done[s] & np.uint32(MOST_HALF))
        if n > 0:
            give_back(c, counts, work, Settled(run, s, n, np.uint32(done[s] >> np.uint32(16))), act[s], space)
        s += team
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        packed.logged[run] = 0
