"""UCRL3's time-uniform bounds on rewards and on every transition probability.

Bourel, Maillard & Talebi 2020, Tightening exploration in upper confidence reinforcement learning, section 3. The
inequalities bound a true q by what was counted, q being on both sides; the bounds here are their solutions.
"""

from __future__ import annotations

import math

from gainful._compiled import inlined, kernel

PEELING = 1.12
"""η: the ratio of the ends of the intervals of n into which the peeling argument divides."""
SOLVING_STEPS = 100
"""Steps of regula falsi after which a bound is taken from outside as it is; about eight are needed."""
NARROW = 2.0**-52
"""The width at which a root counts as found."""
TWO_SIDED, LOWER_TAIL, AS_PRINTED = 0, 1, 2
"""What is in place of the variance: g(q); q(1-q) for q < ½ and g(q) above; g(q) for q < ½ and q(1-q) above."""


@inlined
def peeling_term(visits: int, level: float) -> float:
    """ℓ_n/n with ℓ_n = η·ln(ln(ηn)·ln(η²n)/(ln²(η)·δ')), n ≥ 1 and δ' = `level`."""
    log_eta, log_n = math.log(PEELING), math.log(visits)
    pieces = (log_n + log_eta) * (log_n + 2.0 * log_eta) / (log_eta * log_eta)
    return PEELING * math.log(pieces / level) / visits


@inlined
def laplace_term(visits: int, level: float) -> float:
    """β_n = sqrt(2·(1 + 1/n)·ln(sqrt(n+1)/δ')/n), n ≥ 1 and δ' = `level`."""
    return math.sqrt(2.0 * (1.0 + 1.0 / visits) * (0.5 * math.log(visits + 1.0) - math.log(level)) / visits)


@inlined
def reward_width(variance: float, peeling: float, laplace: float, scale: float) -> float:
    """scale·min{β_n/2, sqrt(2σ̂²ℓ_n/n) + 7ℓ_n/(3n)} for rewards in [0, 1]."""
    return scale * min(0.5 * laplace, math.sqrt(2.0 * variance * peeling) + 7.0 * peeling / 3.0)


@inlined
def two_sided_proxy(q: float) -> float:
    """g(q) = (½ - q)/ln(1/q - 1): a Bernoulli variable of mean q is sub-Gaussian with this in place of its variance."""
    if q <= 0.0 or q >= 1.0:
        return 0.0
    if q == 0.5:
        return 0.25
    return (0.5 - q) / math.log1p((1.0 - 2.0 * q) / q)


@inlined
def bernstein_upper(p: float, peeling: float, scale: float) -> float:
    """The largest q in [0, 1] with q - p ≤ scale·(sqrt(2q(1-q)·x) + x/3), x = ℓ_n/n."""
    x, b = scale * scale * peeling, p + scale * peeling / 3.0
    if b >= 1.0:
        return 1.0
    return min(1.0, (b + x + math.sqrt(x * (x + 2.0 * b * (1.0 - b)))) / (1.0 + 2.0 * x))


@inlined
def variance_upper(p: float, width: float) -> float:
    """The largest q in [0, 1] with q - p ≤ width·sqrt(q(1-q))."""
    square = width * width
    return min(1.0, (p + 0.5 * square + width * math.sqrt(p * (1.0 - p) + 0.25 * square)) / (1.0 + square))


@inlined
def two_sided_upper(p: float, width: float, inside: float, outside: float) -> float:
    """The largest q with q - p ≤ width·sqrt(g(q)), known to lie between `inside` and `outside`, or `outside`.

    q - p - width·sqrt(g(q)) is convex in q, and so has one root above p. Regula falsi encloses it, an end that stays
    twice losing half of its weight (Illinois); the end above is returned.
    """
    below = inside - p - width * math.sqrt(two_sided_proxy(inside))
    above = outside - p - width * math.sqrt(two_sided_proxy(outside))
    last = 0
    for _ in range(SOLVING_STEPS):
        if above <= 0.0 or outside - inside <= NARROW:
            break
        q = outside - (outside - inside) * (above / (above - below))
        q = min(max(q, inside + 0.25 * NARROW), outside - 0.25 * NARROW)
        found = q - p - width * math.sqrt(two_sided_proxy(q))
        if found >= 0.0:
            outside, above = q, found
            below = 0.5 * below if last == 1 else below
            last = 1
        else:
            inside, below = q, found
            above = 0.5 * above if last == -1 else above
            last = -1
    return outside


@kernel
def upper_probability(p: float, peeling: float, laplace: float, scale: float, proxy: int) -> float:
    """The largest q with q - p ≤ scale·(sqrt(2q(1-q)ℓ_n/n) + ℓ_n/(3n)) and q - p ≤ scale·β_n·sqrt(proxy(q))."""
    outside, width = bernstein_upper(p, peeling, scale), scale * laplace
    by_variance = variance_upper(p, width)
    if (proxy == LOWER_TAIL and by_variance <= 0.5) or (proxy == AS_PRINTED and by_variance >= 0.5):
        return min(outside, by_variance)
    if by_variance >= outside:  # g(q) is at least the variance
        return outside
    return two_sided_upper(p, width, by_variance, outside)


@inlined
def lower_probability(p: float, peeling: float, laplace: float, scale: float) -> float:
    """The smallest q with p - q ≤ scale·(sqrt(2q(1-q)ℓ_n/n) + ℓ_n/(3n)) and p - q ≤ scale·β_n·sqrt(g(q)).

    Both are the same if p and q are replaced by 1 - p and 1 - q.
    """
    found: float = 1.0 - upper_probability(1.0 - p, peeling, laplace, scale, TWO_SIDED)
    return found
