"""SCAL+'s plans on a GPU, a block of threads for each: bonus, sweeps and cut are the CPU's functions.

A thread computes Lv(s) of its states, one after the other. In the memory of a block, pairs stand in the order of their
*places*: by action, then by state, so that neighbouring threads read neighbours.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import float64, uint32, uint64
from numpy.typing import NDArray

from gainful._compiled import inlined
from gainful.cuda_device import PARTS, cuda, device_function, device_kernel, larger, lesser, quotient, together
from gainful.optimism.bernstein_scal_plus import BernsteinConstants, bernstein_level, bernstein_reward
from gainful.optimism.scal_plus import BonusConstants, bonus_of, log_at, with_bonus
from gainful.optimism.sharp import SharpConstants, sharp_reward
from gainful.planning.bernstein_scopt import KAPPA_RANGE, bernstein_value
from gainful.planning.estimated import EstimatedMDP, counted_values
from gainful.planning.rounding import counts_slack
from gainful.planning.scopt_on_counts import damped
from gainful.planning.truncation import ceiling_of, truncate
from gainful.simulation.device.packed import (
    ENTRIES,
    PackedRuns,
    Settled,
    card_place,
    deal_card,
    mean_before,
    real_place,
    settled_sum,
    state_of_entry,
    word_of_log,
)
from gainful.simulation.device.runs import MOST_HALF, DeviceCounts, DeviceEpisodes, DeviceRows, DeviceRuns
from gainful.simulation.device.teams import (
    SWEEPS_PER_LAUNCH,
    PlanResult,
    TodoList,
    fail,
    record_episode,
    take,
)
from gainful.simulation.transition_table import RewardLaw

PAPERS, SHARP, BERNSTEIN = 0, 1, 2
"""Kinds of bonus."""
SCAL_PLUS_REGISTERS, SCAL_PLUS_THREADS = 96, 128
"""Registers of a thread that plans, and threads of a plan at most: more of them wait for each other longer."""
WORDS_IN_FLIGHT, PAIRS_IN_FLIGHT = 13, 7
"""Words of counts, and pairs, that a thread asks for before it waits for the first."""
UNROLLED = 32
"""The longest row whose expected value is computed without a loop, and the most actions with the like."""


class TeamSpace(NamedTuple):
    """The working vectors of a block."""

    v: Any
    """(S,) values."""
    w: Any
    """(S,) Lv."""
    rewards: Any
    """(pairs,) the sums of rewards, then the rewards to plan with."""
    inverse: Any
    """(pairs,) 1/(N + 1)."""
    levels: Any
    """(pairs,) for the Bernstein bonus, else none."""
    counts: Any
    """(pairs * pitch,) transitions seen, by place, then by rank; the last of each pair are its visits."""
    parts: Any
    """(PARTS,) for `together`."""
    full: Any
    """(1,) whether a thread has found a row all of whose next states were seen."""
    pitch: Any
    """From one row of counts to the next."""
    n_actions: Any


class PlacedRows(NamedTuple):
    """The rows of the model, padded to one width, in the order of places."""

    length: Any
    """(pairs,) next states of the model."""
    next_state: Any
    """(pairs * width,) by place, then by rank."""
    fours: Any
    """(ranks / 4 * pairs,) four next states of 16 bits in a word, by rank, then by place; empty if rows are long."""
    allowed: Any
    """(pairs,) of the agent."""
    homes: Any
    """(pairs * width,) where each counter of an agent is in the memory of a block; of paired ones, the first."""
    first: Any
    """(1,) where the row of a model of one pair begins: at 0."""
    width: Any
    n_actions: Any


def placed_rows(rows: DeviceRows, n_actions: int) -> PlacedRows:
    """Rows of pairs by state, then by action, in the order of places; not yet on the GPU."""
    n_pairs = rows.length.size
    order = np.arange(n_pairs).reshape(-1, n_actions).T.reshape(-1)
    lists = rows.next_state.reshape(-1, int(rows.stride)).T[order]
    width = lists.shape[1]
    fours: NDArray[np.uint64] = np.zeros((0, n_pairs), dtype=np.uint64)
    if lists.dtype == np.uint16 and width <= UNROLLED:
        padded = np.zeros((n_pairs, 4 * quarters(width)), dtype=np.uint16)
        padded[:, :width] = lists
        fours = padded.view(np.uint64).T
    homes = (np.argsort(order) * row_pitch(width))[:, None] + np.arange(0, width, 2 if are_paired(width) else 1)
    return PlacedRows(
        rows.length[order],
        np.ascontiguousarray(lists).reshape(-1),
        np.ascontiguousarray(fours).reshape(-1),
        rows.allowed[order].copy(),
        homes.reshape(-1).astype(np.uint16 if homes.max() <= MOST_HALF else np.uint32),
        np.zeros(1, dtype=np.int64),
        np.uint32(width),
        np.uint32(n_actions),
    )


@inlined
def are_paired(width: int) -> bool:
    """Whether two counters of a row, side by side, are read as one word of 8 bytes."""
    return width % 2 == 0


@inlined
def quarters(width: int) -> int:
    """Words of four next states in a row."""
    return (width + 3) // 4


@inlined
def row_pitch(width: int) -> int:
    """From one row of counts to the next: whole words of four, and visits. It is odd: rows begin in other banks."""
    return 4 * quarters(width) + 1


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


def space_size(n_states: int, n_pairs: int, kind: int) -> int:
    """Numbers that the vectors of a block take."""
    return 2 * n_states + (3 if kind == BERNSTEIN else 2) * n_pairs


@inlined
def team_space(
    numbers: Any, words: Any, parts: Any, full: Any, n_states: int, n_levels: int, rows: PlacedRows
) -> TeamSpace:
    """Divide an array of `space_size` numbers; the words are for counts."""
    first, n_pairs = 2 * n_states, rows.length.size
    return TeamSpace(
        numbers[:n_states],
        numbers[n_states:first],
        numbers[first : first + n_pairs],
        numbers[first + n_pairs : first + 2 * n_pairs],
        numbers[first + 2 * n_pairs : first + 2 * n_pairs + n_levels],
        words,
        parts,
        full,
        np.uint64(row_pitch(rows.width)),
        rows.n_actions,
    )


class DevicePlanConstants(NamedTuple):
    """What the plans of SCAL+ depend on besides the counts and the step; `kind` is a constant to the compiler."""

    kind: tuple[int, ...]
    """Of length `PAPERS`, `SHARP` or `BERNSTEIN`."""
    far: tuple[int, ...]
    """Not empty if the vectors of a block do not fit shared memory."""
    logs: tuple[int, ...]
    """Not empty if there are logs to be added before plans are made, and cards to be dealt after them; the vectors of a
    block are then shared."""
    tiny: tuple[int, ...]
    """Not empty if rewards are so small that `quotient` cannot divide by inverses."""
    quarters: tuple[int, ...]
    """As long as there are words of four in a row, so that their loop can be unrolled; empty if rows are long."""
    width: tuple[int, ...]
    """As long as the longest row, so that dividing by its length is cheap; empty if rows are long."""
    actions: tuple[int, ...]
    """As long as there are actions, so that dividing by their number is cheap; empty if they are many."""
    paired: tuple[int, ...]
    """Not empty if two counts of an agent are read as one word."""
    paper: BonusConstants
    sharp: SharpConstants
    bernstein: BernsteinConstants
    span: float
    damping: float
    reward_range: float
    reward_min: float


@inlined
def count_of_actions(c: DevicePlanConstants, space: TeamSpace) -> Any:
    """A, a constant to the compiler if it is small."""
    return np.uint32(len(c.actions)) if len(c.actions) > 0 else np.uint32(space.n_actions)


@inlined
def place_of(c: DevicePlanConstants, space: TeamSpace, k: Any) -> Any:
    """The place of pair k = s*A + a: a*S + s."""
    n_actions = count_of_actions(c, space)
    s = np.uint32(k) // n_actions
    return np.uint64((np.uint32(k) - s * n_actions) * np.uint32(space.v.size) + s)


@inlined
def ratio(c: DevicePlanConstants, x: float, divisor: float, inverse: float) -> float:
    """x/divisor."""
    if len(c.tiny) > 0:
        return x / divisor
    return quotient(x, divisor, inverse)


@inlined
def ignores_data(c: DevicePlanConstants, n: Any, b: float, level: float) -> Any:
    """Whether a bonus is so wide that what was observed of its pair does not matter; b and level are its own."""
    if len(c.kind) == BERNSTEIN:
        return KAPPA_RANGE * level + 1.0 / (n + 1.0) >= 1.0
    if len(c.kind) == SHARP:
        return sharp_reward(c.sharp, n, 0.0) - c.sharp.model_error >= c.span + c.reward_range
    return with_bonus(c.paper, 0.0, b) - c.paper.model_error >= c.span + c.reward_range


@inlined
def reward_with_bonus(c: DevicePlanConstants, n: Any, reward_sum: float, b: float) -> float:
    """r̂ of a pair, by the CPU's functions; b is the paper's bonus, if it is that."""
    if len(c.kind) == BERNSTEIN:
        return bernstein_reward(c.bernstein, n, reward_sum)
    if len(c.kind) == SHARP:
        return sharp_reward(c.sharp, n, reward_sum)
    divisor = np.float64(max(1, n))
    return with_bonus(c.paper, ratio(c, reward_sum, divisor, 1.0 / divisor), b)


@inlined
def row_width(c: DevicePlanConstants, rows: PlacedRows) -> Any:
    """The length of a padded row, a constant to the compiler if it is short."""
    return np.uint32(len(c.width)) if len(c.width) > 0 else np.uint32(rows.width)


@inlined
def pitch_of(c: DevicePlanConstants, space: TeamSpace) -> Any:
    """From one row of counts to the next, a constant to the compiler if rows are short."""
    return np.uint64(row_pitch(len(c.width))) if len(c.width) > 0 else np.uint64(space.pitch)


@inlined
def visits_at(c: DevicePlanConstants, space: TeamSpace, k: Any) -> Any:
    """Where the visits of the pair at place k are."""
    return (np.uint64(k) + np.uint64(1)) * pitch_of(c, space) - np.uint64(1)


@inlined
def pair_model(c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, k: int) -> EstimatedMDP:
    """The pair at place k of the estimated MDP, as pair 0 of a model of its own."""
    one, width = slice(k, k + 1), np.int64(rows.width)
    at, last = k * np.int64(pitch_of(c, space)), np.int64(visits_at(c, space, k))
    return EstimatedMDP(
        rows.first,
        rows.length[one],
        rows.next_state[k * width : k * width + width],
        space.counts[at : at + width],
        space.counts[last : last + 1],
        space.rewards[one],
        1,
        0,
    )


@inlined
def total_of(c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, k: Any) -> Any:
    """Σ N(s')·v(s') of the pair at place k, and v of the attractive state: what `counted_values` adds up."""
    v, n_pairs, one, at = space.v, np.uint64(space.rewards.size), np.uint64(1), k * pitch_of(c, space)
    if len(c.quarters) == 0:
        to = k * np.uint64(row_width(c, rows))
        return counted_values(space.counts, at, rows.next_state, to, rows.length[k], one, v, v[0])
    total, word = v[0], k
    for _ in range(len(c.quarters)):
        four = rows.fours[word]
        for _ in range(4):  # what is beyond the end of a row has counts of 0
            total += space.counts[at] * v[four & np.uint64(MOST_HALF)]
            four >>= np.uint64(16)
            at += one
        word += n_pairs
    return total


@inlined
def divided(c: DevicePlanConstants, space: TeamSpace, k: Any, total: float) -> Any:
    """r̂ + p̂·v of the pair at place k, from `total_of` it."""
    n = np.float64(space.counts[visits_at(c, space, k)])
    return space.rewards[k] + ratio(c, total, n + 1.0, space.inverse[k])


@inlined
def bernstein_backup(c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, k: int) -> Any:
    """r̂ + p̂·v + b of the pair at place k, b the Bernstein bonus."""
    if space.rewards[k] == -np.inf:
        return -np.inf
    model = pair_model(c, rows, space, k)
    expected, bonus = bernstein_value(model, space.levels[k], c.span, space.v, 0)
    return space.rewards[k] + bonus + expected


@inlined
def better_of_two(c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, k: Any, a: Any, best: Any) -> Any:
    """The better of `best`, a value and its action, and actions a and a + 1 of the pairs from place k on.

    Two at a time, so that a thread has other work while it waits.
    """
    next_place = k + np.uint64(space.v.size)
    here, there = total_of(c, rows, space, k), total_of(c, rows, space, next_place)
    here, there = divided(c, space, k, here), divided(c, space, next_place, there)
    if here > best[0]:
        best = here, a
    if there > best[0]:
        best = there, np.uint32(a + np.uint32(1))
    return best


@device_function
def best_action(c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, s: Any) -> Any:
    """Lv(s) and its greedy action, ties to the lowest."""
    k, a, n_states, n_actions = s, np.uint32(0), np.uint64(space.v.size), count_of_actions(c, space)
    best = (-np.inf, a)
    if len(c.kind) != BERNSTEIN:
        for _ in range(len(c.actions) // 2):
            best = better_of_two(c, rows, space, k, a, best)
            a, k = np.uint32(a + np.uint32(2)), k + n_states + n_states
    while a < n_actions:
        if len(c.kind) == BERNSTEIN:
            here = bernstein_backup(c, rows, space, int(k))
        else:
            here = divided(c, space, k, total_of(c, rows, space, k))
        if here > best[0]:
            best = here, a
        a = np.uint32(a + np.uint32(1))
        k += n_states
    return best


@device_function
def sweeps(
    c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, target: float, scale: Any, act: Any
) -> tuple[int, float, float, float, bool]:
    """What `scopt_on_counts` does, by a block of threads, from sweep `scale[2]` on and for some sweeps at most.

    `scale` also has the largest reward and the longest row. The greedy actions of the last sweep go to `act`. Returns
    the sweeps made in all, the range of T_c v - v, its slack, and whether the plan is finished; if not, v is where the
    next sweep begins.
    """
    x, team, v, w = np.uint64(cuda.threadIdx.x), np.uint64(cuda.blockDim.x), space.v, space.w
    n_states, span = np.uint64(v.size), c.span
    if scale[2] == 0:
        cut_by_team(space, span)
    done, finished = scale[2], False
    low, high, slack = np.inf, -np.inf, 0.0
    while done < scale[2] + SWEEPS_PER_LAUNCH:
        cuda.syncthreads()
        least, largest = np.inf, 0.0
        s = x
        while s < n_states:
            w[s], act[s] = best_action(c, rows, space, s)
            least, largest = lesser(least, w[s]), larger(largest, abs(v[s]))
            s += team
        least, largest = together(least, largest, space.parts, 0)
        ceiling = ceiling_of(least, span)
        pin = damped(v[0], truncate(w[0], ceiling), c.damping)
        low, high = np.inf, -np.inf
        s = x
        while s < n_states:
            gap = truncate(w[s], ceiling) - v[s]
            low, high = lesser(low, gap), larger(high, gap)
            s += team
        low, high = together(low, high, space.parts, 1)
        if len(c.kind) == BERNSTEIN:
            slack = counts_slack(scale[1] + 6, largest + span, scale[0])
        else:
            slack = counts_slack(scale[1], largest, scale[0])
        done += 1
        finished = high - low + 2.0 * slack <= target or high - low <= 2.0 * slack
        if finished:
            break
        s = x
        while s < n_states:
            v[s] = damped(v[s], truncate(w[s], ceiling), c.damping) - pin
            s += team
    cuda.syncthreads()
    return done, low, high, slack, finished


@device_function
def cut_by_team(space: TeamSpace, span: float) -> None:
    """Cut v to span c, from its least value up."""
    v, team = space.v, cuda.blockDim.x
    least = np.inf
    s = cuda.threadIdx.x
    while s < v.size:
        least = min(least, v[s])
        s += team
    least, _ = together(least, 0.0, space.parts, 0)
    s = cuda.threadIdx.x
    while s < v.size:
        v[s] = truncate(v[s], ceiling_of(least, span))
        s += team


@device_function
def span_by_team(v: Any, parts: Any) -> float:
    """sp(v)."""
    low, high = np.inf, -np.inf
    s = cuda.threadIdx.x
    while s < v.size:
        low, high = min(low, v[s]), max(high, v[s])
        s += cuda.blockDim.x
    low, high = together(low, high, parts, 0)
    return high - low


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

    Until plans begin, w has room for the steps of each state, and the inverses of visits for its action.
    """
    words, packed, n_states, n_pairs = cuda.shared.array(0, uint32), work.packed, space.v.size, space.rewards.size
    done, first = words[2 * n_states : 3 * n_states], 4 * n_states + 2 * n_pairs
    act = words[first : first + n_states]
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


