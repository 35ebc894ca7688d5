"""The best row of an ℓ₁ ball.

max { p·v : ‖p - p̄‖₁ <= d } is reached by moving mass d/2 to a state of largest v, taking it from the row's
entries of lowest v (Jaksch, Ortner & Auer 2010, fig. 2). O(Γ) per pair on rows kept in order of v.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.planning.optimistic_rows import OptimisticRows
from gainful.planning.ordering import best_state, sort_rows


class L1Set(NamedTuple):
    """ℓ₁ balls around CSR rows, which are reordered in place."""

    indptr: Any
    indices: Any
    load: Any
    """(n, 1) the rows' probabilities."""
    radius: Any
    """(S*A,)."""
    mask: Any
    """(levels, S) sets of next states."""
    level: Any
    """(S*A,): pair k may move to mask[level[k]]."""


def l1_values(sets: Any, v: Any, rewards: Any, q: Any) -> None:
    """q[k] = rewards[k] + max over the ball of p·v, -inf for an empty row."""
    indptr, indices, load, radius, mask, level = sets
    tops = np.empty(mask.shape[0])
    for m in range(mask.shape[0]):
        tops[m] = v[best_state(v, mask[m])]
    sort_rows(v, indptr, indices, load)
    for k in range(indptr.size - 1):
        begin, end = indptr[k], indptr[k + 1]
        if begin == end:
            q[k] = -np.inf
            continue
        q[k] = rewards[k] + ball_value(begin, end, indices, load, radius[k], v, tops[level[k]])


@inlined
def ball_value(begin: Any, end: Any, indices: Any, load: Any, radius: float, v: Any, top: float) -> float:
    """Max p·v over the ball around one row, sorted and not empty; `top` is the largest value that it may move to."""
    free = 0.5 * radius  # still to be moved
    moved, total = 0.0, 0.0
    j = end
    while j > begin and free > 0.0:  # from the lowest value up
        j -= np.uint64(1)
        value = v[indices[j]]
        if value >= top:
            j += np.uint64(1)
            break
        taken = min(load[j, 0], free)
        free -= taken
        moved += taken
        total += (load[j, 0] - taken) * value
    for i in range(begin, j):
        total += load[i, 0] * v[indices[i]]
    return total + moved * top


@kernel
def l1_rows(sets: L1Set, v: NDArray[Any], pairs: NDArray[Any], out: OptimisticRows) -> int:
    """The best row of each of `pairs` (-1: none), as CSR; returns the size needed, writing what fits."""
    indptr, indices, load, radius, mask, level = sets
    sort_rows(v, indptr, indices, load)
    starts, to, given = out
    size = 0
    for row in range(pairs.size):
        starts[row] = size
        k = pairs[row]
        if k < 0:
            continue
        begin, end = indptr[k], indptr[k + 1]
        best = best_state(v, mask[level[k]])
        free, moved = 0.5 * radius[k], 0.0
        place = -1  # where the best state stands in the output
        j = end
        while j > begin:
            j -= np.uint64(1)
            p = load[j, 0]
            if free > 0.0 and v[indices[j]] < v[best]:
                taken = min(p, free)
                free -= taken
                moved += taken
                p -= taken
            if p > 0.0:
                if indices[j] == best:
                    place = size
                if size < to.size:
                    to[size], given[size] = indices[j], p
                size += 1
        if moved > 0.0:
            if place < 0:
                if size < to.size:
                    to[size], given[size] = best, moved
                size += 1
            elif place < to.size:
                given[place] += moved
    starts[pairs.size] = size
    return size
