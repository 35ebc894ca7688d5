r"""The regret of SCAL+ and C-SCAL+, with every constant, and the lower bound for all algorithms.

The theorems give orders of magnitude. This module adds up the terms of their proofs (see `docs/regret_bound.md` for the
derivation). With probability 1-δ, simultaneously for all T ≥ 1, if sp(h*) ≤ c and `bonus_scale` is 1:

    R(T) ≤ Σ ν·b + Σ ν·d + Σ ν·ε + martingale + telescoping,

where each sum over episodes and pairs is bounded by what doubling episodes allow at worst:
Σ_k ν_k/√N_k⁺ ≤ (1+√2)·√N and Σ_k ν_k/N_k⁺ ≤ 1 + log₂ N for a pair visited N times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.arguments import choice, real, whole
from gainful.errors import InvalidArgumentError
from gainful.theory.bound_terms import BoundTerms
from gainful.theory.kl_regret import EPISODE_RULES, c_kl_scal_plus_terms, kl_scal_plus_terms, most_episodes
from gainful.theory.known_bounds import require_bound
from gainful.theory.sharp_regret import sharp_terms

Floats = NDArray[np.float64]

ROOT_SUM = 1.0 + math.sqrt(2.0)
"""Σ_k ν_k/√N_k⁺ ≤ ROOT_SUM·√N (Jaksch, Ortner & Auer 2010, lemma 19)."""
UCRL2_BOUND = 34.0
"""The constant of UCRL2's regret bound (Jaksch, Ortner & Auer 2010, theorem 2)."""
LOWER = 0.015
"""Jaksch, Ortner & Auer 2010, theorem 5."""


@dataclass(frozen=True)
class RegretTerms(BoundTerms):
    """The terms of the regret bound, in units of reward.

    Attributes
    ----------
    bonus : float
        Σ ν·b, without the term of the cells.
    deviation : float
        Σ ν·d, without the term of the cells.
    precision : float
        Σ ν·ε_k, where ε_k = r_max/√t_k is the planner's precision.
    martingale : float
        Σ (p·v - v(s')) + (r - r_t), the influence of chance.
    telescoping : float
        c for every episode.
    cells : float
        C-SCAL+ only: states of one cell differ, which adds to b and to d.
    mixture : float
        The min-action mixture only: actions are drawn.

    Examples
    --------
    >>> RegretTerms(bonus=4.0, deviation=3.0, precision=1.0, martingale=1.5, telescoping=0.5).total
    10.0
    """

    bonus: float
    deviation: float
    precision: float
    martingale: float
    telescoping: float
    cells: float = 0.0
    mixture: float = 0.0


def episodes_bound(horizon: float, n_states: int, n_actions: int) -> float:
    """The largest number of episodes that the doubling rule can begin in T steps.

    It is S·A·log₂(8T/(S·A)) for T ≥ S·A (Jaksch, Ortner & Auer 2010, appendix C.2), and
    1 + S·A + S·A·log₂(1 + T/(S·A)) for T < S·A: an episode ends when a pair is visited for the first time, or has
    doubled its visits.

    Parameters
    ----------
    horizon : float
        T.
    n_states, n_actions : int
        S and A.

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> episodes_bound(1024 * 12, 6, 2)
    156.0
    """
    return float(episodes_at(np.array([real("horizon", horizon, 0.0)]), n_states * n_actions)[0])


def episodes_at(T: Floats, pairs: int, episodes: str = "doubling") -> Floats:
    """`episodes_bound` after each of the horizons T; `most_episodes` if episodes are shorter."""
    if episodes != "doubling":
        return most_episodes(T, pairs, episodes)
    early = 1.0 + pairs + pairs * np.log2(1.0 + T / pairs)
    return np.where(pairs <= T, pairs * np.log2(8.0 * np.maximum(T, pairs) / pairs), early)


