"""SCAL+'s plans on a GPU, with one block per plan.

The block stages the counts of an agent, computes optimistic rewards, sweeps until the plan is precise enough, and
writes the new policy. Bonuses and truncation are computed by the functions that the CPU uses.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, uint32

from gainful._compiled import inlined
from gainful.cuda_device import REDUCTION_SIZE, block_min_max, cuda, device_function, device_kernel, fast_max
from gainful.optimism.bernstein_scal_plus import bernstein_level, bernstein_reward
from gainful.optimism.scal_plus import bonus_of, log_at, with_bonus
from gainful.optimism.sharp import sharp_reward
from gainful.planning.bernstein_scopt import KAPPA_RANGE
from gainful.simulation.device.episodes import PlanResult, fail_run, record_episode, set_policy_action
from gainful.simulation.device.packed_policy import load_action
from gainful.simulation.device.runs import DeviceCounts, DeviceEpisodes, DeviceRuns, TodoList
from gainful.simulation.device.scal_plus_counts import PlanWork, add_log, stage_counts, stage_pairs
from gainful.simulation.device.scal_plus_space import (
    BERNSTEIN,
    PAPER,
    SHARP,
    ActionMajorRows,
    BlockArrays,
    DevicePlanConstants,
    block_arrays,
    block_size,
    pitch_of,
    ratio,
    row_pitch,
    row_width,
    visits_at,
)
from gainful.simulation.device.scal_plus_sweeps import block_span, sweeps

SCAL_PLUS_REGISTERS, SCAL_PLUS_THREADS = 96, 128
"""Registers of a thread that plans, and the most threads of a plan: more threads wait longer at barriers."""


@inlined
def ignores_data(c: DevicePlanConstants, n: Any, b: float, level: float) -> Any:
    """Whether a bonus is so wide that the data of its pair do not matter; b and level belong to the bonus."""
    if len(c.kind) == BERNSTEIN:
        return KAPPA_RANGE * level + 1.0 / (n + 1.0) >= 1.0
    if len(c.kind) == SHARP:
        return sharp_reward(c.sharp, n, 0.0) - c.sharp.model_error >= c.span + c.reward_range
    return with_bonus(c.paper, 0.0, b) - c.paper.model_error >= c.span + c.reward_range


@inlined
def reward_with_bonus(c: DevicePlanConstants, n: Any, reward_sum: float, b: float) -> float:
    """r̂ of a pair; b is the bonus of the paper, if that kind is used."""
    if len(c.kind) == BERNSTEIN:
        return bernstein_reward(c.bernstein, n, reward_sum)
    if len(c.kind) == SHARP:
        return sharp_reward(c.sharp, n, reward_sum)
    divisor = np.float64(max(1, n))
    return with_bonus(c.paper, ratio(c, reward_sum, divisor, 1.0 / divisor), b)


@device_function
def write_rewards(
    c: DevicePlanConstants,
    rows: ActionMajorRows,
    counts: DeviceCounts,
    work: PlanWork,
    run: int,
    t: int,
    block: BlockArrays,
) -> tuple[bool, float, float]:
    """Stage the counts of a run, and write r̂ of every pair.

    Returns whether every bonus is so wide that the plan ignores all data, the largest |r̂| of an allowed pair, and the
    most different next states seen from one pair. Rounding depends on the last two.
    """
    stage_pairs(c, counts, run, block)
    stage_counts(c, rows, work.transitions[run], block)
    if len(c.counts_logs) > 0 and work.packed.n_logged[run] > 0:
        add_log(c, counts, work, run, block)
    log_term = log_at(c.paper, t)
    n_pairs, width = np.uint64(block.rewards.size), row_width(c, rows)
    k, wide = np.uint64(cuda.threadIdx.x), True
    max_reward, support = 0.0, 0.0
    cuda.syncthreads()
    while k < n_pairs:
        allowed, at = rows.allowed[k], k * pitch_of(c, block)
        n: Any = np.int64(block.counts[visits_at(c, block, k)])
        reward_sum, block.inverse[k] = block.rewards[k], 1.0 / (n + 1)
        b, level = 0.0, 0.0
        if len(c.kind) == PAPER:
            b = bonus_of(c.paper, log_term, n)
        if len(c.kind) == BERNSTEIN:
            level = bernstein_level(c.bernstein.n_states, c.bernstein.delta, n, c.bernstein.scale)
            block.levels[k] = level
        reward = reward_with_bonus(c, n, reward_sum, b)
        block.rewards[k] = reward if allowed else -np.inf
        if allowed:
            max_reward = fast_max(max_reward, abs(reward))
            if wide:  # one narrow bonus decides
                wide = ignores_data(c, n, b, level)
        if support < width:  # most rows are full most of the time, and no row is longer
            length = 0
            for _ in range(width):
                length += block.counts[at] > 0
                at += np.uint64(1)
            support = fast_max(support, np.float64(length))
        k += np.uint64(cuda.blockDim.x)
    vacuous = cuda.syncthreads_and(np.int32(wide)) != 0
    _, max_reward = block_min_max(0.0, max_reward, block.scratch, 0)
    _, support = block_min_max(0.0, support, block.scratch, 1)
    return vacuous, max_reward, support


@device_kernel(registers=SCAL_PLUS_REGISTERS)
def plan_scal_plus(
    todo: TodoList,
    rows: ActionMajorRows,
    runs: DeviceRuns,
    counts: DeviceCounts,
    episodes: DeviceEpisodes,
    values: Any,
    work: PlanWork,
    c: DevicePlanConstants,
) -> None:
    """Plan the next episode of each listed run, with one block per run."""
    numbers, words = cuda.shared.array(0, float64), cuda.shared.array(0, uint32)
    scratch = cuda.shared.array(REDUCTION_SIZE, float64)
    thread, n_threads = cuda.threadIdx.x, cuda.blockDim.x
    n_states, n_pairs = values.shape[1], rows.length.size
    n_levels = n_pairs if len(c.kind) == BERNSTEIN else 0
    if len(c.in_global_memory) > 0:
        at = cuda.blockIdx.x
        block = block_arrays(work.numbers[at], work.counts[at], scratch, n_states, n_levels, rows)
    else:
        first = 2 * block_size(n_states, n_pairs, len(c.kind))
        n_words = np.int64(row_pitch(rows.width)) * n_pairs
        block = block_arrays(numbers, words[first : first + n_words], scratch, n_states, n_levels, rows)
    i = thread
    while i < block.counts.size:
        block.counts[i] = 0  # counts beyond the ends of rows stay 0
        i += n_threads
    i, n_todo = cuda.blockIdx.x, todo.n[0]
    run = todo.run[min(i, todo.run.size - 1)]
    while i < n_todo:
        i += cuda.gridDim.x
        following = todo.run[min(i, todo.run.size - 1)]  # loaded early
        cuda.syncthreads()
        t, sweeps_made = runs.step[run] + 1, runs.sweeps[run]
        s = thread
        while s < n_states:
            block.v[s] = values[run, s]
            s += n_threads
        vacuous, max_reward, support = write_rewards(c, rows, counts, work, run, t, block)
        scale = max_reward, support, sweeps_made
        target = c.reward_range / math.sqrt(t)
        done, low, high, slack, finished = sweeps(c, rows, block, target, scale, counts.act[run])
        met = finished and high - low + 2.0 * slack <= target
        span = block_span(block.v, block.scratch)
        s = thread
        while s < n_states:
            if met:
                set_policy_action(counts, run, s, int(counts.act[run, s]), n_pairs // n_states)
                if len(c.counts_logs) > 0:
                    load_action(counts, work.packed, run, s, n_pairs // n_states)
            values[run, s] = block.v[s]
            s += n_threads
        if thread == 0:
            runs.sweeps[run] = 0 if finished else done
            if met:
                found = PlanResult(low - slack, high + slack, span, done, vacuous)
                record_episode(runs, episodes, found, c.reward_min, run)
            elif finished:
                fail_run(runs, 2.0 * slack, run)
        run = following
