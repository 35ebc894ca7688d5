"""Sweeps over full rows: one BLAS dot product per pair, and only for the pairs that can still be the best."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import kernel
from gainful.planning.bellman import Elimination, Floats, Ints, Unsigned


class DenseModel(NamedTuple):
    """An MDP as one matrix (S*A, S), for rows that are nearly full."""

    matrix: Any
    rewards: Any
    """(S*A,)."""
    allowed: Any
    """(S*A,) the pairs there are."""
    n_actions: Any


@kernel
def dense_lazy_sweep(
    model: DenseModel, v: Floats, first: Unsigned, last: Unsigned, w: Floats, act: Ints, known: Elimination
) -> tuple[float, float]:
    """`bellman.lazy_sweep` on a dense matrix."""
    matrix, r, allowed, n_actions = model
    keys, risen, margin = known.keys, known.risen, known.margin
    low, high = np.inf, -np.inf
    for s in range(np.int64(first), np.int64(last)):
        incumbent = act[s]
        own = r[s * n_actions + incumbent] + np.dot(matrix[s * n_actions + incumbent], v)
        best, best_action = own, incumbent
        for a in range(n_actions):
            k = s * n_actions + a
            if a == incumbent or not allowed[k] or keys[k] + risen + margin < own:
                continue
            q = r[k] + np.dot(matrix[k], v)
            keys[k] = q - risen
            if q > best or (q == best and a < best_action):
                best, best_action = q, a
        keys[s * n_actions + incumbent] = own - risen
        w[s], act[s] = best, best_action
        gap = best - v[s]
        low, high = min(low, gap), max(high, gap)
    return low, high


@kernel
def dense_policy_sweep(
    matrix: Floats, r: Floats, pairs: Ints, v: Floats, first: Unsigned, last: Unsigned, gaps: Floats
) -> tuple[float, float]:
    """Gaps = r_π + P_π v - v where row pairs[s] of the matrix is p(·|s,π(s)) and r[s] its reward."""
    low, high = np.inf, -np.inf
    for s in range(np.int64(first), np.int64(last)):
        gap = r[s] + np.dot(matrix[pairs[s]], v) - v[s]
        gaps[s] = gap
        low, high = min(low, gap), max(high, gap)
    return low, high
