"""The count-based bonus of deep reinforcement learning, β/√N̂, and rewards with it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def count_bonus(beta: float, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """b(s,a) = β/sqrt(max{1, N̂(s,a)}).

    >>> count_bonus(2.0, np.array([0.0, 0.5, 4.0])).tolist()
    [2.0, 2.0, 1.0]
    """
    return np.asarray(beta / np.sqrt(np.maximum(1.0, counts)))


class CountBonusRewards(NamedTuple):
    """r̂ = r̄ + β/√N̂ at step t, r̄ = 0 if N = 0, as a planner asks for them."""

    visits: NDArray[np.int64]
    reward_sum: NDArray[np.float64]
    bonus: NDArray[np.float64]
    allowed: NDArray[np.bool_]
    """(S*A,) the pairs there are."""
    t: int

    def write(self, pairs: NDArray[np.int64], out: NDArray[np.float64]) -> None:
        """Set out[k] to r̂ for every k of `pairs`; -inf if the state does not have the action."""
        r = self.reward_sum / np.maximum(1, self.visits) + self.bonus
        out[pairs] = np.where(self.allowed, r, -np.inf)[pairs]

    def growth(self, since: NDArray[np.int64]) -> NDArray[np.float64]:  # noqa: ARG002
        """Zeros: no logarithm of t enters, so that the bonus of a pair that is not visited stays as it is."""
        return np.zeros(self.t.bit_length() + 1)
