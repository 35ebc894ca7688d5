"""Bellman sweeps and operations on vectors on a GPU. A row is multiplied with v in the CPU's order, to the bit."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, int64

from gainful._compiled import inlined
from gainful.cuda_device import (
    FULL_MASK,
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

SWEEP_BLOCK = 4 if SIMULATED else WARP * MAX_WARPS
"""Threads of a block that sweeps: a multiple of the number of actions of them have work."""
DOUBLE_BUFFER = 2 * SWEEP_BLOCK
"""Places for what the threads of a block tell each other: one half is still read while the other is written."""
MAX_INDEX = np.uint64(2**63 - 1)
"""No index is fast_max: Numba need not look for negative ones."""
ROW_LANES = 4
"""Threads that read a row together, one for each of the four partial sums of `bellman.row_dot`."""
LOW, HIGH, LARGEST, CHANGED, CONTESTED, PIN = range(6)
"""What a sweep reports: the range of Lv - v, max|v|, whether an action has changed, the number of contested states, and
where v is pinned next."""
RISEN, MARGIN, AT_ZERO = range(3)
"""What a sweep knows: how far v has risen since runners-up were noted, what rounding may add, inf if it is new, and
whether v is 0."""
TOTAL = LARGEST
"""What a sweep of one policy reports in that place: the sum of the residual."""
LONGEST_ROW, REWARD_SCALE = range(2)
"""What a survey of a model reports: the most entries of a row, and max|r|."""


class GreedyVectors(NamedTuple):
    """What a sweep leaves behind, (S,)."""

    w: Any
    """Lv."""
    act: Any
    """uint32, its greedy actions: the incumbents of the next sweep."""
    runner_up: Any
    """The value of the best other action when it was last read, less what v had risen by then."""


class ContestedStates(NamedTuple):
    """States whose incumbent may not be the best action any more."""

    states: Any
    """uint32 (S,), in any order."""
    number: Any
    """(1,) how many there are."""


class AndersonVectors(NamedTuple):
    """The vectors of Anderson's acceleration: (S,), and (memory, S) differences."""

    h: Any
    f: Any
    last_h: Any
    last_f: Any
    moves: Any
    """ΔH."""
    changes: Any
    """ΔF."""


@device_function
def block_sum(value: float, shared: Any) -> Any:
    """The sum of the numbers of all threads of a block, in a fixed order; `shared` has one place for each."""
    x, n = cuda.threadIdx.x, cuda.blockDim.x
    cuda.syncthreads()
    shared[x] = value
    cuda.syncthreads()
    while n > 1:
        half = (n + 1) // 2
        if x < n - half:
            shared[x] += shared[x + half]
        cuda.syncthreads()
        n = half
    return shared[0]


@device_function
def load_streaming(array: Any, i: Any) -> Any:
    """array[i], which is not read again in this sweep: it makes way first, so that more of v stays in the cache."""
    return array[i] if SIMULATED else cuda.ldcs(array, i & MAX_INDEX)


@device_function
def partial_dots(model: SparseModel, v: Any, begin: Any, length: Any, lane: Any) -> tuple[float, float]:
    """What one of four threads adds up of `row_dot`: its partial sum, and its product in what is left of the row.

    It has entry `lane` of every four entries. The fewer than four that are left at the end of a row belong to the first
    partial sum, so that their products are returned apart, 0 if there is none for this thread.
    """
    _, idx, p, _, _ = model
    lanes, next_one = np.uint32(ROW_LANES), np.uint64(ROW_LANES)
    whole = np.uint32(length - length % lanes)
    total, rest = 0.0, 0.0
    i = np.uint32(lane)
    while np.uint32(i + lanes) < length:  # two at a time, whose loads do not wait for each other
        j = begin + np.uint64(i)
        here, there = load_streaming(idx, j), load_streaming(idx, j + next_one)
        weight, product = load_streaming(p, j), load_streaming(p, j + next_one)
        total += weight * v[here]
        product *= v[there]
        if np.uint32(i + lanes) < whole:
            total += product
        else:
            rest = product
        i = np.uint32(i + np.uint32(lanes + lanes))
    if i < length:
        j = begin + np.uint64(i)
        product = load_streaming(p, j) * v[load_streaming(idx, j)]
        if i < whole:
            total += product
        else:
            rest = product
    return total, rest


