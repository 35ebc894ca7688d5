"""SCAL+'s plans on a GPU, a block of threads for each: bonus, sweeps and cut are the CPU's functions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import float64, uint32

from gainful._compiled import inlined
from gainful.cuda_device import PARTS, cuda, device_function, device_kernel, larger, lesser, together
from gainful.optimism.bernstein_scal_plus import BernsteinConstants, bernstein_level, bernstein_reward
from gainful.optimism.scal_plus import BonusConstants, log_at, optimistic_reward
from gainful.optimism.sharp import SharpConstants, sharp_reward
from gainful.planning.bernstein_scopt import KAPPA_RANGE, bernstein_value
from gainful.planning.estimated import EstimatedMDP, counted_values
from gainful.planning.rounding import counts_slack
from gainful.planning.scopt_on_counts import damped
from gainful.planning.truncation import ceiling_of, truncate
from gainful.simulation.device.runs import DeviceCounts, DeviceEpisodes, DeviceRows, DeviceRuns
from gainful.simulation.device.teams import (
    PLANNING_REGISTERS,
    SWEEPS_PER_LAUNCH,
    PlanResult,
    TodoList,
    adopt,
    fail,
    record_episode,
)

PAPERS, SHARP, BERNSTEIN = 0, 1, 2
"""Kinds of bonus."""


class TeamSpace(NamedTuple):
    """The working vectors of a block."""

    v: Any
    """(S,) values."""
    w: Any
    """(S,) Lv."""
    q: Any
    """(pairs,)."""
    rewards: Any
    """(pairs,) the rewards to plan with."""
    levels: Any
    """(pairs,) for the Bernstein bonus, else none."""
    counts: Any
    """(width * stride,) transitions seen, by rank, then by pair."""
    visits: Any
    """(pairs,)."""
    parts: Any
    """(PARTS,) for `together`."""


class FarSpace(NamedTuple):
    """The vectors of all blocks, and their counts and visits, where they do not fit shared memory; else empty."""

    numbers: Any
    counts: Any


def space_size(n_states: int, n_pairs: int, kind: int) -> int:
    """Numbers that the vectors of a block take."""
    return 2 * n_states + (3 if kind == BERNSTEIN else 2) * n_pairs


@inlined
def team_space(numbers: Any, words: Any, parts: Any, n_states: int, n_pairs: int, n_levels: int) -> TeamSpace:
    """Divide an array of `space_size` numbers, and one of counts and visits."""
    first, n_counts = 2 * n_states, words.size - n_pairs
    return TeamSpace(
        numbers[:n_states],
        numbers[n_states:first],
        numbers[first : first + n_pairs],
        numbers[first + n_pairs : first + 2 * n_pairs],
        numbers[first + 2 * n_pairs : first + 2 * n_pairs + n_levels],
        words[:n_counts],
        words[n_counts:],
        parts,
    )


class DevicePlanConstants(NamedTuple):
    """What the plans of SCAL+ depend on besides the counts and the step; `kind` is a constant to the compiler."""

    kind: tuple[int, ...]
    """Of length `PAPERS`, `SHARP` or `BERNSTEIN`."""
    far: tuple[int, ...]
    """Not empty if the vectors of a block do not fit shared memory."""
    width: tuple[int, ...]
    """As long as the longest row, so that its loop can be unrolled; empty if that is too long."""
    paper: BonusConstants
    sharp: SharpConstants
    bernstein: BernsteinConstants
    span: float
    damping: float
    reward_range: float
    reward_min: float


@inlined
def write_reward(c: DevicePlanConstants, log_term: float, n: Any, reward_sum: float, k: int, space: TeamSpace) -> None:
    """r̂ of pair k, which is allowed, and for the Bernstein bonus its level, by the CPU's functions."""
    if len(c.kind) == PAPERS:
        space.rewards[k] = optimistic_reward(c.paper, log_term, n, reward_sum)
    elif len(c.kind) == SHARP:
        space.rewards[k] = sharp_reward(c.sharp, n, reward_sum)
    else:
        space.rewards[k] = bernstein_reward(c.bernstein, n, reward_sum)
        space.levels[k] = bernstein_level(c.bernstein.n_states, c.bernstein.delta, n, c.bernstein.scale)


@inlined
def pair_model(rows: DeviceRows, space: TeamSpace, k: int) -> EstimatedMDP:
    """Pair k of the estimated MDP, as pair 0 of a model of its own: in memory, pairs and not entries are neighbours."""
    one, entries = slice(k, k + 1), slice(k, space.counts.size, np.int64(rows.stride))
    return EstimatedMDP(
        rows.pairs,
        rows.length[one],
        rows.next_state[entries],
        space.counts[entries],
        space.visits[one],
        space.rewards[one],
        1,
        0,
    )


