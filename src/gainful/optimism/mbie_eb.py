"""MBIE-EB's exploration bonus (Strehl & Littman, JCSS 74, 2008)."""

from __future__ import annotations

import math

from gainful._compiled import inlined


@inlined
def confidence_log(n_states: int, n_actions: int, m: int, delta: float) -> float:
    """ℓ = ln(2·S·A·m/δ)."""
    return math.log(2.0 * n_states * n_actions * m / delta)


@inlined
def coefficient(log_term: float, discount: float, reward_max: float, scale: float) -> float:
    """β = scale·r_max/(1-γ)·sqrt(ln(2SAm/δ)/2); scale 1 is the theorem's."""
    return scale * reward_max / (1.0 - discount) * math.sqrt(log_term / 2.0)


@inlined
def bonus(beta: float, visits: int) -> float:
    """b(s,a) = β/sqrt(max{1,N})."""
    return beta / math.sqrt(max(1, visits))
