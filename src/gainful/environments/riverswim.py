"""RiverSwim with the parameters of Osband's posterior-sampling experiments."""

from __future__ import annotations

from typing import Literal

from gainful.arguments import choice, whole
from gainful.environments.river import RIVER_BYTES, against_the_current, certain_left, river
from gainful.machine import check_table_size
from gainful.mdp.model import MDP


def riverswim(n_states: int = 6, *, reward_law: Literal["deterministic", "bernoulli"] = "deterministic") -> MDP:
    """RiverSwim, Osband's parameters: a long swim against the current earns 200 times as much as drifting.

    Swimming left always succeeds. Swimming right: from the left bank .6 right, .4 stay; in between .35 right, .6 stay,
    .05 left; at the right bank .6 stay, .4 left. The rewards are .005 for left at the left bank and 1 for right at the
    right bank.
    Idea: Strehl & Littman, An analysis of model-based interval estimation for MDPs, JCSS 74 (2008); these numbers:
    Osband, Russo & Van Roy, (More) efficient reinforcement learning via posterior sampling (2013).

    Parameters
    ----------
    n_states : int
        S, at least 2.
    reward_law : {"deterministic", "bernoulli"}
        How rewards are drawn.

    Returns
    -------
    MDP
        Always swimming right is optimal. The gain is 21q/(49q - 2) with q = 7**(S-3) for S >= 3, so 7203/16805 for
        S = 6 (span 6.310324, diameter 14.722338), and .6 for S = 2.

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.riverswim(6)).gain, 6)
    0.428622
    """
    S = whole("n_states", n_states, 2)
    check_table_size("n_states", S, 2, RIVER_BYTES, "a river")
    law = choice("reward_law", reward_law, ("deterministic", "bernoulli"))
    right = against_the_current(S, first=(0.4, 0.6), inside=(0.05, 0.6, 0.35), last=(0.4, 0.6))
    return river("riverswim", certain_left(S), right, 0.005, law)
