"""A ship in a current."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gainful._compiled import inlined
from gainful.arguments import real, whole
from gainful.environments.continuous.environment import ContinuousEnvironment, EnvironmentKind
from gainful.environments.continuous.noise import clip_unit
from gainful.rng import draw, uniform

DRAWS = 4
_SPEED, _FIRST, _SPACING, _NOISE, _RADIUS = range(5)
_TURN = 2.0 * math.pi


def ship_steering(
    n_actions: int = 7,
    *,
    speed: float = 0.01,
    duration: float = 25.0,
    max_turn: float = 20.0,
    noise: float = 2.0,
    goal_radius: float = 0.2,
) -> ContinuousEnvironment:
    r"""Ship steering, continuing: turn towards the harbour through a current that grows across the water. d = 3.

    The state is (x, y, θ): a position in [-1, 1]² and a heading in [-π, π], a circle. ẋ = C(cos θ - y), ẏ = C sin θ
    with C = `speed`, for `duration` time units per step. A step turns by one of `n_actions` angles in ±max_turn
    degrees, plus uniform noise of ±`noise` degrees, then moves along the new heading (one Euler step; the position
    stops at the shore). In a state with x² + y² ≤ goal_radius² every action earns 1 and restarts the ship at a uniform
    position and heading; elsewhere the reward is 0.

    *Constants.* r_max = 1. No (L, α) exists: given state and action the next state lies on a curve, so laws from
    different states are mutually singular (ℓ₁ distance 2), and the reward jumps at the goal. There is no guarantee.

    Parameters
    ----------
    n_actions : int
        The number of angles, at least 2.
    speed : float
        C.
    duration : float
        Time units per step.
    max_turn : float
        The largest turn, in degrees, at most 180.
    noise : float
        The largest deviation of the heading, in degrees.
    goal_radius : float
        The radius of the harbour, in (0, 1].

    Returns
    -------
    ContinuousEnvironment
        The gain is one over the mean time between restarts. There is no closed form, and d = 3 is too much for the grid
        of `oracle_gain`.

    Examples
    --------
    >>> import gainful as gf
    >>> gf.environments.ship_steering()
    ContinuousEnvironment('ship-steering', dim 3, 7 actions, no guarantee)
    """
    A = whole("n_actions", n_actions, 2)
    C = real("speed", speed, 0.0, low_open=True)
    dt = real("duration", duration, 0.0, low_open=True)
    turn = math.radians(real("max_turn", max_turn, 0.0, 180.0, low_open=True))
    blur = math.radians(real("noise", noise, 0.0, 180.0))
    radius = real("goal_radius", goal_radius, 0.0, 1.0, low_open=True)
    angles = [-max_turn + a * 2.0 * max_turn / (A - 1) for a in range(A)]
    return ContinuousEnvironment(
        name="ship-steering",
        kind=int(EnvironmentKind.SHIP_STEERING),
        parameters=np.array([C * dt, -turn, 2.0 * turn / (A - 1), blur, radius]),
        n_actions=A,
        draws=DRAWS,
        start=np.array([0.1, 0.1, 0.5]),
        low=np.array([-1.0, -1.0, -math.pi]),
        high=np.array([1.0, 1.0, math.pi]),
        reward_min=0.0,
        reward_max=1.0,
        no_guarantee="the noise moves the heading alone, so laws of the next state from different states are mutually "
        "singular, and the reward jumps at the goal: no (L, α) exists",
        action_labels=tuple(f"turn {angle:.4g}°" for angle in angles),
        axis_labels=("x", "y", "heading"),
        settings={
            "n_actions": n_actions,
            "speed": speed,
            "duration": duration,
            "max_turn": max_turn,
            "noise": noise,
            "goal_radius": goal_radius,
        },
    )


@inlined
def ship_step(p: Any, x: Any, action: int, key: Any, first: Any, out: Any) -> float:
    """One step; draw 0 is the noise of the heading, draws 1 to 3 the place of a restart."""
    across, up = 2.0 * x[0] - 1.0, 2.0 * x[1] - 1.0
    if across * across + up * up <= p[_RADIUS] * p[_RADIUS]:
        for i in range(3):
            out[i] = uniform(draw(key, first + np.uint64(i + 1)))
        return 1.0
    blur = (2.0 * uniform(draw(key, first)) - 1.0) * p[_NOISE]
    heading = x[2] + (p[_FIRST] + action * p[_SPACING] + blur) / _TURN
    heading -= math.floor(heading)
    angle = (2.0 * heading - 1.0) * math.pi
    out[0] = clip_unit(0.5 * (across + p[_SPEED] * (math.cos(angle) - up) + 1.0))
    out[1] = clip_unit(0.5 * (up + p[_SPEED] * math.sin(angle) + 1.0))
    out[2] = heading
    return 0.0
