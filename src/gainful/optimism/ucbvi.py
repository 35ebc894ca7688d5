"""UCBVI-CH's exploration bonus (Azar, Osband & Munos, ICML 2017)."""

from __future__ import annotations

import math

from gainful._compiled import inlined


@inlined
def confidence_log(n_states: int, n_actions: int, horizon: int, delta: float) -> float:
    """ℓ = ln(5·S·A·T/δ)."""
    return math.log(5.0 * n_states * n_actions * horizon / delta)


@inlined
def bonus(log_term: float, episode_length: int, visits: int, reward_max: float, scale: float) -> float:
    """b(s,a) = scale·7·H·r_max·ln(5SAT/δ)/sqrt(max{1,N}); scale 1 is the theorem's."""
    return scale * 7.0 * episode_length * reward_max * log_term / math.sqrt(max(1, visits))
