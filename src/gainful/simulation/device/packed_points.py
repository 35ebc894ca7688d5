"""Steps in a continuous environment by runs that are packed into shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, uint16, uint32

from gainful.cuda_device import cuda, device_kernel
from gainful.environments.continuous.dispatch import continuous_step
from gainful.simulation.device.packed import (
    PackedRuns,
    close_log,
    copy_words,
    is_stepping,
    logged,
    note_launch,
    open_log,
    steps_to_log,
    valid_card,
    words_of_block,
)
from gainful.simulation.device.points import MOST_AXES, MOST_FEW, PointWorldArrays, cell_at
from gainful.simulation.device.runs import DeviceCounts, DeviceCurves, DeviceRuns
from gainful.simulation.device.steps import StepRule

PACKED_POINT_REGISTERS = 80
"""Registers of a thread: shared memory has no room for more threads."""
_TWO = np.uint64(2)


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
    """Steps of every run that has a plan: what `step_points` does, in packed runs; the lists are emptied."""
    words, reals = cuda.shared.array(0, uint32), cuda.shared.array(0, float64)
    halves = cuda.shared.array(0, uint16)
    x, out = cuda.local.array(MOST_AXES, float64), cuda.local.array(MOST_AXES, float64)
    registers = cuda.local.array(MOST_FEW, float64)
    at, run = packed.layout, cuda.grid(1)
    if run == 0:
        n_todo[0], packed.waiting.n[0] = 0, 0
    first, n_words = words_of_block(runs, at)
    copy_words(packed.words, first, n_words, words, np.uint64(0))
    cuda.syncthreads()
    if is_stepping(runs, run):
        mine = np.uint64(cuda.threadIdx.x) * at.words
        sums, cards = mine // _TWO, _TWO * mine + at.cards
        for i in range(len(world.few)):
            registers[i] = world.parameters[i]
        parameters = registers if len(world.few) > 0 else world.parameters
        for i in range(len(world.axes)):
            x[i] = runs.point[run, i]
        t, earned, key, low = runs.step[run], runs.earned[run], runs.key[run], rule.low
        n_logged, word = open_log(packed, run)
        n: Any = np.uint32(n_logged + steps_to_log(runs, curves, rule, run, n_logged))
        cell, over = np.uint64(cell_at(world, x)), False
        k: Any = n_logged
        while k < n:
            card = valid_card(counts, at, run, cell, np.uint32(halves[cards + cell]))
            if card < at.one:
                over = True
                break
            action = int(card & (at.one - np.uint32(1)))
            reward = continuous_step(len(world.kind), parameters, x, action, key, t, out)
            inner, to = reward - low, np.uint64(cell_at(world, out))
            halves[cards + cell] = np.uint32(card - at.one)
            word = logged(packed, run, k, word, np.uint32(np.uint32(cell) * at.pitch + np.uint32(to)))
            reals[sums + cell] += inner
            if len(packed.sums) > 1:
                reals[sums + at.squares + cell] += inner * inner
            earned += reward
            for i in range(len(world.axes)):
                x[i] = out[i]
            cell = to
            t += 1
            k = np.uint32(k + np.uint32(1))
        for i in range(len(world.axes)):
            runs.point[run, i] = x[i]
        close_log(packed, run, k, word)
        runs.state[run], runs.earned[run] = cell, earned
        note_launch(runs, curves, packed, run, t, k, over)
    cuda.syncthreads()
    copy_words(words, np.uint64(0), n_words, packed.words, first)
