"""Rows kept in decreasing order of v between sweeps, ties by lower index.

Between two sweeps v changes little, so an insertion sort repairs the order in O(Γ); a row that needs more than
8Γ moves is sorted by heapsort in O(Γ ln Γ). The order depends on v alone, not on how it was reached.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel


class Ranking(NamedTuple):
    """The states of each level in decreasing order of v."""

    by_rank: Any
    """(levels, S): by_rank[l, i] is the i-th state of level l."""
    rank: Any
    """(levels, S) the inverse."""
    head: Any
    """(levels, S+1): head[l, i] + tail[l, i] is the sum of v over the first i states of level l.

    In doubled precision, so that differences of prefix sums are as accurate as the terms.
    """
    tail: Any
    count: Any
    """(levels,) the number of states of each level."""


@kernel
def sort_rows(v: NDArray[Any], indptr: NDArray[Any], indices: NDArray[Any], load: NDArray[Any]) -> None:
    """Sort every CSR row by decreasing v, ties by lower index; rows of `load` (n, m) move along.

    Rows are tested first, in line and without branches: most are in order, and a call costs more than the test.
    """
    for k in range(indptr.size - 1):
        begin, end = indptr[k], indptr[k + 1]
        if begin == end:
            continue
        ok = True
        last = indices[begin]
        last_value = v[last]
        for j in range(begin + np.uint64(1), end):
            state = indices[j]
            value = v[state]
            ok &= (last_value > value) | ((last_value == value) & (last < state))
            last, last_value = state, value
        if not ok:
            sort_row(v, indices, load, begin, end)


@kernel
def sort_row(v: NDArray[Any], indices: NDArray[Any], load: NDArray[Any], begin: Any, end: Any) -> None:
    """Sort indices[begin:end] by decreasing v, ties by lower index; rows of `load` (n, m) move along."""
    one = np.uint64(1)  # indices stay unsigned: no wrap-around tests
    if end <= begin + one:
        return
    width = load.shape[1]
    moves, budget = np.uint64(0), np.uint64(8) * (end - begin)
    last = indices[begin]
    last_value = v[last]
    for j in range(begin + one, end):
        state = indices[j]
        value = v[state]
        if last_value > value or (last_value == value and last < state):
            last, last_value = state, value
            continue
        i: Any = j  # `last` moves up to j, so it stays what it is
        while i > begin:
            before = i - one
            other = indices[before]
            if v[other] > value or (v[other] == value and other < state):
                break
            indices[i] = other
            indices[before] = state
            for m in range(width):
                load[i, m], load[before, m] = load[before, m], load[i, m]
            i = before
        moves += j - i
        if moves > budget:
            _heapsort(v, indices, load, int(begin), int(end))
            return


@kernel
def _heapsort(v: NDArray[Any], indices: NDArray[Any], load: NDArray[Any], begin: int, end: int) -> None:
    n = end - begin
    for root in range(n // 2 - 1, -1, -1):
        _sift(v, indices, load, begin, root, n)
    for size in range(n - 1, 0, -1):
        _swap(indices, load, begin, begin + size)
        _sift(v, indices, load, begin, 0, size)


@kernel
def _sift(v: NDArray[Any], indices: NDArray[Any], load: NDArray[Any], begin: int, root: int, size: int) -> None:
    """Restore the heap whose top is the entry that comes last: lowest v, then highest index."""
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and _later(v, indices[begin + child + 1], indices[begin + child]):
            child += 1
        if not _later(v, indices[begin + child], indices[begin + root]):
            return
        _swap(indices, load, begin + root, begin + child)
        root = child


@kernel
def _later(v: NDArray[Any], a: int, b: int) -> bool:
    return bool(v[a] < v[b] or (v[a] == v[b] and a > b))


@kernel
def _swap(indices: NDArray[Any], load: NDArray[Any], i: int, j: int) -> None:
    indices[i], indices[j] = indices[j], indices[i]
    for m in range(load.shape[1]):
        load[i, m], load[j, m] = load[j, m], load[i, m]


@kernel
def best_state(v: NDArray[Any], allowed: NDArray[Any]) -> int:
    """The state of largest v in the mask, ties to the lowest index."""
    best = -1
    for s in range(v.size):
        if allowed[s] and (best < 0 or v[s] > v[best]):
            best = s
    return best


@kernel
def rank_states(v: NDArray[Any], order: NDArray[Any], mask: NDArray[Any], ranking: Ranking) -> None:
    """Rank the states by decreasing v, once for each row of `mask` (levels, S); `order` (S,) is repaired in place."""
    nothing = np.empty((v.size, 0))
    sort_row(v, order, nothing, np.uint64(0), np.uint64(v.size))
    for level in range(mask.shape[0]):
        rank_level(v, order, mask, ranking, level)


@inlined
def rank_level(v: Any, order: Any, mask: Any, ranking: Ranking, level: int) -> None:
    """Rank the states of one level, given all states in decreasing order of v."""
    n = 0
    high, low = 0.0, 0.0
    ranking.head[level, 0] = 0.0
    ranking.tail[level, 0] = 0.0
    for i in range(v.size):
        state = order[i]
        if mask[level, state]:
            ranking.by_rank[level, n] = state
            ranking.rank[level, state] = n
            total = high + v[state]
            part = total - high
            low += (high - (total - part)) + (v[state] - part)
            high = total
            n += 1
            ranking.head[level, n] = high
            ranking.tail[level, n] = low
    ranking.count[level] = n
