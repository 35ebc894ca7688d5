"""Plans of UCRL2 and UCRL2B on a GPU, a block of threads for each: sets, inner maximum and order are the CPU's."""

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
from gainful.cuda_device import PARTS, cuda, device_function, device_kernel, together
from gainful.optimism.ucrl2 import reward_log, transition_log
from gainful.planning.improvement import relaxed
from gainful.planning.intervals import IntervalSet, interval_value
from gainful.planning.l1 import ball_value
from gainful.planning.ordering import Ranking, rank_level, sort_row
from gainful.planning.rounding import UNIT_ROUNDOFF, is_narrow, slack_at
from gainful.simulation.device.runs import DeviceCounts, DeviceEpisodes, DeviceRows, DeviceRuns
from gainful.simulation.device.teams import (
    SWEEPS_PER_LAUNCH,
    PlanResult,
    TodoList,
    adopt,
    fail,
    record_episode,
)

BALLS, INTERVALS = 0, 1
"""Kinds of sets."""
EXTENDED_REGISTERS = 128
"""Registers of a thread that plans over sets."""
SUM_LANES = 8
"""Partial sums of NumPy's sum of many numbers."""


class ExtendedConstants(NamedTuple):
    """What the plans depend on besides the counts and the step; `kind` is a constant to the compiler."""

    kind: tuple[int, ...]
    """Of length `BALLS` or `INTERVALS`."""
    sets: SetConstants
    damping: float
    reward_range: float
    reward_min: float


class ExtendedSpace(NamedTuple):
    """The working arrays of all blocks, in global memory: one row for each block unless it says otherwise."""

    v: Any
    """(S,)."""
    best: Any
    """(S,) Lv."""
    q: Any
    """(pairs,)."""
    rewards: Any
    """(pairs,)."""
    width: Any
    """(pairs,) the radius of a ball, or the bound of next states that a row does not list."""
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
    """(n, 1) p, or (n, 2) lower and upper - lower, moving along with `indices`."""
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
    """(1, S) True, of all blocks."""
    level: Any
    """(pairs,) 0, of all blocks."""


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
def of_block(space: ExtendedSpace, block: int) -> ExtendedSpace:
    """The arrays of one block."""
    return ExtendedSpace(
        space.v[block],
        space.best[block],
        space.q[block],
        space.rewards[block],
        space.width[block],
        space.free_mass[block],
        space.indptr[block],
        space.indices[block],
        space.p[block],
        space.lower[block],
        space.upper[block],
        space.load[block],
        space.order[block],
        space.by_rank[block],
        space.rank[block],
        space.head[block],
        space.tail[block],
        space.count[block],
        space.mask,
        space.level,
    )


@inlined
def sum_of(values: Any, first: Any, n: Any) -> Any:
    """What `np.add.reduceat` adds up from `first` on, in its order: the first number, and the sum of the others.

    NumPy adds fewer than 8 numbers one by one, up to 128 in 8 partial sums, and halves what is longer.
    """
    total = 0.0
    if n > 0:
        total = values[first] + pairwise_sum(values, first + 1, n - 1) if n > 1 else values[first]
    return total


@inlined
def pairwise_sum(values: Any, first: Any, n: Any) -> Any:
    """NumPy's sum of n numbers, 1 ≤ n; of more than 128 only nearly so."""
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
def write_row(rows: DeviceRows, seen: Any, visits: Any, mine: ExtendedSpace, k: int) -> None:
    """The empirical row of pair k; next states that the model lists several times are merged."""
    width = seen.size // visits.size
    at, last = np.int64(mine.indptr[k]) - 1, np.int64(-1)
    total = np.int64(0)
    for j in range(rows.length[k]):
        count = np.int64(seen[k * width + j])
        if count > 0:
            to = np.int64(rows.next_state[j * np.int64(rows.stride) + k])
            if to == last:
                total += count
            else:
                at, last, total = at + 1, to, count
            mine.indices[at], mine.p[at] = to, total / visits[k]
    if visits[k] == 0 and rows.allowed[k]:
        mine.indices[at + 1], mine.p[at + 1] = 0, 1.0


