"""RiverSwim on an interval, made smooth, so that the Hölder assumption of C-SCAL+ holds."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from gainful._compiled import inlined
from gainful.arguments import real
from gainful.environments.continuous.environment import ContinuousEnvironment, Curvature, EnvironmentKind
from gainful.environments.continuous.noise import clip_unit, normal
from gainful.rng import draw, uniform

DRAWS = 2
_STEP, _NOISE, _LENGTH, _DRIFT_REWARD = range(4)


def continuous_riverswim(
    length: float = 6.0, *, step: float = 0.1, noise: float = 0.05, drift_reward: float = 0.005
) -> ContinuousEnvironment:
    r"""Continuous RiverSwim, smooth: a swim of hundreds of steps against the current, or a small reward close by.

    The river is [0, length], scaled to x in [0, 1]; with σ = noise/length, m = step/length and N standard normal,
    x' = clip(x + M + σN, 0, 1). "left" has M = -m; "right" has M = m, 0, -m with RiverSwim's probabilities of moving
    right, staying and moving left: (.6, .4, 0) at the left end, (.35, .6, .05) in between, (0, .6, .4) at the right
    end, blended linearly over the outermost 1/length at either end (one state of RiverSwim). With the smooth step
    s(u) = 3u² - 2u³ on [0, 1], the rewards are s(1 - (1-x)·length) for "right" over the last 1/length,
    drift_reward·s(1 - x·length) for "left" over the first, and 0 elsewhere.

    After the continuous RiverSwim of Qian, Fruit, Pirotta & Lazaric, Exploration bonus for regret minimization in
    undiscounted discrete and continuous MDPs (2018), where the ℓ₁ distance of two laws does not shrink with |x-y|
    (staying is an atom, and the rewards are at the end points): here staying is noisy, the rewards are bumps and the
    ends are blended.

    *Constants.* r_max = 1, α = 1. Two normal laws whose means differ by d have ℓ₁ distance
    2(2Φ(d/2σ) - 1) ≤ d·sqrt(2/π)/σ, mixing with equal weights and clipping (a map) do not increase it, and the weights
    change by at most .7·length·d in ℓ₁: L_p = sqrt(2/π)·length/noise + .7·length. max s' = 1.5, so L_r = 1.5·length.
    With the defaults L = 99.95 (95.75 of it from the noise).

    Parameters
    ----------
    length : float
        The length of the river, at least 2.
    step : float
        The distance of a move, in (0, 1].
    noise : float
        The standard deviation of the noise, positive.
    drift_reward : float
        The reward at the left end, in [0, 1].

    Returns
    -------
    ContinuousEnvironment
        With the defaults the gain is .41051, in [.40994, .41109], and the bias span 79.8 (`oracle_gain`).

    Examples
    --------
    >>> import gainful as gf
    >>> gf.environments.continuous_riverswim()
    ContinuousEnvironment('continuous-riverswim', dim 1, 2 actions, L = 99.95, α = 1)
    """
    size = real("length", length, 2.0)
    move = real("step", step, 0.0, 1.0, low_open=True)
    sigma = real("noise", noise, 0.0, low_open=True)
    small = real("drift_reward", drift_reward, 0.0, 1.0)
    parameters = np.array([move / size, sigma / size, size, small])
    spread = math.sqrt(2.0 / math.pi) * size / sigma
    return ContinuousEnvironment(
        name="continuous-riverswim",
        kind=int(EnvironmentKind.CONTINUOUS_RIVERSWIM),
        parameters=parameters,
        n_actions=2,
        draws=DRAWS,
        start=np.zeros(1),
        low=np.zeros(1),
        high=np.ones(1),
        reward_min=0.0,
        reward_max=1.0,
        reward_lipschitz=1.5 * size,
        transition_lipschitz=spread + 0.7 * size,
        holder=1.0,
        action_labels=("left", "right"),
        axis_labels=("position",),
        settings={"length": length, "step": step, "noise": noise, "drift_reward": drift_reward},
        law=partial(_law, parameters),
        # F'' = Σ w E h'' + 2 Σ w' E h' (w'' = 0 between kinks); |s''| ≤ 6·length²
        curvature=Curvature(6.0 * size**2, spread, 2.0 * 0.7 * size, (1.0 / size, 1.0 - 1.0 / size)),
    )


@inlined
def _smooth(u: float) -> float:
    v = clip_unit(u)
    return v * v * (3.0 - 2.0 * v)


@inlined
def river_step(p: Any, x: Any, action: int, key: Any, first: Any, out: Any) -> float:
    """One step; draw 0 chooses the move, draw 1 is the noise."""
    z, length = x[0], p[_LENGTH]
    if action == 0:
        move = -p[_STEP]
        reward: float = p[_DRIFT_REWARD] * _smooth(1.0 - z * length)
    else:
        near_left, near_right = clip_unit(1.0 - z * length), clip_unit(1.0 - (1.0 - z) * length)
        right = 0.35 + 0.25 * near_left - 0.35 * near_right
        left = 0.05 - 0.05 * near_left + 0.35 * near_right
        u = uniform(draw(key, first))
        move = p[_STEP] if u < right else (-p[_STEP] if u < right + left else 0.0)
        reward = _smooth(1.0 - (1.0 - z) * length)
    out[0] = clip_unit(z + move + p[_NOISE] * normal(draw(key, first + np.uint64(1))))
    return reward


def _law(
    p: NDArray[np.float64], x: NDArray[np.float64], action: int, y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    step, sigma, length = p[_STEP], p[_NOISE], p[_LENGTH]
    if action == 0:
        return normal_law(y, x - step, sigma)
    near_left, near_right = np.clip(1.0 - x * length, 0.0, 1.0), np.clip(1.0 - (1.0 - x) * length, 0.0, 1.0)
    right = 0.35 + 0.25 * near_left - 0.35 * near_right
    left = 0.05 - 0.05 * near_left + 0.35 * near_right
    parts = [normal_law(y, x + move, sigma) for move in (step, 0.0, -step)]
    weights = (right, 1.0 - right - left, left)
    cdf, integral = (sum(w * part[i] for w, part in zip(weights, parts, strict=True)) for i in (0, 1))
    return np.asarray(cdf), np.asarray(integral)


def normal_law(
    y: NDArray[np.float64], mean: NDArray[np.float64], sigma: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Φ(t) and its integral σ(tΦ(t) + φ(t)) at t = (y - mean)/σ."""
    t = (y - mean) / sigma
    cdf = ndtr(t)
    return cdf, sigma * (t * cdf + np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi))
