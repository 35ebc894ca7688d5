"""SCAL+'s plans on a GPU, a block of threads for each: bonus, sweeps and cut are the CPU's functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, uint32

from gainful._compiled import inlined
from gainful.cuda_device import PARTS, cuda, device_function, device_kernel, larger, together
from gainful.optimism.bernstein_scal_plus import bernstein_level, bernstein_reward
from gainful.optimism.scal_plus import bonus_of, log_at, with_bonus
from gainful.optimism.sharp import sharp_reward
from gainful.planning.bernstein_scopt import KAPPA_RANGE
from gainful.simulation.device.packed import deal_card
from gainful.simulation.device.runs import DeviceCounts, DeviceEpisodes, DeviceRuns
from gainful.simulation.device.scal_plus_counts import PlanWork, add_log, stage_counts, stage_pairs
from gainful.simulation.device.scal_plus_space import (
    BERNSTEIN,
    PAPERS,
    SHARP,
    DevicePlanConstants,
    PlacedRows,
    TeamSpace,
    pitch_of,
    ratio,
    row_pitch,
    row_width,
    space_size,
    team_space,
    visits_at,
)
from gainful.simulation.device.scal_plus_sweeps import span_by_team, sweeps
from gainful.simulation.device.teams import PlanResult, TodoList, fail, record_episode, take

SCAL_PLUS_REGISTERS, SCAL_PLUS_THREADS = 96, 128
"""Registers of a thread that plans, and threads of a plan at most: more of them wait for each other longer."""


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
        if support < width:  # no row is longer than a full one, and most rows are full most of the time
            length = 0
            for _ in range(width):
                length += space.counts[at] > 0
                at += np.uint64(1)
            support = larger(support, np.float64(length))
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
    parts = cuda.shared.array(PARTS, float64)
    x, team = cuda.threadIdx.x, cuda.blockDim.x
    n_states, n_pairs = values.shape[1], rows.length.size
    n_levels = n_pairs if len(c.kind) == BERNSTEIN else 0
    if len(c.far) > 0:
        at = cuda.blockIdx.x
        space = team_space(work.numbers[at], work.counts[at], parts, n_states, n_levels, rows)
    else:
        first = 2 * space_size(n_states, n_pairs, len(c.kind))
        n_words = np.int64(row_pitch(rows.width)) * n_pairs
        space = team_space(near, words[first : first + n_words], parts, n_states, n_levels, rows)
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
