r"""A sharper certificate from differences of values.

r + p·v - v(s) = r + Σ p(s'|s,a)·(v(s') - v(s)), because rows sum to 1. Its rounding errors are relative to
|r| + Σ p·|v(s') - v(s)|, not to max|v|: where large values stand far apart, but only rare moves lead from one to the
other, the bracket is narrower by orders of magnitude.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.mdp.model import MDP
from gainful.planning.bellman import Floats, SparseModel, sparse_model
from gainful.planning.rounding import UNDERFLOW, reward_scale, roundoff


class PairGains(NamedTuple):
    """r + p·v - v(s) of every pair, with what rounding may add or take; -inf and 0 for pairs that are not allowed."""

    gains: NDArray[np.float64]
    """(S,A)."""
    slack: NDArray[np.float64]
    """(S,A)."""

    def bracket(self) -> tuple[float, float]:
        """[min, max] over states of the largest pair gain, rounding included: it contains the optimal gain."""
        low = float((self.gains - self.slack).max(axis=1).min())
        high = float((self.gains + self.slack).max(axis=1).max())
        return (low, high) if np.isfinite(low) and np.isfinite(high) else (-np.inf, np.inf)


@kernel
def _from_differences(model: SparseModel, v: Floats, gains: Floats, sizes: Floats) -> None:
    """Write r + Σ p·(v(s') - v(s)) of every pair, and |r| + Σ p·|v(s') - v(s)|."""
    n_actions = np.int64(model.n_actions)
    for k in range(gains.size):
        s = k // n_actions
        total, size = 0.0, 0.0
        for j in range(model.indptr[k], model.indptr[k + 1]):
            move = model.probabilities[j] * (v[model.indices[j]] - v[s])
            total += move
            size += abs(move)
        gains[k], sizes[k] = model.rewards[k] + total, abs(model.rewards[k]) + size


def pair_gains(mdp: MDP, v: NDArray[np.float64]) -> PairGains:
    """The gains of all pairs at v, from differences.

    Each difference, product and sum is rounded once, and stored rows are Γ+2 roundings away from summing to 1:
    2(Γ+4)·2⁻⁵³·(|r| + Σ p·|v(s') - v(s)|) covers all of it.
    """
    n_pairs = mdp.n_states * mdp.n_actions
    gains, sizes = np.empty(n_pairs), np.empty(n_pairs)
    _from_differences(sparse_model(mdp), v, gains, sizes)
    if mdp.entry_rewards is not None:  # the mean of a pair is rounded relative to the rewards of its transitions
        sizes += reward_scale(mdp)
    allowed = mdp.allowed.reshape(-1)
    slack = roundoff(int(np.diff(mdp.indptr).max())) * (sizes + UNDERFLOW)
    shape = (mdp.n_states, mdp.n_actions)
    return PairGains(np.where(allowed, gains, -np.inf).reshape(shape), np.where(allowed, slack, 0.0).reshape(shape))
