"""Plans of UCRL2 and UCRL2B on a GPU, with one block per plan.

A block writes the confidence set of every pair, and sweeps with extended value iteration until the plan is precise
enough. Sets, inner maxima and the order of states are computed by the functions that the CPU uses.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import float64

from gainful._compiled import inlined
from gainful.agents.empirical import EmpiricalRows
from gainful.agents.sets import SIMPLEX, Balls, EntryIntervals, SetConstants, Sums
from gainful.agents.ucrl2 import write_ball
from gainful.agents.ucrl2b import write_intervals
from gainful.cuda_device import REDUCTION_SIZE, block_min_max, cuda, device_function, device_kernel
from gainful.optimism.ucrl2 import reward_log, transition_log
from gainful.planning.improvement import relaxed
from gainful.planning.intervals import IntervalSet, interval_value
from gainful.planning.l1 import ball_value
from gainful.planning.ordering import Ranking, rank_level, sort_row
from gainful.planning.rounding import UNIT_ROUNDOFF, is_narrow, slack_at
from gainful.simulation.device.episodes import (
    SWEEPS_PER_LAUNCH,
    PlanResult,
    fail_run,
    record_episode,
    set_greedy_action,
)
from gainful.simulation.device.runs import DeviceCounts, DeviceEpisodes, DeviceRows, DeviceRuns, TodoList

BALLS, INTERVALS = 0, 1
"""Kinds of sets."""
EXTENDED_REGISTERS = 128
"""Registers of a thread that plans."""
SUM_LANES = 8
"""The number of partial sums in NumPy's sum of many numbers."""


class ExtendedConstants(NamedTuple):
    """What plans depend on, besides counts and step; the length of `kind` is a constant to the compiler."""

    kind: tuple[int, ...]
    """Its length is the kind of sets: `BALLS` or `INTERVALS`."""
    sets: SetConstants
    damping: float
    reward_range: float
    reward_min: float


class ExtendedSpace(NamedTuple):
    """The working arrays of all blocks, in global memory: the first axis is the block, and shapes are without it."""

    v: Any
    """(S,)."""
    best: Any
    """(S,) Lv."""
    q: Any
    """(pairs,)."""
    rewards: Any
    """(pairs,)."""
    width: Any
    """(pairs,) the radius of a ball, or the upper bound for next states that a row does not list."""
    free_mass: Any
    """(pairs,)."""
    indptr: Any
    """(pairs + 1,)."""
    indices: Any
    """(n,) next states, in decreasing order of v."""
    p: Any
    """(n,)."""
    lower: Any
    upper: Any
    load: Any
    """(n, 1) p, or (n, 2) lower and upper - lower; sorted with `indices`."""
    order: Any
    """(S,) the states in decreasing order of v."""
    by_rank: Any
    """(1, S)."""
    rank: Any
    """(1, S)."""
    head: Any
    """(1, S + 1)."""
    tail: Any
    """(1, S + 1)."""
    count: Any
    """(1,)."""
    mask: Any
    """(1, S) True; all blocks share it."""
    level: Any
    """(pairs,) 0; all blocks share it."""


def new_extended_space(blocks: int, n_states: int, n_pairs: int, width: int, kind: int) -> ExtendedSpace:
    """The arrays of `blocks` blocks, for rows of at most `width` entries."""
    n, bounds = n_pairs * width, n_pairs * width if kind == INTERVALS else 0
    reals: dict[str, Any] = {
        name: cuda.device_array((blocks, *shape), np.float64)
        for name, shape in {
            "v": (n_states,),
            "best": (n_states,),
            "q": (n_pairs,),
            "rewards": (n_pairs,),
            "width": (n_pairs,),
            "free_mass": (n_pairs,),
            "p": (n,),
            "lower": (bounds,),
            "upper": (bounds,),
            "load": (n, kind + 1),
            "head": (1, n_states + 1),
            "tail": (1, n_states + 1),
        }.items()
    }
    return ExtendedSpace(
        indptr=cuda.device_array((blocks, n_pairs + 1), np.uint64),
        indices=cuda.device_array((blocks, n), np.uint32),
        order=cuda.device_array((blocks, n_states), np.uint32),
        by_rank=cuda.device_array((blocks, 1, n_states), np.uint32),
        rank=cuda.device_array((blocks, 1, n_states), np.uint32),
        count=cuda.device_array((blocks, 1), np.int64),
        mask=cuda.to_device(np.ones((1, n_states), dtype=bool)),
        level=cuda.to_device(np.zeros(n_pairs, dtype=np.uint8)),
        **reals,
    )


