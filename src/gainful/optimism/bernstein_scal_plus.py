"""The Bernstein bonus of SCAL+: its deviation levels and rewards (docs/kl_scal_plus.md, section 6)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.optimism.kl_scal_plus import deviation_level, kl_upper


class BernsteinConstants(NamedTuple):
    """Everything but what was seen on which the levels and the rewards depend."""

    n_states: int
    delta: float
    scale: float
    """Multiplies ι_n and the level of the rewards; 1 is the proof's."""
    reward_max: float


@inlined
def bernstein_level(n_states: int, delta: float, visits: int, scale: float) -> float:
    """scale·ι_n/(n-1), ι_n = ln(4·S·n(n+1)/δ); inf for n < 2.

    The inequality of Maurer & Pontil (2009, theorem 4) for every n ≥ 2 in the S pairs (s, π*(s)).
    """
    if visits < 2:
        return np.inf
    n = float(visits)
    return scale * math.log(4.0 * n_states * n * (n + 1.0) / delta) / (n - 1.0)


@inlined
def bernstein_reward(c: BernsteinConstants, n: int, reward_sum: float) -> float:
    """r̃ of one pair that was visited n times."""
    if n == 0:
        return c.reward_max
    radius = c.scale * deviation_level(math.log(2.0 * c.n_states / c.delta), n) / n
    mean = reward_sum / (n * c.reward_max)
    upper: float = kl_upper(min(max(mean, 0.0), 1.0), radius)
    return c.reward_max * upper


@kernel
def bernstein_rewards(
    visits: NDArray[Any],
    reward_sum: NDArray[Any],
    allowed: NDArray[Any],
    constants: BernsteinConstants,
    rewards: NDArray[Any],
    levels: NDArray[Any],
) -> None:
    """r̃ = r_max·klup(r̄/r_max, (ln(2S/δ) + ½ ln n + ln 2)/n) and ι_n/(n-1) of every pair.

    r̃ is r_max for a pair never visited, -inf for an action that is not allowed.
    """
    c = BernsteinConstants(*constants)
    for k in range(visits.size):
        n = visits[k]
        levels[k] = bernstein_level(c.n_states, c.delta, n, c.scale)
        rewards[k] = bernstein_reward(c, n, reward_sum[k]) if allowed[k] else -np.inf


class BernsteinRewards(NamedTuple):
    """r̃ and the levels of the bonus, as the planner asks for them."""

    visits: NDArray[np.int64]
    reward_sum: NDArray[np.float64]
    allowed: NDArray[np.bool_]
    """(S*A,) the pairs there are."""
    t: int
    constants: BernsteinConstants

    def write_all(self, rewards: NDArray[np.float64], levels: NDArray[np.float64]) -> None:
        """Set r̃, -inf where the state does not have the action, and ι_n/(n-1) of all pairs."""
        bernstein_rewards(self.visits, self.reward_sum, self.allowed, tuple(self.constants), rewards, levels)
