"""RiverSwim as used by Maillard and co-authors."""

from __future__ import annotations

from typing import Literal

from gainful.arguments import choice, whole
from gainful.environments.river import RIVER_BYTES, against_the_current, certain_left, river
from gainful.machine import check_table_size
from gainful.mdp.model import MDP


def riverswim_maillard(
    n_states: int = 6, *, reward_law: Literal["deterministic", "bernoulli"] = "deterministic"
) -> MDP:
    """RiverSwim, Maillard's parameters: the same current everywhere; a move that does not exist stays.

    Swimming left always succeeds. Swimming right moves right with probability .6, left with .05, and otherwise stays;
    at a bank, a move that does not exist stays. The rewards are .1 for left at the left bank and 1 for right at the
    right bank.
    Source: the parameters used in the experiments of O.-A. Maillard and co-authors.

    Parameters
    ----------
    n_states : int
        S, at least 2.
    reward_law : {"deterministic", "bernoulli"}
        How rewards are drawn.

    Returns
    -------
    MDP
        Always swimming right is optimal: the chain has pi(s+1)/pi(s) = 12, so the gain is
        11 * 12**(S-1) / (12**S - 1), which is 248832/271453 for S = 6 (span 8.181822, diameter 8.925620).

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.riverswim_maillard(6)).gain, 6)
    0.916667
    """
    S = whole("n_states", n_states, 2)
    check_table_size("n_states", S, 2, RIVER_BYTES, "a river")
    law = choice("reward_law", reward_law, ("deterministic", "bernoulli"))
    right = against_the_current(S, first=(0.35 + 0.05, 0.6), inside=(0.05, 0.35, 0.6), last=(0.05, 0.6 + 0.35))
    return river("riverswim-maillard", certain_left(S), right, 0.1, law)
