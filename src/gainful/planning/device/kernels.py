"""Kernels for Bellman sweeps on a GPU.

A sweep computes w = Lv and its greedy actions. From the second sweep on, `sweep_incumbents` first reads only the row of
the *incumbent*, the greedy action of the last sweep. Where a bound proves that no other action can be better, that is
all. The other states are *contested*, and `bellman_sweep` reads the rows of their other actions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, int64

from gainful.cuda_device import (
    MAX_WARPS,
    REDUCTION_SIZE,
    SIMULATED,
    WARP,
    block_min_max,
    cuda,
    device_function,
    device_kernel,
)
from gainful.planning.bellman import SparseModel
from gainful.planning.device.row_products import row_dots, row_of

SWEEP_BLOCK = 4 if SIMULATED else WARP * MAX_WARPS
"""Threads of a block; in `bellman_sweep`, those beyond a multiple of the number of actions idle."""
DOUBLE_BUFFER = 2 * SWEEP_BLOCK
"""Numbers that threads of a block exchange in shared memory: one half may still be read while the other is written."""
LOW, HIGH, LARGEST, CHANGED, CONTESTED, PIN = range(6)
"""Indices of what a sweep reports: the range of Lv - v, max|v|, whether an action has changed, the number of contested
states, and the value at state 0 that the next step subtracts."""
RISEN, MARGIN, AT_ZERO = range(3)
"""Indices of what a sweep is given: how much v has risen at most since the runners-up were stored, the margin for
rounding (inf if nothing is known and all rows must be read), and whether v = 0."""
TOTAL = LARGEST
"""The index of the sum of the residual, which a sweep of one policy reports in place of max|v|."""
LONGEST_ROW, REWARD_SCALE = range(2)
"""Indices of what `survey_model` reports: the most entries of a row, and max|r|."""


class GreedyVectors(NamedTuple):
    """The results of a sweep: (S,) each."""

    w: Any
    """Lv."""
    act: Any
    """uint32, the greedy actions: the incumbents of the next sweep."""
    runner_up: Any
    """The value of the best other action when its rows were last read, minus the rise of v until then."""


class ContestedStates(NamedTuple):
    """States in which another action than the incumbent may be the best."""

    states: Any
    """uint32 (S,), in any order."""
    number: Any
    """(1,) their number."""


@device_kernel()
def survey_model(model: SparseModel, act: Any, partial: Any) -> None:
    """Set act to the lowest allowed action of each state; write the longest row and max|r| to `partial` (2, blocks)."""
    scratch = cuda.shared.array(REDUCTION_SIZE, float64)
    ptr, _, _, r, n_actions = model
    longest, largest = 0.0, 0.0
    s = np.uint64(cuda.grid(1))
    while s < act.size:
        k, lowest = s * n_actions, n_actions
        end = np.uint64(ptr[k])
        for a in range(n_actions):
            begin, end = end, np.uint64(ptr[k + a + np.uint64(1)])
            longest, largest = max(longest, float(end - begin)), max(largest, abs(r[k + a]))
            if begin < end:
                lowest = min(lowest, a)
        act[s] = lowest if lowest < n_actions else 0
        s += np.uint64(cuda.gridsize(1))
    _, longest = block_min_max(0.0, longest, scratch, 0)
    _, largest = block_min_max(0.0, largest, scratch, 1)
    if cuda.threadIdx.x == 0:
        partial[LONGEST_ROW, cuda.blockIdx.x], partial[REWARD_SCALE, cuda.blockIdx.x] = longest, largest


@device_function
def best_of(q: Any, base: Any, n_actions: Any) -> tuple[float, float, Any]:
    """The largest value from `q[base]` on, the second largest, and the lowest action with the largest value."""
    best, second, action = q[base], -np.inf, np.uint32(0)
    for a in range(np.uint32(1), n_actions):
        value = q[base + a]
        second = max(second, min(value, best))
        if value > best:
            best, action = value, np.uint32(a)
    return best, second, action


@device_function
def write_block_stats(
    low: float, high: float, largest: float, changed: int, partial: Any, column: Any, scratch: Any
) -> None:
    """Reduce the numbers of all threads of a block, and write them to a column of `partial`."""
    low, high = block_min_max(low, high, scratch, 0)
    _, largest = block_min_max(0.0, largest, scratch, 1)
    changed = cuda.syncthreads_or(changed)
    if cuda.threadIdx.x == 0:
        partial[LOW, column], partial[HIGH, column] = low, high
        partial[LARGEST, column], partial[CHANGED, column] = largest, changed


@device_kernel()
def sweep_incumbents(
    model: SparseModel, v: Any, out: GreedyVectors, known: Any, contested: ContestedStates, partial: Any
) -> None:
    """Set w to the value of the incumbent in each state, and list the contested states (`bellman.lazy_sweep`).

    There is one thread per state. Each block writes to `partial` (4, blocks) the range of Lv - v and max|v| over the
    states that are not contested.
    """
    block = cuda.shared.array(2, int64)  # the next free index of this block's list, and where the list begins
    scratch = cuda.shared.array(REDUCTION_SIZE, float64)
    thread, n_states = np.uint64(cuda.threadIdx.x), np.uint64(v.size)
    low, high, largest = np.inf, -np.inf, 0.0
    first = np.uint64(cuda.blockIdx.x) * np.uint64(SWEEP_BLOCK)
    while first < n_states:
        s, begin, length, value, listed = first + thread, np.uint64(0), np.uint32(0), 0.0, 0
        if s < n_states:
            begin, length, value = row_of(model, s * model.n_actions + np.uint64(out.act[s]))
        value += row_dots(model, v, begin, length)
        if s < n_states:
            out.w[s] = value
            if out.runner_up[s] + known[RISEN] + known[MARGIN] < value:
                gap = value - v[s]
                low, high, largest = min(low, gap), max(high, gap), max(largest, abs(v[s]))
            else:
                listed = 1
        n = cuda.syncthreads_count(listed)
        if n > 0:
            if thread == 0:
                block[0], block[1] = 0, cuda.atomic.add(contested.number, 0, n)
            cuda.syncthreads()
            if listed:
                contested.states[np.uint64(block[1] + cuda.atomic.add(block, 0, 1))] = s
            cuda.syncthreads()
        first += np.uint64(cuda.gridDim.x) * np.uint64(SWEEP_BLOCK)
    write_block_stats(low, high, largest, 0, partial, cuda.blockIdx.x, scratch)


@device_kernel()
def bellman_sweep(
    model: SparseModel, v: Any, out: GreedyVectors, known: Any, contested: ContestedStates, partial: Any
) -> None:
    """Set w = Lv and act to its greedy actions, the lowest of several, in the contested states (`bellman.sweep`).

    There is one thread per pair. If `known` says nothing about v, all states are contested; else w holds the values of
    the incumbents. At v = 0, values are rewards, and no row is read. Each block writes the range of Lv - v, max|v| and
    whether an action has changed to one of the last columns of `partial` (4, ...).
    """
    q = cuda.shared.array(DOUBLE_BUFFER, float64)
    scratch = cuda.shared.array(REDUCTION_SIZE, float64)
    all_states = known[MARGIN] == np.inf
    n_actions = np.uint32(model.n_actions)
    thread, n = np.uint32(cuda.threadIdx.x), np.uint64(v.size if all_states else contested.number[0])
    per_block, row, half = np.uint32(SWEEP_BLOCK // n_actions), np.uint32(thread // n_actions), np.uint32(0)
    low, high, largest, changed = np.inf, -np.inf, 0.0, 0
    first = np.uint64(cuda.blockIdx.x) * np.uint64(per_block)
    while first < n:
        i, begin, length, value = first + np.uint64(row), np.uint64(0), np.uint32(0), 0.0
        exists = False
        if row < per_block and i < n:
            s, a = i if all_states else np.uint64(contested.states[i]), np.uint32(thread - row * n_actions)
            begin, length, value = row_of(model, s * model.n_actions + np.uint64(a))
            exists = length > 0
            if known[AT_ZERO] != 0.0:
                length = np.uint32(0)
            elif not all_states and a == out.act[s]:  # the row has been read
                length, value = np.uint32(0), out.w[s]
        value += row_dots(model, v, begin, length)
        q[half + thread] = value if exists else -np.inf
        cuda.syncthreads()
        i = first + np.uint64(thread)
        if thread < per_block and i < n:
            s = i if all_states else np.uint64(contested.states[i])
            best, second, action = best_of(q, np.uint32(half + thread * n_actions), n_actions)
            if out.act[s] != action:
                changed = 1
            out.w[s], out.act[s], out.runner_up[s] = best, action, second - known[RISEN]
            gap = best - v[s]
            low, high, largest = min(low, gap), max(high, gap), max(largest, abs(v[s]))
        half = np.uint32(SWEEP_BLOCK - half)
        first += np.uint64(cuda.gridDim.x) * np.uint64(per_block)
    write_block_stats(
        low, high, largest, changed, partial, partial.shape[1] - cuda.gridDim.x + cuda.blockIdx.x, scratch
    )


@device_kernel()
def reduce_stats(
    partial: Any, first: int, contested: ContestedStates, v: Any, w: Any, damping: float, stats: Any
) -> None:
    """Reduce the columns of `partial` from `first` on with one block, and empty the list of contested states.

    Also computes v(0) + τ(w(0) - v(0)), which the next step subtracts from v.
    """
    scratch = cuda.shared.array(REDUCTION_SIZE, float64)
    low, high, largest, changed = np.inf, -np.inf, 0.0, 0.0
    i = first + cuda.threadIdx.x
    while i < partial.shape[1]:
        low, high = min(low, partial[LOW, i]), max(high, partial[HIGH, i])
        largest, changed = max(largest, partial[LARGEST, i]), max(changed, partial[CHANGED, i])
        i += cuda.blockDim.x
    low, high = block_min_max(low, high, scratch, 0)
    _, largest = block_min_max(0.0, largest, scratch, 1)
    cuda.syncthreads()
    _, changed = block_min_max(0.0, changed, scratch, 0)
    if cuda.threadIdx.x == 0:
        stats[LOW], stats[HIGH], stats[LARGEST] = low, high, largest
        stats[CHANGED], stats[CONTESTED] = changed, contested.number[0]
        stats[PIN] = v[0] + damping * (w[0] - v[0])
        contested.number[0] = 0


@device_kernel()
def damped_step(v: Any, w: Any, damping: float, stats: Any) -> None:
    """Set v to v + τ(w - v), less its value at state 0."""
    s = cuda.grid(1)
    while s < v.size:
        v[s] += damping * (w[s] - v[s]) - stats[PIN]
        s += cuda.gridsize(1)


@device_kernel()
def subtract_first(w: Any, out: Any) -> None:
    """Set out to w - w(0); it must be another array than w."""
    s, pin = cuda.grid(1), w[0]
    while s < w.size:
        out[s] = w[s] - pin
        s += cuda.gridsize(1)


@device_kernel()
def copy_vectors(v: Any, act: Any, best: Any, actions: Any) -> None:
    """Copy v to best, and act to actions."""
    s = cuda.grid(1)
    while s < v.size:
        best[s], actions[s] = v[s], act[s]
        s += cuda.gridsize(1)
