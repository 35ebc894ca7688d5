"""Empirical-Bernstein widths of UCRL2B, and TUCRL's truncation.

Fruit, Pirotta & Lazaric 2020, Improved analysis of UCRL2 with empirical Bernstein inequality; Fruit,
Pirotta & Lazaric 2018, Near optimal exploration-exploitation in non-communicating MDPs.
"""

from __future__ import annotations

import math

from gainful._compiled import inlined

BERNSTEIN_VARIANCE_CONSTANT = 2.0
BERNSTEIN_RANGE_CONSTANT = 6.0
BERNSTEIN_LOG_CONSTANT = 6.0


@inlined
def entry_variance(p: float) -> float:
    """σ̂² = p̄(1 - p̄) of the indicator of one next state."""
    return p * (1.0 - p)


@inlined
def reward_variance(reward_sum: float, reward_squares: float, visits: int) -> float:
    """σ̂² = Σr²/N - r̄², the population variance; 0 if N = 0."""
    n = max(1, visits)
    mean = reward_sum / n
    return max(0.0, reward_squares / n - mean * mean)


@inlined
def log_term(n_states: int, n_actions: int, visits: int, delta: float) -> float:
    """ℓ = ln(6·S·A·max{1,N}/δ)."""
    return math.log(BERNSTEIN_LOG_CONSTANT * n_states * n_actions * max(1, visits) / delta)


@inlined
def width(variance: float, log: float, visits: int, value_range: float, scale: float) -> float:
    """scale·(2·sqrt(σ̂²·ℓ/max{1,N}) + 6·range·ℓ/max{1,N}), for a reward or one p(s'); scale 1 is the theorem's."""
    n = max(1, visits)
    root = BERNSTEIN_VARIANCE_CONSTANT * math.sqrt(variance * log / n)
    return scale * (root + BERNSTEIN_RANGE_CONSTANT * value_range * log / n)


@inlined
def well_visited(visits: int, n_states: int, n_actions: int, t: int) -> bool:
    """TUCRL: max{1, N-1} > sqrt(t_k/(SA)); such a pair may not move to a state never visited."""
    return max(1, visits - 1) > math.sqrt(t / (n_states * n_actions))
