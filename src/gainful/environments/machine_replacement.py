"""A machine that wears out."""

from __future__ import annotations

import numpy as np

from gainful.arguments import real, whole
from gainful.machine import check_table_size
from gainful.mdp.model import MDP
from gainful.mdp.model_size import DENSE_BYTES


def machine_replacement(
    n_states: int = 10,
    *,
    wear_probability: float = 0.2,
    operating_cost: float = 1.0,
    replacement_cost: float = 20.0,
) -> MDP:
    """Machine replacement: running a worn machine costs more and more, a new one has its price. Costs.

    The states are the wear 0 … S-1. "keep" costs operating_cost * wear, and then the wear grows by one with probability
    `wear_probability`. "replace" costs `replacement_cost` and takes the step; the next step starts with wear 0. At the
    largest wear only "replace" is possible. A control limit is optimal (Derman, On optimal replacement rules when
    changes of state are Markovian, 1963): replace at wear m.

    Parameters
    ----------
    n_states : int
        S, at least 2.
    wear_probability : float
        p, in (0, 1].
    operating_cost : float
        c, per step and unit of wear.
    replacement_cost : float
        K.

    Returns
    -------
    MDP
        The average cost is the minimum over m = 1 … S-1 of (c m(m-1)/2 + p K) / (m + p), because a cycle has m/p steps
        of running and one of replacing; with the defaults 35/16, at m = 3.

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.machine_replacement()).gain, 6)
    2.1875
    """
    S = whole("n_states", n_states, 2)
    check_table_size("n_states", S, 2, DENSE_BYTES * S, "a dense model")
    p = real("wear_probability", wear_probability, 0.0, 1.0, low_open=True)
    running = real("operating_cost", operating_cost, 0.0)
    new = real("replacement_cost", replacement_cost, 0.0)
    P = np.zeros((S, 2, S))
    cost = np.zeros((S, 2))
    allowed = np.ones((S, 2), dtype=bool)
    allowed[S - 1, 0] = False
    for s in range(S - 1):
        P[s, 0, s], P[s, 0, s + 1] = 1.0 - p, p
        cost[s, 0] = running * s
    P[:, 1, 0] = 1.0
    cost[:, 1] = new
    return MDP(
        P,
        cost,
        allowed=allowed,
        objective="cost",
        state_labels=[f"wear {s}" for s in range(S)],
        action_labels=("keep", "replace"),
        name="machine-replacement",
    )
