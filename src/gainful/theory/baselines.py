"""The equations of MBIE-EB, UCBVI-CH, optimistic Q-learning and Opt-PSRL, for arrays of visits.

Throughout, N⁺ = max{1, N}, and r_max is the range of the rewards.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def mbie_eb_bonus(
    visits: ArrayLike,
    n_states: int,
    n_actions: int,
    *,
    discount: float,
    m: float,
    delta: float,
    reward_max: float = 1.0,
) -> Floats:
    """The bonus of MBIE-EB: β/√N⁺ with β = r_max/(1-γ)·sqrt(ln(2·S·A·m/δ)/2).

    Strehl & Littman 2008, section 5 (JCSS 74).

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    n_states, n_actions : int
        S and A.
    discount : float
        γ.
    m : float
        The visits of a pair that are counted.
    delta : float
        The probability with which optimism may fail.
    reward_max : float
        r_max, the range of the rewards.

    Returns
    -------
    ndarray
        The bonus of each pair.

    Examples
    --------
    >>> float(mbie_eb_bonus(4, 1, 1, discount=0.5, m=1, delta=2 / np.e**2))
    1.0
    """
    beta = reward_max / (1.0 - discount) * math.sqrt(math.log(2.0 * n_states * n_actions * m / delta) / 2.0)
    return np.asarray(beta / np.sqrt(np.maximum(1, np.asarray(visits))))


def ucbvi_bonus(
    visits: ArrayLike,
    n_states: int,
    n_actions: int,
    *,
    episode_length: int,
    horizon: float,
    delta: float,
    reward_max: float = 1.0,
) -> Floats:
    """The bonus of UCBVI-CH: 7·H·r_max·ln(5·S·A·T/δ)/√N⁺.

    Azar, Osband & Munos 2017, algorithm 3.

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    n_states, n_actions : int
        S and A.
    episode_length : int
        H, the steps of a block.
    horizon : float
        T, the steps that the constants are made for.
    delta : float
        The probability with which optimism may fail.
    reward_max : float
        r_max, the range of the rewards.

    Returns
    -------
    ndarray
        The bonus of each pair.

    Examples
    --------
    >>> float(ucbvi_bonus(4, 1, 1, episode_length=2, horizon=1, delta=5 / np.e))
    7.0
    """
    log = math.log(5.0 * n_states * n_actions * horizon / delta)
    return np.asarray(7.0 * episode_length * reward_max * log / np.sqrt(np.maximum(1, np.asarray(visits))))


def optimistic_q_horizon(n_states: int, n_actions: int, *, span: float, horizon: float, delta: float) -> float:
    """The effective horizon H of optimistic Q-learning: min{ sqrt(sp·T/(SA)), (T/(SA·ln(4T/δ)))^⅓ }.

    Wei, Jafarnia-Jahromi, Luo, Sharma & Jain 2020, theorem 1. The discount is γ = 1 - 1/H.

    Parameters
    ----------
    n_states, n_actions : int
        S and A.
    span : float
        sp, the bound on the span of the optimal bias, for rewards in [0, 1].
    horizon : float
        T, the number of steps.
    delta : float
        The probability with which the bound may fail.

    Returns
    -------
    float
        H.

    Examples
    --------
    >>> round(optimistic_q_horizon(6, 2, span=6.3, horizon=1e6, delta=0.05), 2)
    16.61
    """
    pairs = n_states * n_actions
    first = math.sqrt(span * horizon / pairs)
    return min(first, math.pow(horizon / (pairs * math.log(4.0 * horizon / delta)), 1.0 / 3.0))


def optimistic_q_bonus(
    visits: ArrayLike, effective_horizon: float, *, span: float, horizon: float, delta: float
) -> Floats:
    """The bonus of optimistic Q-learning at visit τ: 4·sp·sqrt(H/τ·ln(2T/δ)).

    Wei et al. 2020, algorithm 1.

    Parameters
    ----------
    visits : array_like
        τ, the number of the visit, from 1.
    effective_horizon : float
        H.
    span : float
        sp, the bound on the span of the optimal bias, for rewards in [0, 1].
    horizon : float
        T, the number of steps.
    delta : float
        The probability with which the bound may fail.

    Returns
    -------
    ndarray
        The bonus of each visit.

    Examples
    --------
    >>> float(optimistic_q_bonus(4, 4.0, span=1.0, horizon=1, delta=2 / np.e))
    4.0
    """
    tau = np.asarray(visits, dtype=np.float64)
    return np.asarray(4.0 * span * np.sqrt(effective_horizon / tau * math.log(2.0 * horizon / delta)))


def opt_psrl_samples(n_states: int, n_actions: int, delta: float) -> int:
    """The rows that Opt-PSRL draws for every pair: ψ = ⌈S·ln(SA/δ)⌉.

    Agrawal & Jia 2017, section 3.

    Parameters
    ----------
    n_states, n_actions : int
        S and A.
    delta : float
        δ.

    Returns
    -------
    int
        ψ.

    Examples
    --------
    >>> opt_psrl_samples(6, 2, 0.05)
    33
    """
    return max(1, math.ceil(n_states * math.log(n_states * n_actions / delta)))


def opt_psrl_threshold(n_states: int, n_actions: int, *, horizon: float, delta: float) -> float:
    """The visits from which Opt-PSRL samples the posterior: η = sqrt(TS/A) + 12ωS² with ω = ln(T/δ).

    Agrawal & Jia 2017, section 3; the second term could not be verified (see `gainful.OptPSRL`).

    Parameters
    ----------
    n_states, n_actions : int
        S and A.
    horizon : float
        T, the number of steps.
    delta : float
        δ.

    Returns
    -------
    float
        η.

    Examples
    --------
    >>> round(opt_psrl_threshold(2, 2, horizon=1000, delta=0.05), 1)
    507.0
    """
    omega = math.log(horizon / delta)
    return math.sqrt(horizon * n_states / n_actions) + 12.0 * omega * n_states**2


def opt_psrl_lower(p: ArrayLike, visits: ArrayLike, n_states: int) -> Floats:
    """The lower bounds of Opt-PSRL's simple samples: p⁻ = p̄ - min{ sqrt(3p̄·ln(4S)/N⁺) + 3·ln(4S)/N⁺, p̄ }.

    Agrawal & Jia 2017, section 3.

    Parameters
    ----------
    p : array_like
        p̄, the empirical probabilities.
    visits : array_like
        N, the visits of the pair that each belongs to.
    n_states : int
        S.

    Returns
    -------
    ndarray
        p⁻.

    Examples
    --------
    >>> opt_psrl_lower([0.5, 0.01], 1000, 6).round(4)
    array([0.4214, 0.    ])
    """
    q, n, log = np.asarray(p, dtype=np.float64), np.maximum(1, np.asarray(visits)), math.log(4.0 * n_states)
    return np.asarray(q - np.minimum(np.sqrt(3.0 * q * log / n) + 3.0 * log / n, q))


def opt_psrl_reward(
    mean: ArrayLike,
    visits: ArrayLike,
    n_states: int,
    n_actions: int,
    *,
    horizon: float,
    delta: float,
    reward_max: float,
) -> Floats:
    """The optimistic mean rewards of Opt-PSRL here: min{ r̄ + r_max·sqrt(ln(SAT/δ)/(2N⁺)), r_max }, r_max if N = 0.

    Hoeffding's inequality for all pairs and all visits up to T; the paper takes mean rewards as known.

    Parameters
    ----------
    mean : array_like
        r̄, from 0.
    visits : array_like
        N.
    n_states, n_actions : int
        S and A.
    horizon : float
        T, the number of steps.
    delta : float
        The probability with which some mean may exceed its bound.
    reward_max : float
        r_max.

    Returns
    -------
    ndarray
        The optimistic mean of each pair.

    Examples
    --------
    >>> opt_psrl_reward([0.0, 0.2], [0, 200], 2, 2, horizon=1000, delta=0.05, reward_max=1.0).round(3)
    array([1.   , 0.368])
    """
    N = np.asarray(visits)
    log = math.log(n_states * n_actions * horizon / delta)
    width = reward_max * np.sqrt(log / (2.0 * np.maximum(1, N)))
    return np.asarray(np.where(N > 0, np.minimum(np.asarray(mean) + width, reward_max), reward_max))
