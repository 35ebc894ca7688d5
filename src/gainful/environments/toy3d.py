"""Three states for which diameter and span differ widely."""

from __future__ import annotations

import numpy as np

from gainful.arguments import real
from gainful.mdp.model import MDP


def toy3d(delta: float = 0.005) -> MDP:
    """Toy3D: the diameter grows like 1/delta while the span of the bias stays near 1.

    s0 (one action) moves to s1 with probability delta and otherwise to s2, with reward 0. s1 (one action) moves to s0,
    with reward 1/3. In s2, "go" moves to s0, or to s1 with probability delta; "stay" stays; both earn 2/3.
    Source: the three-state domain of Fruit, Pirotta, Lazaric & Ortner, Efficient bias-span-constrained
    exploration-exploitation in reinforcement learning (2018), as restated for this project.

    Parameters
    ----------
    delta : float
        In [0, 1). With delta = 0, state s1 cannot be reached: the problem is unichain instead of communicating, and its
        diameter is infinite.

    Returns
    -------
    MDP
        With gain 2/3, span 1/(1-delta) and diameter max{1/delta, 2/(1-delta)}.

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.toy3d()).gain, 6)
    0.666667
    """
    d = real("delta", delta, 0.0, 1.0, high_open=True)
    P = np.zeros((3, 2, 3))
    P[0, 0] = 0.0, d, 1.0 - d
    P[1, 0, 0] = 1.0
    P[2, 0] = 1.0 - d, d, 0.0
    P[2, 1, 2] = 1.0
    R = np.array([[0.0, 0.0], [1 / 3, 0.0], [2 / 3, 2 / 3]])
    allowed = np.array([[True, False], [True, False], [True, True]])
    return MDP(P, R, allowed=allowed, state_labels=("s0", "s1", "s2"), action_labels=("go", "stay"), name="toy3d")
