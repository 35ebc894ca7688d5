"""A machine that wears out."""

from __future__ import annotations

import numpy as np

from gainful.arguments import real, whole
from gainful.mdp.model import MDP


def machine_replacement(
    n_states: int = 10,
    *,
    wear_probability: float = 0.2,
    operating_cost: float = 1.0,
    replacement_cost: float = 20.0,
) -> MDP:
    """Machine replacement: running a worn machine costs more each step, a new one costs once. Costs.

    States are the wear 0 … S-1. "keep" costs operating_cost * wear and then wears by one with `wear_probability`.
    "replace" costs `replacement_cost`, takes the step, and the next step starts with wear 0. At the last wear only
    "replace" is left. A control limit is optimal (Derman, On optimal replacement rules when changes of state are
    Markovian, 1963): replace at wear m.

    Average cost min over m = 1 … S-1 of (c m(m-1)/2 + p K) / (m + p), with p the wear probability, c and K the
    operating and replacement costs (a cycle has m/p steps of running and one of replacing); 35/16 at m = 3 by default.
    """
    S = whole("n_states", n_states, 2)
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
