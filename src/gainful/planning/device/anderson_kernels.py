"""Kernels for the evaluation of a policy with Anderson acceleration on a GPU (`planning.anderson`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64

from gainful._compiled import inlined
from gainful.cuda_device import REDUCTION_SIZE, block_min_max, cuda, device_function, device_kernel
from gainful.planning.bellman import SparseModel
from gainful.planning.device.kernels import HIGH, LOW, SWEEP_BLOCK, TOTAL
from gainful.planning.device.row_products import row_dots, row_of


class AndersonVectors(NamedTuple):
    """The vectors of Anderson acceleration: (S,), and (memory, S) for differences."""

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
    """The sum over all threads of a block, in a fixed order; `shared` has one number per thread."""
    thread, n = cuda.threadIdx.x, cuda.blockDim.x
    cuda.syncthreads()
    shared[thread] = value
    cuda.syncthreads()
    while n > 1:
        half = (n + 1) // 2
        if thread < n - half:
            shared[thread] += shared[thread + half]
        cuda.syncthreads()
        n = half
    return shared[0]


@device_kernel()
def policy_residual(model: SparseModel, act: Any, h: Any, f: Any, partial: Any) -> None:
    """Set f = r_π + P_π h - h for the policy π = `act`; write its range and its sum to `partial` (4, blocks)."""
    sums = cuda.shared.array(SWEEP_BLOCK, float64)
    scratch = cuda.shared.array(REDUCTION_SIZE, float64)
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
    low, high = block_min_max(low, high, scratch, 0)
    total = block_sum(total, sums)
    if cuda.threadIdx.x == 0:
        at = cuda.blockIdx.x
        partial[LOW, at], partial[HIGH, at], partial[TOTAL, at] = low, high, total


@device_kernel()
def store_difference(a: AndersonVectors, mean: Any, j: int) -> None:
    """Subtract the mean from f, store the differences to the last h and f as number j if j ≥ 0, and copy h and f."""
    s = cuda.grid(1)
    while s < a.h.size:
        a.f[s] -= mean[0]
        if j >= 0:
            a.moves[j, s], a.changes[j, s] = a.h[s] - a.last_h[s], a.f[s] - a.last_f[s]
        a.last_h[s], a.last_f[s] = a.h[s], a.f[s]
        s += cuda.gridsize(1)


@device_kernel()
def inner_products(changes: Any, f: Any, j: int, kept: int, partial: Any) -> None:
    """Write partial sums of ΔF·ΔF(j) and of ΔF·f to `partial` (2, memory, blocks)."""
    sums = cuda.shared.array(SWEEP_BLOCK, float64)
    for m in range(kept):
        square, along = 0.0, 0.0
        s = cuda.grid(1)
        while s < f.size:
            square += changes[m, s] * changes[j, s]
            along += changes[m, s] * f[s]
            s += cuda.gridsize(1)
        square = block_sum(square, sums)
        along = block_sum(along, sums)
        if cuda.threadIdx.x == 0:
            partial[0, m, cuda.blockIdx.x], partial[1, m, cuda.blockIdx.x] = square, along


@inlined
def next_value(a: AndersonVectors, gamma: Any, kept: int, damping: float, s: int) -> Any:
    """The value of h(s) after a step, before h(0) is subtracted."""
    h, f = a.last_h[s], a.last_f[s]
    for m in range(kept):
        h -= gamma[m] * a.moves[m, s]
        f -= gamma[m] * a.changes[m, s]
    return h + damping * f


@device_kernel()
def anderson_step(a: AndersonVectors, gamma: Any, kept: int, damping: float) -> None:
    """Set h to h + τ(f - ΔF γ) - ΔH γ, less its value at state 0; a damped step if kept = 0.

    Threads read last_h and last_f, as other threads may already have written h.
    """
    pin = next_value(a, gamma, kept, damping, 0)
    s = cuda.grid(1)
    while s < a.h.size:
        a.h[s] = next_value(a, gamma, kept, damping, s) - pin
        s += cuda.gridsize(1)
