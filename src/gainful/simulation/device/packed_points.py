"""Steps in a continuous environment by runs that are packed into shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, uint8, uint16, uint32

from gainful.cuda_device import cuda, device_kernel
from gainful.environments.continuous.dispatch import continuous_step
from gainful.simulation.device.packed import (
    PackedRuns,
    copy_words,
    count_seen,
    is_stepping,
    more_executions,
    note_launch,
    words_of_block,
)
from gainful.simulation.device.points import MOST_AXES, MOST_FEW, PointWorldArrays, cell_at
from gainful.simulation.device.runs import DeviceCounts, DeviceCurves, DeviceRuns
from gainful.simulation.device.steps import StepRule, steps_of_launch

PACKED_POINT_REGISTERS = 128
"""Registers of a thread: shared memory has no room for more threads."""
_TWO, _FOUR = np.uint64(2), np.uint64(4)


@device_kernel(registers=PACKED_POINT_REGISTERS)
def step_packed_points(
    world: PointWorldArrays,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    packed: PackedRuns,
    rule: StepRule,
    n_todo: Any,
) -> None:
    """Steps of every run that has a plan: what `step_points` does, in packed runs; `n_todo` is set to 0."""
    words, reals = cuda.shared.array(0, uint32), cuda.shared.array(0, float64)
    halves, bytes_ = cuda.shared.array(0, uint16), cuda.shared.array(0, uint8)
    x, out = cuda.local.array(MOST_AXES, float64), cuda.local.array(MOST_AXES, float64)
    registers = cuda.local.array(MOST_FEW, float64)
    at, run = packed.layout, cuda.grid(1)
    if run == 0:
        n_todo[0] = 0
    first, n_words = words_of_block(runs, at)
    copy_words(packed.words, first, n_words, words, np.uint64(0))
    cuda.syncthreads()
    if is_stepping(runs, run):
        mine = np.uint64(cuda.threadIdx.x) * at.words
        n_actions = np.uint64(counts.visits.shape[1] // counts.act.shape[1])
        sums, left, act, seen = mine // _TWO, _TWO * mine + at.left, _FOUR * mine + at.act, _FOUR * mine + at.seen
        for i in range(len(world.few)):
            registers[i] = world.parameters[i]
        parameters = registers if len(world.few) > 0 else world.parameters
        for i in range(len(world.axes)):
            x[i] = runs.point[run, i]
        t, earned, key, low = runs.step[run], runs.earned[run], runs.key[run], rule.low
        until = t + steps_of_launch(t, curves.checkpoints[np.int64(runs.passed[run])], rule.part)
        cell, over = np.uint64(cell_at(world, x)), False
        while t < until:
            rest, action = np.uint32(halves[left + cell]), np.uint64(bytes_[act + cell])
            if rest == 0:
                rest = more_executions(counts, run, cell)
                if rest == 0:
                    over = True
                    break
            reward = continuous_step(len(world.kind), parameters, x, int(action), key, t, out)
            inner, to = reward - low, np.uint64(cell_at(world, out))
            halves[left + cell] = rest - np.uint32(1)
            number = (cell * n_actions + action) * at.width + to
            count_seen(counts.seen, bytes_, seen, cell * at.width + to, run, number)
            reals[sums + cell] += inner
            if len(packed.sums) > 1:
                reals[sums + at.squares + cell] += inner * inner
            earned += reward
            for i in range(len(world.axes)):
                x[i] = out[i]
            cell = to
            t += 1
        for i in range(len(world.axes)):
            runs.point[run, i] = x[i]
        runs.state[run], runs.earned[run] = cell, earned
        note_launch(runs, run, t, over)
    cuda.syncthreads()
    copy_words(words, np.uint64(0), n_words, packed.words, first)