@inlined
def total_of(c: DevicePlanConstants, rows: DeviceRows, space: TeamSpace, k: Any) -> Any:
    """Σ N(s')·v(s') of pair k, and v of the attractive state."""
    v = space.v
    if len(c.width) > 0:  # what is beyond the end of a row has counts of 0
        total = counted_values(space.counts, k, rows.next_state, k, len(c.width), rows.stride, v, v[0])
    else:
        total = counted_values(space.counts, k, rows.next_state, k, rows.length[k], rows.stride, v, v[0])
    return total


@inlined
def divided(space: TeamSpace, k: Any, total: float) -> Any:
    """r̂ + p̂·v of pair k, from `total_of` it."""
    return space.rewards[k] + total / (np.int64(space.visits[k]) + 1)


@device_function
def write_backups(c: DevicePlanConstants, rows: DeviceRows, space: TeamSpace) -> None:
    """Q of all pairs; two at a time, so that a thread has other work while it waits."""
    k, team, n_pairs = np.uint64(cuda.threadIdx.x), np.uint64(cuda.blockDim.x), np.uint64(space.q.size)
    if len(c.kind) != BERNSTEIN:
        while k + team < n_pairs:
            here, there = total_of(c, rows, space, k), total_of(c, rows, space, k + team)
            here, there = divided(space, k, here), divided(space, k + team, there)
            space.q[k], space.q[k + team] = here, there
            k += team + team
    while k < n_pairs:
        space.q[k] = backup(c, rows, space, int(k))
        k += team


@inlined
def backup(c: DevicePlanConstants, rows: DeviceRows, space: TeamSpace, k: int) -> Any:
    """r̂ + p̂·v of pair k, with the Bernstein bonus if it is that."""
    if len(c.kind) != BERNSTEIN:
        return divided(space, np.uint64(k), total_of(c, rows, space, np.uint64(k)))
    if space.rewards[k] == -np.inf:
        return -np.inf
    model = pair_model(rows, space, k)
    expected, bonus = bernstein_value(model, space.levels[k], c.span, space.v, 0)
    return space.rewards[k] + bonus + expected


