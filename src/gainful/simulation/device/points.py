"""Steps in a continuous environment on a GPU: the environment, its noise and the cells are the CPU's functions."""

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
    EVERY_LIMIT,
    FINISHED,
    NEEDS_PLAN,
    RUNNING,
    DeviceCounts,
    DeviceCurves,
    DeviceRuns,
)
from gainful.simulation.device.steps import StepRule, draw_number, steps_of_launch

MOST_FEW = 8
"""Parameters of an environment that are kept in registers, at most."""
MOST_AXES = 4
"""Coordinates of a point at most."""
POINT_REGISTERS = 88
"""Registers of a thread that steps through points."""


class PointWorldArrays(NamedTuple):
    """A continuous environment and the cells in which agents see it; `kind` and `axes` are constants to the compiler.

    Where `own_units` is true the cells are of the box from `low` to `high`, else of the unit cube.
    """

    kind: tuple[int, ...]
    axes: tuple[int, ...]
    few: tuple[int, ...]
    """As long as there are parameters, if these are few enough to be kept in registers; else empty."""
    parameters: Any
    cells: Cells
    own_units: bool
    low: Any
    high: Any


class Walk(NamedTuple):
    """What a run counts in while it steps, by cell: of the actions that its policy chooses."""

    act: Any
    left: Any
    sums: Any
    squares: Any
    """Empty if nobody needs them."""


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
    """Note where a run is at the end of a launch, and record a checkpoint if it is one."""
    runs.step[run] = t
    if over:
        runs.status[run] = NEEDS_PLAN
    passed = np.int64(runs.passed[run])
    if t == curves.checkpoints[passed]:
        curves.rewards[passed, run] = runs.earned[run]
        runs.passed[run] = passed + 1
        if passed + 1 == curves.checkpoints.size:
            runs.status[run] = FINISHED


@device_function
def walk_on(
    world: PointWorldArrays,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    rule: StepRule,
    walk: Walk,
    run: int,
) -> None:
    """Step one run to the end of its launch or of its episode."""
    x, out = cuda.local.array(MOST_AXES, float64), cuda.local.array(MOST_AXES, float64)
    for i in range(len(world.axes)):
        x[i] = runs.point[run, i]
    t, earned, key, low = runs.step[run], runs.earned[run], runs.key[run], rule.low
    until = t + steps_of_launch(t, curves.checkpoints[np.int64(runs.passed[run])], rule.part)
    n_cells, n_actions = counts.act.shape[1], counts.visits.shape[1] // counts.act.shape[1]
    cell, over, mixed = cell_at(world, x), False, rule.cumulative.size > 0
    while t < until:
        rest, action = walk.left[cell], int(walk.act[cell])
        if rest == 0:
            over = True
            break
        if mixed:
            action = choose(rule.cumulative, cell, rule.key[run], draw_number(t))
        reward = continuous_step(len(world.kind), world.parameters, x, action, key, t, out)
        inner = reward - low
        to = cell_at(world, out)
        pair = cell * n_actions + action
        cuda.atomic.add(counts.seen, (run, pair * n_cells + to), np.uint32(1))
        if mixed:
            counts.visits[run, pair] += 1
            counts.reward_sum[run, pair] += inner
            if counts.reward_squares.size > 0:
                counts.reward_squares[run, pair] += inner * inner
        else:
            walk.left[cell] = rest - 1
            walk.sums[cell] += inner
            if walk.squares.size > 0:
                walk.squares[cell] += inner * inner
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
def begin_walk(counts: DeviceCounts, walk: Walk, run: int) -> None:
    """Load what a run counts in."""
    n_actions = counts.visits.shape[1] // counts.act.shape[1]
    for s in range(counts.act.shape[1]):
        action = np.int64(counts.act[run, s])
        pair = s * n_actions + action
        walk.act[s], walk.left[s] = action, counts.left[run, s]
        walk.sums[s] = counts.reward_sum[run, pair]
        if counts.reward_squares.size > 0:
            walk.squares[s] = counts.reward_squares[run, pair]


@inlined
def end_walk(counts: DeviceCounts, walk: Walk, run: int) -> None:
    """Give the agent what was counted."""
    n_actions = counts.visits.shape[1] // counts.act.shape[1]
    for s in range(counts.act.shape[1]):
        done = np.int64(counts.left[run, s]) - np.int64(walk.left[s])
        if done > 0:
            pair = s * n_actions + np.int64(walk.act[s])
            if counts.left[run, s] != EVERY_LIMIT:
                counts.left[run, s] = walk.left[s]
            counts.visits[run, pair] += done
            counts.reward_sum[run, pair] = walk.sums[s]
            if counts.reward_squares.size > 0:
                counts.reward_squares[run, pair] = walk.squares[s]


@device_kernel(registers=POINT_REGISTERS)
def step_points(
    world: PointWorldArrays,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    rule: StepRule,
    n_todo: Any,
    far: Walk,
) -> None:
    """Steps of every run that has a plan; it counts in `far` (R, cells). `n_todo` is set to 0 for the next list."""
    run = cuda.grid(1)
    if run == 0:
        n_todo[0] = 0
    if run >= runs.state.size or runs.status[run] != RUNNING:
        return
    mine = Walk(far.act[run], far.left[run], far.sums[run], far.squares[run])
    begin_walk(counts, mine, run)
    walk_on(world, runs, counts, curves, rule, mine, run)
    end_walk(counts, mine, run)
