"""The smallest problem in which the best rewards lie in states that nothing leads to."""

from __future__ import annotations

import numpy as np

from gainful.arguments import flag, whole
from gainful.machine import check_table_size
from gainful.mdp.model import MDP
from gainful.mdp.model_size import DENSE_BYTES


def weakly_communicating_toy(n_transient: int = 1, *, start_above: bool = False) -> MDP:
    """Two states that reach each other and, above them, better states that cannot be re-entered once left.

    "low": "stay" earns 1/4, "go" moves to "high" with reward 0. "high": "stay" earns 1/2, "go" moves to "low" with
    reward 0. "cloud k", k = 1 … n_transient: every step earns 1; "go" falls to the cloud below (from "cloud 1" to
    "low"), "stay" does so with probability 1/2. No action leads up to a cloud: these states are transient, unreachable
    from the start "low", and never seen unless the process starts there.
    This is the case of Fruit, Pirotta & Lazaric, Near optimal exploration-exploitation in non-communicating MDPs
    (2018): an optimistic agent that considers every state reachable keeps searching for the clouds, at a cost that
    never ends; TUCRL stops. It is the smallest example of their point, not a copy of their figure.

    Parameters
    ----------
    n_transient : int
        The number of clouds, at least 1.
    start_above : bool
        Whether to start at the highest cloud.

    Returns
    -------
    MDP
        Weakly communicating and not unichain, with gain 1/2 from every state. The bias is 0 at "high", -1/2 at "low"
        and k - 1/2 at "cloud k" (span n_transient, or 1/2 without the clouds). The diameter is infinite, or 1 without
        the clouds.

    Examples
    --------
    >>> import gainful as gf
    >>> mdp = gf.environments.weakly_communicating_toy()
    >>> str(gf.structure(mdp)), round(gf.solve(mdp).gain, 6)
    ('weakly communicating', 0.5)
    """
    n = whole("n_transient", n_transient, 1)
    check_table_size("n_transient", n, 2, DENSE_BYTES * n, "a dense model")
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
