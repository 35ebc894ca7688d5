"""SCAL+'s exploration bonus and its biased estimate of transitions (Qian, Fruit, Pirotta & Lazaric, sec. 3)."""

from __future__ import annotations

import math

from gainful._compiled import inlined

MAIN_TEXT, APPENDIX = 0, 1


@inlined
def confidence_log(n_states: int, n_actions: int, t: int, delta: float) -> float:
    """ℓ = ln(2·S·A·t_k/δ)."""
    return math.log(2.0 * n_states * n_actions * t / delta)


@inlined
def deviation(log_term: float, visits: int, scale: float) -> float:
    """β = scale·sqrt(7·ln(2SAt_k/δ) / max{1,N}); scale 1 is the theorem's."""
    return scale * math.sqrt(7.0 * log_term / max(1, visits))


@inlined
def bonus(variant: int, beta: float, visits: int, span: float, reward_max: float) -> float:
    """b_k(s,a), with c = `span`.

    Main text: (c + r_max)·β + c/(N+1).
    Appendix (tighter, same proof): c·min{β + 1/(N+1), 2} + r_max·min{β, 1}.
    """
    if variant == MAIN_TEXT:
        return (span + reward_max) * beta + span / (visits + 1)
    return span * min(beta + 1.0 / (visits + 1), 2.0) + reward_max * min(beta, 1.0)
