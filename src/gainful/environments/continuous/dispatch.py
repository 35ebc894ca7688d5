"""One compiled step for all shipped continuous environments: an integer if-chain over inlined functions.

A kernel that takes a step function as an argument never hits the cache on disk; the chain is as fast and does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined, kernel
from gainful.environments.continuous.continuous_inventory import DRAWS as _INVENTORY_DRAWS
from gainful.environments.continuous.continuous_inventory import inventory_step
from gainful.environments.continuous.continuous_riverswim import DRAWS as _RIVER_DRAWS
from gainful.environments.continuous.continuous_riverswim import river_step
from gainful.environments.continuous.environment import EnvironmentKind
from gainful.environments.continuous.lqg import DRAWS as _LQG_DRAWS
from gainful.environments.continuous.lqg import lqg_step
from gainful.environments.continuous.mixture import mixture_step
from gainful.environments.continuous.mountain_car import DRAWS as _CAR_DRAWS
from gainful.environments.continuous.mountain_car import car_step
from gainful.environments.continuous.replacement import DRAWS as _WEAR_DRAWS
from gainful.environments.continuous.replacement import replacement_step
from gainful.environments.continuous.ship_steering import DRAWS as _SHIP_DRAWS
from gainful.environments.continuous.ship_steering import ship_step
from gainful.partition import cell_of
from gainful.rng import draw, uniform

_RIVER, _LQG, _INVENTORY = (
    int(EnvironmentKind.CONTINUOUS_RIVERSWIM),
    int(EnvironmentKind.LQG),
    int(EnvironmentKind.CONTINUOUS_INVENTORY),
)
_WEAR, _SHIP, _CAR, _MIXTURE = (
    int(EnvironmentKind.REPLACEMENT),
    int(EnvironmentKind.SHIP_STEERING),
    int(EnvironmentKind.MOUNTAIN_CAR),
    int(EnvironmentKind.MIXTURE),
)


class GridPolicy(NamedTuple):
    """One action for each cell of a partition of the unit cube into `bins` intervals per axis."""

    actions: Any
    bins: Any


@inlined
def _first(draws: int, t: int) -> Any:
    return np.uint64(draws) * np.uint64(t)


@inlined
def continuous_step(kind: int, parameters: Any, x: Any, action: int, key: Any, t: int, out: Any) -> float:
    """Step t of a shipped environment: writes the next state to `out`, which may be `x`, and returns the reward.

    Not for EnvironmentKind.USER (NaN): see `user_step`.
    """
    if kind == _RIVER:
        return river_step(parameters, x, action, key, _first(_RIVER_DRAWS, t), out)
    if kind == _LQG:
        return lqg_step(parameters, x, action, key, _first(_LQG_DRAWS, t), out)
    if kind == _INVENTORY:
        return inventory_step(parameters, x, action, key, _first(_INVENTORY_DRAWS, t), out)
    if kind == _WEAR:
        return replacement_step(parameters, x, action, key, _first(_WEAR_DRAWS, t), out)
    if kind == _SHIP:
        return ship_step(parameters, x, action, key, _first(_SHIP_DRAWS, t), out)
    if kind == _CAR:
        return car_step(parameters, x, action, key, _first(_CAR_DRAWS, t), out)
    if kind == _MIXTURE:
        return mixture_step(parameters, x, action, key, _first(x.size + 1, t), out)
    return np.nan


@inlined
def user_step(function: Any, x: Any, action: int, key: Any, t: int, uniforms: Any, out: Any) -> float:
    """Step t of a user's function with m = uniforms.size draws; `uniforms` is overwritten."""
    first = _first(uniforms.size, t)
    for i in range(uniforms.size):
        uniforms[i] = uniform(draw(key, first + np.uint64(i)))
    reward: float = function(x, action, uniforms, out)
    return reward


@kernel
def step_once(kind: int, parameters: Any, x: Any, action: int, key: Any, t: int, out: Any) -> float:
    """`continuous_step`, for Python."""
    return continuous_step(kind, parameters, x, action, key, t, out)


@kernel
def rewards_at(kind: int, parameters: Any, points: Any, action: int, out: Any) -> None:
    """out[i] = r(points[i], action)."""
    scratch = np.empty(points.shape[1])
    for i in range(points.shape[0]):
        out[i] = continuous_step(kind, parameters, points[i], action, np.uint64(0), 0, scratch)


@kernel
def follow(kind: int, parameters: Any, x: Any, policy: GridPolicy, key: Any, t: int, until: int, sums: Any) -> None:
    """Steps t … until-1 with one action per cell of a partition of the unit cube; x ends at the last state.

    The rewards of steps that fall in block b of `sums` equal blocks are added to sums[b].
    """
    low, high = np.zeros(x.size), np.ones(x.size)
    begin, length = t, until - t
    while t < until:
        action = policy.actions[cell_of(x, 0, policy.bins, low, high)]
        block = (t - begin) * sums.size // length
        sums[block] += continuous_step(kind, parameters, x, action, key, t, x)
        t += 1
