"""The sharp and the Bernstein bonus of SCAL+ in NumPy (docs/kl_scal_plus.md, section 6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.theory.kl import klup

Floats = NDArray[np.float64]


def sharp_beta(visits: ArrayLike, n_deviations: int, delta: float) -> Floats:
    """The deviation of one mean at all times: β_n = sqrt((1 + 1/n)·ln(1/2 + S·sqrt(n+1)/δ)/(2n)).

    Laplace's mixture, one-sided, with the share δ/(2S) of δ for each of two means in S pairs (docs/kl_scal_plus.md,
    lemma 8).

    Parameters
    ----------
    visits : array_like
        n, the visits of each pair.
    n_deviations : int
        The pairs that are bounded together: S for SCAL+, where only (s, π*(s)) matter; all of them on cells.
    delta : float
        The probability with which a bound may fail.

    Returns
    -------
    ndarray
        β, infinite where n = 0.

    Examples
    --------
    >>> sharp_beta([0, 100], 2, 0.05).round(4)
    array([  inf, 0.174])
    """
    n = np.maximum(1.0, np.asarray(visits, dtype=np.float64))
    beta = np.sqrt((n + 1.0) * np.log(0.5 + n_deviations * np.sqrt(n + 1.0) / delta) / 2.0) / n
    return np.where(np.asarray(visits) > 0, beta, np.inf)


def sharp_bonus(
    visits: ArrayLike,
    mean_rewards: ArrayLike,
    n_deviations: int,
    *,
    span: float,
    reward_max: float = 1.0,
    delta: float = 0.05,
    scale: float = 1.0,
) -> tuple[Floats, Floats]:
    """The two parts of the optimism of sharp SCAL+: r̃ = min{r_max, r̄ + r_max·β} and b = c·min{1, (n·β + 1)/(n + 1)}.

    The source is docs/kl_scal_plus.md, section 6; where n = 0, r̃ = r_max and b = c.

    Parameters
    ----------
    visits, n_deviations, delta
        As for `sharp_beta`.
    mean_rewards : array_like
        r̄, from 0 to r_max.
    span : float
        c, at least the span of the optimal bias.
    reward_max : float
        r_max, the range of the rewards.
    scale : float
        Multiplies β; 1 is the theorem's.

    Returns
    -------
    rewards, bonus : ndarray
        r̃ and b, in units of reward.

    Examples
    --------
    >>> rewards, bonus = sharp_bonus([0, 100], [0.0, 0.5], 2, span=3.0)
    >>> rewards.round(4), bonus.round(4)
    (array([1.   , 0.674]), array([3.    , 0.5466]))
    """
    n = np.asarray(visits, dtype=np.float64)
    beta = scale * sharp_beta(n, n_deviations, delta)
    with np.errstate(invalid="ignore"):  # 0·inf where n = 0
        share = np.where(n > 0, (n * beta + 1.0) / (n + 1.0), 1.0)
    rewards = np.minimum(reward_max, np.asarray(mean_rewards) + reward_max * beta)
    return np.asarray(rewards), np.asarray(span * np.minimum(1.0, share))


def bernstein_bonus(
    visits: ArrayLike,
    mean_rewards: ArrayLike,
    variance: ArrayLike,
    n_states: int,
    *,
    span: float,
    reward_max: float = 1.0,
    delta: float = 0.05,
    scale: float = 1.0,
) -> tuple[Floats, Floats]:
    """The two parts of the optimism of Bernstein SCAL+: r̃ and b = min{c, max{(3/√2)·sqrt(Var·x), 7c·x} + c/(n+1)}.

    Here x = ln(4S·n(n+1)/δ)/(n-1), b = c if n < 2, and r̃ = r_max·klup(r̄/r_max, (ln(2S/δ) + ½ ln n + ln 2)/n)
    (docs/kl_scal_plus.md, section 6).

    Parameters
    ----------
    visits : array_like
        n, the visits of each pair.
    mean_rewards : array_like
        r̄, from 0 to r_max.
    variance : array_like
        Var_p̄(v), the variance of the values under the empirical row.
    n_states : int
        S.
    span : float
        c, at least the span of the optimal bias, and of v.
    reward_max : float
        r_max, the range of the rewards.
    delta : float
        The probability with which optimism may fail.
    scale : float
        Multiplies both logarithms; 1 is the proof's.

    Returns
    -------
    rewards, bonus : ndarray
        r̃ and b, in units of reward.

    Examples
    --------
    >>> rewards, bonus = bernstein_bonus([1, 10_000], [0.0, 0.5], [0.0, 2.0], 2, span=3.0)
    >>> rewards.round(4), bonus.round(4)
    (array([0.9938, 0.522 ]), array([3.    , 0.1457]))
    """
    n = np.asarray(visits, dtype=np.float64)
    seen, many = np.maximum(1.0, n), np.maximum(2.0, n)
    x = scale * np.log(4.0 * n_states * many * (many + 1.0) / delta) / (many - 1.0)
    either = np.maximum(3.0 * np.sqrt(np.asarray(variance) * x / 2.0), 7.0 * span * x)
    bonus = np.where(n < 2, span, np.minimum(span, either + span / (n + 1.0)))
    radius = np.where(n > 0, scale * (np.log(2.0 * n_states / delta) + 0.5 * np.log(seen) + np.log(2.0)) / seen, np.inf)
    means = np.clip(np.asarray(mean_rewards, dtype=np.float64) / reward_max, 0.0, 1.0)
    return np.asarray(reward_max * klup(means, radius)), bonus