def regret_terms(
    horizon: float,
    n_states: int,
    n_actions: int,
    *,
    span: float,
    support: int | None = None,
    reward_max: float = 1.0,
    delta: float = 0.05,
    mixture: str = "copy",
    lipschitz: float | None = None,
    holder: float | None = None,
    bins: int | None = None,
    episodes: str = "doubling",
) -> RegretTerms:
    r"""Every term of the regret bound of SCAL+, or of C-SCAL+, after T = `horizon` steps.

    With probability 1-δ, simultaneously for all T, the regret is at most their sum if sp(h*) ≤ c and the bonus is the
    theorem's (see `docs/regret_bound.md` for the proof).

    Parameters
    ----------
    horizon : float
        T, at least 1.
    n_states, n_actions : int
        S and A. For C-SCAL+, S is the number of cells.
    span : float
        c ≥ sp(h*).
    support : int, optional
        Γ, the largest number of next states that a pair has; S by default. Not for C-SCAL+.
    reward_max : float
        Rewards lie in [0, reward_max]; for those of an MDP give `mdp.reward_max - mdp.reward_min`.
    delta : float
        The probability with which the bound may fail.
    mixture : {"copy", "min-action"}
        How the planner meets the span constraint.
    lipschitz, holder, bins : float, float, int, optional
        L, α and n, the number of cells per axis: all three for C-SCAL+, none for SCAL+.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes; shorter ones enter with their number only.

    Returns
    -------
    RegretTerms
        The terms, in units of reward.

    Raises
    ------
    InvalidArgumentError
        For arguments out of range, or that do not belong together.

    Examples
    --------
    >>> terms = regret_terms(1e8, 6, 2, span=7.0, support=3)
    >>> terms.total == regret_bound(1e8, 6, 2, span=7.0, support=3)
    True
    >>> f"{terms.precision:,.0f}", terms.cells
    ('83,631', 0.0)
    """
    S = whole("n_states", n_states, 1)
    whole("n_actions", n_actions, 1)
    real("span", span, 0.0)
    real("reward_max", reward_max, 0.0, low_open=True)
    real("delta", delta, 0.0, 1.0, low_open=True)
    choice("mixture", mixture, ("copy", "min-action"))
    smooth = (lipschitz, holder, bins)
    if any(x is None for x in smooth) and any(x is not None for x in smooth):
        raise InvalidArgumentError(
            "lipschitz",
            smooth,
            hint="give all three (C-SCAL+) or none",
            problem="lipschitz, holder and bins belong together",
        )
    if support is not None and lipschitz is not None:
        raise InvalidArgumentError(
            "support",
            support,
            hint="for cells the proof takes their number",
            problem="support and lipschitz are both given",
        )
    spread = S if lipschitz is not None else (S if support is None else whole("support", support, 1, S)) - 1
    error = 0.0
    if lipschitz is not None and holder is not None and bins is not None:
        real("lipschitz", lipschitz, 0.0)
        real("holder", holder, 0.0, 1.0, low_open=True)
        error = (span + reward_max) * lipschitz * whole("bins", bins, 1) ** -holder
    terms = terms_at(
        np.array([real("horizon", horizon, 1.0)]),
        S,
        n_actions,
        span=span,
        spread=spread,
        reward_max=reward_max,
        delta=delta,
        model_error=error,
        mixture=mixture,
        episodes=choice("episodes", episodes, EPISODE_RULES),
    )
    return RegretTerms(**{name: float(values[0]) for name, values in terms.items()})


def terms_at(
    T: Floats,
    n_states: int,
    n_actions: int,
    *,
    span: float,
    spread: int,
    reward_max: float,
    delta: float,
    model_error: float = 0.0,
    mixture: str = "copy",
    episodes: str = "doubling",
) -> dict[str, Floats]:
    """The terms of `RegretTerms` after each of the horizons T ≥ 1.

    `spread` is Γ-1, or the number of cells; `model_error` is what cells add to b and to d: (c + r_max)·L·n^{-α}.
    """
    c, r_max, S = span, reward_max, n_states
    pairs = S * n_actions
    l2, l3 = np.log(2.0 * pairs * T / delta), np.log(3.0 * pairs * T / delta)
    roots = ROOT_SUM * np.sqrt(pairs * T)  # Σ ν/√N⁺ over all pairs
    doublings = pairs * (1.0 + np.log2(1.0 + T / pairs))  # Σ ν/N⁺
    m = episodes_at(T, pairs, episodes)
    drawn = np.zeros_like(T)
    if mixture == "min-action":
        drawn = (3 * c + 2 * r_max) * np.sqrt(0.625 * (T + m) * np.log(11.0 * (T + m) / delta))
        drawn += (3 * c + 3 * r_max + model_error) * m
    return {
        "bonus": roots * (c + r_max) * np.sqrt(7.0 * l2) + c * doublings,
        "deviation": roots * (c * np.sqrt(7.0 * spread * l3) + r_max * np.sqrt(7.0 * l2))
        + c * (14.0 * S * l3 + 1.0) * doublings,
        "precision": roots * r_max,
        "martingale": (c + r_max) * np.sqrt(0.625 * T * np.log(11.0 * T / delta)),
        "telescoping": c * m,
        "cells": 2.0 * model_error * T,
        "mixture": drawn,
    }


