from __future__ import annotations

import numpy as np
import pytest

from gainful.planning.ordering import Ranking, rank_states, sort_rows


@pytest.mark.parametrize("sizes", [[1, 1, 1], [0, 5, 2, 0], [400, 3, 400]])  # 400 > 8·2 moves: the heapsort
@pytest.mark.parametrize("ties", [False, True])
def test_rows_are_in_decreasing_order_with_ties_by_index(sizes: list[int], ties: bool) -> None:
    rng = np.random.default_rng(1)
    S = 500
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
    indices = np.concatenate([rng.choice(S, n, replace=False) for n in sizes]).astype(np.uint32)
    load = np.stack([indices * 2.0, indices * 3.0], axis=1)
    v = rng.integers(0, 4, S).astype(np.float64) if ties else rng.random(S)
    for step in range(3):
        before = indices.copy()
        sort_rows(v, indptr, indices, load)
        for begin, end in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
            row = before[begin:end]
            assert np.array_equal(indices[begin:end], row[np.lexsort((row, -v[row]))])
        assert np.array_equal(load, np.stack([indices * 2.0, indices * 3.0], axis=1))
        v = v + 0.01 * rng.random(S) if step == 0 else -v


def test_prefix_sums_of_ranked_values_lose_nothing() -> None:
    S = 3000
    v = 1e6 + np.random.default_rng(2).random(S)
    mask = np.stack([np.ones(S, dtype=bool), np.arange(S) % 3 == 0])
    by_rank, rank = np.empty((2, S), dtype=np.uint32), np.empty((2, S), dtype=np.uint32)
    head, tail, count = np.empty((2, S + 1)), np.empty((2, S + 1)), np.empty(2, dtype=np.int64)
    rank_states(v, np.arange(S, dtype=np.uint32), mask, Ranking(by_rank, rank, head, tail, count))
    assert count.tolist() == [S, S // 3]
    assert np.all(np.diff(v[by_rank[0]]) <= 0.0)
    assert np.array_equal(by_rank[0][rank[0]], np.arange(S))
    assert set(by_rank[1][: S // 3].tolist()) == set(range(0, S, 3))
    difference = (head[0, 2000] - head[0, 1999]) + (tail[0, 2000] - tail[0, 1999])
    assert difference == v[by_rank[0, 1999]]  # plain prefix sums of 3·10⁹ would be off by 10⁻⁷
