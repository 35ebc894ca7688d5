"""The ergodic RiverSwim: going left may fail too, so every policy visits every state."""

from __future__ import annotations

from typing import Literal

import numpy as np

from gainful.arguments import choice, real, whole
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
    success = real("left_success", left_success, 0.0, 1.0, low_open=True, high_open=True)
    law = choice("reward_law", reward_law, ("deterministic", "bernoulli"))
    P = np.zeros((S, 2, S))
    R = np.zeros((S, 2))
    for s in range(S):
        left, right = max(s - 1, 0), min(s + 1, S - 1)
        P[s, 0, left] += success
        P[s, 0, right] += 1.0 - success
        P[s, 1, right] += 0.6
        P[s, 1, s] += 0.35
        P[s, 1, left] += 0.05
    R[0, 0], R[S - 1, 1] = 0.1, 1.0
    return MDP(
        P,
        R,
        reward_law="bernoulli" if law == "bernoulli" else "deterministic",
        state_labels=["left bank", *(f"river {s}" for s in range(1, S - 1)), "right bank"],
        action_labels=("left", "right"),
        name="riverswim-ergodic",
    )
