"""The best row between per-entry bounds on a support that leaves out what can hardly matter (EVI-NOSS).

Bourel, Maillard & Talebi 2020, algorithm 3. With u = v - min v, F(X) the most that a row between the bounds can earn on
the states X, Σ_X u·p with Σ_X p ≤ 1, and κ a small part of the span of v: start from the states that the row lists and
the best state of all, and add the best state outside while F(outside) ≥ min{κ, F(inside)}. F(inside) falls short of the
maximum over all states by less than κ. Probability that the bounds leave over is worth min v.

States are added in the order of v, so that F(outside) falls and F(inside) rises: how many are needed is found by
doubling and halving, at O(Γ) for each try by the prefix sums that `intervals` uses.

The supports change with v, and value iteration can go round in circles between them. So after `FREE_SWEEPS` sweeps the
number of states that a pair adds no longer falls. All states that a row does not list have the same bounds, so the best
m of them are the best choice of m: with numbers that stay the same the operator is a maximum over rows with at most m
such states, and value iteration converges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.planning.intervals import IntervalSet, PrefixSums, ranked, stretch
from gainful.planning.optimistic_rows import OptimisticRows
from gainful.planning.ordering import Ranking

FREE_SWEEPS = 100
"""Sweeps after which the supports of a plan only grow."""


class NearOptimisticSet(NamedTuple):
    """The fields of an `IntervalSet`, and κ/sp(v) of every pair."""

    order: Any
    indptr: Any
    indices: Any
    load: Any
    free_mass: Any
    unseen: Any
    mask: Any
    level: Any
    tolerance: Any
    """(S*A,)."""
    kept: Any
    """(S*A,) how many of the states that its row does not list belong to the support of a pair: the best ones."""
    sweeps: Any
    """(1,) how many sweeps there were."""


@inlined
def between(sets: Any) -> IntervalSet:
    """The bounds alone."""
    order, indptr, indices, load, free_mass, unseen, mask, level, _, _, _ = sets
    return IntervalSet(order, indptr, indices, load, free_mass, unseen, mask, level)


def near_optimistic_values(sets: Any, v: Any, rewards: Any, q: Any) -> None:
    """q[k] = rewards[k] + min v + F(support of k), -inf for an empty row."""
    least = v.min()
    u = v - least
    bounds, tolerance, kept, sweeps = between(sets), sets[8], sets[9], sets[10]
    ranking = ranked(bounds, u)
    span = u.max()
    grown = sweeps[0] >= FREE_SWEEPS
    sweeps[0] += 1
    for k in range(bounds.indptr.size - 1):
        if bounds.indptr[k] == bounds.indptr[k + 1]:
            q[k] = -np.inf
        else:
            needed = needed_states(bounds, ranking, u, k, tolerance[k] * span)
            kept[k] = max(kept[k], needed) if grown else needed
            end = end_of_support(bounds, ranking, k, kept[k])
            q[k] = rewards[k] + (least + value_inside(bounds, ranking, u, k, end))


@inlined
def needed_states(sets: IntervalSet, ranking: Ranking, u: Any, k: int, kappa: float) -> int:
    """How many of the states that the row of pair k does not list the rule adds to its support.

    It doubles its steps until there are enough, and then halves the interval.
    """
    below = -1 if ranking.rank[sets.level[k], sets.indices[sets.indptr[k]]] == 0 else 0  # too few
    enough = int(ranking.count[sets.level[k]]) - int(sets.indptr[k + 1] - sets.indptr[k])  # all that there are
    step, doubling = 1, True
    while enough - below > 1 and kappa > 0.0:
        trial = below + step if doubling and below + step < enough else (below + enough) // 2
        end = end_of_support(sets, ranking, k, trial)
        outside = value_outside(sets, ranking, u, k, end)
        if outside < kappa and outside < value_inside(sets, ranking, u, k, end):
            enough, doubling = trial, False
        else:
            below = trial
            step *= 2
    return enough


@inlined
def end_of_support(sets: IntervalSet, ranking: Ranking, k: int, kept: int) -> int:
    """The rank before which there are `kept` states that the row of pair k does not list."""
    m, end = sets.level[k], kept
    for j in range(sets.indptr[k], sets.indptr[k + 1]):
        if int(ranking.rank[m, sets.indices[j]]) < end:
            end += 1
        else:
            break
    return end


@inlined
def value_inside(sets: IntervalSet, ranking: Ranking, u: Any, k: int, end: int) -> float:
    """F(support), the support being what the row lists and all states of rank below `end`.

    Lower bounds first, then as much as there is to the best states.
    """
    sums = PrefixSums(ranking.by_rank, ranking.head, ranking.tail)
    free, bound, m = sets.free_mass[k], sets.unseen[k], sets.level[k]
    total = 0.0
    position = 0  # first rank not yet served
    for j in range(sets.indptr[k], sets.indptr[k + 1]):
        state = sets.indices[j]
        given = sets.load[j, 0]
        if free > 0.0:
            here = int(ranking.rank[m, state])
            if bound > 0.0 and min(here, end) > position:
                total, free = stretch(total, free, bound, position, min(here, end), m, u, sums)
            position = here + 1
            extra = min(sets.load[j, 1], free)
            given += extra
            free -= extra
        total += given * u[state]
    if free > 0.0 and bound > 0.0 and end > position:
        total, free = stretch(total, free, bound, position, end, m, u, sums)
    return total


@inlined
def value_outside(sets: IntervalSet, ranking: Ranking, u: Any, k: int, end: int) -> float:
    """F(states of rank `end` and more that the row does not list)."""
    sums = PrefixSums(ranking.by_rank, ranking.head, ranking.tail)
    bound, m = sets.unseen[k], sets.level[k]
    total, free, position = 0.0, 1.0 if bound > 0.0 else 0.0, end
    for j in range(sets.indptr[k], sets.indptr[k + 1]):
        here = int(ranking.rank[m, sets.indices[j]])
        if here >= position:
            if here > position and free > 0.0:
                total, free = stretch(total, free, bound, position, here, m, u, sums)
            position = here + 1
    if free > 0.0 and ranking.count[m] > position:
        total, free = stretch(total, free, bound, position, ranking.count[m], m, u, sums)
    return total


@kernel
def near_optimistic_rows(sets: NearOptimisticSet, v: NDArray[Any], pairs: NDArray[Any], out: OptimisticRows) -> int:
    """The row of each of `pairs` (-1: none) at the values of the last sweep, as CSR; returns the size needed.

    It writes what fits. Probability that is left over goes to the state of least value, so that rows sum to 1.
    """
    sets = NearOptimisticSet(*sets)
    out = OptimisticRows(*out)
    u = v - v.min()
    bounds = between(sets)
    ranking = ranked(bounds, u)
    span = u.max()
    size = 0
    for row in range(pairs.size):
        out.indptr[row] = size
        k = pairs[row]
        if k >= 0:
            kept = max(sets.kept[k], needed_states(bounds, ranking, u, k, sets.tolerance[k] * span))
            size = write_row(bounds, ranking, k, kept, size, out)
    out.indptr[pairs.size] = size
    return size


@inlined
def write_row(sets: IntervalSet, ranking: Ranking, k: int, kept: int, size: int, out: OptimisticRows) -> int:
    """Write the row of pair k from entry `size` on; returns the size after it."""
    m = sets.level[k]
    worst = ranking.by_rank[0, ranking.count[0] - 1]
    stop = end_of_support(sets, ranking, k, kept)
    begin, end = sets.indptr[k], sets.indptr[k + 1]
    free, position, of_worst = sets.free_mass[k], 0, -1
    for j in range(begin, end + np.uint64(1)):  # the last round is the stretch after the row's last entry
        until = int(ranking.rank[m, sets.indices[j]]) if j < end else stop
        while position < min(until, stop) and free > 0.0 and sets.unseen[k] > 0.0:
            given = min(sets.unseen[k], free)
            free -= given
            if ranking.by_rank[m, position] == worst:
                of_worst = size
            size = write_entry(out, size, ranking.by_rank[m, position], given)
            position += 1
        position = max(position, until + 1)
        if j < end:
            extra = min(sets.load[j, 1], max(free, 0.0))
            free -= extra
            if sets.load[j, 0] + extra > 0.0:
                if sets.indices[j] == worst:
                    of_worst = size
                size = write_entry(out, size, sets.indices[j], sets.load[j, 0] + extra)
    if free > 0.0 and of_worst < 0:
        size = write_entry(out, size, worst, free)
    elif free > 0.0 and of_worst < out.indices.size:
        out.probabilities[of_worst] += free
    return size


@inlined
def write_entry(out: OptimisticRows, size: int, state: Any, given: float) -> int:
    """Write one entry if there is room for it; returns the size after it."""
    if size < out.indices.size:
        out.indices[size], out.probabilities[size] = state, given
    return size + 1
