"""KL-SCAL+'s deviation level and optimistic rewards (docs/kl_scal_plus.md)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined, kernel
from gainful.planning.kl_dual import KLPairs
from gainful.planning.rounding import UNIT_ROUNDOFF

KL_NEWTON_STEPS = 50
LAST_STEP = 1e-5
"""A Newton step of this part of y - x is the last: what is left of the error is about its square."""
SMALLEST_MEAN = 1e-300
"""Means below this are raised to it: the bound is increasing in the mean."""


class KLSums(NamedTuple):
    """What the sets depend on; all (S*A,)."""

    visits: Any
    reward_sum: Any
    allowed: Any
    planned: Any
    """The visits that the present sets were made from; -1 if there are none."""


class KLConstants(NamedTuple):
    """What else they depend on."""

    log_union: Any
    """The logarithm of (the number of statements)/δ: ln(S(S+1)/δ) on states, ln(2KA/δ) on cells."""
    reward_range: Any
    scale: Any
    """1 is the theorem's."""


@inlined
def deviation_level(log_union: float, visits: int) -> float:
    """ι_n = ln(1/δ') + ½ ln n + ln 2, for n ≥ 1 and 1/δ' = exp(`log_union`)."""
    return log_union + 0.5 * math.log(visits) + math.log(2.0)


def cell_error(span: float, reward_max: float, lipschitz: float, holder: float, width: float) -> float:
    """Bound how much r + p·h* differs within a cell: b = (r_max + c/2)·L·w^α, c ≥ sp(h*).

    >>> cell_error(2.0, 1.0, 0.5, 1.0, 0.25)
    0.25
    """
    return (reward_max + 0.5 * span) * lipschitz * math.pow(width, holder)


@kernel
def kl_upper(mean: float, radius: float) -> float:
    """klup: the largest y in [0, 1] with kl(mean, y) ≤ radius, from above, kl the binary relative entropy.

    kl is convex in y, so Newton steps from the right stay on the right. The first is from the least of three bounds on
    y, with x = mean: x + sqrt(ρ/2) (Pinsker); x + u + sqrt(u² + 2ρx(1-x)), u = ρ(1-x), because the variance between x
    and y is at most y(1-x); and 1 - (1-x)·exp(-(ρ - x ln x)/(1-x)), because x·ln(x/y) ≥ x·ln x.
    """
    if mean >= 1.0 or not radius < np.inf:
        return 1.0
    x = max(mean, SMALLEST_MEAN)
    u = radius * (1.0 - x)
    by_variance = u + math.sqrt(u * u + 2.0 * radius * x * (1.0 - x))
    y = x + min(by_variance, math.sqrt(0.5 * radius)) * (1.0 + 8.0 * UNIT_ROUNDOFF)
    y = min(y, x - (1.0 - x) * math.expm1(-(radius - x * math.log(x)) / (1.0 - x)))
    for _ in range(KL_NEWTON_STEPS):
        if not x < y < 1.0:
            break
        kl = -x * math.log1p((y - x) / x) - (1.0 - x) * math.log1p((x - y) / (1.0 - x))
        step = (kl - radius) * y * (1.0 - y) / (y - x)
        y -= max(step, 0.0)
        if step <= LAST_STEP * (y - x):
            break
    return min(1.0, y + 16.0 * UNIT_ROUNDOFF * y)


@kernel
def kl_scal_plus_sets(sums: KLSums, constants: KLConstants, pairs: KLPairs) -> None:
    """Renew the reward and the radius of the pairs visited since the last plan; rewards in units of r_max.

    Their keys prove nothing any more, and their x moves like 1/sqrt(ρ), as it does for small ρ.
    """
    sums, c, pairs = KLSums(*sums), KLConstants(*constants), KLPairs(*pairs)
    for k in range(sums.visits.size):
        n = sums.visits[k]
        if n == sums.planned[k]:
            continue
        sums.planned[k] = n
        pairs.key[k] = np.inf
        if n == 0 or not sums.allowed[k]:
            continue  # a new planner's: reward 1 or -inf, radius inf
        before = pairs.radius[k]
        pairs.radius[k] = c.scale * deviation_level(c.log_union, n) / n
        if before < np.inf:
            pairs.x[k] *= math.sqrt(before / pairs.radius[k])
        mean = sums.reward_sum[k] / (n * c.reward_range)
        pairs.rewards[k] = kl_upper(min(max(mean, 0.0), 1.0), pairs.radius[k])