@device_function
def write_rewards(
    c: DevicePlanConstants,
    rows: PlacedRows,
    counts: DeviceCounts,
    work: PlanWork,
    run: int,
    t: int,
    space: TeamSpace,
) -> tuple[bool, float, float]:
    """r̂ of every pair; whether every bonus is so wide that the plan ignores the data, and what rounding depends on.

    That is the largest |r̂| of an allowed pair and the longest row seen.
    """
    stage_pairs(c, counts, run, space)
    stage_counts(c, rows, work.seen[run], space)
    if len(c.logs) > 0 and work.packed.logged[run] > 0:
        add_log(c, counts, work, run, space)
    log_term = log_at(c.paper, t)
    n_pairs, width = np.uint64(space.rewards.size), row_width(c, rows)
    k, wide = np.uint64(cuda.threadIdx.x), True
    max_reward, support = 0.0, 0.0
    if cuda.threadIdx.x == 0:
        space.full[0] = 0
    cuda.syncthreads()
    while k < n_pairs:
        allowed, at = rows.allowed[k], k * pitch_of(c, space)
        n: Any = np.int64(space.counts[visits_at(c, space, k)])
        reward_sum, space.inverse[k] = space.rewards[k], 1.0 / (n + 1)
        b, level = 0.0, 0.0
        if len(c.kind) == PAPERS:
            b = bonus_of(c.paper, log_term, n)
        if len(c.kind) == BERNSTEIN:
            level = bernstein_level(c.bernstein.n_states, c.bernstein.delta, n, c.bernstein.scale)
            space.levels[k] = level
        reward = reward_with_bonus(c, n, reward_sum, b)
        space.rewards[k] = reward if allowed else -np.inf
        if allowed:
            max_reward = larger(max_reward, abs(reward))
            if wide:  # once a bonus is not, none of the others matters
                wide = ignores_data(c, n, b, level)
        if space.full[0] == 0:  # no row is longer than a full one, and most rows are full most of the time
            length = 0
            for _ in range(width):
                length += space.counts[at] > 0
                at += np.uint64(1)
            support = larger(support, np.float64(length))
            if length == width:
                space.full[0] = 1
        k += np.uint64(cuda.blockDim.x)
    vacuous = cuda.syncthreads_and(np.int32(wide)) != 0
    _, max_reward = together(0.0, max_reward, space.parts, 0)
    _, support = together(0.0, support, space.parts, 1)
    return vacuous, max_reward, support


