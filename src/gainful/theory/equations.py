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
    """β = sqrt(7·ln(2·S·A·t_k/δ) / max{1, N}).

    >>> float(scal_plus_beta(7, 1, 1, 1, 2 / np.e))
    1.0
    """
    N = np.maximum(1, np.asarray(visits))
    return np.asarray(np.sqrt(7.0 * np.log(2.0 * n_states * n_actions * np.asarray(t) / delta) / N))


def scal_plus_phi(visits: ArrayLike, t: ArrayLike, n_states: int, n_actions: int, delta: float, support: int) -> Floats:
    """φ = sqrt(7·(Γ-1)·ℓ₃/N⁺) + 14·S·ℓ₃/N⁺, ℓ₃ = ln(3·S·A·t_k/δ), N⁺ = max{1, N}, Γ = `support`.

    For points in cells take support = number of cells + 1: the proof then has S in place of Γ-1.
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
    """b_k: c·min{β + 1/(N+1), 2} + r_max·min{β, 1}, or in the main text (c + r_max)·β + c/(N+1).

    `scale` multiplies β; 1 is the theorem's. The Hölder term of C-SCAL+ comes on top.
    """
    N = np.asarray(visits)
    beta = scale * scal_plus_beta(N, t, n_states, n_actions, delta)
    if variant == "main text":
        return np.asarray((span + reward_max) * beta + span / (N + 1))
    return np.asarray(span * np.minimum(beta + 1.0 / (N + 1), 2.0) + reward_max * np.minimum(beta, 1.0))


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
    """d_k = c·min{φ + 1/(N+1), 2} + r_max·min{β, 1}: what bounds the model's error for every v of span ≤ c at once."""
    N = np.asarray(visits)
    beta = scal_plus_beta(N, t, n_states, n_actions, delta)
    phi = scal_plus_phi(N, t, n_states, n_actions, delta, support)
    return np.asarray(span * np.minimum(phi + 1.0 / (N + 1), 2.0) + reward_max * np.minimum(beta, 1.0))
