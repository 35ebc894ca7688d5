r"""The regret of KL-SCAL+ and C-KL-SCAL+, with every constant.

Theorem 10 of `docs/kl_scal_plus.md` is a rounding of its inequality (*), which is computed here. In units of r_max,
with H = max{1, min{c, 2D + 1}}, Λ = ln(6·S²·A·√T/δ), Q = 2·S·A·ln T, B = (2 + √(2Γ))·√(Λ·Q) and m episodes:

    R(T) ≤ (B + 3√Λ)·√Y + 2H·(B + 3√Λ)² + 4.2·Γ·H·Λ·Q + H·(Λ + m + SA) + 3SA + 4√(SATΛ) + 4√T,
    Y = 2HT + 4H·SA + 8H√T + H²·(m + Λ + 2SA + 8.4·Γ·Λ·Q).

R(T) = Σ (g* - r(s_t,a_t)) has mean rewards, and the bounds hold with probability 1-3δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gainful.arguments import choice, real, whole
from gainful.errors import InvalidArgumentError
from gainful.theory.bound_terms import BoundTerms

Floats = NDArray[np.float64]

EPISODE_RULES = ("doubling", "vanishing", "vanishing-sqrt")
"""How long the episodes of KL-SCAL+ may be: see `kl_scal_plus_terms`."""


@dataclass(frozen=True)
class KLScalPlusTerms(BoundTerms):
    """The terms of the regret bound of KL-SCAL+, in units of reward.

    Attributes
    ----------
    deviation : float
        (B + 3√Λ)·√Y: the errors of p̄ and the influence of chance, by the variances of v_k along the run.
    variance : float
        2H·(B + 3√Λ)²: those variances are bounded by the errors again.
    few_visits : float
        4.2·Γ·H·Λ·Q + H·SA: pairs that are new or visited a few times.
    martingale : float
        H·Λ.
    telescoping : float
        H for every episode.
    rewards : float
        4√(SATΛ) + SA: the errors of r̄.
    precision : float
        4√T + 2SA: the planner's precision.

    Examples
    --------
    >>> terms = KLScalPlusTerms(5.0, 1.0, few_visits=1.0, martingale=1.0, telescoping=1.0, rewards=0.5, precision=0.5)
    >>> terms.total
    10.0
    """

    deviation: float
    variance: float
    few_visits: float
    martingale: float
    telescoping: float
    rewards: float
    precision: float


@dataclass(frozen=True)
class CKLScalPlusTerms(BoundTerms):
    """The terms of the regret bound of C-KL-SCAL+, in units of reward.

    Attributes
    ----------
    cells : float
        (c + 2·r_max)·L·w^α·T: states of one cell differ.
    deviation : float
        The errors of p̄.
    few_visits : float
        4c·Λ·KA·ln T + c·KA: pairs that are new or visited a few times.
    martingale : float
        c√(TΛ).
    telescoping : float
        c for every episode.
    rewards : float
        The errors of r̄.
    precision : float
        4√T + 2KA: the planner's precision.

    Examples
    --------
    >>> CKLScalPlusTerms(5.0, 1.0, few_visits=1.0, martingale=1.0, telescoping=1.0, rewards=0.5, precision=0.5).total
    10.0
    """

    cells: float
    deviation: float
    few_visits: float
    martingale: float
    telescoping: float
    rewards: float
    precision: float


def value_range(span: float | None, diameter: float | None, reward_max: float = 1.0) -> float:
    """H = max{1, min{c, 2D + 1}}, in units of r_max: what sp(v_k) cannot exceed.

    Parameters
    ----------
    span : float, optional
        c in units of reward; infinite by default.
    diameter : float, optional
        D; infinite by default.
    reward_max : float
        r_max.

    Returns
    -------
    float
        H.

    Raises
    ------
    InvalidArgumentError
        If neither c nor D is finite.

    Examples
    --------
    >>> value_range(None, 14.5), value_range(7.0, 14.5), value_range(0.5, None)
    (30.0, 7.0, 1.0)
    """
    c = math.inf if span is None else real("span", span, 0.0) / real("reward_max", reward_max, 0.0, low_open=True)
    D = math.inf if diameter is None else real("diameter", diameter, 0.0)
    H = max(1.0, min(c, 2.0 * D + 1.0))
    if math.isinf(H):
        raise InvalidArgumentError(
            "diameter",
            diameter,
            hint="give span=, diameter=gf.diameter(mdp), or both",
            problem="the bound needs the span c or the diameter D",
        )
    return H


def short_doubling_episodes(T: Floats, pairs: int) -> Floats:
    """Doubling episodes, the running one included: SA·log₂(4T/SA) for T ≥ SA; 1 + SA·(1 + log₂(1 + T/SA)) before."""
    early = 1.0 + pairs * (1.0 + np.log2(1.0 + T / pairs))
    return np.where(pairs <= T, pairs * np.log2(4.0 * np.maximum(T, pairs) / pairs), early)


def most_episodes(T: Floats, pairs: int, episodes: str) -> Floats:
    """The largest number of episodes in T steps, the running one included, for each of `EPISODE_RULES`.

    By (**) of `docs/kl_scal_plus.md`; for "vanishing" with f_k ≥ min{1, √(SA/T)}.
    """
    log = np.log(T)
    if episodes == "vanishing":
        return np.asarray(1.0 + pairs + pairs * log * (1.0 + 2.0 * np.maximum(1.0, np.sqrt(T / pairs))))
    if episodes == "vanishing-sqrt":
        largest = np.maximum(1.7, np.sqrt(T / np.maximum(log, 1e-300)) * (log > 0.0))  # 1/f_k
        return np.asarray(1.0 + pairs + pairs * log * (1.0 + 2.0 * largest))
    return short_doubling_episodes(T, pairs)


def switching(T: Floats, pairs: int, H: float, episodes: str) -> Floats:
    """A bound on Σ_k sp(v_k) over the episodes of T steps, in units of r_max: H·m, or J for "vanishing".

    `docs/kl_scal_plus.md`, section "Shorter episodes".
    """
    if episodes == "vanishing":
        log = np.log(T)
        return np.asarray(H * (1.0 + pairs) + log * (H * pairs + 2.0 * np.maximum(H * pairs, np.sqrt(H * pairs * T))))
    return np.asarray(H * most_episodes(T, pairs, episodes))


def kl_scal_plus_terms_at(
    T: Floats,
    n_states: int,
    n_actions: int,
    *,
    value_range: float,
    support: int,
    reward_max: float,
    delta: float,
    episodes: str = "doubling",
) -> dict[str, Floats]:
    """The terms of `KLScalPlusTerms` after each of the horizons T ≥ 1; `value_range` is H."""
    H, pairs, gamma = value_range, n_states * n_actions, support
    log = np.log(6.0 * n_states**2 * n_actions * np.sqrt(T)) - math.log(delta)
    Q = 2.0 * pairs * np.log(T)
    both = (2.0 + math.sqrt(2.0 * gamma)) * np.sqrt(log * Q) + 3.0 * np.sqrt(log)
    switch = switching(T, pairs, H, episodes)  # H·m; mH² is H times it
    Y = 2.0 * H * T + 4.0 * H * pairs + 8.0 * H * np.sqrt(T)
    Y = Y + H * switch + H**2 * (log + 2.0 * pairs + 8.4 * gamma * log * Q)
    terms = {
        "deviation": both * np.sqrt(Y),
        "variance": 2.0 * H * both**2,
        "few_visits": 4.2 * gamma * H * log * Q + H * pairs,
        "martingale": H * log,
        "telescoping": switch,
        "rewards": 4.0 * np.sqrt(pairs * T * log) + pairs,
        "precision": 4.0 * np.sqrt(T) + 2.0 * pairs,
    }
    return {name: reward_max * np.asarray(term) for name, term in terms.items()}


def kl_scal_plus_terms(
    horizon: float,
    n_states: int,
    n_actions: int,
    *,
    span: float | None = None,
    diameter: float | None = None,
    support: int | None = None,
    reward_max: float = 1.0,
    delta: float = 0.05,
    episodes: str = "doubling",
) -> KLScalPlusTerms:
    """Every term of the regret bound of KL-SCAL+ after T = `horizon` steps.

    With probability 1-3δ, simultaneously for all T, Σ (g* - r(s_t,a_t)) is at most their sum, in a communicating MDP of
    diameter D, or in a weakly communicating one if sp(h*) ≤ c (inequality (*) of `docs/kl_scal_plus.md`).

    Parameters
    ----------
    horizon : float
        T, at least 1.
    n_states, n_actions : int
        S and A.
    span : float, optional
        The c given to the agent, in units of reward; infinite by default.
    diameter : float, optional
        D; infinite by default. At least one of c and D is needed.
    support : int, optional
        Γ, the largest number of next states that a pair has; S by default.
    reward_max : float
        Rewards lie in an interval of this length.
    delta : float
        The agent's δ.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes. With the last the bound is not of the order of Theorem 10.

    Returns
    -------
    KLScalPlusTerms
        The terms, in units of reward.

    Raises
    ------
    InvalidArgumentError
        For arguments out of range, or if neither c nor D is given.

    Examples
    --------
    >>> terms = kl_scal_plus_terms(1e8, 6, 2, diameter=14.72, support=3)
    >>> f"{terms.total:,.0f}", f"{terms.precision:,.0f}"
    ('46,821,683', '40,024')
    """
    S = whole("n_states", n_states, 1)
    terms = kl_scal_plus_terms_at(
        np.array([real("horizon", horizon, 1.0)]),
        S,
        whole("n_actions", n_actions, 1),
        value_range=value_range(span, diameter, reward_max),
        support=S if support is None else whole("support", support, 1, S),
        reward_max=real("reward_max", reward_max, 0.0, low_open=True),
        delta=real("delta", delta, 0.0, 1.0, low_open=True),
        episodes=choice("episodes", episodes, EPISODE_RULES),
    )
    return KLScalPlusTerms(**{name: float(values[0]) for name, values in terms.items()})


def c_kl_scal_plus_terms_at(
    T: Floats,
    n_cells: int,
    n_actions: int,
    *,
    span: float,
    reward_max: float,
    delta: float,
    smoothness: float,
    episodes: str = "doubling",
) -> dict[str, Floats]:
    """The terms of `CKLScalPlusTerms` after each of the horizons T ≥ 1; `smoothness` is L·w^α."""
    K, pairs, c = n_cells, n_cells * n_actions, span / reward_max
    log = np.log(6.0 * K**2 * n_actions * np.sqrt(T)) - math.log(delta)
    roots = 2.0 * math.sqrt(2.0) * np.sqrt(pairs * T)
    terms = {
        "cells": (c + 2.0) * smoothness * T,
        "deviation": roots * c * (np.sqrt(K * math.log(2.0) + log) + np.sqrt(log / 2.0)),
        "few_visits": c * pairs * (4.0 * log * np.log(T) + 1.0),
        "martingale": c * np.sqrt(T * log),
        "telescoping": c * switching(T, pairs, max(1.0, c), episodes) / max(1.0, c),
        "rewards": roots * 1.71 * np.sqrt(log) + pairs,
        "precision": 4.0 * np.sqrt(T) + 2.0 * pairs,
    }
    return {name: reward_max * np.asarray(term) for name, term in terms.items()}


def c_kl_scal_plus_terms(
    horizon: float,
    n_cells: int,
    n_actions: int,
    *,
    span: float,
    lipschitz: float,
    holder: float,
    bins: int,
    reward_max: float = 1.0,
    delta: float = 0.05,
    episodes: str = "doubling",
) -> CKLScalPlusTerms:
    """Every term of the regret bound of C-KL-SCAL+ after T = `horizon` steps.

    With probability 1-3δ, simultaneously for all T, Σ (g* - r(s_t,a_t)) is at most their sum if sp(h*) ≤ c and rewards
    and transitions are Hölder with L and α (Theorem 13 of `docs/kl_scal_plus.md`).

    Parameters
    ----------
    horizon : float
        T, at least 1.
    n_cells, n_actions : int
        K and A.
    span : float
        c ≥ sp(h*), in units of reward.
    lipschitz, holder : float
        L and α.
    bins : int
        Intervals of the coarsest axis: cells have the width w = 1/bins.
    reward_max : float
        Rewards lie in an interval of this length.
    delta : float
        The agent's δ.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes.

    Returns
    -------
    CKLScalPlusTerms
        The terms, in units of reward.

    Raises
    ------
    InvalidArgumentError
        For arguments out of range.

    Examples
    --------
    >>> terms = c_kl_scal_plus_terms(1e6, 20, 3, span=2.0, lipschitz=1.0, holder=1.0, bins=20)
    >>> f"{terms.cells:,.0f}", f"{terms.total:,.0f}"
    ('200,000', '886,502')
    """
    error = real("lipschitz", lipschitz, 0.0) * whole("bins", bins, 1) ** -real(
        "holder", holder, 0.0, 1.0, low_open=True
    )
    terms = c_kl_scal_plus_terms_at(
        np.array([real("horizon", horizon, 1.0)]),
        whole("n_cells", n_cells, 1),
        whole("n_actions", n_actions, 1),
        span=real("span", span, 0.0),
        reward_max=real("reward_max", reward_max, 0.0, low_open=True),
        delta=real("delta", delta, 0.0, 1.0, low_open=True),
        smoothness=error,
        episodes=choice("episodes", episodes, EPISODE_RULES),
    )
    return CKLScalPlusTerms(**{name: float(values[0]) for name, values in terms.items()})
