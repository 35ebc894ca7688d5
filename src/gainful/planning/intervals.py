"""The best row between per-entry bounds.

max { p·v : lower <= p <= upper, Σp = 1 } starts from the lower bounds and hands out what is left in decreasing
order of v. The states outside a row all have the same bounds [0, unseen], so the stretch of them between two of
the row's entries costs O(1) by prefix sums of the sorted v: O(Γ) per pair, plus one sort of v per sweep.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.planning.optimistic_rows import OptimisticRows
from gainful.planning.ordering import Ranking, rank_states, sort_rows


class IntervalSet(NamedTuple):
    """Bounds on every entry of CSR rows, which are reordered in place together with `order`."""

    order: Any
    """(S,) the states in decreasing order of v."""
    indptr: Any
    indices: Any
    load: Any
    """(n, 2) lower and upper - lower of every entry."""
    free_mass: Any
    """(S*A,) 1 - Σ lower."""
    unseen: Any
    """(S*A,) the bound of each next state that the row does not list."""
    mask: Any
    """(levels, S) sets of next states."""
    level: Any
    """(S*A,): pair k may move to mask[level[k]]."""


class PrefixSums(NamedTuple):
    """The part of a `Ranking` that sums v over a stretch of states."""

    by_rank: Any
    head: Any
    tail: Any


@inlined
def ranked(sets: IntervalSet, v: Any) -> Ranking:
    """Sort states and rows by v."""
    levels, S = sets.mask.shape
    ranking = Ranking(
        np.empty((levels, S), dtype=np.uint32),
        np.empty((levels, S), dtype=np.uint32),
        np.empty((levels, S + 1)),
        np.empty((levels, S + 1)),
        np.empty(levels, dtype=np.int64),
    )
    rank_states(v, sets.order, sets.mask, ranking)
    sort_rows(v, sets.indptr, sets.indices, sets.load)
    return ranking


def interval_values(sets: Any, v: Any, rewards: Any, q: Any) -> None:
    """q[k] = rewards[k] + max over the intervals of p·v, -inf for an empty row."""
    ranking = ranked(sets, v)
    indptr = sets[1]
    for k in range(indptr.size - 1):
        q[k] = -np.inf if indptr[k] == indptr[k + 1] else rewards[k] + interval_value(sets, ranking, v, k)


@inlined
def interval_value(sets: Any, ranking: Any, v: Any, k: int) -> float:
    """Max p·v over the intervals of pair k, whose row is sorted and not empty."""
    by_rank, rank, head, tail, count = ranking
    sums = PrefixSums(by_rank, head, tail)
    _, indptr, indices, load, free_mass, unseen, _, level = sets
    free, bound, m = free_mass[k], unseen[k], level[k]
    total = 0.0
    position = 0  # first rank not yet served
    for j in range(indptr[k], indptr[k + 1]):
        state = indices[j]
        value = v[state]
        given = load[j, 0]
        if free > 0.0:
            if bound > 0.0:
                here = int(rank[m, state])
                if here > position:
                    total, free = stretch(total, free, bound, position, here, m, v, sums)
                position = here + 1
            extra = min(load[j, 1], free)
            given += extra
            free -= extra
        total += given * value
    if free > 0.0 and bound > 0.0 and count[m] > position:
        total, free = stretch(total, free, bound, position, count[m], m, v, sums)
    return total


@inlined
def stretch(
    total: float, free: float, bound: float, first: int, last: int, m: int, v: Any, sums: PrefixSums
) -> tuple[float, float]:
    """Give `bound` to each state of rank first … last - 1 while there is mass; returns the total and what is left."""
    by_rank, head, tail = sums
    full = last - first
    if bound * full <= free:
        total += bound * ((head[m, last] - head[m, first]) + (tail[m, last] - tail[m, first]))
        return total, free - bound * full
    n = min(int(free / bound), full - 1)
    total += bound * ((head[m, first + n] - head[m, first]) + (tail[m, first + n] - tail[m, first]))
    total += max(free - bound * n, 0.0) * v[by_rank[m, first + n]]
    return total, 0.0


@kernel
def interval_rows(sets: IntervalSet, v: NDArray[Any], pairs: NDArray[Any], out: OptimisticRows) -> int:
    """The best row of each of `pairs` (-1: none), as CSR; returns the size needed, writing what fits."""
    sets = IntervalSet(*sets)
    by_rank, rank, _, _, count = ranked(sets, v)
    _, indptr, indices, load, free_mass, unseen, _, level = sets
    starts, to, given = out
    size = 0
    for row in range(pairs.size):
        starts[row] = size
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
                if size < to.size:
                    to[size], given[size] = by_rank[m, position], p
                size += 1
                position += 1
            position = until + 1
            if j < end:
                extra = min(load[j, 1], max(free, 0.0))
                free -= extra
                if load[j, 0] + extra > 0.0:
                    if size < to.size:
                        to[size], given[size] = indices[j], load[j, 0] + extra
                    size += 1
    starts[pairs.size] = size
    return size
