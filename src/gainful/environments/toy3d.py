"""Three states on which diameter and span part ways."""

from __future__ import annotations

import numpy as np

from gainful.arguments import real
from gainful.mdp.model import MDP


def toy3d(delta: float = 0.005) -> MDP:
    """Toy3D: the diameter grows like 1/delta while the span of the bias stays near 1.

    s0 (one action) moves to s1 with probability delta, else to s2, reward 0. s1 (one action) moves to s0, reward 1/3.
    s2: "go" moves to s0, or with probability delta to s1; "stay" stays; both pay 2/3.
    Source: the three-state domain of Fruit, Pirotta, Lazaric & Ortner, Efficient bias-span-constrained
    exploration-exploitation in reinforcement learning (2018), as restated for this project.

    Gain 2/3, span 1/(1-delta), diameter max{1/delta, 2/(1-delta)}. With delta = 0 state s1 cannot be reached: no
    longer communicating (unichain), infinite diameter.
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
