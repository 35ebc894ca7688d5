"""UCRL2's confidence radii (Jaksch, Ortner & Auer 2010, Near-optimal regret bounds for RL, JMLR 11, eqs. 3 and 4)."""

from __future__ import annotations

import math

from gainful._compiled import inlined

UCRL2_REWARD_CONSTANT = 7.0 / 2.0
UCRL2_TRANSITION_CONSTANT = 14.0


@inlined
def reward_log(n_states: int, n_actions: int, t: int, delta: float) -> float:
    """ln(2·S·A·t_k/δ)."""
    return math.log(2.0 * n_states * n_actions * t / delta)


@inlined
def transition_log(n_actions: int, t: int, delta: float) -> float:
    """ln(2·A·t_k/δ)."""
    return math.log(2.0 * n_actions * t / delta)


@inlined
def reward_width(log_term: float, visits: int, reward_max: float, scale: float) -> float:
    """|r̃ - r̄| ≤ scale·r_max·sqrt(7·ln(2SAt_k/δ) / (2·max{1,N})); scale 1 is the theorem's."""
    return scale * reward_max * math.sqrt(UCRL2_REWARD_CONSTANT * log_term / max(1, visits))


@inlined
def transition_radius(n_states: int, log_term: float, visits: int, scale: float) -> float:
    """‖p̃ - p̄‖₁ ≤ scale·sqrt(14·S·ln(2At_k/δ) / max{1,N}); scale 1 is the theorem's."""
    return scale * math.sqrt(UCRL2_TRANSITION_CONSTANT * n_states * log_term / max(1, visits))