@device_function
def dot_by_four_lanes(model: SparseModel, v: Any, begin: Any, length: Any) -> float:
    """`row_dot` of a row of each thread; four threads read each of their rows together, neighbours side by side.

    A thread that reads a row alone reads at other places than its neighbours, in pieces that memory delivers several
    times. All threads of a warp must call this; those without a row with length 0.
    """
    lane = np.uint32(np.uint32(cuda.laneid) % np.uint32(ROW_LANES))
    home, found = np.int32(np.uint32(cuda.laneid) - lane), 0.0
    for turn in range(ROW_LANES):
        cuda.syncwarp(FULL_MASK)  # also keeps the compiler from making two loops of this one, for different lanes
        row = np.uint64(cuda.shfl_sync(FULL_MASK, np.int64(begin), home + turn))
        size = np.uint32(cuda.shfl_sync(FULL_MASK, np.int32(length), home + turn))
        total, rest = partial_dots(model, v, row, size, lane)
        first = cuda.shfl_sync(FULL_MASK, total, home)
        if cuda.any_sync(FULL_MASK, size % np.uint32(ROW_LANES) != 0):
            for i in range(ROW_LANES - 1):
                first += cuda.shfl_sync(FULL_MASK, rest, home + i)
        second, third = cuda.shfl_sync(FULL_MASK, total, home + 1), cuda.shfl_sync(FULL_MASK, total, home + 2)
        total = (first + second) + (third + cuda.shfl_sync(FULL_MASK, total, home + 3))
        found = total if turn == lane else found
    return found


@device_function
def dot_by_one_thread(model: SparseModel, v: Any, begin: Any, length: Any) -> float:
    """The same by one thread, which is all four in turn: the simulator's threads cannot read each other's numbers."""
    sums = [partial_dots(model, v, begin, length, lane) for lane in range(ROW_LANES)]
    first = sums[0][0]
    for i in range(ROW_LANES - 1):
        first += sums[i][1]
    return (first + sums[1][0]) + (sums[2][0] + sums[3][0])


row_dots = dot_by_one_thread if SIMULATED else dot_by_four_lanes


@device_kernel()
def survey_model(model: SparseModel, act: Any, partial: Any) -> None:
    """Set act to the lowest action that each state has; `partial` (2, blocks) has the longest row and max|r|."""
    parts = cuda.shared.array(REDUCTION_SIZE, float64)
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
    _, longest = block_min_max(0.0, longest, parts, 0)
    _, largest = block_min_max(0.0, largest, parts, 1)
    if cuda.threadIdx.x == 0:
        partial[LONGEST_ROW, cuda.blockIdx.x], partial[REWARD_SCALE, cuda.blockIdx.x] = longest, largest


@device_function
def row_of(model: SparseModel, k: Any) -> tuple[Any, Any, float]:
    """Where the row of pair k begins, its length, and the reward."""
    begin = np.uint64(model.indptr[k])
    return begin, np.uint32(model.indptr[k + np.uint64(1)] - begin), model.rewards[k]


@device_function
def best_of(q: Any, base: Any, n_actions: Any) -> tuple[float, float, Any]:
    """The largest of the values from `base` on, the second largest, and the lowest action of the largest."""
    best, second, action = q[base], -np.inf, np.uint32(0)
    for a in range(np.uint32(1), n_actions):
        value = q[base + a]
        second = max(second, min(value, best))
        if value > best:
            best, action = value, np.uint32(a)
    return best, second, action


@device_function
def write_block_stats(
    low: float, high: float, largest: float, changed: int, partial: Any, column: Any, parts: Any
) -> None:
    """Write what a block has found to a column of `partial`."""
    low, high = block_min_max(low, high, parts, 0)
    _, largest = block_min_max(0.0, largest, parts, 1)
    changed = cuda.syncthreads_or(changed)
    if cuda.threadIdx.x == 0:
        partial[LOW, column], partial[HIGH, column] = low, high
        partial[LARGEST, column], partial[CHANGED, column] = largest, changed


