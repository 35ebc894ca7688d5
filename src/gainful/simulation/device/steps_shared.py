"""Steps in a small finite MDP whose table and counters are in shared memory.

A thread counts only the pairs that its policy chooses, one pair per state. At the end of a launch it adds its counters
to the agent's counts in global memory. The counters of neighbouring threads are neighbours, so that threads access
different banks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, uint32, uint64

from gainful._compiled import inlined
from gainful.cuda_device import cuda, device_kernel
from gainful.rng import GAMMA, mix
from gainful.simulation.device.runs import NO_EXECUTION_LIMIT, RUNNING, DeviceCounts, DeviceCurves, DeviceRuns
from gainful.simulation.device.steps import (
    STEPPING_REGISTERS,
    StepRule,
    add_bernoulli_rewards,
    add_deterministic_rewards,
    end_launch,
    steps_of_launch,
)
from gainful.simulation.transition_table import (
    BERNOULLI,
    DETERMINISTIC,
    RewardLaw,
    TransitionTable,
    env_step,
    next_state,
    succeeds,
)

WORD_BYTES = 4
"""Bytes of a word of shared memory."""
_ZERO = np.uint64(0)


class ThreadCounters(NamedTuple):
    """The counters of one thread, by state: executions left, the pair, successes of Bernoulli rewards, transitions."""

    words: Any
    """All 32-bit words of shared memory."""
    first: Any
    """Index of the thread's first word."""
    stride: Any
    """From one counter of a state to the next: the number of threads."""
    state_stride: Any
    """From the counters of one state to those of the next."""
    n_before: Any
    """Words of a state before its transitions."""
    width: Any
    """The most next states of a pair."""


def words_per_state(width: int, law: RewardLaw) -> int:
    """Words of a thread for one state, see `ThreadCounters`."""
    return 2 + (len(law.kind) == BERNOULLI) + width


def shared_bytes(table: TransitionTable, law: RewardLaw, n_states: int, width: int, block: int) -> int:
    """Shared memory of a block: the table and the rewards of the MDP, and the counters of each thread."""
    words = 4 * int(law.means.size) + int(table.lines.size)
    return WORD_BYTES * (words + block * n_states * words_per_state(width, law))


@inlined
def limited_executions(counts: DeviceCounts, run: int, s: Any) -> Any:
    """How often the episode may still execute the action of state s."""
    return min(np.uint64(counts.remaining[run, s]), np.uint64(NO_EXECUTION_LIMIT))


@inlined
def load_thread_counters(counts: DeviceCounts, at: ThreadCounters, run: int, n_actions: Any) -> None:
    """Load executions and pairs of all states, and set the other counters to 0."""
    for s in range(counts.act.shape[1]):
        i = at.first + np.uint64(s) * at.state_stride
        at.words[i] = limited_executions(counts, run, s)
        at.words[i + at.stride] = np.uint32(s * n_actions + counts.act[run, s])
        for j in range(np.uint64(2), at.n_before + at.width):
            at.words[i + j * at.stride] = np.uint32(0)


@inlined
def add_rewards_of_transitions(
    table: TransitionTable,
    law: RewardLaw,
    counts: DeviceCounts,
    at: ThreadCounters,
    run: int,
    i: Any,
    reward_min: float,
) -> None:
    """Add the rewards of the pair whose counters begin at word i; they depend on the next state."""
    k: Any = np.int64(at.words[i + at.stride])
    for j in range(at.width):
        times = np.float64(at.words[i + (at.n_before + j) * at.stride])
        if times > 0.0:
            shifted = law.entry_rewards[table.first[k] + j] - reward_min
            counts.reward_sum[run, k] += times * shifted
            if counts.reward_squares.size > 0:
                counts.reward_squares[run, k] += times * (shifted * shifted)