@inlined
def arrays_of_block(workspace: ExtendedSpace, i: int) -> ExtendedSpace:
    """The arrays of block i."""
    return ExtendedSpace(
        workspace.v[i],
        workspace.best[i],
        workspace.q[i],
        workspace.rewards[i],
        workspace.width[i],
        workspace.free_mass[i],
        workspace.indptr[i],
        workspace.indices[i],
        workspace.p[i],
        workspace.lower[i],
        workspace.upper[i],
        workspace.load[i],
        workspace.order[i],
        workspace.by_rank[i],
        workspace.rank[i],
        workspace.head[i],
        workspace.tail[i],
        workspace.count[i],
        workspace.mask,
        workspace.level,
    )


@inlined
def sum_of(values: Any, first: Any, n: Any) -> Any:
    """The sum of n numbers in the order of `np.add.reduceat`: the first number plus the sum of the others."""
    total = 0.0
    if n > 0:
        total = values[first] + pairwise_sum(values, first + 1, n - 1) if n > 1 else values[first]
    return total


@inlined
def pairwise_sum(values: Any, first: Any, n: Any) -> Any:
    """The sum of n ≥ 1 numbers in NumPy's order, up to 128 numbers.

    NumPy adds fewer than 8 numbers one by one and up to 128 in 8 partial sums; it halves longer arrays, which this does
    not.
    """
    total = values[first]
    if n < SUM_LANES:
        for i in range(first + 1, first + n):
            total += values[i]
    else:
        r0, r1, r2, r3 = values[first], values[first + 1], values[first + 2], values[first + 3]
        r4, r5, r6, r7 = values[first + 4], values[first + 5], values[first + 6], values[first + 7]
        i = SUM_LANES
        while i + SUM_LANES <= n:
            at = first + i
            r0, r1, r2, r3 = r0 + values[at], r1 + values[at + 1], r2 + values[at + 2], r3 + values[at + 3]
            r4, r5, r6, r7 = r4 + values[at + 4], r5 + values[at + 5], r6 + values[at + 6], r7 + values[at + 7]
            i += SUM_LANES
        total = ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
        while i < n:
            total += values[first + i]
            i += 1
    return total


@inlined
def row_length(rows: DeviceRows, seen: Any, width: int, k: int) -> int:
    """The number of different next states seen from pair k; 1 if it is allowed and was never visited."""
    n, last = 0, np.int64(-1)
    for j in range(rows.length[k]):
        if seen[k * width + j] > 0:
            to = np.int64(rows.next_state[j * np.int64(rows.stride) + k])
            n += to != last
            last = to
    if n == 0 and rows.allowed[k]:
        n = 1
    return n


@inlined
def write_row(rows: DeviceRows, seen: Any, visits: Any, block: ExtendedSpace, k: int) -> None:
    """Write the empirical row of pair k; next states that the model lists several times are merged."""
    width = seen.size // visits.size
    at, last = np.int64(block.indptr[k]) - 1, np.int64(-1)
    total = np.int64(0)
    for j in range(rows.length[k]):
        count = np.int64(seen[k * width + j])
        if count > 0:
            to = np.int64(rows.next_state[j * np.int64(rows.stride) + k])
            if to == last:
                total += count
            else:
                at, last, total = at + 1, to, count
            block.indices[at], block.p[at] = to, total / visits[k]
    if visits[k] == 0 and rows.allowed[k]:
        block.indices[at + 1], block.p[at + 1] = 0, 1.0


@inlined
def write_bounds(c: ExtendedConstants, sums: Sums, logs: Any, block: ExtendedSpace, k: int) -> None:
    """Write the confidence set and the optimistic reward of pair k."""
    first, n = np.int64(block.indptr[k]), np.int64(block.indptr[k + 1] - block.indptr[k])
    if len(c.kind) == BALLS:
        write_ball(sums, c.sets, logs[0], logs[1], k, Balls(block.width, block.rewards))
        for j in range(first, first + n):
            block.load[j, 0] = block.p[j]
    else:
        empirical = EmpiricalRows(block.indptr, block.indices, block.p)
        out = EntryIntervals(block.lower, block.upper, block.width, block.rewards)
        write_intervals(empirical, sums, c.sets, k, out)
        for j in range(first, first + n):
            block.load[j, 0], block.load[j, 1] = block.lower[j], min(block.upper[j], 1.0) - block.lower[j]
        block.free_mass[k] = max(1.0 - sum_of(block.lower, first, n), 0.0)
    if n == 0:
        block.rewards[k] = 0.0  # not allowed


