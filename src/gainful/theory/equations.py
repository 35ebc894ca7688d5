"""The bonus b_k of SCAL+, the d_k of its proof, and their parts, for arrays of visits.

Qian, Fruit, Pirotta & Lazaric, Exploration bonus for regret minimization in undiscounted discrete and continuous MDPs:
eq. exploration.bonus (main text), eqs. bonus.proof.finite, tigher.expl.bonus, loser.expl.bonus (appendices).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def scal_plus_beta(visits: ArrayLike, t: ArrayLike, n_states: int, n_actions: int, delta: float) -> Floats:
    """The deviation of an empirical mean: β = sqrt(7·ln(2·S·A·t_k/δ) / max{1, N}).

    Qian, Fruit, Pirotta & Lazaric, eq. exploration.bonus.

    Parameters
    ----------
    visits : array_like
        N, the visits of each pair.
    t : array_like
        t_k, the first step of the episode, from 1; broadcast against `visits`.
    n_states, n_actions : int
        S and A.
    delta : float
        The probability with which the bound may fail.

    Returns
    -------
    ndarray
        β, in the shape of `visits` and `t` together.

    Examples
    --------
    >>> float(scal_plus_beta(7, 1, 1, 1, 2 / np.e))
    1.0
    """
    N = np.maximum(1, np.asarray(visits))
    return np.asarray(np.sqrt(7.0 * np.log(2.0 * n_states * n_actions * np.asarray(t) / delta) / N))


def scal_plus_phi(visits: ArrayLike, t: ArrayLike, n_states: int, n_actions: int, delta: float, support: int) -> Floats:
    """The deviation of an empirical row in ℓ₁: φ = sqrt(7·(Γ-1)·ℓ₃/N⁺) + 14·S·ℓ₃/N⁺.

    Here ℓ₃ = ln(3·S·A·t_k/δ) and N⁺ = max{1, N} (Qian, Fruit, Pirotta & Lazaric, eq. loser.expl.bonus).

    Parameters
    ----------
    visits, t, n_states, n_actions, delta
        As for `scal_plus_beta`.
    support : int
        Γ, the most next states of a pair. For points in cells take the number of cells plus 1: the proof then has S in
        place of Γ-1.

    Returns
    -------
    ndarray
        φ.

    Examples
    --------
    >>> round(float(scal_plus_phi(10_000, 100, 6, 2, 0.05, support=3)), 4)
    0.2191
    """
    N = np.maximum(1, np.asarray(visits))
    log = np.log(3.0 * n_states * n_actions * np.asarray(t) / delta)
    return np.asarray(np.sqrt(7.0 * (support - 1) * log / N) + 14.0 * n_states * log / N)


def scal_plus_bonus(
    visits: ArrayLike,
    t: ArrayLike,
    n_states: int,
    n_actions: int,
    *,
    span: float,
    reward_max: float = 1.0,
    delta: float = 0.05,
    variant: Literal["appendix", "main text"] = "appendix",
    scale: float = 1.0,
) -> Floats:
    """The bonus of SCAL+: b_k = c·min{β + 1/(N+1), 2} + r_max·min{β, 1}.

    That is the appendix's (eq. tigher.expl.bonus); in the main text it is (c + r_max)·β + c/(N+1) (eq.
    exploration.bonus of Qian, Fruit, Pirotta & Lazaric). C-SCAL+ adds its Hölder term (c + r_max)·L·n^{-α}.

    Parameters
    ----------
    visits, t, n_states, n_actions, delta
        As for `scal_plus_beta`.
    span : float
        c, at least the span of the optimal bias.
    reward_max : float
        r_max, the range of the rewards.
    variant : {"appendix", "main text"}
        Which equation.
    scale : float
        Multiplies β; 1 is the theorem's.

    Returns
    -------
    ndarray
        b_k, in units of reward.

    Examples
    --------
    >>> scal_plus_bonus([0, 10_000], 10_001, 2, 2, span=1.0).round(4)
    array([3.    , 0.2001])
    """
    N = np.asarray(visits)
    beta = scale * scal_plus_beta(N, t, n_states, n_actions, delta)
    if variant == "main text":
        return np.asarray((span + reward_max) * beta + span / (N + 1))
    return np.asarray(span * np.minimum(beta + 1.0 / (N + 1), 2.0) + reward_max * np.minimum(beta, 1.0))


def authors_bonus(
    visits: ArrayLike,
    t: ArrayLike,
    n_states: int,
    n_actions: int,
    *,
    span: float,
    reward_max: float = 1.0,
    scale: float = 1.0,
) -> Floats:
    """The bonus of SCAL+ in the authors' own experiments: b_k = (c + r_max)/2 · sqrt(ln(S·A·sqrt(t_k+1)) / max{1,N}).

    Neither δ nor c/(N+1) enters, and no theorem is known for it. The rewards r̄ + b_k are cut at 3(c + r_max).

    Parameters
    ----------
    visits, t, n_states, n_actions
        As for `scal_plus_beta`.
    span, reward_max, scale
        As for `scal_plus_bonus`; the scale multiplies the whole bonus.

    Returns
    -------
    ndarray
        b_k before the cut, in units of reward.

    Examples
    --------
    >>> authors_bonus([0, 1, 100], 99, 2, 5, span=1.0).round(4)
    array([2.146 , 2.146 , 0.2146])
    """
    log = np.log(n_states * n_actions * np.sqrt(np.asarray(t) + 1.0))
    return np.asarray(0.5 * scale * (span + reward_max) * np.sqrt(log / np.maximum(1, np.asarray(visits))))


def scal_plus_deviation(
    visits: ArrayLike,
    t: ArrayLike,
    n_states: int,
    n_actions: int,
    *,
    span: float,
    support: int,
    reward_max: float = 1.0,
    delta: float = 0.05,
) -> Floats:
    """The bound on the model's error for all v of span c at once: d_k = c·min{φ + 1/(N+1), 2} + r_max·min{β, 1}.

    Qian, Fruit, Pirotta & Lazaric, lemma bonus.inequality (b).

    Parameters
    ----------
    visits, t, n_states, n_actions, delta
        As for `scal_plus_beta`.
    span : float
        c.
    support : int
        Γ, as for `scal_plus_phi`.
    reward_max : float
        r_max.

    Returns
    -------
    ndarray
        d_k, in units of reward.

    Examples
    --------
    >>> d = scal_plus_deviation([0, 10_000], 10_001, 6, 2, span=7.0, support=3)
    >>> b = scal_plus_bonus([0, 10_000], 10_001, 6, 2, span=7.0)
    >>> bool((d >= b).all())
    True
    """
    N = np.asarray(visits)
    beta = scal_plus_beta(N, t, n_states, n_actions, delta)
    phi = scal_plus_phi(N, t, n_states, n_actions, delta, support)
    return np.asarray(span * np.minimum(phi + 1.0 / (N + 1), 2.0) + reward_max * np.minimum(beta, 1.0))
