"""The best row between per-entry bounds, and the sweeps of extended value iteration over it.

max { p·v : lower <= p <= upper, Σp = 1 } starts from the lower bounds and hands out what is left in decreasing
order of v. The states outside a row all have the same bounds [0, unseen], so the stretch of them between two of
the row's entries costs O(1) by prefix sums of the sorted v: O(Γ) per pair, plus one sort of v per sweep.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.planning.improvement import improve, relax
from gainful.planning.ordering import rank_states, sort_rows


@kernel
def interval_values(
    v: NDArray[Any],
    order: NDArray[Any],
    indptr: NDArray[Any],
    indices: NDArray[Any],
    load: NDArray[Any],
    free_mass: NDArray[Any],
    unseen: NDArray[Any],
    mask: NDArray[Any],
    level: NDArray[Any],
    rewards: NDArray[Any],
    q: NDArray[Any],
) -> None:
    """q[k] = rewards[k] + max over the intervals of p·v, -inf for an empty row.

    `load` (n, 2) holds lower and upper - lower; free_mass[k] = 1 - Σ lower; rows and `order` are sorted in place.
    """
    levels, S = mask.shape
    by_rank = np.empty((levels, S), dtype=np.uint32)
    rank = np.empty((levels, S), dtype=np.uint32)
    head = np.empty((levels, S + 1))
    tail = np.empty((levels, S + 1))
    count = np.empty(levels, dtype=np.int64)
    rank_states(v, order, mask, by_rank, rank, head, tail, count)
    sort_rows(v, indptr, indices, load)
    for k in range(indptr.size - 1):
        begin, end = indptr[k], indptr[k + 1]
        if begin == end:
            q[k] = -np.inf
            continue
        free, bound, m = free_mass[k], unseen[k], level[k]
        total = 0.0
        position = 0  # first rank not yet served
        for j in range(begin, end):
            state = indices[j]
            value = v[state]
            given = load[j, 0]
            if free > 0.0:
                if bound > 0.0:
                    here = int(rank[m, state])
                    if here > position:
                        total, free = _stretch(total, free, bound, position, here, m, v, by_rank, head, tail)
                    position = here + 1
                extra = min(load[j, 1], free)
                given += extra
                free -= extra
            total += given * value
        if free > 0.0 and bound > 0.0 and count[m] > position:
            total, free = _stretch(total, free, bound, position, count[m], m, v, by_rank, head, tail)
        q[k] = rewards[k] + total


@kernel
def _stretch(
    total: float,
    free: float,
    bound: float,
    first: int,
    last: int,
    m: int,
    v: NDArray[Any],
    by_rank: NDArray[Any],
    head: NDArray[Any],
    tail: NDArray[Any],
) -> tuple[float, float]:
    """Give `bound` to each state of rank first … last - 1 while there is mass; returns the total and what is left."""
    full = last - first
    if bound * full <= free:
        total += bound * ((head[m, last] - head[m, first]) + (tail[m, last] - tail[m, first]))
        return total, free - bound * full
    n = min(int(free / bound), full - 1)
    total += bound * ((head[m, first + n] - head[m, first]) + (tail[m, first + n] - tail[m, first]))
    total += max(free - bound * n, 0.0) * v[by_rank[m, first + n]]
    return total, 0.0


@kernel
def interval_sweeps(
    v: NDArray[Any],
    q: NDArray[Any],
    best: NDArray[Any],
    order: NDArray[Any],
    indptr: NDArray[Any],
    indices: NDArray[Any],
    load: NDArray[Any],
    free_mass: NDArray[Any],
    unseen: NDArray[Any],
    mask: NDArray[Any],
    level: NDArray[Any],
    rewards: NDArray[Any],
    n_actions: int,
    damping: float,
    span: float,
    precision: float,
    slack_scale: float,
    reward_scale: float,
    sweeps: int,
    resume: bool,
) -> tuple[int, float, float, float, bool]:
    """As `l1_sweeps`."""
    low, high, slack = -np.inf, np.inf, 0.0
    threshold = best.min() + span
    for n in range(sweeps):
        if resume or n > 0:
            relax(v, best, threshold, damping, span)
        interval_values(v, order, indptr, indices, load, free_mass, unseen, mask, level, rewards, q)
        low, high, threshold = improve(q, v, n_actions, span, best)
        slack = slack_scale * (v.max() + reward_scale)
        if high - low + 2.0 * slack <= precision:
            return n + 1, low, high, slack, True
    return sweeps, low, high, slack, False


@kernel
def interval_rows(
    v: NDArray[Any],
    pairs: NDArray[Any],
    order: NDArray[Any],
    indptr: NDArray[Any],
    indices: NDArray[Any],
    load: NDArray[Any],
    free_mass: NDArray[Any],
    unseen: NDArray[Any],
    mask: NDArray[Any],
    level: NDArray[Any],
    out_indptr: NDArray[Any],
    out_indices: NDArray[Any],
    out_probabilities: NDArray[Any],
) -> int:
    """As `l1_rows`."""
    levels, S = mask.shape
    by_rank = np.empty((levels, S), dtype=np.uint32)
    rank = np.empty((levels, S), dtype=np.uint32)
    head = np.empty((levels, S + 1))
    tail = np.empty((levels, S + 1))
    count = np.empty(levels, dtype=np.int64)
    rank_states(v, order, mask, by_rank, rank, head, tail, count)
    sort_rows(v, indptr, indices, load)
    room = out_indices.size
    size = 0
    for row in range(pairs.size):
        out_indptr[row] = size
        k = pairs[row]
        if k < 0:
            continue
        begin, end = indptr[k], indptr[k + 1]
        free, m = free_mass[k], level[k]
        position = 0
        for j in range(begin, end + 1):  # the last round is the stretch after the row's last entry
            until = int(rank[m, indices[j]]) if j < end else int(count[m])
            while position < until and free > 0.0 and unseen[k] > 0.0:
                p = min(unseen[k], free)
                free -= p
                if size < room:
                    out_indices[size] = by_rank[m, position]
                    out_probabilities[size] = p
                size += 1
                position += 1
            position = until + 1
            if j < end:
                extra = min(load[j, 1], max(free, 0.0))
                free -= extra
                if load[j, 0] + extra > 0.0:
                    if size < room:
                        out_indices[size] = indices[j]
                        out_probabilities[size] = load[j, 0] + extra
                    size += 1
    out_indptr[pairs.size] = size
    return size
