"""One Bellman backup on sparse rows, discounted or not, shared by discounted and finite-horizon planning."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.planning.bellman import SparseModel, row_dot


@kernel
def backup(
    model: SparseModel, discount: float, cap: float, v: NDArray[Any], best: NDArray[Any], actions: NDArray[Any]
) -> None:
    """best(s) = max_a min{ r(s,a) + discount·p(·|s,a)·v, cap } and its action, ties to the lowest index."""
    indptr, indices, probabilities, rewards, _ = model
    n_actions = np.int64(model.n_actions)
    for s in range(best.size):
        top = -np.inf
        choice = -1
        for a in range(n_actions):
            k = s * n_actions + a
            begin, end = indptr[k], indptr[k + 1]
            if begin == end:
                continue
            value = min(rewards[k] + discount * row_dot(probabilities, indices, v, begin, end), cap)
            if choice < 0 or value > top:
                top = value
                choice = a
        best[s] = top
        actions[s] = choice
