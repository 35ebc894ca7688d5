"""Admission to a single-server queue, in continuous time."""

from __future__ import annotations

import numpy as np

from gainful.arguments import real, whole
from gainful.machine import check_table_size
from gainful.mdp.model import MDP
from gainful.mdp.model_size import DENSE_BYTES


def admission_control(
    capacity: int = 20,
    *,
    arrival_rate: float = 0.8,
    service_rate: float = 1.0,
    reward: float = 10.0,
    holding_cost: float = 1.0,
) -> MDP:
    """Admission control of an M/M/1/K queue: each admitted customer pays, each one present costs. Per unit of time.

    The state is the number of customers in the system, 0 … K. Customers arrive at `arrival_rate`; "accept" admits the
    next one and earns `reward` at that moment, "reject" turns it away; with K customers present only "reject" is
    possible. Service ends at `service_rate`. Each customer present costs `holding_cost` per unit of time. The process
    is uniformised, and the gain is per unit of time.
    Source: Naor, The regulation of queue size by levying tolls, Econometrica 37 (1969): admit below a threshold n.

    Parameters
    ----------
    capacity : int
        K, the largest number of customers in the system.
    arrival_rate, service_rate : float
        Rates per unit of time.
    reward : float
        Earned for each admitted customer.
    holding_cost : float
        Cost of each customer present, per unit of time.

    Returns
    -------
    MDP
        With x = arrival_rate / service_rate != 1, the threshold n earns
        arrival_rate * reward * (1 - x**n) / (1 - x**(n+1))
        - holding_cost * (x/(1-x) - (n+1) x**(n+1) / (1 - x**(n+1))); the gain is the maximum over n = 0 … K.

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.admission_control()).gain, 6)
    5.462161
    """
    K = whole("capacity", capacity, 1)
    check_table_size("capacity", K, 2, 2 * DENSE_BYTES * K, "a dense model")  # rates and entries
    arrivals = real("arrival_rate", arrival_rate, 0.0, low_open=True)
    service = real("service_rate", service_rate, 0.0, low_open=True)
    pay = real("reward", reward)
    holding = real("holding_cost", holding_cost, 0.0)
    S = K + 1
    rates = np.zeros((S, 2, S))
    entry = np.zeros((S, 2, S))
    for s in range(S):
        if s > 0:
            rates[s, :, s - 1] = service
        if s < K:
            rates[s, 1, s + 1] = arrivals
            entry[s, 1, s + 1] = pay
    allowed = np.ones((S, 2), dtype=bool)
    allowed[K, 1] = False
    return MDP.from_rates(
        rates,
        np.repeat(-holding * np.arange(S)[:, None], 2, axis=1),
        jump_rewards=entry,
        allowed=allowed,
        state_labels=["empty", *(f"{s} in system" for s in range(1, S))],
        action_labels=("reject", "accept"),
        name="admission-control",
    )
