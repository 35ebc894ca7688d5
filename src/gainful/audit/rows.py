"""Kernels over transition rows: the estimated model p̂ against the true one, entry by entry.

A row belongs to a pair k = s*A + a and lists its next states in increasing order, each once. The estimated model of
SCAL+ (Qian, Fruit, Pirotta & Lazaric, eq. hatp) adds one imagined visit to the attractive state s̄:

    p̂(s'|s,a) = (N(s,a,s') + 1{s' = s̄}) / (N(s,a) + 1).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel

ANCHOR = 0
"""s̄, the attractive state."""


class CountedRows(NamedTuple):
    """Transition counts: row k is next_state and count at begin[k] … begin[k] + length[k] - 1."""

    begin: Any
    length: Any
    next_state: Any
    count: Any
    visits: Any


class TrueRows(NamedTuple):
    """Transition probabilities: row k is indices and probabilities at indptr[k] … indptr[k+1] - 1."""

    indptr: Any
    indices: Any
    probabilities: Any


class RowProducts(NamedTuple):
    """What `compare_rows` fills, (S*A,) each."""

    estimated_bias: Any
    """p̂·h."""
    estimated_values: Any
    """p̂·v."""
    true_values: Any
    """p·v."""
    distance: Any
    """‖p̂ - p‖₁."""
    anchored: Any
    """p̂(s̄)."""


def counted_rows(statistics: Any) -> CountedRows:
    """The rows of an agent's statistics, not copied."""
    s = statistics
    return CountedRows(s.begin, s.length, s.next_state, s.count, s.visits)


def row_variances(rows: CountedRows, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(S*A,) Var_p̄(v), p̄ the empirical rows; 0 for a pair never visited."""
    pairs = rows.visits.size
    pair = np.repeat(np.arange(pairs), rows.length)
    ends = np.cumsum(rows.length)
    entry = np.arange(pair.size) + np.repeat(rows.begin - (ends - rows.length), rows.length)
    count, x, n = rows.count[entry], values[rows.next_state[entry]], np.maximum(1, rows.visits)
    mean = np.bincount(pair, count * x, pairs) / n
    return np.asarray(np.bincount(pair, count * (x - mean[pair]) ** 2, pairs) / n)


@kernel
def compare_rows(rows: CountedRows, true: TrueRows, possible: Any, bias: Any, values: Any, out: RowProducts) -> int:
    """Merge every estimated row with its true row and fill `out`; returns the length of the longest estimated row.

    Pairs that are not `possible` get zeros.
    """
    rows, true, out = CountedRows(*rows), TrueRows(*true), RowProducts(*out)
    longest = 0
    for k in range(rows.visits.size):
        estimated_bias = estimated_values = true_values = distance = anchored = 0.0
        if possible[k]:
            share = 1.0 / (rows.visits[k] + 1.0)
            i, i_end = rows.begin[k], rows.begin[k] + rows.length[k]
            j, j_end = true.indptr[k], true.indptr[k + 1]
            longest = max(longest, rows.length[k] + 1)
            anchored, p = share, 0.0
            if i < i_end and rows.next_state[i] == ANCHOR:  # the least of all states, so first in its row
                anchored += rows.count[i] * share
                i += 1
            if j < j_end and true.indices[j] == ANCHOR:
                p = true.probabilities[j]
                j += 1
            estimated_bias, estimated_values = anchored * bias[ANCHOR], anchored * values[ANCHOR]
            true_values, distance = p * values[ANCHOR], abs(anchored - p)
            while i < i_end or j < j_end:
                x, y = values.size, values.size
                if i < i_end:
                    x = int(rows.next_state[i])
                if j < j_end:
                    y = int(true.indices[j])
                to = min(x, y)
                q, p = 0.0, 0.0
                if x == to:
                    q = rows.count[i] * share
                    i += 1
                if y == to:
                    p = true.probabilities[j]
                    j += 1
                estimated_bias += q * bias[to]
                estimated_values += q * values[to]
                true_values += p * values[to]
                distance += abs(q - p)
        out.estimated_bias[k], out.estimated_values[k] = estimated_bias, estimated_values
        out.true_values[k], out.distance[k], out.anchored[k] = true_values, distance, anchored
    return longest


@inlined
def overlap(rows: CountedRows, k: int, m: int) -> Any:
    """Σ min{p̂_k(s'), p̂_m(s')} over all next states."""
    i, i_end, j, j_end = rows.begin[k], rows.begin[k] + rows.length[k], rows.begin[m], rows.begin[m] + rows.length[m]
    k_share, m_share = 1.0 / (rows.visits[k] + 1.0), 1.0 / (rows.visits[m] + 1.0)
    k_anchored, m_anchored, total = k_share, m_share, 0.0
    while i < i_end and rows.next_state[i] == ANCHOR:
        k_anchored += rows.count[i] * k_share
        i += 1
    while j < j_end and rows.next_state[j] == ANCHOR:
        m_anchored += rows.count[j] * m_share
        j += 1
    while i < i_end and j < j_end:
        if rows.next_state[i] == rows.next_state[j]:
            total += min(rows.count[i] * k_share, rows.count[j] * m_share)
            i += 1
            j += 1
        elif rows.next_state[i] < rows.next_state[j]:
            i += 1
        else:
            j += 1
    return total + min(k_anchored, m_anchored)


@kernel
def contraction(rows: CountedRows, possible: Any) -> float:
    """γ = 1 - min Σ min{p̂(s'|s,a), p̂(s'|z,b)} over all two pairs (Puterman 1994, sec. 6.6.1)."""
    rows = CountedRows(*rows)
    gamma = 0.0
    for k in range(rows.visits.size):
        for m in range(k):
            if possible[k] and possible[m]:
                gamma = max(gamma, 1.0 - overlap(rows, k, m))
    return gamma


@kernel
def contraction_bound(rows: CountedRows, possible: Any, n_states: int) -> float:
    """Doeblin's bound of γ: 1 - Σ min p̂(s'|s,a) over the pairs, for each next state."""
    rows = CountedRows(*rows)
    least, common, n_possible = np.full(n_states, np.inf), np.zeros(n_states, np.int64), 0
    for k in range(rows.visits.size):
        if not possible[k]:
            continue
        n_possible += 1
        share = 1.0 / (rows.visits[k] + 1.0)
        anchored = share
        for i in range(rows.begin[k], rows.begin[k] + rows.length[k]):
            to = rows.next_state[i]
            if to == ANCHOR:
                anchored = rows.count[i] * share + share
            else:
                least[to] = min(least[to], rows.count[i] * share)
                common[to] += 1
        least[ANCHOR] = min(least[ANCHOR], anchored)
        common[ANCHOR] += 1
    shared = 0.0
    for s in range(n_states):
        if common[s] == n_possible:
            shared += least[s]
    return 1.0 - shared
