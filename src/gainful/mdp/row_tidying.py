"""Rows without zeros, sorted, merged and normalised in one compiled pass, in place.

The numbers are those of `gainful.mdp.rows`, to the bit: sums are added up in the order of `np.add.reduceat`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel

SHORT_ROW = 128
"""Entries up to which the place of each in its row is found by comparing it with all others."""
SUMMED_AT_ONCE = 128
"""Numbers that NumPy adds up in eight partial sums; more are divided in two."""


class TidyRows(NamedTuple):
    """What a pass over rows has found."""

    refused: Any
    """Whether a probability is negative, infinite or not a number; then nothing has changed."""
    entries: Any
    """The number of entries that are left."""
    off: Any
    """Whether a sum is too far from 1; that row is not divided."""


@kernel
def tidy_rows(
    ptr: NDArray[Any], idx: NDArray[Any], p: NDArray[Any], rewards: NDArray[Any] | None, tolerance: float
) -> TidyRows:
    """Drop zeros, sort each row by next state (then reward), merge equal ones, divide by the sum if it differs from 1.

    `ptr` is unsigned and begins at 0; what is left lies at the beginning of the arrays.
    """
    one, two = np.uint64(1), np.uint64(2)
    short, at_once = np.uint64(SHORT_ROW), np.uint64(SUMMED_AT_ONCE)
    fine, zeros, off = True, False, False
    for i in range(np.uint64(p.size)):
        fine &= (p[i] >= 0.0) & (p[i] < np.inf)
        zeros |= p[i] == 0.0
    if not fine:
        return TidyRows(True, np.uint64(0), False)
    place = np.empty(SHORT_ROW, np.uint32)
    buffer = np.empty(SHORT_ROW, np.uint32), np.empty(SHORT_ROW), np.empty(SHORT_ROW)
    first, end = np.uint64(0), np.uint64(0)
    for k in range(np.uint64(ptr.size) - one):
        begin, last = end, ptr[k + one]
        end = move_row(idx, p, rewards, first, last, begin) if zeros or first != begin else last
        first = last
        in_order = True
        for i in range(begin + one, end):
            in_order &= idx[i - one] < idx[i]
        if not in_order:
            if end - begin <= short:
                sort_short_row(idx, p, rewards, begin, end, place, buffer)
            else:
                sort_long_row(idx, p, rewards, begin, end)
            repeats = False
            for i in range(begin + one, end):
                repeats |= not comes_later(idx, rewards, i, i - one)
            if repeats:
                end = merge_row(idx, p, rewards, begin, end)
        ptr[k + one] = end
        if end > begin:
            rest = begin + one  # as `np.add.reduceat` rounds: the first, and the sum of the others
            total = p[begin] + (block_sum(p, rest, end) if end - begin <= at_once else pairwise_sum(p, rest, end))
            away = abs(total - 1.0)
            if away > tolerance:
                off = True
            elif away > np.float64(end - begin + two) * 2.0**-53:
                for i in range(begin, end):
                    p[i] /= total
    return TidyRows(False, end, off)


@inlined
def move_row(idx: Any, p: Any, rewards: Any, first: Any, last: Any, to: Any) -> Any:
    """Move the entries `first` … `last`-1 that are not 0 to `to`, before them; return where they end."""
    for i in range(first, last):
        if p[i] > 0.0:
            idx[to], p[to] = idx[i], p[i]
            if rewards is not None:
                rewards[to] = rewards[i]
            to += np.uint64(1)
    return to


@inlined
def sort_short_row(idx: Any, p: Any, rewards: Any, begin: Any, end: Any, place: Any, buffer: Any) -> None:
    """Sort a row, equal ones in their order; without branches, as which of two comes first cannot be foreseen."""
    states, weights, amounts = buffer
    n = end - begin
    for i in range(n):
        before = np.uint32(i)
        for j in range(i):
            later = np.uint32(comes_later(idx, rewards, begin + j, begin + i))
            place[j] += later
            before -= later
        place[i] = before
    for i in range(n):
        to = np.uint64(place[i])
        states[to], weights[to] = idx[begin + i], p[begin + i]
        if rewards is not None:
            amounts[to] = rewards[begin + i]
    for i in range(n):
        idx[begin + i], p[begin + i] = states[i], weights[i]
        if rewards is not None:
            rewards[begin + i] = amounts[i]


@inlined
def comes_later(idx: Any, rewards: Any, i: Any, j: Any) -> Any:
    """Whether entry i has a larger next state than entry j, or the same one and a larger reward."""
    if rewards is None:
        return idx[i] > idx[j]
    return (idx[i] > idx[j]) | ((idx[i] == idx[j]) & (rewards[i] > rewards[j]))


@kernel
def sort_long_row(idx: Any, p: Any, rewards: Any, begin: Any, end: Any) -> None:
    """Sort a row, equal ones in their order: merge neighbours, then pairs of them, and so on."""
    n, width = end - begin, np.uint64(1)
    order, merged = np.empty(n, np.uint64), np.empty(n, np.uint64)
    for k in range(n):
        order[k] = begin + k
    while width < n:
        left = np.uint64(0)
        while left < n:
            middle, right = min(left + width, n), min(left + width + width, n)
            i, j = left, middle
            for to in range(left, right):
                if j == right or (i < middle and not comes_later(idx, rewards, order[i], order[j])):
                    merged[to] = order[i]
                    i += np.uint64(1)
                else:
                    merged[to] = order[j]
                    j += np.uint64(1)
            left = right
        order, merged = merged, order
        width += width
    states, weights = idx[begin:end].copy(), p[begin:end].copy()
    for k in range(n):
        idx[begin + k], p[begin + k] = states[order[k] - begin], weights[order[k] - begin]
    if rewards is not None:
        amounts = rewards[begin:end].copy()
        for k in range(n):
            rewards[begin + k] = amounts[order[k] - begin]


@inlined
def merge_row(idx: Any, p: Any, rewards: Any, begin: Any, end: Any) -> Any:
    """Make one entry of those that are equal, in a row that is sorted; return where the row ends."""
    one = np.uint64(1)
    to = i = begin
    while i < end:
        j = i + one
        while j < end and idx[j] == idx[i] and (rewards is None or rewards[j] == rewards[i]):
            j += one
        idx[to], p[to] = idx[i], p[i] if j == i + one else p[i] + pairwise_sum(p, i + one, j)
        if rewards is not None:
            rewards[to] = rewards[i]
        to, i = to + one, j
    return to


@inlined
def block_sum(p: Any, begin: Any, end: Any) -> Any:
    """The sum of few numbers as NumPy rounds it."""
    eight, i, total = np.uint64(8), begin, 0.0
    if end - begin >= eight:
        a, b, c, d = p[i], p[i + np.uint64(1)], p[i + np.uint64(2)], p[i + np.uint64(3)]
        e, f, g, h = p[i + np.uint64(4)], p[i + np.uint64(5)], p[i + np.uint64(6)], p[i + np.uint64(7)]
        i += eight
        while i + eight <= end:
            a, b, c, d = a + p[i], b + p[i + np.uint64(1)], c + p[i + np.uint64(2)], d + p[i + np.uint64(3)]
            e, f = e + p[i + np.uint64(4)], f + p[i + np.uint64(5)]
            g, h = g + p[i + np.uint64(6)], h + p[i + np.uint64(7)]
            i += eight
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    while i < end:
        total += p[i]
        i += np.uint64(1)
    return total


@kernel
def pairwise_sum(p: Any, begin: Any, end: Any) -> Any:
    """The sum of many numbers as NumPy rounds it: that of their first half, and that of their second half."""
    n = end - begin
    if n <= np.uint64(SUMMED_AT_ONCE):
        return block_sum(p, begin, end)
    half = n // np.uint64(2)
    half -= half % np.uint64(8)
    return pairwise_sum(p, begin, begin + half) + pairwise_sum(p, begin + half, end)
