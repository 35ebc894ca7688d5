"""SCAL's empirical-Bernstein widths and its perturbation.

Fruit, Pirotta, Lazaric & Ortner 2018, Efficient bias-span-constrained exploration-exploitation in RL.
"""

from __future__ import annotations

import math

from gainful._compiled import inlined

SCAL_VARIANCE_CONSTANT = 14.0
SCAL_RANGE_CONSTANT = 49.0 / 3.0


@inlined
def log_term(n_states: int, n_actions: int, t: int, delta: float) -> float:
    """The b of the widths: ln(2·S·A·t_k/δ)."""
    return math.log(2.0 * n_states * n_actions * t / delta)


@inlined
def width(variance: float, log: float, visits: int, value_range: float, scale: float) -> float:
    """scale·(sqrt(14·σ̂²·b/max{1,N}) + (49/3)·range·b/max{1,N-1}), for a reward or one p(s'); 1 is the theorem's."""
    root = math.sqrt(SCAL_VARIANCE_CONSTANT * variance * log / max(1, visits))
    return scale * (root + SCAL_RANGE_CONSTANT * value_range * log / max(1, visits - 1))


@inlined
def perturbation(span: float, reward_max: float, t: int) -> float:
    """η_k = min{1, r_max/(c·t_k)}: the mass that every row keeps on s̄, so that 1 - η_k bounds the contraction."""
    return min(1.0, reward_max / (span * t))