def regret_bound(
    horizon: float,
    n_states: int,
    n_actions: int,
    *,
    span: float | None = None,
    support: int | None = None,
    reward_max: float = 1.0,
    delta: float = 0.05,
    mixture: str = "copy",
    lipschitz: float | None = None,
    holder: float | None = None,
    bins: int | None = None,
    agent: str = "scal-plus",
    diameter: float | None = None,
    episodes: str = "doubling",
    bonus: str = "appendix",
    base: str = "kl-scal-plus",
) -> float:
    """The explicit regret bound of an agent: the sum of its terms.

    With probability 1-δ (SCAL+ and C-SCAL+ with the paper's bonuses, UCRL2), 1-3δ (with the sharp bonus, KL-SCAL+ and
    C-KL-SCAL+) or 1-4δ (PMEVI-DT; 1-3δ with `bias="none"`) the regret does not exceed it, simultaneously for all T.
    T·g* bounds the regret of any agent; this bound is smaller only for large T: on RiverSwim-6 with SCAL+ and c = 7,
    from about 4·10⁷ steps (sharp: 3·10⁶). For agents without such a bound the error says why there is none
    (`why_no_bound`).

    Parameters
    ----------
    horizon, n_states, n_actions, span, support, reward_max, delta, mixture, lipschitz, holder, bins
        As for `regret_terms`.
    agent : {"scal-plus", "c-scal-plus", "kl-scal-plus", "c-kl-scal-plus", "pmevi-dt", "ucrl2"}
        "scal-plus" with `lipschitz`, `holder` and `bins` is C-SCAL+. The terms of KL-SCAL+ and C-KL-SCAL+ are
        `kl_scal_plus_terms` and `c_kl_scal_plus_terms`; their regret has mean rewards: Σ (g* - r(s_t,a_t)). PMEVI-DT
        has those of KL-SCAL+ with its c (docs/pmevi.md). UCRL2 has 34·r_max·D·S·sqrt(A·T·ln(T/δ)), for T > 1
        (Jaksch, Ortner & Auer 2010, theorem 2).
    diameter : float, optional
        D, for UCRL2, and for KL-SCAL+ without a span, or with one.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes.
    bonus : {"appendix", "main text", "sharp"}
        The bonus of SCAL+ and C-SCAL+. The terms of the sharp one are `sharp_terms`; its regret has mean rewards too.
    base : {"kl-scal-plus", "ucrl2", "ucrl2b", "kl-ucrl"}
        The sets of PMEVI-DT; the constants are known for the first only.

    Returns
    -------
    float
        The bound, in units of reward.

    Raises
    ------
    InvalidArgumentError
        For arguments out of range, or that do not belong together, and for agents without a bound to compute.

    Examples
    --------
    >>> g = 7203 / 16805
    >>> [regret_bound(T, 6, 2, span=7.0, support=3) < T * g for T in (10**7, 10**8)]
    [False, True]
    >>> [regret_bound(T, 6, 2, agent="kl-scal-plus", diameter=14.72, support=3) < T * g for T in (10**8, 10**9)]
    [False, True]
    >>> [regret_bound(T, 6, 2, span=7.0, support=3, bonus="sharp") < T * g for T in (10**6, 10**7)]
    [False, True]
    """
    kind = require_bound(agent, base)
    if kind == "ucrl2":
        return _ucrl2_bound(horizon, n_states, n_actions, diameter, reward_max, delta, episodes)
    if kind == "kl-scal-plus":
        return kl_scal_plus_terms(
            horizon,
            n_states,
            n_actions,
            span=span,
            diameter=diameter,
            support=support,
            reward_max=reward_max,
            delta=delta,
            episodes=episodes,
        ).total
    if span is None:
        raise InvalidArgumentError(
            "span",
            span,
            hint="give it: span=gf.solve(mdp).span, or a bound on it",
            problem=f"the bound of {kind} needs the span c of the optimal bias",
        )
    if kind == "pmevi-dt":
        options: dict[str, Any] = {"support": support, "reward_max": reward_max, "delta": delta, "episodes": episodes}
        return kl_scal_plus_terms(horizon, n_states, n_actions, span=span, **options).total
    if kind in ("c-scal-plus", "c-kl-scal-plus") and (lipschitz is None or holder is None or bins is None):
        raise InvalidArgumentError(
            "lipschitz", (lipschitz, holder, bins), problem=f"the bound of {kind} needs lipschitz, holder and bins"
        )
    if kind == "c-kl-scal-plus":
        assert lipschitz is not None
        assert holder is not None
        assert bins is not None
        return c_kl_scal_plus_terms(
            horizon,
            n_states,
            n_actions,
            span=span,
            lipschitz=lipschitz,
            holder=holder,
            bins=bins,
            reward_max=reward_max,
            delta=delta,
            episodes=episodes,
        ).total
    if choice("bonus", bonus, ("appendix", "main text", "sharp")) == "sharp":
        if mixture != "copy":
            raise InvalidArgumentError("mixture", mixture, "'copy'", problem="there is no bound for this mixture")
        return sharp_terms(
            horizon,
            n_states,
            n_actions,
            span=span,
            support=support,
            reward_max=reward_max,
            delta=delta,
            lipschitz=lipschitz,
            holder=holder,
            bins=bins,
            episodes=episodes,
        ).total
    return regret_terms(
        horizon,
        n_states,
        n_actions,
        span=span,
        support=support,
        reward_max=reward_max,
        delta=delta,
        mixture=mixture,
        lipschitz=lipschitz,
        holder=holder,
        bins=bins,
        episodes=episodes,
    ).total


