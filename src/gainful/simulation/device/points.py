"""Steps in a continuous environment on a GPU, with counters in global memory.

The environment, its noise and the cells are computed by the functions that the CPU uses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64

from gainful._compiled import inlined
from gainful.agents.policy_kernels import choose
from gainful.cuda_device import cuda, device_function, device_kernel
from gainful.environments.continuous.dispatch import continuous_step
from gainful.partition import axis_cell
from gainful.simulation.continuous import Cells, seen_coordinate
from gainful.simulation.device.runs import (
    NEEDS_PLAN,
    NO_EXECUTION_LIMIT,
    RUNNING,
    DeviceCounts,
    DeviceCurves,
    DeviceRuns,
)
from gainful.simulation.device.steps import StepRule, draw_number, pass_checkpoint, steps_of_launch

MAX_REGISTER_PARAMETERS = 8
"""The most parameters of an environment that a thread keeps in registers."""
MAX_DEVICE_AXES = 4
"""The most coordinates of a point."""
POINT_REGISTERS = 88
"""Registers of a thread that steps in a continuous environment."""


class PointWorldArrays(NamedTuple):
    """A continuous environment and its partition into cells.

    If `own_units` is true, the partition is of the box from `low` to `high`, else of the unit cube. The lengths of
    tuples are constants to the compiler.
    """

    kind: tuple[int, ...]
    """Its length is the kind of the environment."""
    axes: tuple[int, ...]
    """Its length is the number of coordinates."""
    in_registers: tuple[int, ...]
    """Its length is the number of parameters, if they are few enough for registers; else empty."""
    parameters: Any
    cells: Cells
    own_units: bool
    low: Any
    high: Any


class CellCounters(NamedTuple):
    """The counters of a run while it steps: of each cell, for the action that the policy chooses.

    (cells,) each; (R, cells) in the arguments of a kernel.
    """

    act: Any
    remaining: Any
    sums: Any
    squares: Any
    """Empty if the agent does not need them."""


@inlined
def cell_at(world: PointWorldArrays, x: Any) -> int:
    """The cell of a point of the unit cube."""
    cell = 0
    for i in range(len(world.axes)):
        seen = seen_coordinate(x[i], world.own_units, world.low[i], world.high[i])
        bins = world.cells.bins[i]
        cell = cell * bins + axis_cell(seen, bins, world.cells.low[i], world.cells.high[i])
    return cell


@inlined
def end_launch_of_points(runs: DeviceRuns, curves: DeviceCurves, run: int, t: Any, over: bool) -> None:
    """Store the step that a run has reached, and record a checkpoint; `over` says whether its episode is over."""
    runs.step[run] = t
    if over:
        runs.status[run] = NEEDS_PLAN
    passed = np.int64(runs.passed[run])
    if t == curves.checkpoints[passed]:
        curves.rewards[passed, run] = runs.earned[run]
        pass_checkpoint(runs, curves, run, passed)


@device_function
def step_run(
    world: PointWorldArrays,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    rule: StepRule,
    own: CellCounters,
    run: int,
) -> None:
    """Step one run to the end of the launch or of its episode."""
    x, out = cuda.local.array(MAX_DEVICE_AXES, float64), cuda.local.array(MAX_DEVICE_AXES, float64)
    for i in range(len(world.axes)):
        x[i] = runs.point[run, i]
    t, earned, key, reward_min = runs.step[run], runs.earned[run], runs.key[run], rule.reward_min
    until = t + steps_of_launch(t, curves.checkpoints[np.int64(runs.passed[run])], rule.steps_divisor)
    n_cells, n_actions = counts.act.shape[1], counts.visits.shape[1] // counts.act.shape[1]
    cell, over, draws_actions = cell_at(world, x), False, rule.cumulative.size > 0
    while t < until:
        left, action = own.remaining[cell], int(own.act[cell])
        if left == 0:
            over = True
            break
        if draws_actions:
            action = choose(rule.cumulative, cell, rule.key[run], draw_number(t))
        reward = continuous_step(len(world.kind), world.parameters, x, action, key, t, out)
        shifted = reward - reward_min
        to = cell_at(world, out)
        pair = cell * n_actions + action
        cuda.atomic.add(counts.transitions, (run, pair * n_cells + to), np.uint32(1))
        if draws_actions:
            counts.visits[run, pair] += 1
            counts.reward_sum[run, pair] += shifted
            if counts.reward_squares.size > 0:
                counts.reward_squares[run, pair] += shifted * shifted
        else:
            own.remaining[cell] = left - 1
            own.sums[cell] += shifted
            if own.squares.size > 0:
                own.squares[cell] += shifted * shifted
        earned += reward
        for i in range(len(world.axes)):
            x[i] = out[i]
        cell = to
        t += 1
    for i in range(len(world.axes)):
        runs.point[run, i] = x[i]
    runs.state[run], runs.earned[run] = cell, earned
    end_launch_of_points(runs, curves, run, t, over)


@inlined
def load_counters(counts: DeviceCounts, own: CellCounters, run: int) -> None:
    """Load the counters of a run from the agent's counts."""
    n_actions = counts.visits.shape[1] // counts.act.shape[1]
    for s in range(counts.act.shape[1]):
        action = np.int64(counts.act[run, s])
        pair = s * n_actions + action
        own.act[s], own.remaining[s] = action, counts.remaining[run, s]
        own.sums[s] = counts.reward_sum[run, pair]
        if counts.reward_squares.size > 0:
            own.squares[s] = counts.reward_squares[run, pair]


@inlined
def store_counters(counts: DeviceCounts, own: CellCounters, run: int) -> None:
    """Store the counters of a run in the agent's counts."""
    n_actions = counts.visits.shape[1] // counts.act.shape[1]
    for s in range(counts.act.shape[1]):
        done = np.int64(counts.remaining[run, s]) - np.int64(own.remaining[s])
        if done > 0:
            pair = s * n_actions + np.int64(own.act[s])
            if counts.remaining[run, s] != NO_EXECUTION_LIMIT:
                counts.remaining[run, s] = own.remaining[s]
            counts.visits[run, pair] += done
            counts.reward_sum[run, pair] = own.sums[s]
            if counts.reward_squares.size > 0:
                counts.reward_squares[run, pair] = own.squares[s]


@device_kernel(registers=POINT_REGISTERS)
def step_points(
    world: PointWorldArrays,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    rule: StepRule,
    n_todo: Any,
    counters: CellCounters,
) -> None:
    """Step every run that has a plan, one thread per run, and set `n_todo` to 0 for the next list."""
    run = cuda.grid(1)
    if run == 0:
        n_todo[0] = 0
    if run >= runs.state.size or runs.status[run] != RUNNING:
        return
    own = CellCounters(counters.act[run], counters.remaining[run], counters.sums[run], counters.squares[run])
    load_counters(counts, own, run)
    step_run(world, runs, counts, curves, rule, own, run)
    store_counters(counts, own, run)
