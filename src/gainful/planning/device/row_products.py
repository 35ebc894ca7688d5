"""Products of the rows of a sparse model with a vector on a GPU.

Sums are added in the order of `bellman.row_dot`, in four partial sums, so that all bits are those of the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful.cuda_device import FULL_MASK, SIMULATED, cuda, device_function
from gainful.planning.bellman import SparseModel

MAX_INDEX = np.uint64(2**63 - 1)
"""The largest index; with this mask Numba does not check for negative ones."""
ROW_LANES = 4
"""Lanes that read a row together, one for each partial sum of `bellman.row_dot`."""


@device_function
def row_of(model: SparseModel, k: Any) -> tuple[Any, Any, float]:
    """Where the row of pair k begins, its length, and the reward of the pair."""
    begin = np.uint64(model.indptr[k])
    return begin, np.uint32(model.indptr[k + np.uint64(1)] - begin), model.rewards[k]


@device_function
def load_streaming(array: Any, i: Any) -> Any:
    """Load array[i] with the hint that it is not read again (ld.global.cs), so that more of v stays in the cache."""
    return array[i] if SIMULATED else cuda.ldcs(array, i & MAX_INDEX)


@device_function
def partial_dots(model: SparseModel, v: Any, begin: Any, length: Any, lane: Any) -> tuple[float, float]:
    """The share of one of four lanes in the product of a row with v: its partial sum, and its product in the remainder.

    The lane has entry `lane` of every four. The fewer than four entries that remain at the end of a row belong to the
    first partial sum, so that their products are returned separately; 0 if this lane has none.
    """
    _, idx, p, _, _ = model
    lanes, stride = np.uint32(ROW_LANES), np.uint64(ROW_LANES)
    whole = np.uint32(length - length % lanes)
    total, remainder = 0.0, 0.0
    i = np.uint32(lane)
    while np.uint32(i + lanes) < length:  # two entries at a time, whose loads are independent
        j = begin + np.uint64(i)
        to, next_to = load_streaming(idx, j), load_streaming(idx, j + stride)
        weight, product = load_streaming(p, j), load_streaming(p, j + stride)
        total += weight * v[to]
        product *= v[next_to]
        if np.uint32(i + lanes) < whole:
            total += product
        else:
            remainder = product
        i = np.uint32(i + np.uint32(lanes + lanes))
    if i < length:
        j = begin + np.uint64(i)
        product = load_streaming(p, j) * v[load_streaming(idx, j)]
        if i < whole:
            total += product
        else:
            remainder = product
    return total, remainder


@device_function
def dot_by_four_lanes(model: SparseModel, v: Any, begin: Any, length: Any) -> float:
    """The product of one row per thread with v. Four neighbouring lanes read each of their four rows together.

    If each thread read its row alone, the loads of a warp would not be coalesced. All threads of a warp must call this;
    a thread without a row passes length 0.
    """
    lane = np.uint32(np.uint32(cuda.laneid) % np.uint32(ROW_LANES))
    first_lane, found = np.int32(np.uint32(cuda.laneid) - lane), 0.0
    for turn in range(ROW_LANES):
        cuda.syncwarp(FULL_MASK)  # also prevents the compiler from splitting this loop for different lanes
        row = np.uint64(cuda.shfl_sync(FULL_MASK, np.int64(begin), first_lane + turn))
        size = np.uint32(cuda.shfl_sync(FULL_MASK, np.int32(length), first_lane + turn))
        total, remainder = partial_dots(model, v, row, size, lane)
        first = cuda.shfl_sync(FULL_MASK, total, first_lane)
        if cuda.any_sync(FULL_MASK, size % np.uint32(ROW_LANES) != 0):
            for i in range(ROW_LANES - 1):
                first += cuda.shfl_sync(FULL_MASK, remainder, first_lane + i)
        second = cuda.shfl_sync(FULL_MASK, total, first_lane + 1)
        third = cuda.shfl_sync(FULL_MASK, total, first_lane + 2)
        total = (first + second) + (third + cuda.shfl_sync(FULL_MASK, total, first_lane + 3))
        found = total if turn == lane else found
    return found


@device_function
def dot_by_one_thread(model: SparseModel, v: Any, begin: Any, length: Any) -> float:
    """The same by one thread, for the simulator, which has no shuffles."""
    sums = [partial_dots(model, v, begin, length, lane) for lane in range(ROW_LANES)]
    first = sums[0][0]
    for i in range(ROW_LANES - 1):
        first += sums[i][1]
    return (first + sums[1][0]) + (sums[2][0] + sums[3][0])


row_dots = dot_by_one_thread if SIMULATED else dot_by_four_lanes
"""(model, v, begin, length) -> the product of this thread's row with v."""
