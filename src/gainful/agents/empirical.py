"""The empirical model: the observed transitions as transition rows."""

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


class Counts(NamedTuple):
    """Transition counts: pair k has `length[k]` next states from `begin[k]` on."""

    begin: Any
    length: Any
    next_state: Any
    count: Any
    visits: Any


@kernel
def fill_rows(counts: Counts, filler: int, rows: EmpiricalRows) -> None:
    """Divide the counts by the visits; a pair never visited goes to `filler`."""
    counts, rows = Counts(*counts), EmpiricalRows(*rows)
    for k in range(counts.visits.size):
        at, first = rows.indptr[k], counts.begin[k]
        if rows.indptr[k + 1] > at and counts.visits[k] == 0:
            rows.indices[at], rows.p[at] = filler, 1.0
        for i in range(counts.length[k]):
            rows.indices[at + i] = counts.next_state[first + i]
            rows.p[at + i] = counts.count[first + i] / counts.visits[k]


def empirical_rows(statistics: Statistics, allowed: NDArray[np.bool_], filler: int = 0) -> EmpiricalRows:
    """The empirical rows; a pair never visited goes to `filler`, to be replaced by a set."""
    lengths = np.maximum(statistics.length, allowed.reshape(-1))
    indptr = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    rows = EmpiricalRows(indptr, np.empty(indptr[-1], dtype=np.uint32), np.empty(indptr[-1]))
    s = statistics
    fill_rows((s.begin, s.length, s.next_state, s.count, s.visits), filler, tuple(rows))
    return rows
