r"""The regret of SCAL+ and C-SCAL+ with the sharp bonus, with every constant.

Theorem 11 of `docs/kl_scal_plus.md`, in units of r_max, with Λ = ln(6·S²·A·√T/δ) and m doubling episodes:

    R(T) ≤ [c·(2√Γ + 2√2) + 5]·√(SATΛ) + c√(TΛ) + 4√T + c·[(4 + (4/3)·ΓΛ)·SA·ln T + 2SA + m] + 3SA.

On K cells of width w (K for S in Λ), where p̄ is compared with the mean of the laws of the visited points in ℓ₁ and
the Hölder term is the paper's:

    R(T) ≤ (1.5c + 2)·L·w^α·T + 2√2·√(KAT)·[c√(K ln 2 + Λ) + (c + 2)√Λ] + c√(TΛ) + 4√T + c·[4KA·ln T + 2KA + m] + 3KA.

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
from gainful.theory.kl_regret import EPISODE_RULES, most_episodes

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SharpTerms(BoundTerms):
    """The terms of the regret bound of SCAL+ with the sharp bonus, in units of reward.

    Attributes
    ----------
    bonus : float
        2√2·c·√(SATΛ) + 2c·SA·ln T: the sum of b.
    deviation : float
        2c·√(ΓSATΛ) + c·(2 + (4/3)·ΓΛ)·SA·ln T: the errors of p̂.
    rewards : float
        5√(SATΛ) + SA: the errors of r̃.
    new_pairs : float
        2c·SA: pairs never visited.
    martingale : float
        c√(TΛ).
    telescoping : float
        c for every episode.
    precision : float
        4√T + 2SA: the planner's precision.
    cells : float
        C-SCAL+ only: (1.5c + 2)·L·w^α·T, for states of one cell differ.

    Examples
    --------
    >>> terms = SharpTerms(4.0, 2.0, rewards=1.0, new_pairs=0.5, martingale=0.5, telescoping=1.0, precision=1.0)
    >>> terms.total
    10.0
    """

    bonus: float
    deviation: float
    rewards: float
    new_pairs: float
    martingale: float
    telescoping: float
    precision: float
    cells: float = 0.0


def sharp_terms_at(
    T: Floats,
    n_states: int,
    n_actions: int,
    *,
    span: float,
    support: int,
    reward_max: float,
    delta: float,
    smoothness: float | None = None,
    episodes: str = "doubling",
) -> dict[str, Floats]:
    """The terms of `SharpTerms` after each of the horizons T ≥ 1; `smoothness` is L·w^α if the states are cells."""
    S, pairs, c = n_states, n_states * n_actions, span / reward_max
    log = np.log(6.0 * S**2 * n_actions * np.sqrt(T) / delta)
    roots, harmonic = np.sqrt(pairs * T), pairs * np.log(T)
    if smoothness is None:
        deviation = 2.0 * c * np.sqrt(support * log) * roots + c * (2.0 + 4.0 / 3.0 * support * log) * harmonic
        rewards, cells = 5.0 * np.sqrt(log) * roots, np.zeros_like(T)
    else:
        deviation = math.sqrt(8.0) * c * np.sqrt(S * math.log(2.0) + log) * roots + 2.0 * c * harmonic
        rewards, cells = 2.0 * math.sqrt(8.0) * np.sqrt(log) * roots, (1.5 * c + 2.0) * smoothness * T
    terms = {
        "bonus": math.sqrt(8.0) * c * np.sqrt(log) * roots + 2.0 * c * harmonic,
        "deviation": deviation,
        "rewards": rewards + pairs,
        "new_pairs": np.full_like(T, 2.0 * c * pairs),
        "martingale": c * np.sqrt(T * log),
        "telescoping": c * most_episodes(T, pairs, episodes),
        "precision": 4.0 * np.sqrt(T) + 2.0 * pairs,
        "cells": cells,
    }
    return {name: reward_max * np.asarray(term) for name, term in terms.items()}


def sharp_terms(
    horizon: float,
    n_states: int,
    n_actions: int,
    *,
    span: float,
    support: int | None = None,
    reward_max: float = 1.0,
    delta: float = 0.05,
    lipschitz: float | None = None,
    holder: float | None = None,
    bins: int | None = None,
    episodes: str = "doubling",
) -> SharpTerms:
    """Every term of the regret bound of SCAL+ or C-SCAL+ with the sharp bonus after T = `horizon` steps.

    With probability 1-3δ, simultaneously for all T, Σ (g* - r(s_t,a_t)) is at most their sum if sp(h*) ≤ c (theorem 11
    of `docs/kl_scal_plus.md`).

    Parameters
    ----------
    horizon : float
        T, at least 1.
    n_states, n_actions : int
        S and A. For C-SCAL+, S is the number of cells.
    span : float
        c ≥ sp(h*), in units of reward.
    support : int, optional
        Γ, the largest number of next states that a pair has; S by default. Not for C-SCAL+.
    reward_max : float
        Rewards lie in an interval of this length.
    delta : float
        The agent's δ.
    lipschitz, holder, bins : float, float, int, optional
        L, α and the number of cells per axis, whose width is 1/bins: all three for C-SCAL+, none for SCAL+.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes; shorter ones enter with their number only.

    Returns
    -------
    SharpTerms
        The terms, in units of reward.

    Raises
    ------
    InvalidArgumentError
        For arguments out of range, or that do not belong together.

    Examples
    --------
    >>> terms = sharp_terms(1e8, 6, 2, span=7.0, support=3)
    >>> f"{terms.total:,.0f}", f"{terms.precision:,.0f}"
    ('7,724,108', '40,024')
    """
    S = whole("n_states", n_states, 1)
    smooth = (lipschitz, holder, bins)
    if any(x is None for x in smooth) and any(x is not None for x in smooth):
        raise InvalidArgumentError(
            "lipschitz",
            smooth,
            hint="give all three (C-SCAL+) or none",
            problem="lipschitz, holder and bins belong together",
        )
    smoothness = None
    if lipschitz is not None and holder is not None and bins is not None:
        smoothness = real("lipschitz", lipschitz, 0.0) * whole("bins", bins, 1) ** -real(
            "holder", holder, 0.0, 1.0, low_open=True
        )
    if support is not None and smoothness is not None:
        raise InvalidArgumentError(
            "support",
            support,
            hint="for cells the proof takes their number",
            problem="support and lipschitz are both given",
        )
    terms = sharp_terms_at(
        np.array([real("horizon", horizon, 1.0)]),
        S,
        whole("n_actions", n_actions, 1),
        span=real("span", span, 0.0),
        support=S if support is None else whole("support", support, 1, S),
        reward_max=real("reward_max", reward_max, 0.0, low_open=True),
        delta=real("delta", delta, 0.0, 1.0, low_open=True),
        smoothness=smoothness,
        episodes=choice("episodes", episodes, EPISODE_RULES),
    )
    return SharpTerms(**{name: float(values[0]) for name, values in terms.items()})
