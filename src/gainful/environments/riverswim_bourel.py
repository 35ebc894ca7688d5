"""RiverSwim as used by Bourel, Maillard and Talebi."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp

from gainful.arguments import choice, whole
from gainful.mdp.model import MDP


def riverswim_bourel(n_states: int = 25, *, reward_law: Literal["deterministic", "bernoulli"] = "deterministic") -> MDP:
    """RiverSwim, Bourel's parameters: a weak swimmer on a long river, which is slow to explore.

    Swimming left always succeeds. Swimming right moves right with probability .4, left with .05, and otherwise stays;
    at a bank, a move that does not exist stays. The rewards are .05 for left at the left bank and 1 for right at the
    right bank.
    Source: Bourel, Maillard & Talebi, Tightening exploration in upper confidence reinforcement learning (ICML 2020),
    and the library statisticalrl.

    Parameters
    ----------
    n_states : int
        S, at least 2.
    reward_law : {"deterministic", "bernoulli"}
        How rewards are drawn.

    Returns
    -------
    MDP
        Always swimming right is optimal: the chain has pi(s+1)/pi(s) = 8, so the gain is 7 * 8**(S-1) / (8**S - 1),
        which is .875 to 22 digits for S = 25 (span 59.64, diameter 68.16).

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.riverswim_bourel(25)).gain, 6)
    0.875
    """
    S = whole("n_states", n_states, 2)
    law = choice("reward_law", reward_law, ("deterministic", "bernoulli"))
    left, right = sp.lil_array((S, S)), sp.lil_array((S, S))
    for s in range(S):
        left[s, max(s - 1, 0)] = 1.0
    right[0, 0], right[0, 1] = 0.6, 0.4
    for s in range(1, S - 1):
        right[s, s - 1], right[s, s], right[s, s + 1] = 0.05, 0.55, 0.4
    right[S - 1, S - 2], right[S - 1, S - 1] = 0.05, 0.95
    R = np.zeros((S, 2))
    R[0, 0], R[S - 1, 1] = 0.05, 1.0
    return MDP(
        [left, right],
        R,
        reward_law="bernoulli" if law == "bernoulli" else "deterministic",
        state_labels=["left bank", *(f"river {s}" for s in range(1, S - 1)), "right bank"],
        action_labels=("left", "right"),
        name="riverswim-bourel",
    )
