"""Adding the logs of packed runs to the counts of their agents.

A block first makes a histogram of the log in shared memory: how often each entry, a state with the rank of its next
state, occurs. Then it adds the histogram to the agent's transitions, visits and sums of rewards in global memory.
SCAL+'s planner does the same with functions of this module (`scal_plus_counts`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import uint32

from gainful._compiled import inlined
from gainful.cuda_device import SIMULATED, cuda, device_function, device_kernel
from gainful.simulation.device.packed_layout import ENTRIES_PER_WORD, PackedRuns, logged_action, reward_sum_index
from gainful.simulation.device.packed_log import read_log_word
from gainful.simulation.device.runs import (
    MAX_UINT16,
    NEEDS_COUNTING_AND_PLAN,
    NEEDS_PLAN,
    RUNNING,
    DeviceCounts,
    DeviceCurves,
    DeviceRuns,
    TodoList,
)
from gainful.simulation.device.steps import bernoulli_sum, pass_checkpoint, record_checkpoint
from gainful.simulation.repeated_sum import repeated_sum
from gainful.simulation.transition_table import RewardLaw

COUNTING_BLOCK = 2 if SIMULATED else 64
"""Threads of a block that counts a log or loads a policy."""
COUNTING_REGISTERS = 64
"""Registers of a thread that counts a log."""


class LoggedExecutions(NamedTuple):
    """What the log of a run says about the action of state s."""

    run: Any
    s: Any
    number: Any
    """How often the action was executed."""
    successes: Any
    """How often its Bernoulli reward was a success."""


@device_function
def make_histogram(packed: PackedRuns, run: int, histogram: Any, n_bins: Any) -> None:
    """Count how often each entry occurs in the log of a run."""
    n, n_threads = np.uint32(packed.n_logged[run]), np.uint32(cuda.blockDim.x)
    i = np.uint32(cuda.threadIdx.x)
    while i < n_bins:
        histogram[i] = 0
        i = np.uint32(i + n_threads)
    cuda.syncthreads()
    i = np.uint32(cuda.threadIdx.x)
    while i * np.uint32(ENTRIES_PER_WORD) < n:
        word, left = read_log_word(packed, run, n, i)
        while left > 0:
            cuda.atomic.add(histogram, np.int64(word & np.uint64(MAX_UINT16)), np.uint32(1))
            word >>= np.uint64(16)
            left = np.uint32(left - np.uint32(1))
        i = np.uint32(i + n_threads)
    cuda.syncthreads()


@device_function
def add_transitions(counts: DeviceCounts, packed: PackedRuns, run: int, histogram: Any, act: Any) -> None:
    """Add the histogram to the agent's transitions; each counter belongs to one thread."""
    n_pairs, n_states = counts.visits.shape[1], np.uint32(counts.act.shape[1])
    n_actions, width = n_pairs // counts.act.shape[1], counts.transitions.shape[1] // n_pairs
    pitch, n_threads = packed.layout.pitch, np.uint32(cuda.blockDim.x)
    # thread i begins at s, rank = divmod(i, pitch) and advances by divmod(n_threads, pitch), without dividing again
    s = np.uint32(cuda.threadIdx.x) // pitch
    rank, s_step = np.uint32(np.uint32(cuda.threadIdx.x) - s * pitch), n_threads // pitch
    rank_step = np.uint32(n_threads - s_step * pitch)
    while s < n_states:
        i = np.uint32(s * pitch + rank)
        if len(packed.bernoulli) > 0:
            n = np.uint32(histogram[np.uint32(i + i)] + histogram[np.uint32(i + i + np.uint32(1))])
        else:
            n = np.uint32(histogram[i])
        if n > 0:
            pair = np.int64(s) * n_actions + np.int64(act[s])
            counts.transitions[run, pair * width + np.int64(rank)] += n
        s, rank = np.uint32(s + s_step), np.uint32(rank + rank_step)
        if rank >= pitch:
            s, rank = np.uint32(s + np.uint32(1)), np.uint32(rank - pitch)


@inlined
def executions_of_state(packed: PackedRuns, histogram: Any, s: Any) -> tuple[Any, Any]:
    """How often the action of state s was executed, and how often its reward was a success."""
    number, successes, i = np.uint32(0), np.uint32(0), np.uint32(s) * packed.layout.pitch
    for _ in range(packed.layout.pitch):
        if len(packed.bernoulli) > 0:
            n = histogram[np.uint32(i + i + np.uint32(1))]
            number, successes = np.uint32(number + histogram[np.uint32(i + i)] + n), np.uint32(successes + n)
        else:
            number = np.uint32(number + histogram[i])
        i = np.uint32(i + np.uint32(1))
    return number, successes


@inlined
def known_reward_sum(counts: DeviceCounts, packed: PackedRuns, run: int, s: Any, pair: Any) -> float:
    """The sum of rewards of a pair: the packed run's, which includes the logged steps, or else the agent's."""
    if len(packed.sums) > 0:
        total: float = packed.as_float64[reward_sum_index(packed, run, s)]
    else:
        total = counts.reward_sum[run, pair]
    return total


@inlined
def deterministic_reward(law: RewardLaw, packed: PackedRuns, pair: Any) -> float:
    """The reward of a pair if rewards are deterministic; else 0, which nothing uses."""
    reward: float = law.means[pair] if len(packed.sums) == 0 and len(packed.bernoulli) == 0 else 0.0
    return reward


