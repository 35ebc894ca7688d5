"""The confidence sets of UCRL2, UCRL2B, SCAL, TUCRL and KL-UCRL, for arrays of visits: one function per equation.

N⁺ = max{1, N} all through. A pair never visited has no equation: its set is everything, whatever these give.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def ucrl2_reward_width(
    visits: ArrayLike, t: float, n_states: int, n_actions: int, delta: float, reward_max: float = 1.0
) -> Floats:
    """|r̃ - r̄| ≤ r_max·sqrt(7·ln(2·S·A·t_k/δ) / (2·N⁺)) (Jaksch, Ortner & Auer 2010, eq. 3).

    >>> float(ucrl2_reward_width(14, 1, 1, 1, 2 / np.e**4))
    1.0
    """
    N = np.maximum(1, np.asarray(visits))
    return np.asarray(reward_max * np.sqrt(7.0 * math.log(2.0 * n_states * n_actions * t / delta) / (2.0 * N)))


def ucrl2_radius(visits: ArrayLike, t: float, n_states: int, n_actions: int, delta: float) -> Floats:
    """‖p̃ - p̄‖₁ ≤ sqrt(14·S·ln(2·A·t_k/δ) / N⁺) (Jaksch, Ortner & Auer 2010, eq. 4); 2 and more is everything.

    >>> float(ucrl2_radius(56, 1, 4, 1, 2 / np.e))
    1.0
    """
    N = np.maximum(1, np.asarray(visits))
    return np.asarray(np.sqrt(14.0 * n_states * math.log(2.0 * n_actions * t / delta) / N))


def ucrl2b_width(
    visits: ArrayLike, variance: ArrayLike, n_states: int, n_actions: int, delta: float, value_range: float = 1.0
) -> Floats:
    """2·sqrt(σ̂²·ℓ/N⁺) + 6·range·ℓ/N⁺, ℓ = ln(6·S·A·N⁺/δ), for a reward or one p(s') (σ̂² = p̄(1 - p̄), range 1).

    Fruit, Pirotta & Lazaric 2020, Improved analysis of UCRL2 with empirical Bernstein inequality. TUCRL has the same.

    >>> float(ucrl2b_width(1, 1.0, 1, 1, 6 / np.e))
    8.0
    """
    N = np.maximum(1, np.asarray(visits))
    log = np.log(6.0 * n_states * n_actions * N / delta)
    return np.asarray(2.0 * np.sqrt(np.asarray(variance) * log / N) + 6.0 * value_range * log / N)


def scal_width(
    visits: ArrayLike,
    variance: ArrayLike,
    t: float,
    n_states: int,
    n_actions: int,
    delta: float,
    value_range: float = 1.0,
) -> Floats:
    """sqrt(14·σ̂²·b/N⁺) + (49/3)·range·b/max{1, N-1}, b = ln(2·S·A·t_k/δ), for a reward or one p(s').

    Fruit, Pirotta, Lazaric & Ortner 2018, Efficient bias-span-constrained exploration-exploitation in RL.

    >>> round(float(scal_width(50, 0.0, 1, 1, 1, 2 / np.e)), 12) == round(1 / 3, 12)
    True
    """
    N = np.asarray(visits)
    b = math.log(2.0 * n_states * n_actions * t / delta)
    root = np.sqrt(14.0 * np.asarray(variance) * b / np.maximum(1, N))
    return np.asarray(root + 49.0 / 3.0 * value_range * b / np.maximum(1, N - 1))


def scal_floor(t: float, span: float, reward_max: float = 1.0) -> float:
    """η_k = r_max/(c·t_k), at most 1: what every row of SCAL keeps on s̄. It costs at most c·η_k ≤ r_max/t_k of gain.

    >>> scal_floor(100, 2.0)
    0.005
    """
    return min(1.0, reward_max / (span * t))


def tucrl_truncated(visits: ArrayLike, t: float, n_states: int, n_actions: int) -> NDArray[np.bool_]:
    """max{1, N-1} > sqrt(t_k/(S·A)): such a pair may not move to a state never visited.

    Fruit, Pirotta & Lazaric 2018, Near optimal exploration-exploitation in non-communicating MDPs.

    >>> tucrl_truncated([3, 4], 8, 2, 1).tolist()
    [False, True]
    """
    return np.asarray(np.maximum(1, np.asarray(visits) - 1) > math.sqrt(t / (n_states * n_actions)))


def kl_ucrl_radius(visits: ArrayLike, horizon: float, n_states: int, n_actions: int, delta: float) -> Floats:
    """KL(p̄, p̃) ≤ C_p/N⁺, C_p = S·(B + ln(B + 1/ln T)·(1 + 1/(B + 1/ln T))), B = ln(2e·S²·A·ln T/δ).

    Filippi, Cappé & Garivier 2010, Optimism in reinforcement learning and Kullback-Leibler divergence.
    """
    log_T = math.log(horizon)
    B = math.log(2.0 * math.e * n_states**2 * n_actions * log_T / delta)
    x = B + 1.0 / log_T
    return np.asarray(n_states * (B + math.log(x) * (1.0 + 1.0 / x)) / np.maximum(1, np.asarray(visits)))


def kl_ucrl_reward_width(
    visits: ArrayLike, horizon: float, n_states: int, n_actions: int, delta: float, reward_max: float = 1.0
) -> Floats:
    """|r̃ - r̄| ≤ r_max·C_r/√N⁺, C_r = sqrt(ln(4·S·A·ln T/δ)/1.99) (Filippi, Cappé & Garivier 2010)."""
    C = math.sqrt(math.log(4.0 * n_states * n_actions * math.log(horizon) / delta) / 1.99)
    return np.asarray(reward_max * C / np.sqrt(np.maximum(1, np.asarray(visits))))
