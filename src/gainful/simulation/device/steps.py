"""The steps of many runs on a GPU, one thread a run: until its episode ends, a checkpoint, or the end of the launch.

The counters of the pairs that the policy chooses, one pair a state, are in shared memory while a launch lasts, with the
runs innermost. At its end they are added to the agents' counts in global memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, uint32, uint64

from gainful._compiled import inlined
from gainful.agents.policy_kernels import choose
from gainful.cuda_device import cuda, device_kernel
from gainful.rng import GAMMA, mix
from gainful.simulation.counters import total_over_pairs
from gainful.simulation.device.runs import (
    EVERY_LIMIT,
    FINISHED,
    NEEDS_PLAN,
    RUNNING,
    DeviceCounts,
    DeviceCurves,
    DeviceRuns,
)
from gainful.simulation.repeated_sum import repeated_sum
from gainful.simulation.transition_table import (
    BERNOULLI,
    DETERMINISTIC,
    RewardLaw,
    TransitionTable,
    env_step,
    next_state,
    succeeds,
)

FEWEST_STEPS = 16
"""Steps of a launch at least; it then makes a part of the steps made before, so that few threads wait for others."""
MOST_STEPS = 1 << 30
"""Steps of a launch at most: counters have 32 bits."""
STEPPING_REGISTERS = 64
"""Registers of a thread that steps: fewer are spilled, with more of them fewer threads run at a time."""
WORD = 4
"""Bytes of a word of shared memory."""
_ZERO = np.uint64(0)


class StepRule(NamedTuple):
    """How agents step besides what their plans say."""

    low: float
    """Their least reward."""
    part: int
    """A launch makes 1/part of the steps made before."""
    cumulative: Any
    """(S, A) of a policy that draws actions; else empty."""
    key: Any
    """(R,) the stream from which a run draws its actions."""


def words_per_state(width: int, law: RewardLaw) -> int:
    """Words of shared memory of a thread for one state: executions left, the action, rewards of 1, and next states."""
    return 2 + (len(law.kind) == BERNOULLI) + width


def shared_bytes(table: TransitionTable, law: RewardLaw, n_states: int, width: int, block: int) -> int:
    """Shared memory of a block: the environment's, and the counters of each thread."""
    words = 4 * int(law.means.size) + int(table.lines.size)
    return WORD * (words + block * n_states * words_per_state(width, law))


@inlined
def draw_number(t: Any) -> Any:
    """The number of the draw with which an agent that plans at its first step alone chooses its action at step t."""
    return np.uint64(2 * t + (t == 0))


