"""Sparse counts that grow as they need to: rows of sorted keys, all in one arena.

Row k has `length[k]` keys from `begin[k]` on, in increasing order, with room for `room[k]`. A full row moves to the end
of the arena (`used[0]`) with twice the room. A kernel that finds no space left answers so before it has changed
anything; its caller enlarges `key` and `count` and calls again.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from gainful._compiled import kernel

FIRST_ROOM = 2


@kernel
def add(
    begin: NDArray[Any], length: NDArray[Any], room: NDArray[Any], used: NDArray[Any], key: NDArray[Any],
    count: NDArray[Any], row: int, wanted: int, times: int,
) -> bool:  # fmt: skip
    """Count `times` more of the key `wanted` in `row`; False, with nothing changed, if the arena is full."""
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
