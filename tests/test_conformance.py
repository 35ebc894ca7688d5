"""Every agent and environment there is, discovered and checked; and broken ones, caught."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents import registry as agents
from gainful.environments import registry as environments
from gainful.errors import ConformanceError
from gainful.testing import check_agent, check_environment
from tests.every_agent import TABULAR_AGENTS

CONTINUOUS = (gf.environments.lqg(), gf.environments.mountain_car())
REQUIRED: dict[str, Any] = {"span": 2.0, "horizon": 2000, "discount": 0.9, "m": 100, "episode_length": 10}


def required(name: str) -> dict[str, Any]:
    """Values for the parameters of an agent that have no default."""
    parameters = inspect.signature(agents.agent_class(name)).parameters.values()
    return {p.name: REQUIRED[p.name] for p in parameters if p.default is p.empty and p.name in REQUIRED}


def on_states(name: str, mdp: gf.MDP, **more: Any) -> Any:
    """A tabular agent for an MDP."""
    rewards = {"reward_min": mdp.reward_min, "reward_max": mdp.reward_max}
    options = {**required(name), **rewards, "allowed": mdp.allowed, "seed": 3, **more}
    return agents.agent_class(name)(mdp.n_states, mdp.n_actions, **options)


@pytest.mark.parametrize("name", TABULAR_AGENTS)
def test_every_agent_conforms(name: str) -> None:
    check_agent(partial(on_states, name))


def on_points(name: str, env: gf.environments.ContinuousEnvironment, **more: Any) -> Any:
    """An agent on continuous states, or a tabular one on cells."""
    rewards = {"reward_min": env.reward_min, "reward_max": env.reward_max}
    cells = gf.Partition.uniform(bins=5, dim=env.dim)
    options: dict[str, Any] = {"n_actions": env.n_actions, **rewards, "seed": 3, **more}
    if name in agents.PARTITIONED:
        made: Any = agents.continuous_class(name)
        smooth = {"lipschitz": env.lipschitz, "holder": env.holder} if name != "balanced-grids" else {}
        return made(**{"partition": cells, "span": 2.0, **smooth, **options})
    return gf.Discretized(name, cells, **required(name), **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*agents.names(), *(n for n in agents.continuous_names() if n != "discretized")])
def test_every_agent_conforms_on_continuous_states(name: str) -> None:
    check_agent(partial(on_points, name), CONTINUOUS)


def test_an_agent_that_doubles_its_horizon_conforms() -> None:
    make = partial(on_points, "c-scal-plus", partition=None)
    check_agent(lambda env: make(env, dim=env.dim), CONTINUOUS[:1], steps=1200)  # beyond the first stage


@pytest.mark.parametrize("name", [*environments.names(), *environments.continuous_names()])
def test_every_environment_conforms(name: str) -> None:
    points = name in environments.continuous_names()
    check_environment(environments.make_continuous(name) if points else environments.make(name))


def rough(x: Any, action: int, uniforms: Any, out: Any) -> float:
    out[0] = uniforms[0]
    return 1.0 if x[0] > 0.3 else 0.0


def chancy(x: Any, action: int, uniforms: Any, out: Any) -> float:
    out[0] = x[0]
    return float(uniforms[0])


def rare_escape(x: Any, action: int, uniforms: Any, out: Any) -> float:
    out[0] = 1.2 if x[0] == 1.0 else x[0]
    return 0.0


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (rough, "differ by 1, expected at most 2"),
        (chancy, "must depend on the state and the action alone"),
        (rare_escape, "outside the unit cube"),
    ],
)
def test_a_broken_continuous_environment_is_caught(step: Any, message: str) -> None:
    constants: dict[str, Any] = {"reward_lipschitz": 2.0, "transition_lipschitz": 2.0, "holder": 1.0}
    env = gf.environments.ContinuousEnvironment.from_function(step, dim=1, n_actions=1, **constants)
    with pytest.raises(ConformanceError, match=message):
        check_environment(env)


class Forgetful(gf.SCALPlus):
    """Plays something else when asked twice."""

    def act(self, state: int) -> int:
        self.calls = getattr(self, "calls", 0) + 1
        return int(super().act(state) + self.calls) % self.n_actions


class Clipping(gf.SCALPlus):
    """Takes rewards that cannot be."""

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        super().observe(state, action, float(np.clip(reward, self.reward_min, self.reward_max)), next_state)


class Amnesiac(gf.SCALPlus):
    """Loses its warm start in a file."""

    def own_arrays(self) -> dict[str, Any]:
        return {"values": np.ones(self.n_states)}


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Forgetful, "called again before observe"),
        (Clipping, "observe rejects an impossible transition"),
        (Amnesiac, "a saved agent continues"),
    ],
)
def test_a_broken_agent_is_caught(broken: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(agents.AGENTS, "broken", (__name__, broken.__name__))

    with pytest.raises(ConformanceError, match=message):
        check_agent(partial(on_states, "broken", span=2.0, bonus_scale=0.1))


def test_a_multichain_environment_is_caught() -> None:
    with pytest.raises(ConformanceError, match="depends on the start"):
        check_environment(gf.MDP(np.eye(2)[:, None, :], [[0.0], [1.0]]))