@inlined
def store_thread_counters(
    table: TransitionTable,
    law: RewardLaw,
    counts: DeviceCounts,
    at: ThreadCounters,
    run: int,
    reward_min: float,
    earned: float,
) -> float:
    """Add the counters to the agent's counts; returns `earned` with the Bernoulli rewards added."""
    for s in range(counts.act.shape[1]):
        i = at.first + np.uint64(s) * at.state_stride
        done = limited_executions(counts, run, s) - np.uint64(at.words[i])
        if done > _ZERO:
            k: Any = np.int64(at.words[i + at.stride])
            counts.visits[run, k] += done
            if counts.remaining[run, s] != NO_EXECUTION_LIMIT:
                counts.remaining[run, s] -= done
            for j in range(at.width):
                n = at.words[i + (at.n_before + j) * at.stride]
                counts.transitions[run, k * np.int64(at.width) + np.int64(j)] += n
            if len(law.kind) == DETERMINISTIC:
                add_deterministic_rewards(law, counts, run, k, np.int64(done), reward_min)
            elif len(law.kind) == BERNOULLI:
                successes = np.float64(at.words[i + (at.stride + at.stride)])
                add_bernoulli_rewards(law, counts, run, k, successes, np.float64(done) - successes, reward_min)
                earned += successes * law.success
            else:
                add_rewards_of_transitions(table, law, counts, at, run, i, reward_min)
    return earned


@device_kernel(registers=STEPPING_REGISTERS)
def step_shared(
    table: TransitionTable,
    law: RewardLaw,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    rule: StepRule,
    n_todo: Any,
) -> None:
    """Step every run that has a plan, one thread per run, and set `n_todo` to 0 for the next list."""
    as_uint32, as_float64 = cuda.shared.array(0, uint32), cuda.shared.array(0, float64)
    as_uint64 = cuda.shared.array(0, uint64)
    thread, block, n_pairs = cuda.threadIdx.x, np.uint64(cuda.blockDim.x), law.means.size
    lines = 4 * n_pairs  # the as_uint32 before are rewards
    for p in range(thread, n_pairs, cuda.blockDim.x):
        as_float64[p] = law.means[p]
        if len(law.kind) == BERNOULLI:
            as_uint64[n_pairs + p] = law.chances[p]
    for p in range(thread, table.lines.size, cuda.blockDim.x):
        as_uint32[lines + p] = table.lines[p]
    cuda.syncthreads()
    run = cuda.grid(1)
    if run == 0:
        n_todo[0] = 0
    if run >= runs.state.size or runs.status[run] != RUNNING:
        return
    staged_lines = as_uint32[lines : lines + table.lines.size]
    staged = TransitionTable(staged_lines, table.padding, table.first, table.next_states, table.bounds, table.n_actions)
    means = as_float64[:n_pairs]
    staged_law = RewardLaw(law.kind, means, law.entry_rewards, as_uint64[n_pairs : 2 * n_pairs], law.success)
    width = np.uint64(counts.transitions.shape[1] // n_pairs)
    n_before = np.uint64(2) + np.uint64(len(law.kind) == BERNOULLI)
    first = np.uint64(lines + table.lines.size) + np.uint64(thread)
    at = ThreadCounters(as_uint32, first, block, (n_before + width) * block, n_before, width)
    load_thread_counters(counts, at, run, np.int64(table.n_actions))
    state, t, earned = np.uint64(runs.state[run]), runs.step[run], runs.earned[run]
    checkpoint = curves.checkpoints[np.int64(runs.passed[run])]
    z, over = runs.key[run] + np.uint64(t) * GAMMA, False  # random number t is mix(z)
    n = np.uint32(steps_of_launch(t, checkpoint, rule.steps_divisor))
    i: Any = np.uint32(0)
    while i < n:
        k = first + state * at.state_stride
        left = as_uint32[k]
        if left == 0:
            over = True
            break
        pair = np.uint64(as_uint32[k + block])
        bits = mix(z)
        as_uint32[k] = left - np.uint32(1)
        if len(law.kind) == BERNOULLI:
            rank, to = next_state(staged, pair, np.uint32(bits >> np.uint64(32)))
            as_uint32[k + (block + block)] += np.uint32(succeeds(staged_law, pair, bits))
        else:
            rank, to, reward = env_step(staged, staged_law, pair, means[pair], bits)
            earned += reward
        as_uint32[k + (n_before + rank) * block] += np.uint32(1)
        state = to
        z += GAMMA
        i = np.uint32(i + np.uint32(1))
    t += int(i)
    earned = store_thread_counters(table, law, counts, at, run, rule.reward_min, earned)
    runs.state[run], runs.earned[run] = np.uint32(state), earned
    end_launch(law, runs, counts, curves, run, t, over)
