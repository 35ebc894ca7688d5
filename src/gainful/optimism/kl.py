"""KL-UCRL's constants (Filippi, Cappé & Garivier 2010, Optimism in RL and Kullback-Leibler divergence)."""

from __future__ import annotations

import math

from gainful._compiled import inlined

REWARD_DIVISOR = 1.99


@inlined
def transition_constant(n_states: int, n_actions: int, horizon: float, delta: float) -> float:
    """C_p = S·(B + ln(B + 1/ln T)·(1 + 1/(B + 1/ln T))), B = ln(2e·S²·A·ln T/δ)."""
    log_horizon = math.log(horizon)
    B = math.log(2.0 * math.e * n_states * n_states * n_actions * log_horizon / delta)
    shifted = B + 1.0 / log_horizon
    return n_states * (B + math.log(shifted) * (1.0 + 1.0 / shifted))


@inlined
def reward_constant(n_states: int, n_actions: int, horizon: float, delta: float) -> float:
    """C_r = sqrt(ln(4·S·A·ln T/δ) / 1.99)."""
    return math.sqrt(math.log(4.0 * n_states * n_actions * math.log(horizon) / delta) / REWARD_DIVISOR)


@inlined
def transition_radius(constant: float, visits: int, scale: float) -> float:
    """KL(p̄, p̃) ≤ scale·C_p/max{1,N}; scale 1 is the theorem's."""
    return scale * constant / max(1, visits)


@inlined
def reward_width(constant: float, visits: int, reward_max: float, scale: float) -> float:
    """|r̃ - r̄| ≤ scale·r_max·C_r/sqrt(max{1,N}); scale 1 is the theorem's."""
    return scale * reward_max * constant / math.sqrt(max(1, visits))