@device_function
def write_sets(
    c: ExtendedConstants, rows: DeviceRows, counts: DeviceCounts, block: ExtendedSpace, scratch: Any, run: int, t: int
) -> tuple[bool, float, float]:
    """Write rows and sets of all pairs; whether every set is the simplex, the longest row, and the largest reward."""
    thread, n_threads, n_pairs = cuda.threadIdx.x, cuda.blockDim.x, rows.length.size
    seen, visits = counts.transitions[run], counts.visits[run]
    width, longest = seen.size // n_pairs, 0.0
    k = thread
    while k < n_pairs:
        n = row_length(rows, seen, width, k)
        block.indptr[k + 1] = n
        longest = max(longest, np.float64(n))
        k += n_threads
    _, longest = block_min_max(0.0, longest, scratch, 0)
    if thread == 0:
        block.indptr[0] = 0
        for k in range(n_pairs):
            block.indptr[k + 1] += block.indptr[k]
    cuda.syncthreads()
    sums = Sums(visits, counts.reward_sum[run], counts.reward_squares[run])
    logs = (
        reward_log(c.sets.n_states, c.sets.n_actions, t, c.sets.delta),
        transition_log(c.sets.n_actions, t, c.sets.delta),
    )
    everything, largest = True, 0.0
    limit = SIMPLEX if len(c.kind) == BALLS else 1.0
    k = thread
    while k < n_pairs:
        write_row(rows, seen, visits, block, k)
        write_bounds(c, sums, logs, block, k)
        everything = everything and (block.width[k] >= limit or not rows.allowed[k])
        largest = max(largest, abs(block.rewards[k]))
        k += n_threads
    vacuous = cuda.syncthreads_and(np.int32(everything)) != 0
    _, largest = block_min_max(0.0, largest, scratch, 1)
    return vacuous, longest, largest


@device_function
def rank_states(block: ExtendedSpace) -> None:
    """Rank the states by decreasing v, the lower index first, and sum up their values in that order."""
    v, n = block.v, block.v.size
    s = cuda.threadIdx.x
    while s < n:
        rank = 0
        for other in range(n):
            rank += v[other] > v[s] or (v[other] == v[s] and other < s)
        block.order[rank] = s
        s += cuda.blockDim.x
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        ranking = Ranking(block.by_rank, block.rank, block.head, block.tail, block.count)
        rank_level(v, block.order, block.mask, ranking, 0)
    cuda.syncthreads()


@inlined
def best_value(c: ExtendedConstants, block: ExtendedSpace, top: float, k: int) -> float:
    """R + max p·v of pair k; -inf if it is not allowed."""
    begin, end = block.indptr[k], block.indptr[k + 1]
    value = -np.inf
    if begin < end:
        sort_row(block.v, block.indices, block.load, begin, end)
        if len(c.kind) == BALLS:
            value = block.rewards[k] + ball_value(begin, end, block.indices, block.load, block.width[k], block.v, top)
        else:
            sets = IntervalSet(
                block.order,
                block.indptr,
                block.indices,
                block.load,
                block.free_mass,
                block.width,
                block.mask,
                block.level,
            )
            ranking = Ranking(block.by_rank, block.rank, block.head, block.tail, block.count)
            value = block.rewards[k] + interval_value(sets, ranking, block.v, k)
    return value


@device_function
def shift_min_to_zero(v: Any, scratch: Any) -> None:
    """Shift v so that its minimum is 0."""
    least = np.inf
    s = cuda.threadIdx.x
    while s < v.size:
        least = min(least, v[s])
        s += cuda.blockDim.x
    least, _ = block_min_max(least, 0.0, scratch, 0)
    s = cuda.threadIdx.x
    while s < v.size:
        v[s] = v[s] - least
        s += cuda.blockDim.x