@device_kernel()
def sweep_incumbents(
    model: SparseModel, v: Any, out: GreedyVectors, known: Any, contested: ContestedStates, partial: Any
) -> None:
    """Set w = Lv where the incumbent is proven to be the best (`bellman.lazy_sweep`), and list the other states.

    Of these, w is the incumbent's value. One thread a state. `partial` (4, blocks) has the range of Lv - v and max|v|
    where the incumbent is the best, for each block.
    """
    here = cuda.shared.array(2, int64)
    parts = cuda.shared.array(REDUCTION_SIZE, float64)
    x, n_states = np.uint64(cuda.threadIdx.x), np.uint64(v.size)
    low, high, largest = np.inf, -np.inf, 0.0
    first = np.uint64(cuda.blockIdx.x) * np.uint64(SWEEP_BLOCK)
    while first < n_states:
        s, begin, length, value, listed = first + x, np.uint64(0), np.uint32(0), 0.0, 0
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
            if x == 0:
                here[0], here[1] = 0, cuda.atomic.add(contested.number, 0, n)
            cuda.syncthreads()
            if listed:
                contested.states[np.uint64(here[1] + cuda.atomic.add(here, 0, 1))] = s
            cuda.syncthreads()
        first += np.uint64(cuda.gridDim.x) * np.uint64(SWEEP_BLOCK)
    write_block_stats(low, high, largest, 0, partial, cuda.blockIdx.x, parts)


