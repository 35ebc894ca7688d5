"""Bellman sweeps and operations on vectors on a GPU. A row is multiplied with v by the CPU's own function."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64

from gainful.cuda_device import MOST_WARPS, PARTS, SIMULATED, WARP, cuda, device_function, device_kernel, together
from gainful.planning.bellman import SparseModel, row_dot

SWEEP_BLOCK = 4 if SIMULATED else WARP * MOST_WARPS
"""Threads of a block that sweeps: a multiple of the number of actions of them have work."""
LOW, HIGH, LARGEST, CHANGED, PIN = range(5)
"""What a sweep reports: the range of Lv - v, max|v|, whether an action has changed, and where v is pinned next."""
TOTAL = LARGEST
"""What a sweep of one policy reports in that place: the sum of the residual."""


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


@device_kernel()
def bellman_sweep(model: SparseModel, v: Any, w: Any, act: Any, partial: Any) -> None:
    """Set w = Lv and act to its greedy actions, ties to the lowest: `bellman.sweep`, one thread a pair.

    `partial` (4, blocks) has the range of Lv - v, max|v| and whether an action has changed, for each block.
    """
    q = cuda.shared.array(SWEEP_BLOCK, float64)
    parts = cuda.shared.array(PARTS, float64)
    ptr, idx, p, r, n_actions = model
    x, n_states, n_pairs = np.uint64(cuda.threadIdx.x), np.uint64(v.size), np.uint64(r.size)
    per = np.uint64(SWEEP_BLOCK) // n_actions
    low, high, largest, changed = np.inf, -np.inf, 0.0, 0.0
    first = np.uint64(cuda.blockIdx.x) * per
    while first < n_states:
        k = first * n_actions + x
        if x < per * n_actions and k < n_pairs:
            begin, end = ptr[k], ptr[k + np.uint64(1)]
            q[x] = r[k] + row_dot(p, idx, v, begin, end) if begin < end else -np.inf
        cuda.syncthreads()
        s = first + x
        if x < per and s < n_states:
            best, action = q[x * n_actions], np.uint32(0)
            for a in range(np.uint64(1), n_actions):
                if q[x * n_actions + a] > best:
                    best, action = q[x * n_actions + a], np.uint32(a)
            if act[s] != action:
                changed = 1.0
            w[s], act[s] = best, action
            gap = best - v[s]
            low, high, largest = min(low, gap), max(high, gap), max(largest, abs(v[s]))
        cuda.syncthreads()
        first += np.uint64(cuda.gridDim.x) * per
    low, high = together(low, high, parts, 0)
    _, largest = together(0.0, largest, parts, 1)
    cuda.syncthreads()
    _, changed = together(0.0, changed, parts, 0)
    if x == 0:
        at = cuda.blockIdx.x
        partial[LOW, at], partial[HIGH, at] = low, high
        partial[LARGEST, at], partial[CHANGED, at] = largest, changed


@device_kernel()
def gather_stats(partial: Any, v: Any, w: Any, damping: float, stats: Any) -> None:
    """Put the numbers of all blocks together, by one block; and v(0) + τ(w(0) - v(0)), where v is pinned next."""
    parts = cuda.shared.array(PARTS, float64)
    low, high, largest, changed = np.inf, -np.inf, 0.0, 0.0
    i = cuda.threadIdx.x
    while i < partial.shape[1]:
        low, high = min(low, partial[LOW, i]), max(high, partial[HIGH, i])
        largest, changed = max(largest, partial[LARGEST, i]), max(changed, partial[CHANGED, i])
        i += cuda.blockDim.x
    low, high = together(low, high, parts, 0)
    _, largest = together(0.0, largest, parts, 1)
    cuda.syncthreads()
    _, changed = together(0.0, changed, parts, 0)
    if cuda.threadIdx.x == 0:
        stats[LOW], stats[HIGH], stats[LARGEST], stats[CHANGED] = low, high, largest, changed
        stats[PIN] = v[0] + damping * (w[0] - v[0])


@device_kernel()
def damped_step(v: Any, w: Any, damping: float, stats: Any) -> None:
    """V ← v + τ(w - v), pinned."""
    s = cuda.grid(1)
    while s < v.size:
        v[s] += damping * (w[s] - v[s]) - stats[PIN]
        s += cuda.gridsize(1)


@device_kernel()
def shifted(w: Any, pin: Any, out: Any) -> None:
    """Out = w - pin[0]; `out` may be `w`."""
    s = cuda.grid(1)
    while s < w.size:
        out[s] = w[s] - pin[0]
        s += cuda.gridsize(1)


@device_kernel()
def policy_residual(model: SparseModel, act: Any, h: Any, f: Any, partial: Any) -> None:
    """F = r_π + P_π h - h for the policy π = `act`; `partial` (4, blocks) has its range and its sum."""
    shared = cuda.shared.array(SWEEP_BLOCK, float64)
    parts = cuda.shared.array(PARTS, float64)
    ptr, idx, p, r, n_actions = model
    low, high, total = np.inf, -np.inf, 0.0
    s, n_states = np.uint64(cuda.grid(1)), np.uint64(h.size)
    while s < n_states:
        k = s * n_actions + np.uint64(act[s])
        gap = r[k] + row_dot(p, idx, h, ptr[k], ptr[k + np.uint64(1)]) - h[s]
        f[s] = gap
        low, high, total = min(low, gap), max(high, gap), total + gap
        s += np.uint64(cuda.gridsize(1))
    low, high = together(low, high, parts, 0)
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


@device_kernel()
def anderson_step(a: AndersonVectors, gamma: Any, kept: int, damping: float) -> None:
    """H ← h + τ(f - ΔF γ) - ΔH γ; with kept = 0 a damped step."""
    s = cuda.grid(1)
    while s < a.h.size:
        h, f = a.h[s], a.f[s]
        for m in range(kept):
            h -= gamma[m] * a.moves[m, s]
            f -= gamma[m] * a.changes[m, s]
        a.h[s] = h + damping * f
        s += cuda.gridsize(1)