@inlined
def write_bounds(c: ExtendedConstants, sums: Sums, logs: Any, mine: ExtendedSpace, k: int) -> None:
    """The set and the optimistic reward of pair k, by the CPU's functions."""
    first, n = np.int64(mine.indptr[k]), np.int64(mine.indptr[k + 1] - mine.indptr[k])
    if len(c.kind) == BALLS:
        write_ball(sums, c.sets, logs[0], logs[1], k, Balls(mine.width, mine.rewards))
        for j in range(first, first + n):
            mine.load[j, 0] = mine.p[j]
    else:
        empirical = EmpiricalRows(mine.indptr, mine.indices, mine.p)
        out = EntryIntervals(mine.lower, mine.upper, mine.width, mine.rewards)
        write_intervals(empirical, sums, c.sets, k, out)
        for j in range(first, first + n):
            mine.load[j, 0], mine.load[j, 1] = mine.lower[j], min(mine.upper[j], 1.0) - mine.lower[j]
        mine.free_mass[k] = max(1.0 - sum_of(mine.lower, first, n), 0.0)
    if n == 0:
        mine.rewards[k] = 0.0  # not allowed


@device_function
def write_sets(
    c: ExtendedConstants, rows: DeviceRows, counts: DeviceCounts, mine: ExtendedSpace, parts: Any, run: int, t: int
) -> tuple[bool, float, float]:
    """Rows and sets of all pairs; whether every set is the whole simplex, the longest row and the largest reward."""
    x, team, n_pairs = cuda.threadIdx.x, cuda.blockDim.x, rows.length.size
    seen, visits = counts.seen[run], counts.visits[run]
    width, longest = seen.size // n_pairs, 0.0
    k = x
    while k < n_pairs:
        n = row_length(rows, seen, width, k)
        mine.indptr[k + 1] = n
        longest = max(longest, np.float64(n))
        k += team
    _, longest = together(0.0, longest, parts, 0)
    if x == 0:
        mine.indptr[0] = 0
        for k in range(n_pairs):
            mine.indptr[k + 1] += mine.indptr[k]
    cuda.syncthreads()
    sums = Sums(visits, counts.reward_sum[run], counts.reward_squares[run])
    logs = (
        reward_log(c.sets.n_states, c.sets.n_actions, t, c.sets.delta),
        transition_log(c.sets.n_actions, t, c.sets.delta),
    )
    everything, largest = True, 0.0
    limit = SIMPLEX if len(c.kind) == BALLS else 1.0
    k = x
    while k < n_pairs:
        write_row(rows, seen, visits, mine, k)
        write_bounds(c, sums, logs, mine, k)
        everything = everything and (mine.width[k] >= limit or not rows.allowed[k])
        largest = max(largest, abs(mine.rewards[k]))
        k += team
    vacuous = cuda.syncthreads_and(np.int32(everything)) != 0
    _, largest = together(0.0, largest, parts, 1)
    return vacuous, longest, largest


@device_function
def rank_by_team(mine: ExtendedSpace) -> None:
    """Order the states by decreasing v, ties by lower index, and sum up their values in that order."""
    v, n = mine.v, mine.v.size
    s = cuda.threadIdx.x
    while s < n:
        place = 0
        for other in range(n):
            place += v[other] > v[s] or (v[other] == v[s] and other < s)
        mine.order[place] = s
        s += cuda.blockDim.x
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        ranking = Ranking(mine.by_rank, mine.rank, mine.head, mine.tail, mine.count)
        rank_level(v, mine.order, mine.mask, ranking, 0)
    cuda.syncthreads()


@inlined
def best_value(c: ExtendedConstants, mine: ExtendedSpace, top: float, k: int) -> float:
    """R + max p·v of pair k; -inf if it is not allowed."""
    begin, end = mine.indptr[k], mine.indptr[k + 1]
    value = -np.inf
    if begin < end:
        sort_row(mine.v, mine.indices, mine.load, begin, end)
        if len(c.kind) == BALLS:
            value = mine.rewards[k] + ball_value(begin, end, mine.indices, mine.load, mine.width[k], mine.v, top)
        else:
            sets = IntervalSet(
                mine.order, mine.indptr, mine.indices, mine.load, mine.free_mass, mine.width, mine.mask, mine.level
            )
            ranking = Ranking(mine.by_rank, mine.rank, mine.head, mine.tail, mine.count)
            value = mine.rewards[k] + interval_value(sets, ranking, mine.v, k)
    return value


@device_function
def project_by_team(v: Any, parts: Any) -> None:
    """Shift v to min v = 0."""
    least = np.inf
    s = cuda.threadIdx.x
    while s < v.size:
        least = min(least, v[s])
        s += cuda.blockDim.x
    least, _ = together(least, 0.0, parts, 0)
    s = cuda.threadIdx.x
    while s < v.size:
        v[s] = v[s] - least
        s += cuda.blockDim.x


