"""The empirical model: what has been seen, as transition rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.statistics import Statistics


class EmpiricalRows(NamedTuple):
    """p̄(s'|s,a) = N(s,a,s')/N(s,a) as CSR over pairs; a pair never visited lists one state, one not allowed none."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    p: NDArray[np.float64]


@kernel
def _fill_rows(
    begin: NDArray[Any], length: NDArray[Any], next_state: NDArray[Any], count: NDArray[Any], visits: NDArray[Any],
    filler: int, indptr: NDArray[Any], indices: NDArray[Any], p: NDArray[Any],
) -> None:  # fmt: skip
    for k in range(visits.size):
        at = indptr[k]
        if indptr[k + 1] > at and visits[k] == 0:
            indices[at], p[at] = filler, 1.0
        for i in range(length[k]):
            indices[at + i] = next_state[begin[k] + i]
            p[at + i] = count[begin[k] + i] / visits[k]


def empirical_rows(statistics: Statistics, allowed: NDArray[np.bool_], filler: int = 0) -> EmpiricalRows:
    """The rows of what has been seen; a pair never visited goes to `filler`, to be replaced by a set."""
    lengths = np.maximum(statistics.length, allowed.reshape(-1))
    indptr = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    rows = EmpiricalRows(indptr, np.empty(indptr[-1], dtype=np.uint32), np.empty(indptr[-1]))
    s = statistics
    _fill_rows(s.begin, s.length, s.next_state, s.count, s.visits, filler, *rows)
    return rows
