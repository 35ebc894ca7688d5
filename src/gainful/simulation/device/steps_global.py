"""Steps in a finite MDP whose counters are in global memory: for large models and for policies that draw actions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful.agents.policy_kernels import choose
from gainful.cuda_device import cuda, device_kernel
from gainful.rng import GAMMA, mix
from gainful.simulation.device.runs import NO_EXECUTION_LIMIT, RUNNING, DeviceCounts, DeviceCurves, DeviceRuns
from gainful.simulation.device.steps import STEPPING_REGISTERS, StepRule, draw_number, end_launch, steps_of_launch
from gainful.simulation.transition_table import RewardLaw, TransitionTable, env_step


@device_kernel(registers=STEPPING_REGISTERS)
def step_global(
    table: TransitionTable,
    law: RewardLaw,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    rule: StepRule,
    n_todo: Any,
) -> None:
    """Step every run that has a plan, one thread per run, and set `n_todo` to 0 for the next list."""
    run = cuda.grid(1)
    if run == 0:
        n_todo[0] = 0
    if run >= runs.state.size or runs.status[run] != RUNNING:
        return
    state, t, earned = np.uint64(runs.state[run]), runs.step[run], runs.earned[run]
    act, remaining = counts.act[run], counts.remaining[run]
    visits, transitions = counts.visits[run], counts.transitions[run]
    sums, squares = counts.reward_sum[run], counts.reward_squares[run]
    width, reward_min = np.uint64(transitions.size // visits.size), rule.reward_min
    draws_actions = rule.cumulative.size > 0
    z, over = runs.key[run] + np.uint64(t) * GAMMA, False  # random number t is mix(z)
    n = np.uint32(steps_of_launch(t, curves.checkpoints[np.int64(runs.passed[run])], rule.steps_divisor))
    i: Any = np.uint32(0)
    while i < n:
        left = remaining[state]
        if left == 0:
            over = True
            break
        action: Any = np.uint64(act[state])
        if draws_actions:
            action = np.uint64(choose(rule.cumulative, np.int64(state), rule.key[run], draw_number(t + np.int64(i))))
        pair = state * table.n_actions + action
        rank, to, reward = env_step(table, law, pair, law.means[pair], mix(z))
        if left != NO_EXECUTION_LIMIT:
            remaining[state] = left - 1
        visits[pair] += 1
        transitions[pair * width + rank] += 1
        shifted = reward - reward_min
        sums[pair] += shifted
        if squares.size > 0:
            squares[pair] += shifted * shifted
        earned += reward
        state = to
        z += GAMMA
        i = np.uint32(i + np.uint32(1))
    runs.state[run], runs.earned[run] = np.uint32(state), earned
    end_launch(law, runs, counts, curves, run, t + np.int64(i), over)
