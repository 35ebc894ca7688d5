"""The beginning of an episode on a GPU: what all kernels that plan share.

One block plans for one run; its threads share the pairs and states. Each value is computed by one thread, in the order
of the CPU, and minima and maxima do not depend on the order. So all bits are those of the CPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined
from gainful.agents.statistics import execution_limit
from gainful.cuda_device import cuda, device_kernel
from gainful.simulation.device.runs import (
    NO_EXECUTION_LIMIT,
    PLAN_FAILED,
    RUNNING,
    DeviceCounts,
    DeviceEpisodes,
    DeviceRuns,
    TodoList,
)

SWEEPS_PER_LAUNCH = 128
"""The most sweeps of a plan in one launch. The next launch continues a longer plan, so that no other waits for it."""


class PlanResult(NamedTuple):
    """What a plan reports; rewards are counted from the least reward on."""

    low: float
    high: float
    span: float
    sweeps: int
    vacuous: bool


@inlined
def record_episode(runs: DeviceRuns, episodes: DeviceEpisodes, found: PlanResult, reward_min: float, run: int) -> None:
    """Record an episode, if there is room, and let the run step."""
    n = np.int64(episodes.number[run])
    if n < episodes.step.shape[0]:
        episodes.step[n, run] = runs.step[run] + 1
        episodes.low[n, run], episodes.high[n, run] = found.low + reward_min, found.high + reward_min
        episodes.span[n, run], episodes.sweeps[n, run] = found.span, found.sweeps
    episodes.number[run] = n + 1
    episodes.vacuous[run] = found.vacuous
    runs.status[run] = RUNNING


@inlined
def fail_run(runs: DeviceRuns, rounding: float, run: int) -> None:
    """End a run whose plan cannot be made to its precision, and store the rounding error in `earned`."""
    runs.status[run], runs.earned[run] = PLAN_FAILED, rounding


@inlined
def set_greedy_action(counts: DeviceCounts, q: Any, run: int, s: int) -> None:
    """Set the policy in state s to the action with the largest q, and the lowest of several."""
    n_actions = q.size // counts.act.shape[1]
    best, action = -np.inf, 0
    for a in range(n_actions):
        if q[s * n_actions + a] > best:
            best, action = q[s * n_actions + a], a
    set_policy_action(counts, run, s, action, n_actions)


@inlined
def set_policy_action(counts: DeviceCounts, run: int, s: int, action: int, n_actions: int) -> None:
    """Set the policy in state s to an action, and how often the new episode may execute it."""
    counts.act[run, s] = action
    visits: Any = np.int64(counts.visits[run, s * n_actions + action])
    counts.remaining[run, s] = execution_limit(1.0, visits)


@device_kernel()
def plan_fixed(
    todo: TodoList, actions: Any, bounds: Any, runs: DeviceRuns, counts: DeviceCounts, episodes: DeviceEpisodes
) -> None:
    """Begin the only episode of a fixed policy, which has no limits, with one thread per run."""
    i = cuda.grid(1)
    if i >= todo.n[0]:
        return
    run = todo.run[i]
    for s in range(actions.size):
        counts.act[run, s], counts.remaining[run, s] = actions[s], NO_EXECUTION_LIMIT
    record_episode(runs, episodes, PlanResult(bounds[0], bounds[1], 0.0, 0, False), 0.0, run)
