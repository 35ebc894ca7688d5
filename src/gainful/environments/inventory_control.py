"""A shop that orders every morning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammainc, gammaln

from gainful.arguments import real, reals, whole
from gainful.errors import InvalidArgumentError
from gainful.machine import check_table_size
from gainful.mdp.model import MDP
from gainful.mdp.model_size import DENSE_BYTES


def inventory_control(
    capacity: int = 20,
    *,
    mean_demand: float = 5.0,
    demand: Sequence[float] | None = None,
    order_cost: float = 4.0,
    unit_cost: float = 2.0,
    holding_cost: float = 1.0,
    lost_sale_cost: float = 8.0,
) -> MDP:
    """Inventory control with lost sales: order in each period, pay for ordering, storage and lost demand. Costs.

    The state is the stock 0 … capacity at the start of a period. First q units are ordered and arrive at once
    (stock + q <= capacity), then the demand D occurs: min(D, stock + q) is sold and the rest of D is lost. The cost of
    the period is order_cost if q > 0, plus unit_cost * q, plus holding_cost per unit left, plus lost_sale_cost per unit
    lost (the last two as their expectation).
    Model: Puterman, Markov Decision Processes (1994), section 3.2, with lost sales.

    Parameters
    ----------
    capacity : int
        The largest stock.
    mean_demand : float
        The mean of a Poisson demand.
    demand : sequence of float, optional
        P(D = 0), P(D = 1), …, in place of a Poisson demand.
    order_cost : float
        The fixed cost of an order.
    unit_cost, holding_cost, lost_sale_cost : float
        Costs per unit ordered, left over, and lost.

    Returns
    -------
    MDP
        With order_cost = 0, ordering up to a level y is optimal (newsvendor) and the average cost is the minimum over y
        of unit_cost E min(D,y) + holding_cost E(y-D)+ + lost_sale_cost E(D-y)+; otherwise an (s, S) rule is optimal,
        without a closed form.

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.inventory_control()).gain, 6)
    17.292604
    """
    M = whole("capacity", capacity, 1)
    check_table_size("capacity", M, M, DENSE_BYTES * M, "a dense model")
    fixed = real("order_cost", order_cost, 0.0)
    unit = real("unit_cost", unit_cost, 0.0)
    holding = real("holding_cost", holding_cost, 0.0)
    lost = real("lost_sale_cost", lost_sale_cost, 0.0)
    if demand is None:
        mean = real("mean_demand", mean_demand, 0.0, low_open=True)
        d = np.arange(M)
        below = np.exp(d * np.log(mean) - mean - gammaln(d + 1))  # P(D = d), d < capacity
        at_least = np.concatenate([[1.0], gammainc(d + 1, mean)])  # P(D >= y), y = 0 … capacity
    else:
        law = np.array(reals("demand", demand))
        if law.min() < 0.0 or abs(law.sum() - 1.0) > 1e-8:
            raise InvalidArgumentError(
                "demand",
                law,
                "probabilities of 0, 1, 2, …",
                problem=f"demand sums to {law.sum():.10g} (smallest entry {law.min():g})",
            )
        if law[0] >= 1.0 or not law[1:].any():
            raise InvalidArgumentError(
                "demand", law, "a positive probability of some demand", problem="demand is always 0"
            )
        law = law / law.sum()
        mean = float(law @ np.arange(law.size))
        padded = np.zeros(max(law.size, M + 1))
        padded[: law.size] = law
        below = padded[:M]
        at_least = padded[::-1].cumsum()[::-1][: M + 1]

    levels = np.arange(M + 1)
    after = np.zeros((M + 1, M + 1))  # after[y, s]: stock left at s when the period is faced with y
    for y in levels:
        after[y, 0] = at_least[y]
        after[y, 1 : y + 1] = below[:y][::-1]
    left = after @ levels  # E(y-D)+
    missed = mean - (levels - left)  # E(D-y)+ = E D - E min(D,y)
    S = A = M + 1
    P = np.zeros((S, A, S))
    cost = np.zeros((S, A))
    allowed = np.zeros((S, A), dtype=bool)
    for s in range(S):
        for q in range(M - s + 1):
            P[s, q] = after[s + q]
            cost[s, q] = (fixed if q else 0.0) + unit * q + holding * left[s + q] + lost * missed[s + q]
            allowed[s, q] = True
    return MDP(
        P,
        cost,
        allowed=allowed,
        objective="cost",
        state_labels=[f"stock {s}" for s in range(S)],
        action_labels=[f"order {q}" for q in range(A)],
        name="inventory-control",
    )
