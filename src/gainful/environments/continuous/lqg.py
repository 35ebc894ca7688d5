"""A linear system with quadratic costs and Gaussian noise, on an interval."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined
from gainful.arguments import real, whole
from gainful.environments.continuous.continuous_riverswim import normal_law
from gainful.environments.continuous.environment import ContinuousEnvironment, Curvature, EnvironmentKind
from gainful.environments.continuous.noise import clip_unit, normal
from gainful.rng import draw

DRAWS = 1
_LOW, _WIDTH, _NOISE, _FIRST, _SPACING, _SCALE = 0, 1, 2, 3, 4, 5


def lqg(
    n_actions: int = 5, *, bound: float = 2.0, max_control: float = 1.0, noise: float = 0.5
) -> ContinuousEnvironment:
    r"""LQG-1D: keep a noisy linear system near 0 with little effort.

    x' = clip(x + u + noise·N(0,1), ±bound), where u is one of `n_actions` equally spaced controls in ±max_control; the
    cost is ½x² + ½u² and the reward 1 - cost/c, where c = ½bound² + ½max_control² is the largest cost (2.5 with the
    defaults), so that rewards fill [0, 1].

    *Constants.* r_max = 1, α = 1. Scaled to [0, 1] by 2·bound, the noise has σ = noise/(2·bound), and clipping does not
    increase distances: L_p = sqrt(2/π)/σ. |dr/dx| ≤ bound/c, so L_r = 2·bound²/c. With the defaults L = L_p = 6.38
    (L_r = 3.2).

    Parameters
    ----------
    n_actions : int
        The number of controls, at least 2.
    bound : float
        The half-width of the box.
    max_control : float
        The largest control.
    noise : float
        The standard deviation of the noise.

    Returns
    -------
    ContinuousEnvironment
        Without clipping and with any real u, Riccati's equation P² = ½(½ + P) gives P = (1 + √5)/4,
        u = -x·P/(½ + P) = -.618x and the average cost P·noise² (Bertsekas, Dynamic Programming and Optimal Control,
        vol. 1, on linear systems with quadratic cost). The gain is then 1 - P·noise²/c = .91910, which is approached
        from below as controls become finer and the box wider; it is .90826 with the default five controls and box
        (`oracle_gain`; bias span 1.32).

    Examples
    --------
    >>> import gainful as gf
    >>> gf.environments.lqg()
    ContinuousEnvironment('lqg', dim 1, 5 actions, L = 6.383, α = 1)
    """
    A = whole("n_actions", n_actions, 2)
    B = real("bound", bound, 0.0, low_open=True)
    U = real("max_control", max_control, 0.0, low_open=True)
    sigma = real("noise", noise, 0.0, low_open=True)
    c = 0.5 * B * B + 0.5 * U * U
    parameters = np.array([-B, 2.0 * B, sigma, -U, 2.0 * U / (A - 1), c])
    spread = math.sqrt(2.0 / math.pi) * 2.0 * B / sigma
    return ContinuousEnvironment(
        name="lqg",
        kind=int(EnvironmentKind.LQG),
        parameters=parameters,
        n_actions=A,
        draws=DRAWS,
        start=np.array([0.5]),
        low=np.array([-B]),
        high=np.array([B]),
        reward_min=0.0,
        reward_max=1.0,
        reward_lipschitz=2.0 * B * B / c,
        transition_lipschitz=spread,
        holder=1.0,
        action_labels=tuple(f"u = {-U + a * 2.0 * U / (A - 1):.4g}" for a in range(A)),
        axis_labels=("x",),
        settings={"n_actions": n_actions, "bound": bound, "max_control": max_control, "noise": noise},
        law=partial(_law, parameters),
        curvature=Curvature(4.0 * B * B / c, spread, 0.0),
    )


@inlined
def lqg_step(p: Any, x: Any, action: int, key: Any, first: Any, out: Any) -> float:
    """One step, one draw."""
    position = p[_LOW] + x[0] * p[_WIDTH]
    control = p[_FIRST] + action * p[_SPACING]
    moved = position + control + p[_NOISE] * normal(draw(key, first))
    out[0] = clip_unit((moved - p[_LOW]) / p[_WIDTH])
    # the far corner may come out an ulp beyond the largest cost
    reward: float = clip_unit(1.0 - (0.5 * position * position + 0.5 * control * control) / p[_SCALE])
    return reward


def _law(
    p: NDArray[np.float64], x: NDArray[np.float64], action: int, y: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    control = p[_FIRST] + action * p[_SPACING]
    return normal_law(y, x + control / p[_WIDTH], p[_NOISE] / p[_WIDTH])
