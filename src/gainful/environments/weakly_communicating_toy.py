"""The smallest problem in which the best rewards lie in states that nothing leads to."""

from __future__ import annotations

import numpy as np

from gainful.arguments import flag, whole
from gainful.mdp.model import MDP


def weakly_communicating_toy(n_transient: int = 1, *, start_above: bool = False) -> MDP:
    """Two states that reach each other and, above them, better ones that can only be left for good.

    "low": "stay" pays 1/4, "go" moves to "high" and pays 0. "high": "stay" pays 1/2, "go" moves to "low" and pays 0.
    "cloud k", k = 1 … n_transient: every step pays 1; "go" falls to the cloud below (from "cloud 1" to "low"), "stay"
    does so with probability 1/2. No action leads up to a cloud: these states are transient, unreachable from the start
    "low", and unseen unless `start_above` begins at the highest one.
    The case of Fruit, Pirotta & Lazaric, Near optimal exploration-exploitation in non-communicating MDPs (2018): an
    optimist who gives every state a chance to be reached keeps looking for the clouds at a cost that never ends; TUCRL
    stops. Their point on the smallest example, not a copy of their figure.

    Gain 1/2 from every state. Weakly communicating and not unichain; the bias is 0 at "high", -1/2 at "low" and
    k - 1/2 at "cloud k" (span n_transient, or 1/2 without the clouds). The diameter is infinite, 1 without the clouds.
    """
    n = whole("n_transient", n_transient, 1)
    above = flag("start_above", start_above)
    S = n + 2
    P = np.zeros((S, 2, S))
    P[0] = np.eye(S)[[1, 0]]
    P[1] = np.eye(S)[[0, 1]]
    for s in range(2, S):
        below = s - 1 if s > 2 else 0
        P[s, 0, below] = 1.0
        P[s, 1, [s, below]] = 0.5
    R = np.ones((S, 2))
    R[:2] = [[0.0, 0.25], [0.0, 0.5]]
    return MDP(
        P,
        R,
        start=S - 1 if above else 0,
        state_labels=["low", "high", *(f"cloud {k}" for k in range(1, n + 1))],
        action_labels=("go", "stay"),
        name="weakly-communicating-toy",
    )
