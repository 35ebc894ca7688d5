"""A shop with a continuous stock: oil, grain, water."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined
from gainful.arguments import real, whole
from gainful.environments.continuous.environment import ContinuousEnvironment, Curvature, EnvironmentKind
from gainful.environments.continuous.noise import clip_unit, exponential
from gainful.rng import draw

DRAWS = 1
_CAPACITY, _MEAN, _ORDER, _PRICE, _FIXED, _UNIT, _HOLDING, _REWARD_LOW, _REWARD_HIGH = range(9)


def continuous_inventory(
    n_actions: int = 5,
    *,
    capacity: float = 10.0,
    mean_demand: float = 2.0,
    price: float = 5.0,
    order_cost: float = 3.0,
    unit_cost: float = 2.0,
    holding_cost: float = 0.2,
) -> ContinuousEnvironment:
    r"""Inventory control with continuous stock and lost sales: order by the tank load, or sell what is left.

    The state is the stock x in [0, capacity] at the start of a period. Action k orders k/(n_actions - 1) of the
    capacity; what does not fit is neither delivered nor paid for, so the period starts with y = min(x + q, capacity).
    The demand D is exponential with mean μ = `mean_demand`; min(D, y) is sold, the rest of D is lost, and
    x' = (y - D)⁺. The reward is the expected profit of the period,
    r = price·E min(D,y) - unit_cost·(y-x) - holding_cost·E(y-D)⁺ - order_cost·1{k > 0}, with
    E min(D,y) = μ(1 - exp(-y/μ)) and E(y-D)⁺ = y - E min(D,y).
    The model is that of `inventory_control` (Puterman 1994, sec. 3.2, with lost sales) for a continuous product.

    *Constants.* Rewards lie in [reward_min, reward_max], exactly; α = 1. The law of y - D moves with y, and an
    exponential density has total variation 2/μ: 2(1 - exp(-d/μ)) ≤ 2d/μ; (·)⁺ and min do not increase distances, so
    L_p = 2·capacity/μ. |∂r/∂x| ≤ max(price, unit_cost, holding_cost), and L_r is that times capacity. With the
    defaults r_max = 23.367 and L = L_p = 10 (L_r/r_max = 2.14).

    Parameters
    ----------
    n_actions : int
        The number of order sizes, at least 2.
    capacity : float
        The largest stock.
    mean_demand : float
        μ, per period.
    price, unit_cost, holding_cost : float
        Per unit sold, ordered, and left over.
    order_cost : float
        The fixed cost of an order.

    Returns
    -------
    ContinuousEnvironment
        With the defaults the gain is 3.97509 and the bias span 23 (`oracle_gain`): below a stock of 2.38 fill the
        tank, otherwise order nothing.

    Examples
    --------
    >>> import gainful as gf
    >>> gf.environments.continuous_inventory()
    ContinuousEnvironment('continuous-inventory', dim 1, 5 actions, L = 10, α = 1)
    """
    A = whole("n_actions", n_actions, 2)
    C = real("capacity", capacity, 0.0, low_open=True)
    mu = real("mean_demand", mean_demand, 0.0, low_open=True)
    p = real("price", price, 0.0, low_open=True)
    K = real("order_cost", order_cost, 0.0)
    c = real("unit_cost", unit_cost, 0.0)
    h = real("holding_cost", holding_cost, 0.0)
    parameters = np.array([C, mu, C / (A - 1), p, K, c, h, -math.inf, math.inf])
    # for each order q the profit is concave on [0, C-q] and increasing on [C-q, C]: extremes are at these points
    best = mu * math.log((p + h) / h) if h > 0.0 else C  # where y has its largest E min(D,y)·(price+h) - h·y
    orders = [a * C / (A - 1) for a in range(A)]
    found = [
        float(_profit(parameters, np.array([x]), a)[0])
        for a, q in enumerate(orders)
        for x in (0.0, max(C - q, 0.0), C, min(max(best - q, 0.0), max(C - q, 0.0)))
    ]
    parameters[_REWARD_LOW], parameters[_REWARD_HIGH] = min(found), max(found)
    return ContinuousEnvironment(
        name="continuous-inventory",
        kind=int(EnvironmentKind.CONTINUOUS_INVENTORY),
        parameters=parameters,
        n_actions=A,
        draws=DRAWS,
        start=np.zeros(1),
        low=np.zeros(1),
        high=np.array([C]),
        reward_min=min(found),
        reward_max=max(found),
        reward_lipschitz=max(p, c, h) * C,
        transition_lipschitz=2.0 * C / mu,
        holder=1.0,
        action_labels=tuple(f"order {q:.4g}" for q in orders),
        axis_labels=("stock",),
        settings={
            "n_actions": n_actions,
            "capacity": capacity,
            "mean_demand": mean_demand,
            "price": price,
            "order_cost": order_cost,
            "unit_cost": unit_cost,
            "holding_cost": holding_cost,
        },
        law=partial(_law, parameters),
        curvature=Curvature((p + h) / mu * C * C, 2.0 * C / mu, 0.0, tuple(1.0 - a / (A - 1) for a in range(1, A - 1))),
    )


@inlined
def inventory_step(p: Any, x: Any, action: int, key: Any, first: Any, out: Any) -> float:
    """One step, one draw."""
    stock = x[0] * p[_CAPACITY]
    faced = min(stock + action * p[_ORDER], p[_CAPACITY])
    sold = -p[_MEAN] * math.expm1(-faced / p[_MEAN])
    reward = p[_PRICE] * sold - p[_UNIT] * (faced - stock) - p[_HOLDING] * (faced - sold)
    if action > 0:
        reward -= p[_FIXED]
    out[0] = clip_unit((faced - p[_MEAN] * exponential(draw(key, first))) / p[_CAPACITY])
    inside: float = min(max(reward, p[_REWARD_LOW]), p[_REWARD_HIGH])  # rounding may pass the extremes by an ulp
    return inside


def _profit(p: NDArray[np.float64], stock: NDArray[np.float64], action: int) -> NDArray[np.float64]:
    faced = np.minimum(stock + action * p[_ORDER], p[_CAPACITY])
    sold = -p[_MEAN] * np.expm1(-faced / p[_MEAN])
    profit = p[_PRICE] * sold - p[_UNIT] * (faced - stock) - p[_HOLDING] * (faced - sold) - p[_FIXED] * (action > 0)
    return np.asarray(profit)


def _law(
    p: NDArray[np.float64], x: NDArray[np.float64], action: int, y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    mean = p[_MEAN] / p[_CAPACITY]
    faced = np.minimum(x + action * p[_ORDER] / p[_CAPACITY], 1.0)
    short = np.minimum(y - faced, 0.0)
    cdf = np.exp(short / mean)
    return cdf, mean * cdf + np.maximum(y - faced, 0.0)
