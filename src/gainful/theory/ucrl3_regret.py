"""The regret of UCRL3, as far as its theorem has constants (Bourel, Maillard & Talebi 2020, theorem 1).

With probability 1-4δ, simultaneously for all T ≥ 3, in units of r_max and with ℓ = ln(6·S²·A·√(T+1)/δ),

    R(T) ≤ [5·√(Σ D_s²·L_sa) + 10·√(SA) + 2D]·√(T·ℓ) + 30·D·K·(SA)^{2/3}·T^{1/3} + O(D·S²·A·ln²(T/δ)).

The last term is printed without a constant, so the sum of the others is no bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gainful.arguments import real
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP, require_mdp
from gainful.planning.hitting import hitting_times
from gainful.theory.bound_terms import BoundTerms
from gainful.theory.local_hardness import effective_supports, local_diameters


@dataclass(frozen=True)
class UCRL3Terms(BoundTerms):
    """The terms of UCRL3's theorem that have a constant, in units of reward; their sum is no bound.

    Attributes
    ----------
    transitions : float
        5·√(Σ D_s²·L_sa·T·ℓ): the errors of the transition probabilities.
    rewards : float
        10·√(SA·T·ℓ).
    martingale : float
        2D·√(T·ℓ).
    supports : float
        30·D·K·(SA)^{2/3}·T^{1/3}: what plans lose by leaving out next states, K the largest number of them. It is
        Σ κ over the run, with Σ N^{-2/3} ≤ 3·(SA)^{2/3}·T^{1/3}.

    Examples
    --------
    >>> UCRL3Terms(transitions=5.0, rewards=2.0, martingale=1.0, supports=2.0).total
    10.0
    """

    transitions: float
    rewards: float
    martingale: float
    supports: float


def ucrl3_regret_terms(horizon: float, mdp: MDP, *, delta: float = 0.05) -> UCRL3Terms:
    """The printed terms of UCRL3's regret bound in a given MDP; the theorem has one more, whose constant is unknown.

    Parameters
    ----------
    horizon : float
        T, at least 3.
    mdp : MDP
        A communicating process: D_s, L_sa and D are computed from it.
    delta : float
        The agent's δ; the theorem holds with probability 1-4δ.

    Returns
    -------
    UCRL3Terms
        The terms, in units of reward.

    Raises
    ------
    InvalidArgumentError
        For arguments out of range, or if some state cannot be reached from some other.

    Examples
    --------
    >>> import gainful as gf
    >>> terms = ucrl3_regret_terms(1e8, gf.environments.riverswim(6))
    >>> f"{terms.transitions:,.0f}", f"{terms.supports:,.0f}"
    ('3,216,912', '3,223,592')
    """
    require_mdp(mdp)
    T, chance = real("horizon", horizon, 3.0), real("delta", delta, 0.0, 1.0, low_open=True)
    S, A = mdp.n_states, mdp.n_actions
    low, high = mdp.reward_range
    times = hitting_times(mdp)
    diameter = float(times.max())
    if math.isinf(diameter):
        raise InvalidArgumentError(
            "mdp",
            mdp.name or "an MDP",
            "a communicating process, of finite diameter",
            problem="some state cannot be reached from some other",
        )
    sizes = float(np.sum(local_diameters(mdp, times)[:, None] ** 2 * effective_supports(mdp)))
    root = math.sqrt(T * math.log(6.0 * S**2 * A * math.sqrt(T + 1.0) / chance))
    r_max = high - low
    return UCRL3Terms(
        transitions=r_max * 5.0 * math.sqrt(sizes) * root,
        rewards=r_max * 10.0 * math.sqrt(S * A) * root,
        martingale=r_max * 2.0 * diameter * root,
        supports=r_max * 30.0 * diameter * mdp.max_support * (S * A) ** (2.0 / 3.0) * T ** (1.0 / 3.0),
    )
