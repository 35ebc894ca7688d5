"""Sweeps over full rows: one BLAS dot product per pair, and only for the pairs that can still be the best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.planning.bellman import Floats, Ints, Unsigned


@kernel
def lazy_sweep(
    matrix: Floats, r: Floats, allowed: NDArray[np.bool_], n_actions: int, v: Floats,
    first: Unsigned, last: Unsigned, w: Floats, act: Ints,
    keys: Floats, risen: float, margin: float,
) -> tuple[float, float]:  # fmt: skip
    """`bellman.lazy_sweep` on a dense (S*A, S) matrix."""
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
def policy_sweep(
    matrix: Floats, r: Floats, pairs: Ints, v: Floats, first: Unsigned, last: Unsigned, gaps: Floats
) -> tuple[float, float]:
    """Gaps = r_π + P_π v - v where row pairs[s] of the matrix is p(·|s,π(s)) and r[s] its reward."""
    low, high = np.inf, -np.inf
    for s in range(np.int64(first), np.int64(last)):
        gap = r[s] + np.dot(matrix[pairs[s]], v) - v[s]
        gaps[s] = gap
        low, high = min(low, gap), max(high, gap)
    return low, high