@device_kernel(registers=SCAL_PLUS_REGISTERS)
def plan_scal_plus(
    todo: TodoList,
    rows: PlacedRows,
    runs: DeviceRuns,
    counts: DeviceCounts,
    episodes: DeviceEpisodes,
    values: Any,
    work: PlanWork,
    c: DevicePlanConstants,
) -> None:
    """Plan the next episode of each run of the list; the vectors of a block are in `work` if they are not shared."""
    near, words = cuda.shared.array(0, float64), cuda.shared.array(0, uint32)
    parts, full = cuda.shared.array(PARTS, float64), cuda.shared.array(1, uint32)
    x, team = cuda.threadIdx.x, cuda.blockDim.x
    n_states, n_pairs = values.shape[1], rows.length.size
    n_levels = n_pairs if len(c.kind) == BERNSTEIN else 0
    if len(c.far) > 0:
        at = cuda.blockIdx.x
        space = team_space(work.numbers[at], work.counts[at], parts, full, n_states, n_levels, rows)
    else:
        first = 2 * (2 * n_states + 2 * n_pairs + n_levels)
        n_words = np.int64(row_pitch(rows.width)) * n_pairs
        space = team_space(near, words[first : first + n_words], parts, full, n_states, n_levels, rows)
    i = x
    while i < space.counts.size:
        space.counts[i] = 0  # beyond the ends of rows it stays so
        i += team
    i, n_todo = cuda.blockIdx.x, todo.n[0]
    run = todo.run[min(i, todo.run.size - 1)]
    while i < n_todo:
        i += cuda.gridDim.x
        following = todo.run[min(i, todo.run.size - 1)]  # asked for early
        cuda.syncthreads()
        t, sweeps_made = runs.step[run] + 1, runs.sweeps[run]
        s = x
        while s < n_states:
            space.v[s] = values[run, s]
            s += team
        vacuous, max_reward, support = write_rewards(c, rows, counts, work, run, t, space)
        scale = max_reward, support, sweeps_made
        target = c.reward_range / math.sqrt(t)
        done, low, high, slack, finished = sweeps(c, rows, space, target, scale, counts.act[run])
        met = finished and high - low + 2.0 * slack <= target
        span = span_by_team(space.v, space.parts)
        s = x
        while s < n_states:
            if met:
                take(counts, run, s, int(counts.act[run, s]), n_pairs // n_states)
                if len(c.logs) > 0:
                    deal_card(counts, work.packed, run, s, n_pairs // n_states)
            values[run, s] = space.v[s]
            s += team
        if x == 0:
            runs.sweeps[run] = 0 if finished else done
            if met:
                found = PlanResult(low - slack, high + slack, span, done, vacuous)
                record_episode(runs, episodes, found, c.reward_min, run)
            elif finished:
                fail(runs, 2.0 * slack, run)
        run = following
