"""Plans on a GPU, a block of threads for each: what all kinds of plans share.

The threads of a block divide the pairs and the states of one run among themselves. A value is computed by one thread,
in the order of the CPU, and minima and maxima do not depend on an order, so that all bits are the CPU's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined
from gainful.agents.statistics import execution_limit
from gainful.cuda_device import cuda, device_function, device_kernel
from gainful.simulation.device.runs import EVERY_LIMIT, PLAN_FAILED, RUNNING, DeviceCounts, DeviceEpisodes, DeviceRuns

SWEEPS_PER_LAUNCH = 128
"""Sweeps of a plan in one launch; a plan that needs more goes on in the next one, and no other waits for it."""
PLANNING_REGISTERS = 80
"""Registers of a thread that plans."""
PARTS = 32
"""Parts of which the extremes of a long vector are found first, one thread each."""


class TodoList(NamedTuple):
    """The runs that need a plan: the first `n[0]` of `run`."""

    run: Any
    n: Any


class TeamSpace(NamedTuple):
    """The working vectors of a block."""

    v: Any
    """(S,) values."""
    w: Any
    """(S,) Lv."""
    gap: Any
    """(S,)."""
    q: Any
    """(pairs,)."""
    rewards: Any
    """(pairs,) the rewards to plan with."""
    levels: Any
    """(pairs,) what else a plan needs of each pair."""
    lengths: Any
    """(pairs,) next states seen."""
    parts: Any
    """(2 * PARTS,)."""


def space_size(n_states: int, n_pairs: int) -> int:
    """Numbers that the vectors of a block take."""
    return 3 * n_states + 4 * n_pairs + 2 * PARTS


@inlined
def team_space(numbers: Any, n_states: int, n_pairs: int) -> TeamSpace:
    """Divide an array of `space_size` numbers."""
    first, second = 3 * n_states, 3 * n_states + 4 * n_pairs
    return TeamSpace(
        numbers[:n_states],
        numbers[n_states : 2 * n_states],
        numbers[2 * n_states : first],
        numbers[first : first + n_pairs],
        numbers[first + n_pairs : first + 2 * n_pairs],
        numbers[first + 2 * n_pairs : first + 3 * n_pairs],
        numbers[first + 3 * n_pairs : second],
        numbers[second : second + 2 * PARTS],
    )


@device_function
def extremes(vector: Any, parts: Any) -> tuple[float, float]:
    """The least and the largest number of a vector that the threads of the block have written."""
    x, lanes = cuda.threadIdx.x, min(PARTS, cuda.blockDim.x)
    low, high = np.inf, -np.inf
    cuda.syncthreads()
    i = x
    while x < lanes and i < vector.size:
        low, high = min(low, vector[i]), max(high, vector[i])
        i += lanes
    if x < lanes:
        parts[x], parts[PARTS + x] = low, high
    cuda.syncthreads()
    for i in range(min(lanes, vector.size)):
        low, high = min(low, parts[i]), max(high, parts[PARTS + i])
    cuda.syncthreads()
    return low, high


class PlanResult(NamedTuple):
    """What a plan reports, in internal units."""

    low: float
    high: float
    span: float
    sweeps: int
    vacuous: bool


@inlined
def record_episode(runs: DeviceRuns, episodes: DeviceEpisodes, found: PlanResult, low: float, run: int) -> None:
    """Record an episode, if there is room, and let the run go on; `low` is the agent's least reward."""
    n = np.int64(episodes.number[run])
    if n < episodes.step.shape[0]:
        episodes.step[n, run] = runs.step[run] + 1
        episodes.low[n, run], episodes.high[n, run] = found.low + low, found.high + low
        episodes.span[n, run], episodes.sweeps[n, run] = found.span, found.sweeps
    episodes.number[run] = n + 1
    episodes.vacuous[run] = found.vacuous
    runs.status[run] = RUNNING


@inlined
def fail(runs: DeviceRuns, rounding: float, run: int) -> None:
    """End a run whose plan cannot be made to its precision."""
    runs.status[run], runs.earned[run] = PLAN_FAILED, rounding


@inlined
def adopt(counts: DeviceCounts, q: Any, run: int, s: int) -> None:
    """Take the action of state s from q, ties to the lowest, and grant the executions of a new episode."""
    n_actions = q.size // counts.act.shape[1]
    best, action = -np.inf, 0
    for a in range(n_actions):
        if q[s * n_actions + a] > best:
            best, action = q[s * n_actions + a], a
    counts.act[run, s] = action
    visits: Any = np.int64(counts.visits[run, s * n_actions + action])
    counts.left[run, s] = execution_limit(1.0, visits)


@device_kernel()
def plan_fixed(
    todo: TodoList, actions: Any, bounds: Any, runs: DeviceRuns, counts: DeviceCounts, episodes: DeviceEpisodes
) -> None:
    """Begin the one episode of a fixed policy, which has no limits: one thread a run."""
    i = cuda.grid(1)
    if i >= todo.n[0]:
        return
    run = todo.run[i]
    for s in range(actions.size):
        counts.act[run, s], counts.left[run, s] = actions[s], EVERY_LIMIT
    record_episode(runs, episodes, PlanResult(bounds[0], bounds[1], 0.0, 0, False), 0.0, run)
