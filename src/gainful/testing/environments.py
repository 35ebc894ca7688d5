"""Checks that an agent can learn in an environment, and that the environment is consistent with its description."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.errors import ConformanceError, InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.mdp.structure import structure
from gainful.planning.solve import solve

CHECKED_POINTS = 2_000


def check_environment(
    environment: MDP | ContinuousEnvironment, *, precision: float = 1e-8, gymnasium: bool = True
) -> None:
    """Check that an environment is sound and consistent with its description.

    *An MDP.* Its gain does not depend on the start (it is weakly communicating), it can be solved to `precision`, its
    rewards lie in the stated range, and a table and a file reproduce it.

    *A continuous environment.* Steps stay in the unit cube and pay what `rewards` returns, within the stated range;
    they depend only on the number of the step and the seed; rewards are as smooth as stated (the law of the next state
    cannot be observed from outside).

    Parameters
    ----------
    environment : MDP or ContinuousEnvironment
        The environment.
    precision : float
        The precision to which an MDP must be solved, in the units of its gain.
    gymnasium : bool
        Whether its Gymnasium environment must pass Gymnasium's `check_env` too. This is skipped for an MDP whose states
        have different actions.

    Raises
    ------
    ConformanceError
        If a check fails; the message states what failed, and where.

    Examples
    --------
    >>> import gainful as gf
    >>> from gainful.testing import check_environment
    >>> check_environment(gf.environments.riverswim(4), gymnasium=False)
    """
    if isinstance(environment, ContinuousEnvironment):
        _check_continuous(environment)
    elif isinstance(environment, MDP):
        _check_mdp(environment, precision)
        gymnasium = gymnasium and bool(environment.allowed.all())
    else:
        raise InvalidArgumentError(
            "environment",
            environment,
            "an MDP or a continuous environment",
            "gymnasium.utils.env_checker.check_env checks Gymnasium's own",
        )
    if gymnasium:
        from gymnasium.utils.env_checker import check_env

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_env(environment.to_gymnasium(), skip_render_check=True)


def _check_mdp(mdp: MDP, precision: float) -> None:
    found = structure(mdp)
    if found == "multichain":
        raise ConformanceError(
            f"{mdp!r}: the gain depends on the start: {found.describe()}", found=found, expected="one closed class"
        )
    plan = solve(mdp, precision=precision)
    low, high = plan.gain_bounds
    if not high - low <= precision * (1 + 1e-9):
        raise ConformanceError(
            f"{mdp!r}: the bracket of the gain, {plan.gain_bounds}, is {high - low} wide",
            found=plan.gain_bounds,
            expected=f"at most {precision}",
        )
    low, high = mdp.reward_range
    inside = mdp.rewards[mdp.allowed]
    if inside.min() < low - 1e-12 or inside.max() > high + 1e-12:
        raise ConformanceError(
            f"{mdp!r}: mean rewards lie in [{inside.min()}, {inside.max()}]",
            found=(inside.min(), inside.max()),
            expected=f"the range it states, [{low}, {high}]",
        )
    if MDP.from_table(mdp.to_table()) != mdp:
        raise ConformanceError(f"{mdp!r}: to_table and from_table give another MDP")
    with tempfile.TemporaryDirectory() as folder:
        mdp.save(Path(folder) / "mdp")
        if MDP.load(Path(folder) / "mdp") != mdp:
            raise ConformanceError(f"{mdp!r}: save and load give another MDP")
    if not np.isfinite(plan.bias).all():
        raise ConformanceError(f"{mdp!r}: the bias is not finite", found=plan.bias)


def _check_continuous(env: ContinuousEnvironment) -> None:
    rng = np.random.default_rng(0)
    points = rng.random((CHECKED_POINTS, env.dim))
    some = CHECKED_POINTS // 4
    points[:some] = np.clip(3.0 * points[:some] - 1.0, 0.0, 1.0)  # faces and corners
    for t, x in enumerate(points):
        _check_step(env, t, x, t % env.n_actions)
    if env.reward_lipschitz is not None and env.holder is not None:
        _check_smoothness(env, points, rng)


def _check_step(env: ContinuousEnvironment, t: int, x: NDArray[np.float64], action: int) -> None:
    reward, to = env.step(t, x, action, seed=1)
    step = f"{env!r}: action {action} at {x.tolist()}, step {t}, seed 1"
    if not np.all((to >= 0.0) & (to <= 1.0)):
        raise ConformanceError(f"{step} went to {to.tolist()}, outside the unit cube", found=to.tolist())
    if not env.reward_min <= reward <= env.reward_max:
        stated = f"the range it states, [{env.reward_min}, {env.reward_max}]"
        raise ConformanceError(f"{step} paid {reward}", found=reward, expected=stated)
    mean = float(env.rewards(x[None, :], action)[0])
    if reward != mean:
        raise ConformanceError(
            f"{step} paid {reward}",
            found=reward,
            expected=f"{mean} as env.rewards says",
            hint="the reward must depend on the state and the action alone",
        )
    again = env.step(t, x, action, seed=1)
    if again[0] != reward or not np.array_equal(again[1], to):
        raise ConformanceError(
            f"{step} went to {to.tolist()}, and when repeated to {again[1].tolist()}",
            found=again[1].tolist(),
            expected=f"{to.tolist()} again",
        )


def _check_smoothness(env: ContinuousEnvironment, points: NDArray[np.float64], rng: np.random.Generator) -> None:
    L, alpha = env.reward_lipschitz, env.holder
    assert L is not None
    assert alpha is not None
    for gap in (1e-4, 1e-2, 0.5):
        near = np.clip(points + gap * rng.uniform(-1.0, 1.0, points.shape), 0.0, 1.0)
        apart = np.max(np.abs(near - points), axis=1)
        for action in range(env.n_actions):
            change = np.abs(env.rewards(near, action) - env.rewards(points, action))
            excess = change - L * apart**alpha
            i = int(np.argmax(excess))
            if excess[i] > 1e-9 * env.reward_range:
                raise ConformanceError(
                    f"{env!r}: rewards of action {action} at {points[i].tolist()} and {near[i].tolist()} differ by "
                    f"{change[i]:.4g}",
                    found=float(change[i]),
                    expected=f"at most {L:g}·{apart[i]:.4g}^{alpha:g}",
                    hint="state a larger reward_lipschitz or a smaller holder",
                )
