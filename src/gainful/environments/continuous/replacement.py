"""A machine whose wear is a number."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined
from gainful.arguments import real
from gainful.environments.continuous.environment import ContinuousEnvironment, Curvature, EnvironmentKind
from gainful.environments.continuous.noise import exponential
from gainful.rng import draw

DRAWS = 1
_MEAN, _COST = 0, 1


def replacement(mean_wear: float = 0.1, *, replacement_cost: float = 1.0) -> ContinuousEnvironment:
    r"""Replacement with continuous wear: a worn machine earns less, a new one costs a step and its price.

    The state is the wear x in [0, 1]. "keep" earns 1 - x, and the wear grows by an exponential amount of mean
    μ = `mean_wear`: x' = min(x + μE, 1). "replace" earns -replacement_cost, and the next step starts with wear 0.
    It is the continuous version of `machine_replacement` (Derman, On optimal replacement rules when changes of state
    are Markovian, 1963).

    *Constants.* r_max = 1 + K with K the replacement cost, α = 1. An exponential density has total variation 2/μ, so
    two laws of "keep" have ℓ₁ distance 2(1 - exp(-d/μ)) ≤ 2d/μ, and those of "replace" are equal: L_p = 2/μ; L_r = 1.
    With the defaults L = 20.

    Parameters
    ----------
    mean_wear : float
        μ, positive.
    replacement_cost : float
        K, at least 0.

    Returns
    -------
    ContinuousEnvironment
        A control limit is optimal. If the machine is replaced from wear m on, a cycle keeps it at wear 0 and at the
        points of a Poisson process of rate λ = 1/μ on (0, m), then replaces it: by renewal-reward the gain is
        (1 + λ(m - m²/2) - K)/(2 + λm). Its maximum, where λm²/2 + 2m = 1 + K, is g* = 1 - m* with
        m* = (sqrt(4 + 2λ(1+K)) - 2)/λ, as long as m* ≤ 1. With the defaults m* = .463325 and g* = .536675.

    Examples
    --------
    >>> import gainful as gf
    >>> gf.environments.replacement()
    ContinuousEnvironment('replacement', dim 1, 2 actions, L = 20, α = 1)
    """
    mu = real("mean_wear", mean_wear, 0.0, low_open=True)
    K = real("replacement_cost", replacement_cost, 0.0)
    parameters = np.array([mu, K])
    return ContinuousEnvironment(
        name="replacement",
        kind=int(EnvironmentKind.REPLACEMENT),
        parameters=parameters,
        n_actions=2,
        draws=DRAWS,
        start=np.zeros(1),
        low=np.zeros(1),
        high=np.ones(1),
        reward_min=-K,
        reward_max=1.0,
        reward_lipschitz=1.0,
        transition_lipschitz=2.0 / mu,
        holder=1.0,
        action_labels=("keep", "replace"),
        axis_labels=("wear",),
        settings={"mean_wear": mean_wear, "replacement_cost": replacement_cost},
        law=partial(_law, parameters),
        curvature=Curvature(0.0, 2.0 / mu, 0.0),
    )


@inlined
def replacement_step(p: Any, x: Any, action: int, key: Any, first: Any, out: Any) -> float:
    """One step, one draw."""
    wear: float = x[0]
    if action == 1:
        out[0] = 0.0
        cost: float = -p[_COST]
        return cost
    out[0] = min(wear + p[_MEAN] * exponential(draw(key, first)), 1.0)
    return 1.0 - wear


def _law(
    p: NDArray[np.float64], x: NDArray[np.float64], action: int, y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if action == 1:
        shape = np.broadcast(x, y).shape
        return np.ones(shape), np.broadcast_to(y, shape)
    t = np.maximum(y - x, 0.0)
    cdf = -np.expm1(-t / p[_MEAN])
    return cdf, t - p[_MEAN] * cdf
