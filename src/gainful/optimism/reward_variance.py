"""Optimistic mean rewards from the mean and the variance of the rewards seen (docs/kl_scal_plus.md, lemma 4a)."""

from __future__ import annotations

from typing import Any

from gainful._compiled import inlined, kernel
from gainful.optimism.kl_scal_plus import KLConstants, KLSums, kl_upper
from gainful.planning.kl_dual import KLPairs
from gainful.planning.rounding import UNIT_ROUNDOFF


@inlined
def seen_variance(reward_sum: float, reward_squares: float, visits: int, reward_range: float) -> float:
    """The variance of the rewards seen in units of r_max², from 0 to mean·(1-mean) whatever the rounding."""
    mean = reward_sum / (visits * reward_range)
    second = reward_squares / (visits * reward_range * reward_range)
    return max(0.0, min(second - mean * mean, mean * (1.0 - mean)))


@kernel
def kl_upper_by_variance(mean: float, variance: float, radius: float) -> float:
    """The largest mean that n numbers in [0, 1] with this mean and variance leave possible, from above.

    Of all laws on [0, 1] with mean x and variance V, the one on 1 and a = x - V/(1-x) is nearest to larger means. It
    has the mass w = V/(V + (1-x)²) at 1, so the bound is a + (1-a)·klup(w, ρ) = x + (1-a)·(klup(w, ρ) - w).
    """
    if mean >= 1.0:
        return 1.0
    room = 1.0 - mean
    height = room + variance / room  # 1 - a
    share = variance / (variance + room * room)
    upper: float = mean + height * (kl_upper(share, radius) - share)
    return min(1.0, upper + 16.0 * UNIT_ROUNDOFF)


@kernel
def rewards_by_variance(renewed: Any, sums: KLSums, squares: Any, constants: KLConstants, pairs: KLPairs) -> None:
    """The optimistic rewards of these pairs, whose radii are new, from the sums of rewards and of their squares."""
    sums, c, pairs = KLSums(*sums), KLConstants(*constants), KLPairs(*pairs)
    for k in renewed:
        n = sums.visits[k]
        if n == 0 or not sums.allowed[k]:
            continue  # as in `kl_scal_plus_sets`
        mean = min(max(sums.reward_sum[k] / (n * c.reward_range), 0.0), 1.0)
        variance = seen_variance(sums.reward_sum[k], squares[k], n, c.reward_range)
        pairs.rewards[k] = kl_upper_by_variance(mean, variance, pairs.radius[k])
