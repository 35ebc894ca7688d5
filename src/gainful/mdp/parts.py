"""Large arrays in parts that fit into a processor's cache, which several threads work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gainful.machine import available_cores

ENTRIES_OF_A_PART = 1 << 19
"""Entries of a part, about: what is done to them one after the other finds them in the cache."""
THREADS_FROM_ENTRIES = 2_000_000
"""Entries from which on several threads take less time than one."""

Part = TypeVar("Part")
Result = TypeVar("Result")


class RowPart(NamedTuple):
    """Rows `first` … `last`-1, which have the entries `begin` … `end`-1."""

    first: int
    last: int
    begin: int
    end: int


def each(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """What `work` returns for every part; several threads share parts that are many."""
    if len(parts) == 1:
        return [work(parts[0])]
    threads = available_cores() if len(parts) * ENTRIES_OF_A_PART >= THREADS_FROM_ENTRIES else 1
    if threads == 1:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))


def stretches(size: int) -> list[slice]:
    """The places 0 … size-1 in parts."""
    if size <= ENTRIES_OF_A_PART:
        return [slice(0, size)]
    return [slice(i, min(i + ENTRIES_OF_A_PART, size)) for i in range(0, size, ENTRIES_OF_A_PART)]


def row_parts(ptr: NDArray[np.int64]) -> list[RowPart]:
    """Rows in parts; one that has more entries than `ENTRIES_OF_A_PART` ends with a row that is long."""
    n_rows, size = ptr.size - 1, int(ptr[-1])
    if max(n_rows, size) <= ENTRIES_OF_A_PART:
        return [RowPart(0, n_rows, 0, size)]
    rows_at = np.arange(0, n_rows, ENTRIES_OF_A_PART)
    entries_at = np.arange(0, size, ENTRIES_OF_A_PART)
    edges = np.unique(np.concatenate([rows_at, np.searchsorted(ptr[:-1], entries_at), [n_rows]]))
    ends = zip(edges.tolist(), ptr[edges].tolist(), strict=True)
    return [RowPart(first, last, begin, end) for (first, begin), (last, end) in pairwise(ends)]


def copied(values: Any, dtype: Any) -> NDArray[Any]:
    """What `np.array(values, dtype)` is; several threads copy a large array that needs no conversion."""
    if type(values) is not np.ndarray or values.dtype != dtype or values.ndim != 1:
        return np.array(values, dtype=dtype)
    out = np.empty(values.size, dtype)
    each(lambda own: np.copyto(out[own], values[own]), stretches(values.size))
    return out