@inlined
def updated_reward_sum(
    law: RewardLaw, packed: PackedRuns, logged: LoggedExecutions, total: float, reward: float, reward_min: float
) -> float:
    """The sum of the rewards of a pair after the logged steps, from `known_reward_sum` and `deterministic_reward`."""
    if len(packed.sums) > 0:
        return total
    if len(packed.bernoulli) > 0:
        successes, failures = np.float64(logged.successes), np.float64(logged.number - logged.successes)
        return bernoulli_sum(total, successes, failures, law.success - reward_min, 0.0 - reward_min)
    after: float = repeated_sum(total, reward - reward_min, np.int64(logged.number))
    return after


@inlined
def updated_square_sum(
    law: RewardLaw, packed: PackedRuns, logged: LoggedExecutions, total: float, reward: float, reward_min: float
) -> float:
    """The same for squared rewards; `total` is the agent's sum before the logged steps."""
    if len(packed.sums) > 1:
        found: float = packed.as_float64[reward_sum_index(packed, logged.run, logged.s) + packed.layout.squares_start]
        return found
    if len(packed.bernoulli) > 0:
        successes, failures = np.float64(logged.successes), np.float64(logged.number - logged.successes)
        success, failure = law.success - reward_min, 0.0 - reward_min
        return bernoulli_sum(total, successes, failures, success * success, failure * failure)
    shifted = reward - reward_min
    after: float = repeated_sum(total, shifted * shifted, np.int64(logged.number))
    return after


@inlined
def add_executions(
    law: RewardLaw, counts: DeviceCounts, packed: PackedRuns, logged: LoggedExecutions, pair: Any, reward_min: float
) -> None:
    """Add the logged executions of a pair to the agent's visits and sums of rewards."""
    run = logged.run
    visits, total = counts.visits[run, pair], known_reward_sum(counts, packed, run, logged.s, pair)
    reward = deterministic_reward(law, packed, pair)
    counts.visits[run, pair] = np.uint32(visits + logged.number)
    counts.reward_sum[run, pair] = updated_reward_sum(law, packed, logged, total, reward, reward_min)
    if counts.reward_squares.size > 0:
        squares = counts.reward_squares[run, pair]
        counts.reward_squares[run, pair] = updated_square_sum(law, packed, logged, squares, reward, reward_min)


@device_function
def count_log(law: RewardLaw, counts: DeviceCounts, packed: PackedRuns, run: int, reward_min: float) -> None:
    """Add the log of a run to the counts of its agent, with all threads of a block."""
    n_states, n_actions = counts.act.shape[1], counts.visits.shape[1] // counts.act.shape[1]
    n_bins = np.uint32(n_states) * packed.layout.pitch * np.uint32(1 + len(packed.bernoulli))
    histogram = cuda.shared.array(0, uint32)
    act = histogram[np.int64(n_bins) : np.int64(n_bins) + n_states]
    s = np.int64(cuda.threadIdx.x)
    while s < n_states:
        act[s] = logged_action(packed, run, s)
        s += cuda.blockDim.x
    make_histogram(packed, run, histogram, n_bins)
    add_transitions(counts, packed, run, histogram, act)
    s = np.int64(cuda.threadIdx.x)
    while s < n_states:
        number, successes = executions_of_state(packed, histogram, s)
        if number > 0:
            pair = s * n_actions + np.int64(act[s])
            add_executions(law, counts, packed, LoggedExecutions(run, s, number, successes), pair, reward_min)
        s += cuda.blockDim.x


@inlined
def record_packed_checkpoint(
    law: RewardLaw, runs: DeviceRuns, counts: DeviceCounts, curves: DeviceCurves, packed: PackedRuns, run: int, i: Any
) -> None:
    """Record checkpoint i of a run."""
    if len(packed.sums) > 0:
        curves.rewards[i, run] = runs.earned[run]
    else:
        record_checkpoint(law, curves, counts.visits[run], i, run, runs.earned[run])
    pass_checkpoint(runs, curves, run, i)


@device_kernel(registers=COUNTING_REGISTERS)
def count_logs(
    law: RewardLaw,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    packed: PackedRuns,
    todo: TodoList,
    reward_min: float,
) -> None:
    """Add the logs of `packed.to_count` to the agents' counts, and record checkpoints, with one block per run.

    Runs whose episode is over are appended to `todo`, the list of runs that need a plan.
    """
    i, thread = cuda.blockIdx.x, cuda.threadIdx.x
    while i < packed.to_count.n[0]:
        run = packed.to_count.run[i]
        passed, needs_plan = np.int64(runs.passed[run]), runs.status[run] == NEEDS_COUNTING_AND_PLAN
        at_checkpoint = runs.step[run] == curves.checkpoints[passed]
        count_log(law, counts, packed, run, reward_min)
        cuda.syncthreads()
        if thread == 0:
            packed.n_logged[run], runs.status[run] = 0, NEEDS_PLAN if needs_plan else RUNNING
            if at_checkpoint:
                record_packed_checkpoint(law, runs, counts, curves, packed, run, passed)
            if runs.status[run] == NEEDS_PLAN:
                todo.run[cuda.atomic.add(todo.n, 0, 1)] = run
        i += cuda.gridDim.x
