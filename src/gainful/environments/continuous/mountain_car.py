"""The car that must swing to get over the hill, and then begins again."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gainful._compiled import inlined
from gainful.arguments import real
from gainful.environments.continuous.environment import ContinuousEnvironment, EnvironmentKind
from gainful.environments.continuous.noise import normal
from gainful.mdp.model import MDP
from gainful.rng import draw, uniform

DRAWS = 2
_NOISE, _FORCE, _GRAVITY, _GOAL, _RESTART_LOW, _RESTART_HIGH = range(6)
_LEFT_WALL, _RIGHT_WALL, _TOP_SPEED = -1.2, 0.6, 0.07
_POSITION_RANGE, _VELOCITY_RANGE = _RIGHT_WALL - _LEFT_WALL, 2.0 * _TOP_SPEED


def mountain_car(*, noise: float = 0.0005, force: float = 0.001, gravity: float = 0.0025) -> ContinuousEnvironment:
    r"""Mountain Car, continuing: swing up the hill again and again; 1 at the top, then a restart in the valley. d = 2.

    The state is (position, velocity) in [-1.2, .6] × [-.07, .07]. A step adds (a-1)·force - gravity·cos(3·position) +
    noise·N(0,1) to the velocity (clipped), then the velocity to the position (clipped; at the left wall a negative
    velocity becomes 0). In a state with position ≥ .5 every action earns 1 and restarts at velocity 0 and a position
    uniform in [-.6, -.4]; elsewhere the reward is 0. The dynamics are those of Moore, Efficient memory-based learning
    for robot control (1990), with the numbers of Sutton & Barto, Reinforcement Learning, example 10.1, and noise added.

    *Constants.* r_max = 1. No (L, α) exists: given state and action the next state lies on a line, so laws from
    different states are mutually singular (ℓ₁ distance 2), and the reward jumps at the goal. There is no guarantee.

    Parameters
    ----------
    noise : float
        The standard deviation of the noise in the velocity.
    force : float
        The acceleration of the engine.
    gravity : float
        The acceleration of the slope.

    Returns
    -------
    ContinuousEnvironment
        The gain is one over the mean time between restarts: .0098 with the defaults (`oracle_gain`, an estimate,
        ± .0001: one restart in about 101 steps).

    Examples
    --------
    >>> import gainful as gf
    >>> gf.environments.mountain_car()
    ContinuousEnvironment('mountain-car', dim 2, 3 actions, no guarantee)
    """
    parameters = np.array(
        [
            real("noise", noise, 0.0),
            real("force", force, 0.0, low_open=True),
            real("gravity", gravity, 0.0),
            0.5,
            -0.6,
            -0.4,
        ]
    )
    return ContinuousEnvironment(
        name="mountain-car",
        kind=int(EnvironmentKind.MOUNTAIN_CAR),
        parameters=parameters,
        n_actions=3,
        draws=DRAWS,
        start=np.array([(-0.5 - _LEFT_WALL) / _POSITION_RANGE, 0.5]),
        low=np.array([_LEFT_WALL, -_TOP_SPEED]),
        high=np.array([_RIGHT_WALL, _TOP_SPEED]),
        reward_min=0.0,
        reward_max=1.0,
        no_guarantee="the noise moves the velocity and the position together, so laws of the next state from different "
        "states are mutually singular, and the reward jumps at the goal: no (L, α) exists",
        action_labels=("back", "coast", "forward"),
        axis_labels=("position", "velocity"),
        settings={"noise": noise, "force": force, "gravity": gravity},
        grid_model=partial(grid_model, parameters),
    )


@inlined
def car_step(p: Any, x: Any, action: int, key: Any, first: Any, out: Any) -> float:
    """One step; draw 0 is the noise, draw 1 the place of a restart."""
    position, velocity = _LEFT_WALL + x[0] * _POSITION_RANGE, (2.0 * x[1] - 1.0) * _TOP_SPEED
    if position >= p[_GOAL]:
        u = uniform(draw(key, first + np.uint64(1)))
        out[0] = (p[_RESTART_LOW] + u * (p[_RESTART_HIGH] - p[_RESTART_LOW]) - _LEFT_WALL) / _POSITION_RANGE
        out[1] = 0.5
        return 1.0
    velocity += (action - 1) * p[_FORCE] - p[_GRAVITY] * math.cos(3.0 * position) + p[_NOISE] * normal(draw(key, first))
    velocity = min(max(velocity, -_TOP_SPEED), _TOP_SPEED)
    position += velocity
    if position <= _LEFT_WALL:
        position = _LEFT_WALL
        velocity = max(velocity, 0.0)
    out[0] = min((position - _LEFT_WALL) / _POSITION_RANGE, 1.0)
    out[1] = min(max(0.5 * (velocity / _TOP_SPEED + 1.0), 0.0), 1.0)
    return 0.0


def grid_model(p: NDArray[np.float64], bins: int, quadrature: int = 5) -> MDP:
    """The car on (bins+1)² nodes of [-1.2, goal] × [-.07, .07] and one state for the goal, where all states are alike.

    The noise is replaced by the nodes of a Gauss-Hermite quadrature, the next state by the four nodes around it with
    bilinear weights, so this is a finite MDP; the interpolation blurs, which costs first order in 1/bins.
    """
    goal = p[_GOAL]
    positions, velocities = np.linspace(_LEFT_WALL, goal, bins + 1), np.linspace(-_TOP_SPEED, _TOP_SPEED, bins + 1)
    at, speed = (grid.reshape(-1) for grid in np.meshgrid(positions, velocities, indexing="ij"))
    n = at.size
    values, chances = np.polynomial.hermite_e.hermegauss(quadrature)
    chances = chances / chances.sum()
    restart = np.linspace(p[_RESTART_LOW], p[_RESTART_HIGH], 64, endpoint=False)
    restart += (p[_RESTART_HIGH] - p[_RESTART_LOW]) / 128
    matrices = []
    for action in range(3):
        rows, columns, weights = [], [], []
        for z, chance in zip(values, chances, strict=True):
            v = speed + (action - 1) * p[_FORCE] - p[_GRAVITY] * np.cos(3.0 * at) + p[_NOISE] * z
            v = np.clip(v, -_TOP_SPEED, _TOP_SPEED)
            x = at + v
            v = np.where(x <= _LEFT_WALL, np.maximum(v, 0.0), v)
            x = np.maximum(x, _LEFT_WALL)
            done = x >= goal
            nodes, parts = _bilinear(np.where(done, _LEFT_WALL, x), v, positions, velocities)
            for node, part in zip(nodes, parts, strict=True):
                rows.append(np.arange(n))
                columns.append(np.where(done, n, node))
                weights.append(part * chance)
        nodes, parts = _bilinear(restart, np.zeros_like(restart), positions, velocities)
        for node, part in zip(nodes, parts, strict=True):
            rows.append(np.full(restart.size, n))
            columns.append(node)
            weights.append(part / restart.size)
        entries = (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns)))
        matrices.append(sp.coo_array(entries, shape=(n + 1, n + 1)).tocsr())
    rewards = np.zeros((n + 1, 3))
    rewards[n] = 1.0
    return MDP(matrices, rewards)


def _bilinear(
    x: NDArray[np.float64], v: NDArray[np.float64], xs: NDArray[np.float64], vs: NDArray[np.float64]
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.float64]]]:
    """The four nodes around each point (row-major) and their weights."""
    bins = xs.size - 1
    fx, fv = (x - xs[0]) / (xs[-1] - xs[0]) * bins, (v - vs[0]) / (vs[-1] - vs[0]) * bins
    i, j = np.clip(fx.astype(np.int64), 0, bins - 1), np.clip(fv.astype(np.int64), 0, bins - 1)
    a, b = np.clip(fx - i, 0.0, 1.0), np.clip(fv - j, 0.0, 1.0)
    nodes = [(i + k) * (bins + 1) + j + m for k in (0, 1) for m in (0, 1)]
    return nodes, [(1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b]
