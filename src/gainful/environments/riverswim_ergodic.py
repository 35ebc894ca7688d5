"""The ergodic RiverSwim: going left may fail too, so every policy visits every state."""

from __future__ import annotations

from typing import Literal

import scipy.sparse as sp

from gainful.arguments import choice, real, whole
from gainful.environments.river import RIVER_BYTES, against_the_current, river
from gainful.machine import check_table_size
from gainful.mdp.model import MDP


def riverswim_ergodic(
    n_states: int = 6,
    *,
    left_success: float = 0.9,
    reward_law: Literal["deterministic", "bernoulli"] = "deterministic",
) -> MDP:
    """Ergodic RiverSwim: Maillard's, except that swimming left moves right with probability 1 - left_success.

    Swimming right moves right with probability .6, left with .05, and otherwise stays; swimming left moves left with
    probability `left_success` and otherwise right; at a bank, a move that does not exist stays. The rewards are .1 for
    left at the left bank and 1 for right at the right bank. Sources use different numbers for swimming left, hence the
    parameter.

    Parameters
    ----------
    n_states : int
        S, at least 2.
    left_success : float
        The probability that swimming left succeeds, in (0, 1).
    reward_law : {"deterministic", "bernoulli"}
        How rewards are drawn.

    Returns
    -------
    MDP
        If left_success >= .6, always swimming right is optimal and the gain is Maillard's,
        11 * 12**(S-1) / (12**S - 1).

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.riverswim_ergodic(6)).gain, 6)
    0.916667
    """
    S = whole("n_states", n_states, 2)
    check_table_size("n_states", S, 2, RIVER_BYTES, "a river")
    success = real("left_success", left_success, 0.0, 1.0, low_open=True, high_open=True)
    law = choice("reward_law", reward_law, ("deterministic", "bernoulli"))
    left = sp.lil_array((S, S))
    for s in range(S):
        left[s, max(s - 1, 0)] += success
        left[s, min(s + 1, S - 1)] += 1.0 - success
    right = against_the_current(S, first=(0.35 + 0.05, 0.6), inside=(0.05, 0.35, 0.6), last=(0.05, 0.6 + 0.35))
    return river("riverswim-ergodic", left, right, 0.1, law)