@device_function
def sweeps(
    c: DevicePlanConstants, rows: DeviceRows, space: TeamSpace, target: float, scale: Any
) -> tuple[int, float, float, float, bool]:
    """What `scopt_on_counts` does, by a block of threads, from sweep `scale[2]` on and for some sweeps at most.

    `scale` also has the largest reward and the longest row. Returns the sweeps made in all, the range of T_c v - v, its
    slack, and whether the plan is finished; if not, v is where the next sweep begins.
    """
    x, team, v, w, q = np.uint64(cuda.threadIdx.x), np.uint64(cuda.blockDim.x), space.v, space.w, space.q
    n_states, span = np.uint64(v.size), c.span
    n_actions = np.uint64(q.size // v.size)
    if scale[2] == 0:
        cut_by_team(space, span)
    done, finished = scale[2], False
    low, high, slack = np.inf, -np.inf, 0.0
    while done < scale[2] + SWEEPS_PER_LAUNCH:
        cuda.syncthreads()
        write_backups(c, rows, space)
        cuda.syncthreads()
        least, largest = np.inf, 0.0
        s = x
        while s < n_states:
            best = -np.inf
            for pair in range(s * n_actions, s * n_actions + n_actions):
                best = larger(best, q[pair])
            w[s] = best
            least, largest = lesser(least, best), larger(largest, abs(v[s]))
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


@inlined
def further_entry(rank: Any, pair: Any, width: Any) -> Any:
    """The rank and the pair of an entry, where the rank may have left its row by less than a row."""
    if rank >= width:
        rank, pair = rank - width, pair + np.uint64(1)
    return rank, pair


@device_function
def stage_counts(seen: Any, n_pairs: int, stride: Any, out: Any) -> None:
    """Copy counts by pair into counts by rank: neighbouring threads read neighbours, without a division for each."""
    width, team = np.uint64(seen.size // n_pairs), np.uint64(cuda.blockDim.x)
    i, n, two, three = np.uint64(cuda.threadIdx.x), np.uint64(seen.size), team + team, team + team + team
    pair, further = i // width, team // width
    rank, more = i - pair * width, team - further * width
    while i + three < n:  # four numbers are on their way at a time
        a, b, c, d = seen[i], seen[i + team], seen[i + two], seen[i + three]
        out[rank * stride + pair] = a
        rank, pair = further_entry(rank + more, pair + further, width)
        out[rank * stride + pair] = b
        rank, pair = further_entry(rank + more, pair + further, width)
        out[rank * stride + pair] = c
        rank, pair = further_entry(rank + more, pair + further, width)
        out[rank * stride + pair] = d
        rank, pair = further_entry(rank + more, pair + further, width)
        i += two + two
    while i < n:
        out[rank * stride + pair] = seen[i]
        rank, pair = further_entry(rank + more, pair + further, width)
        i += team


@device_function
def write_rewards(
    c: DevicePlanConstants, rows: DeviceRows, counts: DeviceCounts, run: int, t: int, space: TeamSpace
) -> tuple[bool, float, float]:
    """r̂ of every pair; whether every bonus is so wide that the plan ignores the data, and what rounding depends on.

    That is the largest |r̂| of an allowed pair and the longest row seen.
    """
    stage_counts(counts.seen[run], space.q.size, rows.stride, space.counts)
    log_term = log_at(c.paper, t)
    n_pairs, width = space.q.size, counts.seen.shape[1] // space.q.size
    k, wide = cuda.threadIdx.x, True
    max_reward, support = 0.0, 0.0
    cuda.syncthreads()
    while k < n_pairs:
        space.rewards[k], space.visits[k], length = -np.inf, counts.visits[run, k], 0
        if rows.allowed[k]:
            n = np.int64(space.visits[k])
            if wide:  # once a bonus is not, none of the others matters
                write_reward(c, log_term, n, 0.0, k, space)
                if len(c.kind) == BERNSTEIN:
                    wide = KAPPA_RANGE * space.levels[k] + 1.0 / (n + 1.0) >= 1.0
                else:
                    wide = space.rewards[k] - c.paper.model_error >= c.span + c.reward_range
            write_reward(c, log_term, n, counts.reward_sum[run, k], k, space)
            max_reward = max(max_reward, abs(space.rewards[k]))
        at = np.uint64(k)
        for _ in range(width):
            length += space.counts[at] > 0
            at += rows.stride
        support = max(support, np.float64(length))
        k += cuda.blockDim.x
    vacuous = cuda.syncthreads_and(np.int32(wide)) != 0
    _, max_reward = together(0.0, max_reward, space.parts, 0)
    _, support = together(0.0, support, space.parts, 1)
    return vacuous, max_reward, support


@device_kernel(registers=PLANNING_REGISTERS)
def plan_scal_plus(
    todo: TodoList,
    rows: DeviceRows,
    runs: DeviceRuns,
    counts: DeviceCounts,
    episodes: DeviceEpisodes,
    values: Any,
    far: FarSpace,
    c: DevicePlanConstants,
) -> None:
    """Plan the next episode of each run of the list; the vectors of a block are in `far` if they are not shared."""
    near, words = cuda.shared.array(0, float64), cuda.shared.array(0, uint32)
    parts = cuda.shared.array(PARTS, float64)
    x, team = cuda.threadIdx.x, cuda.blockDim.x
    n_states, n_pairs = values.shape[1], rows.length.size
    n_levels = n_pairs if len(c.kind) == BERNSTEIN else 0
    if len(c.far) > 0:
        at = cuda.blockIdx.x
        space = team_space(far.numbers[at], far.counts[at], parts, n_states, n_pairs, n_levels)
    else:
        first = 2 * (2 * n_states + 2 * n_pairs + n_levels)
        space = team_space(
            near, words[first : first + rows.next_state.size + n_pairs], parts, n_states, n_pairs, n_levels
        )
    i = cuda.blockIdx.x
    while i < todo.n[0]:
        cuda.syncthreads()
        run = todo.run[i]
        t = runs.step[run] + 1
        s = x
        while s < n_states:
            space.v[s] = values[run, s]
            s += team
        vacuous, max_reward, support = write_rewards(c, rows, counts, run, t, space)
        scale = max_reward, support, runs.sweeps[run]
        target = c.reward_range / math.sqrt(t)
        done, low, high, slack, finished = sweeps(c, rows, space, target, scale)
        met = finished and high - low + 2.0 * slack <= target
        span = span_by_team(space.v, space.parts)
        s = x
        while s < n_states:
            if met:
                adopt(counts, space.q, run, s)
            values[run, s] = space.v[s]
            s += team
        if x == 0:
            runs.sweeps[run] = 0 if finished else done
            if met:
                found = PlanResult(low - slack, high + slack, span, done, vacuous)
                record_episode(runs, episodes, found, c.reward_min, run)
            elif finished:
                fail(runs, 2.0 * slack, run)
        i += cuda.gridDim.x
