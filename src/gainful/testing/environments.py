"""Checks that an environment is one an agent can live in, and is what it says of itself."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np

from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.errors import ConformanceError, InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.mdp.structure import structure
from gainful.planning.solve import solve

STEPS = 2_000


def check_environment(
    environment: MDP | ContinuousEnvironment, *, precision: float = 1e-8, gymnasium: bool = True
) -> None:
    """Run an environment through the conformance checks; ConformanceError says what fails.

    *An MDP.* Its gain does not depend on the start (weakly communicating), it solves to `precision`, rewards lie in the
    range it states, and a table and a file give it back.

    *A continuous environment.* Steps stay in the unit cube and pay what `rewards` says, within the range it states;
    they depend on the step's number and the seed alone; rewards are as smooth as it states (the law of the next state
    cannot be seen from outside).

    With `gymnasium` its Gymnasium environment passes `check_env`.
    """
    if isinstance(environment, ContinuousEnvironment):
        _check_continuous(environment)
    elif isinstance(environment, MDP):
        _check_mdp(environment, precision)
        gymnasium = gymnasium and bool(environment.allowed.all())
    else:
        raise InvalidArgumentError(
            f"environment is {environment!r}, expected an MDP or a continuous environment; "
            "gymnasium.utils.env_checker.check_env is for Gymnasium's own"
        )
    if gymnasium:
        from gymnasium.utils.env_checker import check_env

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_env(environment.to_gymnasium(), skip_render_check=True)


def _check_mdp(mdp: MDP, precision: float) -> None:
    found = structure(mdp)
    if found == "multichain":
        raise ConformanceError(f"{mdp!r}: the gain depends on the start: {found.describe()}")
    plan = solve(mdp, precision=precision)
    if not plan.gain_bounds[1] - plan.gain_bounds[0] <= precision * (1 + 1e-9):
        raise ConformanceError(f"{mdp!r}: bracket {plan.gain_bounds} wider than {precision}")
    low, high = mdp.reward_range
    inside = mdp.rewards[mdp.allowed]
    if inside.min() < low - 1e-12 or inside.max() > high + 1e-12:
        raise ConformanceError(
            f"{mdp!r}: mean rewards in [{inside.min()}, {inside.max()}], range stated [{low}, {high}]"
        )
    if MDP.from_table(mdp.to_table()) != mdp:
        raise ConformanceError(f"{mdp!r}: to_table and from_table give another MDP")
    with tempfile.TemporaryDirectory() as folder:
        mdp.save(Path(folder) / "mdp")
        if MDP.load(Path(folder) / "mdp") != mdp:
            raise ConformanceError(f"{mdp!r}: save and load give another MDP")
    if not np.isfinite(plan.bias).all():
        raise ConformanceError(f"{mdp!r}: the bias is not finite")


def _check_continuous(env: ContinuousEnvironment) -> None:
    rng = np.random.default_rng(0)
    points = rng.random((STEPS, env.dim))
    points[: STEPS // 4] = np.clip(3.0 * points[: STEPS // 4] - 1.0, 0.0, 1.0)  # faces and corners
    for t, x in enumerate(points):
        action = t % env.n_actions
        reward, to = env.step(t, x, action, seed=1)
        step = f"{env!r}: action {action} at {x.tolist()}, step {t}, seed 1"
        if not np.all((to >= 0.0) & (to <= 1.0)):
            raise ConformanceError(f"{step}: went to {to.tolist()}, outside the unit cube")
        if not env.reward_min <= reward <= env.reward_max:
            raise ConformanceError(f"{step}: paid {reward}, range stated [{env.reward_min}, {env.reward_max}]")
        mean = float(env.rewards(x[None, :], action)[0])
        if reward != mean:
            raise ConformanceError(f"{step}: paid {reward}, but env.rewards says {mean}; it is no place for chance")
        again = env.step(t, x, action, seed=1)
        if again[0] != reward or not np.array_equal(again[1], to):
            raise ConformanceError(f"{step}: went to {to.tolist()}, and asked again to {again[1].tolist()}")
    if env.reward_lipschitz is None or env.holder is None:
        return
    for gap in (1e-4, 1e-2, 0.5):
        near = np.clip(points + gap * rng.uniform(-1.0, 1.0, points.shape), 0.0, 1.0)
        apart = np.max(np.abs(near - points), axis=1)
        for action in range(env.n_actions):
            change = np.abs(env.rewards(near, action) - env.rewards(points, action))
            excess = change - env.reward_lipschitz * apart**env.holder
            i = int(np.argmax(excess))
            if excess[i] > 1e-9 * env.reward_range:
                raise ConformanceError(
                    f"{env!r}: rewards of action {action} at {points[i].tolist()} and {near[i].tolist()} differ by "
                    f"{change[i]:.4g}, more than {env.reward_lipschitz:g}·{apart[i]:.4g}^{env.holder:g}"
                )