@device_kernel()
def bellman_sweep(
    model: SparseModel, v: Any, out: GreedyVectors, known: Any, contested: ContestedStates, partial: Any
) -> None:
    """Set w = Lv and act to its greedy actions, ties to the lowest, in the contested states: `bellman.sweep`.

    One thread a pair. All states are contested if nothing is known; else w has the values of the incumbents. At v = 0
    values are rewards, and no row is read. `partial` (4, ...) has the range of Lv - v, max|v| and whether an action has
    changed, for each block, in its last columns.
    """
    q = cuda.shared.array(DOUBLE_BUFFER, float64)
    parts = cuda.shared.array(REDUCTION_SIZE, float64)
    every = known[MARGIN] == np.inf
    n_actions = np.uint32(model.n_actions)
    x, n = np.uint32(cuda.threadIdx.x), np.uint64(v.size if every else contested.number[0])
    per, row, at = np.uint32(SWEEP_BLOCK // n_actions), np.uint32(x // n_actions), np.uint32(0)
    low, high, largest, changed = np.inf, -np.inf, 0.0, 0
    first = np.uint64(cuda.blockIdx.x) * np.uint64(per)
    while first < n:
        i, begin, length, value = first + np.uint64(row), np.uint64(0), np.uint32(0), 0.0
        exists = False
        if row < per and i < n:
            s, a = i if every else np.uint64(contested.states[i]), np.uint32(x - row * n_actions)
            begin, length, value = row_of(model, s * model.n_actions + np.uint64(a))
            exists = length > 0
            if known[AT_ZERO] != 0.0:
                length = np.uint32(0)
            elif not every and a == out.act[s]:  # the row has been read
                length, value = np.uint32(0), out.w[s]
        value += row_dots(model, v, begin, length)
        q[at + x] = value if exists else -np.inf
        cuda.syncthreads()
        i = first + np.uint64(x)
        if x < per and i < n:
            s = i if every else np.uint64(contested.states[i])
            best, second, action = best_of(q, np.uint32(at + x * n_actions), n_actions)
            if out.act[s] != action:
                changed = 1
            out.w[s], out.act[s], out.runner_up[s] = best, action, second - known[RISEN]
            gap = best - v[s]
            low, high, largest = min(low, gap), max(high, gap), max(largest, abs(v[s]))
        at = np.uint32(SWEEP_BLOCK - at)
        first += np.uint64(cuda.gridDim.x) * np.uint64(per)
    write_block_stats(low, high, largest, changed, partial, partial.shape[1] - cuda.gridDim.x + cuda.blockIdx.x, parts)


@device_kernel()
def reduce_stats(
    partial: Any, first: int, contested: ContestedStates, v: Any, w: Any, damping: float, stats: Any
) -> None:
    """Put the numbers of all blocks together, by one block, from column `first` on; and forget the contested states.

    Also v(0) + τ(w(0) - v(0)), where v is pinned next.
    """
    parts = cuda.shared.array(REDUCTION_SIZE, float64)
    low, high, largest, changed = np.inf, -np.inf, 0.0, 0.0
    i = first + cuda.threadIdx.x
    while i < partial.shape[1]:
        low, high = min(low, partial[LOW, i]), max(high, partial[HIGH, i])
        largest, changed = max(largest, partial[LARGEST, i]), max(changed, partial[CHANGED, i])
        i += cuda.blockDim.x
    low, high = block_min_max(low, high, parts, 0)
    _, largest = block_min_max(0.0, largest, parts, 1)
    cuda.syncthreads()
    _, changed = block_min_max(0.0, changed, parts, 0)
    if cuda.threadIdx.x == 0:
        stats[LOW], stats[HIGH], stats[LARGEST] = low, high, largest
        stats[CHANGED], stats[CONTESTED] = changed, contested.number[0]
        stats[PIN] = v[0] + damping * (w[0] - v[0])
        contested.number[0] = 0


@device_kernel()
def damped_step(v: Any, w: Any, damping: float, stats: Any) -> None:
    """V ← v + τ(w - v), pinned."""
    s = cuda.grid(1)
    while s < v.size:
        v[s] += damping * (w[s] - v[s]) - stats[PIN]
        s += cuda.gridsize(1)


@device_kernel()
def shifted(w: Any, out: Any) -> None:
    """Out = w - w(0); another array than w."""
    s, pin = cuda.grid(1), w[0]
    while s < w.size:
        out[s] = w[s] - pin
        s += cuda.gridsize(1)


@device_kernel()
def keep_vectors(v: Any, act: Any, best: Any, actions: Any) -> None:
    """Copy v and act to best and actions."""
    s = cuda.grid(1)
    while s < v.size:
        best[s], actions[s] = v[s], act[s]
        s += cuda.gridsize(1)


@device_kernel()
def policy_residual(model: SparseModel, act: Any, h: Any, f: Any, partial: Any) -> None:
    """F = r_π + P_π h - h for the policy π = `act`; `partial` (4, blocks) has its range and its sum."""
    shared = cuda.shared.array(SWEEP_BLOCK, float64)
    parts = cuda.shared.array(REDUCTION_SIZE, float64)
    low, high, total = np.inf, -np.inf, 0.0
    first, n_states = np.uint64(cuda.blockIdx.x * cuda.blockDim.x), np.uint64(h.size)
    while first < n_states:
        s, begin, length, value = first + np.uint64(cuda.threadIdx.x), np.uint64(0), np.uint32(0), 0.0
        if s < n_states:
            begin, length, value = row_of(model, s * model.n_actions + np.uint64(act[s]))
        value += row_dots(model, h, begin, length)
        if s < n_states:
            gap = value - h[s]
            f[s] = gap
            low, high, total = min(low, gap), max(high, gap), total + gap
        first += np.uint64(cuda.gridsize(1))
    low, high = block_min_max(low, high, parts, 0)
    total = block_sum(total, shared)
    if cuda.threadIdx.x == 0:
        at = cuda.blockIdx.x
        partial[LOW, at], partial[HIGH, at], partial[TOTAL, at] = low, high, total


@device_kernel()
def note_difference(a: AndersonVectors, mean: Any, j: int) -> None:
    """Take the mean off f; difference j of h and f to the last ones (none if j < 0), which these become."""
    s = cuda.grid(1)
    while s < a.h.size:
        a.f[s] -= mean[0]
        if j >= 0:
            a.moves[j, s], a.changes[j, s] = a.h[s] - a.last_h[s], a.f[s] - a.last_f[s]
        a.last_h[s], a.last_f[s] = a.h[s], a.f[s]
        s += cuda.gridsize(1)


@device_kernel()
def products(changes: Any, f: Any, j: int, kept: int, partial: Any) -> None:
    """Partial sums of ΔF·ΔF(j), and of ΔF·f: `partial` (2, memory, blocks)."""
    shared = cuda.shared.array(SWEEP_BLOCK, float64)
    for m in range(kept):
        square, along = 0.0, 0.0
        s = cuda.grid(1)
        while s < f.size:
            square += changes[m, s] * changes[j, s]
            along += changes[m, s] * f[s]
            s += cuda.gridsize(1)
        square = block_sum(square, shared)
        along = block_sum(along, shared)
        if cuda.threadIdx.x == 0:
            partial[0, m, cuda.blockIdx.x], partial[1, m, cuda.blockIdx.x] = square, along


@inlined
def stepped(a: AndersonVectors, gamma: Any, kept: int, damping: float, s: int) -> Any:
    """H(s) after a step, before it is pinned."""
    h, f = a.last_h[s], a.last_f[s]
    for m in range(kept):
        h -= gamma[m] * a.moves[m, s]
        f -= gamma[m] * a.changes[m, s]
    return h + damping * f


@device_kernel()
def anderson_step(a: AndersonVectors, gamma: Any, kept: int, damping: float) -> None:
    """H ← h + τ(f - ΔF γ) - ΔH γ, pinned; with kept = 0 a damped step. It reads the copies that are not written."""
    pin = stepped(a, gamma, kept, damping, 0)
    s = cuda.grid(1)
    while s < a.h.size:
        a.h[s] = stepped(a, gamma, kept, damping, s) - pin
        s += cuda.gridsize(1)
