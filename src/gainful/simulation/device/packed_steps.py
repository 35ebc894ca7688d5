"""What the kernels that step packed runs share: copies to shared memory and back, and the end of a launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful._compiled import inlined
from gainful.cuda_device import cuda, device_function
from gainful.simulation.device.packed_layout import LOG_NEARLY_FULL, PackedLayout, PackedRuns
from gainful.simulation.device.runs import (
    NEEDS_COUNTING,
    NEEDS_COUNTING_AND_PLAN,
    NEEDS_PLAN,
    RUNNING,
    DeviceCurves,
    DeviceRuns,
)

LOADS_IN_FLIGHT = 8
"""Words that a thread loads before it stores the first."""


@device_function
def copy_words(source: Any, first: Any, n: Any, out: Any, out_first: Any) -> None:
    """Copy n words with all threads of a block; each thread has several loads in flight."""
    i, n_threads = np.uint64(cuda.threadIdx.x), np.uint64(cuda.blockDim.x)
    while i + np.uint64(LOADS_IN_FLIGHT - 1) * n_threads < n:
        k, to = first + i, out_first + i
        a, b = source[k], source[k + n_threads]
        c, d = source[k + np.uint64(2) * n_threads], source[k + np.uint64(3) * n_threads]
        e, f = source[k + np.uint64(4) * n_threads], source[k + np.uint64(5) * n_threads]
        g, h = source[k + np.uint64(6) * n_threads], source[k + np.uint64(7) * n_threads]
        out[to], out[to + n_threads] = a, b
        out[to + np.uint64(2) * n_threads], out[to + np.uint64(3) * n_threads] = c, d
        out[to + np.uint64(4) * n_threads], out[to + np.uint64(5) * n_threads] = e, f
        out[to + np.uint64(6) * n_threads], out[to + np.uint64(7) * n_threads] = g, h
        i += np.uint64(LOADS_IN_FLIGHT) * n_threads
    while i < n:
        out[out_first + i] = source[first + i]
        i += n_threads


@device_function
def block_words(runs: DeviceRuns, layout: PackedLayout) -> Any:
    """Where the runs of this block begin in `PackedRuns.as_uint32`, and how many words they have."""
    block = np.uint64(cuda.blockDim.x)
    first_run = np.uint64(cuda.blockIdx.x) * block
    n_runs = min(block, np.uint64(runs.state.size) - first_run)
    return first_run * layout.words_per_run, n_runs * layout.words_per_run


@inlined
def is_running(runs: DeviceRuns, run: Any) -> bool:
    """Whether the run exists and has a plan to follow."""
    found: bool = run < runs.state.size and runs.status[run] == RUNNING
    return found


@inlined
def end_packed_launch(
    runs: DeviceRuns, curves: DeviceCurves, packed: PackedRuns, run: int, t: Any, n_logged: Any, over: bool
) -> None:
    """Store the step that a run has reached, and what it needs next; `over` says whether its episode is over."""
    at_checkpoint = t == curves.checkpoints[np.int64(runs.passed[run])]
    runs.step[run] = t
    if over:
        runs.status[run] = NEEDS_COUNTING_AND_PLAN if at_checkpoint or len(packed.planner_counts) == 0 else NEEDS_PLAN
    elif at_checkpoint or n_logged >= LOG_NEARLY_FULL:
        runs.status[run] = NEEDS_COUNTING