@inlined
def steps_of_launch(step: Any, checkpoint: Any, part: int) -> Any:
    """How many steps a run makes in this launch, if its episode lasts."""
    return min(checkpoint - step, min(max(FEWEST_STEPS, step // part), MOST_STEPS))


@inlined
def record_checkpoint(law: RewardLaw, curves: DeviceCurves, visits: Any, i: Any, run: int, earned: float) -> None:
    """Record what a run has earned and lost at checkpoint i."""
    curves.rewards[i, run] = earned
    if len(law.kind) == DETERMINISTIC:
        curves.means[i, run] = earned
    else:
        curves.means[i, run] = total_over_pairs(visits, curves.nothing, law.means)
    curves.expected_regret[i, run] = total_over_pairs(visits, curves.nothing, curves.gaps)


@inlined
def pass_checkpoint(runs: DeviceRuns, curves: DeviceCurves, run: int, passed: Any) -> None:
    """Let a run go on after checkpoint number `passed`, unless it was the last."""
    runs.passed[run] = passed + 1
    if passed + 1 == curves.checkpoints.size:
        runs.status[run] = FINISHED


@inlined
def end_launch(
    law: RewardLaw, runs: DeviceRuns, counts: DeviceCounts, curves: DeviceCurves, run: int, t: Any, over: bool
) -> None:
    """Note where a run is at the end of a launch, and record a checkpoint if it is one."""
    runs.step[run] = t
    if over:
        runs.status[run] = NEEDS_PLAN
    passed = np.int64(runs.passed[run])
    if t == curves.checkpoints[passed]:
        record_checkpoint(law, curves, counts.visits[run], passed, run, runs.earned[run])
        pass_checkpoint(runs, curves, run, passed)


@inlined
def sum_with_wins(total: float, wins: float, losses: float, hit: float, miss: float) -> float:
    """A sum of rewards after further ones: `wins` times `hit` and `losses` times `miss`."""
    return total + (wins * hit + losses * miss)


@inlined
def add_sure_rewards(law: RewardLaw, counts: DeviceCounts, run: int, k: Any, n: Any, low: float) -> None:
    """Add the rewards of n executions of pair k, each of them its mean."""
    inner = law.means[k] - low
    counts.reward_sum[run, k] = repeated_sum(counts.reward_sum[run, k], inner, n)
    if counts.reward_squares.size > 0:
        counts.reward_squares[run, k] = repeated_sum(counts.reward_squares[run, k], inner * inner, n)


@inlined
def add_wins(law: RewardLaw, counts: DeviceCounts, run: int, k: Any, wins: float, losses: float, low: float) -> None:
    """Add Bernoulli rewards of pair k: `wins` of them `law.success`, the others 0."""
    hit, miss = law.success - low, 0.0 - low
    counts.reward_sum[run, k] = sum_with_wins(counts.reward_sum[run, k], wins, losses, hit, miss)
    if counts.reward_squares.size > 0:
        squares = counts.reward_squares[run, k]
        counts.reward_squares[run, k] = sum_with_wins(squares, wins, losses, hit * hit, miss * miss)


@device_kernel(registers=STEPPING_REGISTERS)
def step_far(
    table: TransitionTable,
    law: RewardLaw,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    rule: StepRule,
    n_todo: Any,
) -> None:
    """What `step_runs` does for models whose counters do not fit shared memory: it counts in global memory."""
    run = cuda.grid(1)
    if run == 0:
        n_todo[0] = 0
    if run >= runs.state.size or runs.status[run] != RUNNING:
        return
    state, t, earned = np.uint64(runs.state[run]), runs.step[run], runs.earned[run]
    act, left, visits, seen = counts.act[run], counts.left[run], counts.visits[run], counts.seen[run]
    sums, squares = counts.reward_sum[run], counts.reward_squares[run]
    width, low, mixed = np.uint64(seen.size // visits.size), rule.low, rule.cumulative.size > 0
    z, over = runs.key[run] + np.uint64(t) * GAMMA, False  # draw t is mix(z)
    n = np.uint32(steps_of_launch(t, curves.checkpoints[np.int64(runs.passed[run])], rule.part))
    i: Any = np.uint32(0)
    while i < n:
        rest = left[state]
        if rest == 0:
            over = True
            break
        action: Any = np.uint64(act[state])
        if mixed:
            action = np.uint64(choose(rule.cumulative, np.int64(state), rule.key[run], draw_number(t + np.int64(i))))
        pair = state * table.n_actions + action
        rank, to, reward = env_step(table, law, pair, law.means[pair], mix(z))
        if rest != EVERY_LIMIT:
            left[state] = rest - 1
        visits[pair] += 1
        seen[pair * width + rank] += 1
        inner = reward - low
        sums[pair] += inner
        if squares.size > 0:
            squares[pair] += inner * inner
        earned += reward
        state = to
        z += GAMMA
        i = np.uint32(i + np.uint32(1))
    runs.state[run], runs.earned[run] = np.uint32(state), earned
    end_launch(law, runs, counts, curves, run, t + np.int64(i), over)


@device_kernel(registers=STEPPING_REGISTERS)
def step_runs(
    table: TransitionTable,
    law: RewardLaw,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    rule: StepRule,
    n_todo: Any,
) -> None:
    """Steps of every run that has a plan; `n_todo` is set to 0 for the next list."""
    words = cuda.shared.array(0, uint32)
    reals = cuda.shared.array(0, float64)
    longs = cuda.shared.array(0, uint64)
    x, block, n_pairs = cuda.threadIdx.x, np.uint64(cuda.blockDim.x), law.means.size
    lines = 4 * n_pairs
    for p in range(x, n_pairs, cuda.blockDim.x):
        reals[p] = law.means[p]
        if len(law.kind) == BERNOULLI:
            longs[n_pairs + p] = law.chances[p]
    for p in range(x, table.lines.size, cuda.blockDim.x):
        words[lines + p] = table.lines[p]
    cuda.syncthreads()
    run = cuda.grid(1)
    if run == 0:
        n_todo[0] = 0
    if run >= runs.state.size or runs.status[run] != RUNNING:
        return
    near = TransitionTable(
        words[lines : lines + table.lines.size],
        table.padding,
        table.first,
        table.next_states,
        table.bounds,
        table.n_actions,
    )
    means, low = reals[:n_pairs], rule.low
    laws = RewardLaw(law.kind, means, law.entry_rewards, longs[n_pairs : 2 * n_pairs], law.success)
    n_states, n_actions = counts.act.shape[1], np.int64(table.n_actions)
    width = np.uint64(counts.seen.shape[1] // n_pairs)
    others = np.uint64(2) + np.uint64(len(law.kind) == BERNOULLI)  # words before the counters
    mine = np.uint64(lines + table.lines.size) + np.uint64(x)
    size = (others + width) * block
    for s in range(n_states):
        at = mine + np.uint64(s) * size
        words[at] = min(np.uint64(counts.left[run, s]), np.uint64(EVERY_LIMIT))
        words[at + block] = np.uint32(s * n_actions + counts.act[run, s])
        for j in range(np.uint64(2), others + width):
            words[at + j * block] = np.uint32(0)
    state, t, earned = np.uint64(runs.state[run]), runs.step[run], runs.earned[run]
    checkpoint = curves.checkpoints[np.int64(runs.passed[run])]
    z, over = runs.key[run] + np.uint64(t) * GAMMA, False  # draw t is mix(z)
    n = np.uint32(steps_of_launch(t, checkpoint, rule.part))
    i: Any = np.uint32(0)
    while i < n:
        at = mine + state * size
        left = words[at]
        if left == 0:
            over = True
            break
        pair = np.uint64(words[at + block])
        bits = mix(z)
        words[at] = left - np.uint32(1)
        if len(law.kind) == BERNOULLI:
            rank, to = next_state(near, pair, np.uint32(bits >> np.uint64(32)))
            words[at + (block + block)] += np.uint32(succeeds(laws, pair, bits))
        else:
            rank, to, reward = env_step(near, laws, pair, means[pair], bits)
            earned += reward
        words[at + (others + rank) * block] += np.uint32(1)
        state = to
        z += GAMMA
        i = np.uint32(i + np.uint32(1))
    t += int(i)
    for s in range(n_states):
        at = mine + np.uint64(s) * size
        done = min(np.uint64(counts.left[run, s]), np.uint64(EVERY_LIMIT)) - np.uint64(words[at])
        if done > _ZERO:
            k: Any = np.int64(words[at + block])
            counts.visits[run, k] += done
            if counts.left[run, s] != EVERY_LIMIT:
                counts.left[run, s] -= done
            for j in range(width):
                counts.seen[run, k * np.int64(width) + np.int64(j)] += words[at + (others + j) * block]
            if len(law.kind) == DETERMINISTIC:
                add_sure_rewards(law, counts, run, k, np.int64(done), low)
            elif len(law.kind) == BERNOULLI:
                wins = np.float64(words[at + (block + block)])
                add_wins(law, counts, run, k, wins, np.float64(done) - wins, low)
                earned += wins * law.success
            else:
                for j in range(width):
                    times = np.float64(words[at + (others + j) * block])
                    if times > 0.0:
                        inner = law.entry_rewards[table.first[k] + j] - low
                        counts.reward_sum[run, k] += times * inner
                        if counts.reward_squares.size > 0:
                            counts.reward_squares[run, k] += times * (inner * inner)
    runs.state[run], runs.earned[run] = np.uint32(state), earned
    end_launch(law, runs, counts, curves, run, t, over)
