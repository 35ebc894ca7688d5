"""Two servers with a queue each, in continuous time."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from gainful.arguments import real, whole
from gainful.machine import check_table_size
from gainful.mdp.model import MDP


def server_routing(
    capacity: int = 8,
    *,
    arrival_rate: float = 1.2,
    first_service_rate: float = 1.0,
    second_service_rate: float = 0.6,
    first_holding_cost: float = 1.0,
    second_holding_cost: float = 1.0,
    loss_cost: float = 30.0,
) -> MDP:
    """Routing to two servers: each customer is sent to one of two queues, where waiting costs. Per unit of time.

    A state is the number of customers at the first and at the second server, each 0 … capacity, including the one in
    service. Customers arrive at `arrival_rate`; the current action says which server gets the next one. A customer who
    is sent to a full server is lost, which costs `loss_cost` at that moment. Each server works at its own rate; each
    customer costs the holding cost of its server, per unit of time. The process is uniformised; the gain is a cost per
    unit of time.
    Source: Winston, Optimality of the shortest line discipline, J. Applied Probability 14 (1977), for equal servers;
    here with finite capacity.

    Parameters
    ----------
    capacity : int
        The largest number of customers at each server.
    arrival_rate : float
        Arrivals per unit of time.
    first_service_rate, second_service_rate : float
        Services per unit of time.
    first_holding_cost, second_holding_cost : float
        Cost of each customer at the server, per unit of time.
    loss_cost : float
        Cost of a lost customer.

    Returns
    -------
    MDP
        With capacity 1, equal servers of rate m and x = arrival_rate / m, sending to a free server is optimal if
        loss_cost is high: then with Erlang's loss B = (x²/2) / (1 + x + x²/2) the cost is
        holding_cost * x (1 - B) + loss_cost * arrival_rate * B. Otherwise there is no closed form; with the defaults
        the cost is 3.564374 per unit of time (independent linear programme).

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.server_routing()).gain, 6)
    3.564374
    """
    K = whole("capacity", capacity, 1)
    arrivals = real("arrival_rate", arrival_rate, 0.0, low_open=True)
    service = (
        real("first_service_rate", first_service_rate, 0.0, low_open=True),
        real("second_service_rate", second_service_rate, 0.0, low_open=True),
    )
    holding = (
        real("first_holding_cost", first_holding_cost, 0.0),
        real("second_holding_cost", second_holding_cost, 0.0),
    )
    lost = real("loss_cost", loss_cost, 0.0)
    S = (K + 1) ** 2
    check_table_size("capacity", S, 2, 1100.0, "a model")  # measured
    state = np.arange(S)
    present = np.stack(np.divmod(state, K + 1))  # (2, S) customers at each server; state = first * (K+1) + second
    one = np.array([K + 1, 1])  # how the state moves with one customer more at a server
    rates, losses = [], []
    for a in range(2):
        full = present[a] == K
        rate = sp.coo_array(
            (np.full(S, arrivals), (state, np.where(full, state, state + one[a]))), shape=(S, S)
        ).tocsr()
        for server in range(2):
            busy = state[present[server] > 0]
            rate = rate + sp.coo_array((np.full(busy.size, service[server]), (busy, busy - one[server])), shape=(S, S))
        rates.append(rate)
        losses.append(sp.coo_array((np.full(full.sum(), lost), (state[full], state[full])), shape=(S, S)).tocsr())
    return MDP.from_rates(
        rates,
        costs=holding[0] * present[0] + holding[1] * present[1],
        jump_costs=losses,
        state_labels=[f"{m} and {n}" for m, n in present.T],
        action_labels=("send to first", "send to second"),
        name="server-routing",
    )