@device_function
def extended_sweeps(
    c: ExtendedConstants, mine: ExtendedSpace, parts: Any, target: float, scale: Any
) -> tuple[int, float, float, float, bool]:
    """What `set_sweeps` does, by a block of threads, from sweep `scale[2]` on and for some sweeps at most.

    `scale` also has the largest reward and the unit of rounding. Returns the sweeps made in all, the range of Lv - v,
    its slack, and whether it is narrow enough; if not, v is where the next sweep begins.
    """
    x, team, v, q, n_states = cuda.threadIdx.x, cuda.blockDim.x, mine.v, mine.q, mine.v.size
    n_actions = q.size // n_states
    done, narrow = scale[2], False
    low, high, slack = -np.inf, np.inf, 0.0
    while not narrow and done < scale[2] + SWEEPS_PER_LAUNCH:
        cuda.syncthreads()
        top = -np.inf
        s = x
        while s < n_states:
            top = max(top, v[s])
            s += team
        _, top = together(0.0, top, parts, 1)
        if len(c.kind) == INTERVALS:
            rank_by_team(mine)
        k = x
        while k < q.size:
            q[k] = best_value(c, mine, top, k)
            k += team
        cuda.syncthreads()
        low, high = np.inf, -np.inf
        s = x
        while s < n_states:
            best = q[s * n_actions]
            for a in range(1, n_actions):
                best = max(best, q[s * n_actions + a])
            mine.best[s] = best
            low, high = min(low, best - v[s]), max(high, best - v[s])
            s += team
        low, high = together(low, high, parts, 0)
        slack = slack_at(scale[1], top, scale[0])
        narrow = is_narrow(low, high, slack, target)
        done += 1
        if not narrow:
            s = x
            while s < n_states:
                v[s] = relaxed(v[s], mine.best[s], np.inf, c.damping)
                s += team
            cuda.syncthreads()
            project_by_team(v, parts)
    cuda.syncthreads()
    return done, low, high, slack, narrow


@device_function
def write_bias(v: Any, bias: Any, parts: Any) -> float:
    """The values relative to the first state's, from which the next plan starts; returns their span."""
    low, high = np.inf, -np.inf
    s = cuda.threadIdx.x
    while s < v.size:
        bias[s] = v[s] - v[0]
        low, high = min(low, bias[s]), max(high, bias[s])
        s += cuda.blockDim.x
    low, high = together(low, high, parts, 1)
    return high - low


@device_kernel(registers=EXTENDED_REGISTERS)
def plan_extended(
    todo: TodoList,
    rows: DeviceRows,
    runs: DeviceRuns,
    counts: DeviceCounts,
    episodes: DeviceEpisodes,
    values: Any,
    space: ExtendedSpace,
    c: ExtendedConstants,
) -> None:
    """Plan the next episode of each run of the list, by extended value iteration."""
    parts = cuda.shared.array(PARTS, float64)
    x, team, n_states = cuda.threadIdx.x, cuda.blockDim.x, values.shape[1]
    mine = of_block(space, cuda.blockIdx.x)
    i = cuda.blockIdx.x
    while i < todo.n[0]:
        cuda.syncthreads()
        run = todo.run[i]
        t = runs.step[run] + 1
        target = c.reward_range / math.sqrt(t)
        s = x
        while s < n_states:
            mine.v[s] = values[run, s]
            s += team
        vacuous, longest, largest = write_sets(c, rows, counts, mine, parts, run, t)
        terms = 2.0 * (longest + 1.0) if len(c.kind) == BALLS else 4.0 * (longest + 2.0)
        scale = largest, 2.0 * (terms + 4.0) * UNIT_ROUNDOFF, runs.sweeps[run]
        project_by_team(mine.v, parts)
        done, low, high, slack, narrow = extended_sweeps(c, mine, parts, target, scale)
        hopeless = 2.0 * slack > target and high - low <= target + 4.0 * slack
        if narrow:
            span = write_bias(mine.v, values[run], parts)
            s = x
            while s < n_states:
                adopt(counts, mine.q, run, s)
                s += team
            if x == 0:
                runs.sweeps[run] = 0
                found = PlanResult(low - slack, high + slack, span, done, vacuous)
                record_episode(runs, episodes, found, c.reward_min, run)
        else:
            s = x
            while s < n_states:
                values[run, s] = mine.v[s]
                s += team
            if x == 0:
                runs.sweeps[run] = done
                if hopeless:
                    fail(runs, 2.0 * slack, run)
        i += cuda.gridDim.x
