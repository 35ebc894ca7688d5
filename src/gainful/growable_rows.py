"""Sparse counts that grow as they need to: rows of sorted keys, all in one pair of arrays.

Row k has `length[k]` keys from `begin[k]` on, in increasing order, with room for `room[k]`. A full row moves to the end
of the arrays (`used[0]`) with twice the room. If no space is left there, `add` reports it before it has changed
anything; its caller enlarges `key` and `count` and calls again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gainful._compiled import kernel

FIRST_ROOM = 2


class GrowableRows(NamedTuple):
    """The arrays of the rows. `begin`, `length` and `room` have one entry per row, `used` has one in all."""

    begin: Any
    length: Any
    room: Any
    used: Any
    key: Any
    count: Any


@kernel
def add(rows: GrowableRows, row: int, wanted: int, times: int) -> bool:
    """Count `times` more of the key `wanted` in `row`; False, with nothing changed, if the arrays are full."""
    begin, length, room, used, key, count = rows
    first, n = begin[row], length[row]
    low, high = first, first + n
    while low < high:
        middle = (low + high) // 2
        if key[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    if low < first + n and key[low] == wanted:
        count[low] += times
        return True
    if n == room[row]:
        larger = max(FIRST_ROOM, 2 * n)
        if used[0] + larger > key.size:
            return False
        for j in range(n):
            key[used[0] + j] = key[first + j]
            count[used[0] + j] = count[first + j]
        low += used[0] - first
        first = used[0]
        begin[row], room[row] = first, larger
        used[0] += larger
    for j in range(first + n, low, -1):
        key[j], count[j] = key[j - 1], count[j - 1]
    key[low], count[low] = wanted, times
    length[row] = n + 1
    return True


@kernel
def add_one(begin: Any, length: Any, room: Any, used: Any, key: Any, count: Any, row: int, wanted: int) -> bool:
    """`add` once, with the arrays one by one: for Python, from where a group costs time at every call."""
    return bool(add(GrowableRows(begin, length, room, used, key, count), row, wanted, 1))
