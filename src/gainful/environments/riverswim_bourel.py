"""RiverSwim as used by Bourel, Maillard and Talebi."""

from __future__ import annotations

from typing import Literal

from gainful.arguments import choice, whole
from gainful.environments.river import RIVER_BYTES, against_the_current, certain_left, river
from gainful.machine import check_table_size
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
    check_table_size("n_states", S, 2, RIVER_BYTES, "a river")
    law = choice("reward_law", reward_law, ("deterministic", "bernoulli"))
    right = against_the_current(S, first=(0.6, 0.4), inside=(0.05, 0.55, 0.4), last=(0.05, 0.95))
    return river("riverswim-bourel", certain_left(S), right, 0.05, law)
