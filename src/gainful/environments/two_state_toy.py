"""The smallest problem on which a span constraint costs gain."""

from __future__ import annotations

import numpy as np

from gainful.mdp.model import MDP


def two_state_toy() -> MDP:
    """Two states, each left or kept at will; the second earns 1 per step, the first one half.

    s0: "go" moves to s1, with reward 0; "stay" earns 1/2. s1: "go" moves to s0, with reward 0; "stay" earns 1. All
    moves are deterministic.

    Returns
    -------
    MDP
        With gain, span and diameter 1. Under the constraint span <= c the best gain is clip(c, 1/2, 1), leaving s1 with
        probability 1/(2+2c) for c < 1/2 and (1-c)/(1+c) for 1/2 <= c < 1.

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.scopt(gf.environments.two_state_toy(), span=0.75).gain, 6)
    0.75
    """
    P = np.array([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])
    R = np.array([[0.0, 0.5], [0.0, 1.0]])
    return MDP(P, R, state_labels=("s0", "s1"), action_labels=("go", "stay"), name="two-state-toy")