def _ucrl2_bound(
    horizon: float,
    n_states: int,
    n_actions: int,
    diameter: float | None,
    reward_max: float,
    delta: float,
    episodes: str,
) -> float:
    """34·r_max·D·S·sqrt(A·T·ln(T/δ)), proven for doubling episodes."""
    if diameter is None:
        raise InvalidArgumentError("agent", "ucrl2", hint="give diameter", problem="the bound of ucrl2 needs D")
    if choice("episodes", episodes, EPISODE_RULES) != "doubling":
        raise InvalidArgumentError(
            "episodes", episodes, "'doubling'", problem="the constant of ucrl2 is for doubling episodes"
        )
    T, D, S = real("horizon", horizon, 1.0), real("diameter", diameter, 0.0), whole("n_states", n_states, 1)
    chance, r_max = real("delta", delta, 0.0, 1.0, low_open=True), real("reward_max", reward_max, 0.0, low_open=True)
    return UCRL2_BOUND * r_max * D * S * math.sqrt(whole("n_actions", n_actions, 1) * T * math.log(T / chance))


def lower_bound_needs(horizon: float, n_states: int, n_actions: int, diameter: float) -> str:
    """The condition of the theorem behind `lower_bound` that is not met; empty if it applies.

    Parameters
    ----------
    horizon : float
        T.
    n_states, n_actions : int
        S and A.
    diameter : float
        D.

    Returns
    -------
    str
        What is needed, in words.

    Examples
    --------
    >>> lower_bound_needs(1e6, 6, 2, 14.7), lower_bound_needs(1e6, 10, 10, 100.0)
    ('S and A of at least 10', '')
    """
    if n_states < 10 or n_actions < 10:
        return "S and A of at least 10"
    if diameter < 20.0 * math.log(n_states) / math.log(n_actions):
        return "a diameter of at least 20·log_A S"
    if horizon < diameter * n_states * n_actions:
        return f"at least D·S·A = {diameter * n_states * n_actions:,.0f} steps"
    return ""


def lower_bound(horizon: float, n_states: int, n_actions: int, *, diameter: float, reward_max: float = 1.0) -> float:
    """The lower bound for all algorithms: 0.015·r_max·sqrt(D·S·A·T).

    The expected regret of any algorithm reaches it in some MDP of this size, for S, A ≥ 10, D ≥ 20·log_A S and
    T ≥ D·S·A (Jaksch, Ortner & Auer 2010, theorem 5). Other MDPs may be easier.

    Parameters
    ----------
    horizon : float
        T.
    n_states, n_actions : int
        S and A.
    diameter : float
        D, the largest expected time to reach one state from another under the best policy for it.
    reward_max : float
        The range of the rewards.

    Returns
    -------
    float
        The bound, in units of reward.

    Examples
    --------
    >>> lower_bound(10_000, 10, 10, diameter=100.0)
    150.0
    """
    D = real("diameter", diameter, 0.0)
    return LOWER * reward_max * math.sqrt(D * n_states * n_actions * real("horizon", horizon, 0.0))
