"""The confidence sets of UCRL2, UCRL2B, SCAL, TUCRL, KL-UCRL and UCCRL, for arrays of visits: a function each.

Throughout, N⁺ = max{1, N}. The equations do not apply to a pair never visited, whose set is everything.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def ucrl2_reward_width(
    visits: ArrayLike, t: float, n_states: int, n_actions: int, delta: float, reward_max: float = 1.0
) -> Floats:
    """The reward interval of UCRL2: |r̃ - r̄| ≤ r_max·sqrt(7·ln(2·S·A·t_k/δ) / (2·N⁺)).

    Jaksch, Ortner & Auer 2010, eq. 3.

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    t : float
        t_k, the first step of the episode, from 1.
    n_states, n_actions : int
        S and A.
    delta : float
        The probability with which the set may miss the true model.
    reward_max : float
        r_max, the range of the rewards.

    Returns
    -------
    ndarray
        The half width of each pair.

    Examples
    --------
    >>> float(ucrl2_reward_width(14, 1, 1, 1, 2 / np.e**4))
    1.0
    """
    N = np.maximum(1, np.asarray(visits))
    return np.asarray(reward_max * np.sqrt(7.0 * math.log(2.0 * n_states * n_actions * t / delta) / (2.0 * N)))


def ucrl2_radius(visits: ArrayLike, t: float, n_states: int, n_actions: int, delta: float) -> Floats:
    """The radius of UCRL2's ball of rows: ‖p̃ - p̄‖₁ ≤ sqrt(14·S·ln(2·A·t_k/δ) / N⁺).

    Jaksch, Ortner & Auer 2010, eq. 4. A radius of 2 or more admits every row.

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    t : float
        t_k, the first step of the episode, from 1.
    n_states, n_actions : int
        S and A.
    delta : float
        The probability with which the set may miss the true model.

    Returns
    -------
    ndarray
        The radius of each pair.

    Examples
    --------
    >>> float(ucrl2_radius(56, 1, 4, 1, 2 / np.e))
    1.0
    """
    N = np.maximum(1, np.asarray(visits))
    return np.asarray(np.sqrt(14.0 * n_states * math.log(2.0 * n_actions * t / delta) / N))


def ucrl2b_width(
    visits: ArrayLike, variance: ArrayLike, n_states: int, n_actions: int, delta: float, value_range: float = 1.0
) -> Floats:
    """The intervals of UCRL2B: 2·sqrt(σ̂²·ℓ/N⁺) + 6·range·ℓ/N⁺ with ℓ = ln(6·S·A·N⁺/δ).

    For a reward or for one p(s'). Fruit, Pirotta & Lazaric 2020, Improved analysis of UCRL2 with empirical Bernstein
    inequality.

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    variance : array_like
        σ̂² of the rewards, or p̄(1 - p̄) for one p(s').
    n_states, n_actions : int
        S and A.
    delta : float
        The probability with which the set may miss the true model.
    value_range : float
        The range of the rewards; 1 for one p(s').

    Returns
    -------
    ndarray
        The half width of each pair.

    Examples
    --------
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
    """The intervals of SCAL and TUCRL: sqrt(14·σ̂²·b/N⁺) + (49/3)·range·b/max{1, N-1} with b = ln(2·S·A·t_k/δ).

    For a reward or for one p(s'). Fruit, Pirotta, Lazaric & Ortner 2018, Efficient bias-span-constrained
    exploration-exploitation in RL; Fruit, Pirotta & Lazaric 2018, Near optimal exploration-exploitation in
    non-communicating MDPs.

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    variance : array_like
        σ̂² of the rewards, or p̄(1 - p̄) for one p(s').
    t : float
        t_k, the first step of the episode, from 1.
    n_states, n_actions : int
        S and A.
    delta : float
        The probability with which the set may miss the true model.
    value_range : float
        The range of the rewards; 1 for one p(s').

    Returns
    -------
    ndarray
        The half width of each pair.

    Examples
    --------
    >>> round(float(scal_width(50, 0.0, 1, 1, 1, 2 / np.e)), 12) == round(1 / 3, 12)
    True
    """
    N = np.asarray(visits)
    b = math.log(2.0 * n_states * n_actions * t / delta)
    root = np.sqrt(14.0 * np.asarray(variance) * b / np.maximum(1, N))
    return np.asarray(root + 49.0 / 3.0 * value_range * b / np.maximum(1, N - 1))


def scal_floor(t: float, span: float, reward_max: float = 1.0) -> float:
    """The probability that every row of SCAL keeps on s̄: η_k = r_max/(c·t_k), at most 1.

    It lowers the gain by at most c·η_k ≤ r_max/t_k.

    Parameters
    ----------
    t : float
        t_k, the first step of the episode, from 1.
    span : float
        c.
    reward_max : float
        r_max, the range of the rewards.

    Returns
    -------
    float
        η_k.

    Examples
    --------
    >>> scal_floor(100, 2.0)
    0.005
    """
    return min(1.0, reward_max / (span * t))


def tucrl_radius(entry_widths: ArrayLike, pairs: ArrayLike, unseen_widths: ArrayLike, n_states: int) -> Floats:
    """The radius of TUCRL's relaxed ball of rows: ‖p̃ - p̄‖₁ ≤ Σ_{s'} β(s,a,s'), the sum over all S next states.

    It takes the place of the intervals while there are states never visited. Fruit, Pirotta & Lazaric 2018, Near
    optimal exploration-exploitation in non-communicating MDPs.

    Parameters
    ----------
    entry_widths : array_like
        β of the next states that were seen, for all pairs.
    pairs : array_like of int
        The pair of each of them.
    unseen_widths : array_like
        β of a next state never seen from the pair, one for each pair.
    n_states : int
        S.

    Returns
    -------
    ndarray
        The radius of each pair.

    Examples
    --------
    >>> tucrl_radius([0.25, 0.25, 0.5], [0, 0, 1], [0.125, 0.25], 4)
    array([0.75, 1.25])
    """
    unseen, at = np.asarray(unseen_widths), np.asarray(pairs)
    listed = np.bincount(at, minlength=unseen.size)
    return np.asarray(np.bincount(at, weights=entry_widths, minlength=unseen.size) + (n_states - listed) * unseen)


def tucrl_truncated(visits: ArrayLike, t: float, n_states: int, n_actions: int) -> NDArray[np.bool_]:
    """The pairs that TUCRL truncates: those with max{1, N-1} > sqrt(t_k/(S·A)).

    Such a pair may not move to a state never visited. Fruit, Pirotta & Lazaric 2018, Near optimal
    exploration-exploitation in non-communicating MDPs.

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    t : float
        t_k, the first step of the episode, from 1.
    n_states, n_actions : int
        S and A.

    Returns
    -------
    ndarray of bool
        Whether each pair is truncated.

    Examples
    --------
    >>> tucrl_truncated([3, 4], 8, 2, 1).tolist()
    [False, True]
    """
    return np.asarray(np.maximum(1, np.asarray(visits) - 1) > math.sqrt(t / (n_states * n_actions)))


def kl_ucrl_radius(visits: ArrayLike, horizon: float, n_states: int, n_actions: int, delta: float) -> Floats:
    """The radius of KL-UCRL's set of rows: KL(p̄, p̃) ≤ C_p/N⁺.

    C_p = S·(B + ln(B + 1/ln T)·(1 + 1/(B + 1/ln T))) with B = ln(2e·S²·A·ln T/δ). Filippi, Cappé & Garivier 2010,
    Optimism in reinforcement learning and Kullback-Leibler divergence.

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    horizon : float
        T, the steps that the constants are made for.
    n_states, n_actions : int
        S and A.
    delta : float
        The probability with which the set may miss the true model.

    Returns
    -------
    ndarray
        The radius of each pair.

    Examples
    --------
    >>> kl_ucrl_radius([1, 100], 1e6, 6, 2, 0.05).round(2)
    array([85.55,  0.86])
    """
    log_T = math.log(horizon)
    B = math.log(2.0 * math.e * n_states**2 * n_actions * log_T / delta)
    x = B + 1.0 / log_T
    return np.asarray(n_states * (B + math.log(x) * (1.0 + 1.0 / x)) / np.maximum(1, np.asarray(visits)))


def kl_ucrl_reward_width(
    visits: ArrayLike, horizon: float, n_states: int, n_actions: int, delta: float, reward_max: float = 1.0
) -> Floats:
    """The reward interval of KL-UCRL: |r̃ - r̄| ≤ r_max·C_r/√N⁺ with C_r = sqrt(ln(4·S·A·ln T/δ)/1.99).

    Filippi, Cappé & Garivier 2010.

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    horizon : float
        T, the steps that the constants are made for.
    n_states, n_actions : int
        S and A.
    delta : float
        The probability with which the set may miss the true model.
    reward_max : float
        r_max, the range of the rewards.

    Returns
    -------
    ndarray
        The half width of each pair.

    Examples
    --------
    >>> kl_ucrl_reward_width([1, 100], 1e6, 6, 2, 0.05).round(2)
    array([2.18, 0.22])
    """
    C = math.sqrt(math.log(4.0 * n_states * n_actions * math.log(horizon) / delta) / 1.99)
    return np.asarray(reward_max * C / np.sqrt(np.maximum(1, np.asarray(visits))))


def uccrl_radius(
    visits: ArrayLike, t: float, n_cells: int, n_actions: int, *, widening: float, delta: float, scale: float = 1.0
) -> Floats:
    """The radius of UCCRL's ball of rows: ‖p̃ - p̄‖₁ ≤ sqrt(56·n·ln(2·A·t_k/δ) / N⁺) + L·m^{-α}, n cells.

    Ortner & Ryabko 2012, as the literature quotes it. A radius of 2 or more admits every row.

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    t : float
        t_k, the first step of the episode, from 1.
    n_cells, n_actions : int
        n and A.
    widening : float
        L·m^{-α}, m the cells per axis: how far the laws of two states of one cell can be apart.
    delta : float
        The probability with which the set may miss the true model.
    scale : float
        Multiplies the statistical part.

    Returns
    -------
    ndarray
        The radius of each pair.

    Examples
    --------
    >>> float(uccrl_radius(56, 1, 1, 1, widening=0.5, delta=2 / np.e))
    1.5
    """
    N = np.maximum(1, np.asarray(visits))
    return np.asarray(scale * np.sqrt(56.0 * n_cells * math.log(2.0 * n_actions * t / delta) / N) + widening)


def uccrl_reward_width(
    visits: ArrayLike,
    t: float,
    n_cells: int,
    n_actions: int,
    *,
    widening: float,
    delta: float,
    reward_max: float = 1.0,
    scale: float = 1.0,
) -> Floats:
    """The reward interval of UCCRL: |r̃ - r̄| ≤ r_max·(sqrt(7·ln(2·n·A·t_k/δ) / (2·N⁺)) + L·m^{-α}), n cells.

    Ortner & Ryabko 2012, as the literature quotes it.

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    t : float
        t_k, the first step of the episode, from 1.
    n_cells, n_actions : int
        n and A.
    widening : float
        L·m^{-α}, m the cells per axis.
    delta : float
        The probability with which the set may miss the true model.
    reward_max : float
        r_max, the range of the rewards.
    scale : float
        Multiplies the statistical part.

    Returns
    -------
    ndarray
        The half width of each pair.

    Examples
    --------
    >>> float(uccrl_reward_width(14, 1, 1, 1, widening=0.5, delta=2 / np.e**4))
    1.5
    """
    width = ucrl2_reward_width(visits, t, n_cells, n_actions, delta, reward_max)
    return np.asarray(scale * width + reward_max * widening)
