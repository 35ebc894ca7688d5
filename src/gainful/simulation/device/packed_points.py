"""Steps in a continuous environment by packed runs in shared memory.

A block copies its runs to shared memory, steps them, one thread per run, and copies them back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import float64, uint16, uint32

from gainful.cuda_device import cuda, device_kernel
from gainful.environments.continuous.dispatch import continuous_step
from gainful.simulation.device.packed_layout import PackedRuns
from gainful.simulation.device.packed_log import append_to_log, close_log, open_log, steps_to_log
from gainful.simulation.device.packed_policy import refilled_action_word
from gainful.simulation.device.packed_steps import block_words, copy_words, end_packed_launch, is_running
from gainful.simulation.device.points import MAX_DEVICE_AXES, MAX_REGISTER_PARAMETERS, PointWorldArrays, cell_at
from gainful.simulation.device.runs import DeviceCounts, DeviceCurves, DeviceRuns
from gainful.simulation.device.steps import StepRule

PACKED_POINT_REGISTERS = 80
"""Registers of a thread; with fewer no more threads would run, as shared memory limits their number."""
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
    """Step every run that has a plan, as `step_points` does, and empty the lists of runs."""
    as_uint32, as_float64 = cuda.shared.array(0, uint32), cuda.shared.array(0, float64)
    as_uint16 = cuda.shared.array(0, uint16)
    x, out = cuda.local.array(MAX_DEVICE_AXES, float64), cuda.local.array(MAX_DEVICE_AXES, float64)
    registers = cuda.local.array(MAX_REGISTER_PARAMETERS, float64)
    layout, run = packed.layout, cuda.grid(1)
    if run == 0:
        n_todo[0], packed.to_count.n[0] = 0, 0
    first, n_words = block_words(runs, layout)
    copy_words(packed.as_uint32, first, n_words, as_uint32, np.uint64(0))
    cuda.syncthreads()
    if is_running(runs, run):
        run_start = np.uint64(cuda.threadIdx.x) * layout.words_per_run
        sums, action_words = run_start // _TWO, _TWO * run_start + layout.action_words_start
        for i in range(len(world.in_registers)):
            registers[i] = world.parameters[i]
        parameters = registers if len(world.in_registers) > 0 else world.parameters
        for i in range(len(world.axes)):
            x[i] = runs.point[run, i]
        t, earned, key, reward_min = runs.step[run], runs.earned[run], runs.key[run], rule.reward_min
        n_logged, word = open_log(packed, run)
        n: Any = np.uint32(n_logged + steps_to_log(runs, curves, rule, run, n_logged))
        cell, over = np.uint64(cell_at(world, x)), False
        k: Any = n_logged
        while k < n:
            action_word = refilled_action_word(counts, layout, run, cell, np.uint32(as_uint16[action_words + cell]))
            if action_word < layout.one_execution:
                over = True
                break
            action = int(action_word & (layout.one_execution - np.uint32(1)))
            reward = continuous_step(len(world.kind), parameters, x, action, key, t, out)
            shifted, to = reward - reward_min, np.uint64(cell_at(world, out))
            as_uint16[action_words + cell] = np.uint32(action_word - layout.one_execution)
            entry = np.uint32(np.uint32(cell) * layout.pitch + np.uint32(to))
            word = append_to_log(packed, run, k, word, entry)
            as_float64[sums + cell] += shifted
            if len(packed.sums) > 1:
                as_float64[sums + layout.squares_start + cell] += shifted * shifted
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
        end_packed_launch(runs, curves, packed, run, t, k, over)
    cuda.syncthreads()
    copy_words(as_uint32, np.uint64(0), n_words, packed.as_uint32, first)
