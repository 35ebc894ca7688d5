"""SixArms of Strehl and Littman."""

from __future__ import annotations

import numpy as np

from gainful.mdp.model import MDP

SUCCESS = (1.0, 0.15, 0.1, 0.05, 0.03, 0.01)
PAY = (50.0, 133.0, 300.0, 800.0, 1660.0, 6000.0)


def six_arms() -> MDP:
    """SixArms: six rooms around a hall; the harder a room is to enter, the more it pays.

    From the hall, action i enters room i+1 with probability 1, .15, .1, .05, .03, .01 and otherwise stays, without
    reward. In room i+1 > 1 action i stays and earns 133, 300, 800, 1660, 6000; any other action returns to the hall.
    In room 1 every action except the fifth stays and earns 50; the fifth returns.
    Source: Strehl & Littman, JCSS 74 (2008); the numbers are those of public re-implementations of that figure, which
    agree.

    Returns
    -------
    MDP
        With gain 6000 (enter the last room once and stay), span 606000 and diameter 101.

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.six_arms(), precision=1e-4).gain, 2)
    6000.0
    """
    P = np.zeros((7, 6, 7))
    R = np.zeros((7, 6))
    for a, (p, pay) in enumerate(zip(SUCCESS, PAY, strict=True)):
        P[0, a, 0], P[0, a, a + 1] = 1.0 - p, p
        stays = [0, 1, 2, 3, 5] if a == 0 else [a]
        P[a + 1, :, 0] = 1.0
        P[a + 1, stays, 0], P[a + 1, stays, a + 1] = 0.0, 1.0
        R[a + 1, stays] = pay
    return MDP(
        P,
        R,
        state_labels=["hall", *(f"room {i}" for i in range(1, 7))],
        action_labels=[f"arm {i}" for i in range(1, 7)],
        name="six-arms",
    )