@device_function
def extended_sweeps(
    c: ExtendedConstants, block: ExtendedSpace, scratch: Any, target: float, scale: Any
) -> tuple[int, float, float, float, bool]:
    """Sweep as `set_sweeps` does, with all threads of a block, for at most `SWEEPS_PER_LAUNCH` sweeps.

    `scale` has the largest reward, the unit of rounding and the sweeps that were already made for this plan. Returns
    the number of all sweeps, the range of Lv - v, its rounding slack, and whether the range is narrow enough; if not,
    the next launch continues from v.
    """
    thread, n_threads, v, q, n_states = cuda.threadIdx.x, cuda.blockDim.x, block.v, block.q, block.v.size
    n_actions = q.size // n_states
    done, narrow = scale[2], False
    low, high, slack = -np.inf, np.inf, 0.0
    while not narrow and done < scale[2] + SWEEPS_PER_LAUNCH:
        cuda.syncthreads()
        top = -np.inf
        s = thread
        while s < n_states:
            top = max(top, v[s])
            s += n_threads
        _, top = block_min_max(0.0, top, scratch, 1)
        if len(c.kind) == INTERVALS:
            rank_states(block)
        k = thread
        while k < q.size:
            q[k] = best_value(c, block, top, k)
            k += n_threads
        cuda.syncthreads()
        low, high = np.inf, -np.inf
        s = thread
        while s < n_states:
            best = q[s * n_actions]
            for a in range(1, n_actions):
                best = max(best, q[s * n_actions + a])
            block.best[s] = best
            low, high = min(low, best - v[s]), max(high, best - v[s])
            s += n_threads
        low, high = block_min_max(low, high, scratch, 0)
        slack = slack_at(scale[1], top, scale[0])
        narrow = is_narrow(low, high, slack, target)
        done += 1
        if not narrow:
            s = thread
            while s < n_states:
                v[s] = relaxed(v[s], block.best[s], np.inf, c.damping)
                s += n_threads
            cuda.syncthreads()
            shift_min_to_zero(v, scratch)
    cuda.syncthreads()
    return done, low, high, slack, narrow


@device_function
def write_bias(v: Any, bias: Any, scratch: Any) -> float:
    """Write v - v(0), from which the next plan starts; returns its span."""
    low, high = np.inf, -np.inf
    s = cuda.threadIdx.x
    while s < v.size:
        bias[s] = v[s] - v[0]
        low, high = min(low, bias[s]), max(high, bias[s])
        s += cuda.blockDim.x
    low, high = block_min_max(low, high, scratch, 1)
    return high - low


@device_kernel(registers=EXTENDED_REGISTERS)
def plan_extended(
    todo: TodoList,
    rows: DeviceRows,
    runs: DeviceRuns,
    counts: DeviceCounts,
    episodes: DeviceEpisodes,
    values: Any,
    workspace: ExtendedSpace,
    c: ExtendedConstants,
) -> None:
    """Plan the next episode of each listed run by extended value iteration, with one block per run."""
    scratch = cuda.shared.array(REDUCTION_SIZE, float64)
    thread, n_threads, n_states = cuda.threadIdx.x, cuda.blockDim.x, values.shape[1]
    block = arrays_of_block(workspace, cuda.blockIdx.x)
    i = cuda.blockIdx.x
    while i < todo.n[0]:
        cuda.syncthreads()
        run = todo.run[i]
        t = runs.step[run] + 1
        target = c.reward_range / math.sqrt(t)
        s = thread
        while s < n_states:
            block.v[s] = values[run, s]
            s += n_threads
        vacuous, longest, largest = write_sets(c, rows, counts, block, scratch, run, t)
        terms = 2.0 * (longest + 1.0) if len(c.kind) == BALLS else 4.0 * (longest + 2.0)
        scale = largest, 2.0 * (terms + 4.0) * UNIT_ROUNDOFF, runs.sweeps[run]
        shift_min_to_zero(block.v, scratch)
        done, low, high, slack, narrow = extended_sweeps(c, block, scratch, target, scale)
        hopeless = 2.0 * slack > target and high - low <= target + 4.0 * slack
        if narrow:
            span = write_bias(block.v, values[run], scratch)
            s = thread
            while s < n_states:
                set_greedy_action(counts, block.q, run, s)
                s += n_threads
            if thread == 0:
                runs.sweeps[run] = 0
                found = PlanResult(low - slack, high + slack, span, done, vacuous)
                record_episode(runs, episodes, found, c.reward_min, run)
        else:
            s = thread
            while s < n_states:
                values[run, s] = block.v[s]
                s += n_threads
            if thread == 0:
                runs.sweeps[run] = done
                if hopeless:
                    fail_run(runs, 2.0 * slack, run)
        i += cuda.gridDim.x
