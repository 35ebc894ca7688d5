"""One Bellman backup on sparse rows, discounted or not: what discounted and finite-horizon planning share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.planning.bellman import row_dot


@kernel
def backup(
    v: NDArray[Any],
    indptr: NDArray[Any],
    indices: NDArray[Any],
    probabilities: NDArray[Any],
    rewards: NDArray[Any],
    discount: float,
    cap: float,
    n_actions: int,
    best: NDArray[Any],
    actions: NDArray[Any],
) -> None:
    """best(s) = max_a min{ r(s,a) + discount·p(·|s,a)·v, cap } and its action, ties to the lowest index.

    Rows are CSR over pairs s*A + a, `indptr` unsigned; an empty row is an action the state does not have.
    """
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
