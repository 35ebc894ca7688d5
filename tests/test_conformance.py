"""Every agent and environment there is, discovered and checked; and broken ones, caught."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents import registry as agents
from gainful.agents.episodic import EpisodicAgent
from gainful.environments import registry as environments
from gainful.errors import ConformanceError
from gainful.testing import check_agent, check_environment

REQUIRED: dict[str, Any] = {"span": 2.0, "horizon": 2000, "discount": 0.9, "m": 100, "episode_length": 10}


def maker(name: str) -> Any:
    made = agents.agent_class(name)
    needed = {
        p.name: REQUIRED[p.name]
        for p in inspect.signature(made).parameters.values()
        if p.default is inspect.Parameter.empty and p.name not in ("n_states", "n_actions")
    }

    def make(mdp: gf.MDP) -> EpisodicAgent:
        return made(
            mdp.n_states, mdp.n_actions, reward_min=mdp.reward_min, reward_max=mdp.reward_max, allowed=mdp.allowed,
            seed=3, **needed,
        )  # fmt: skip

    return make


@pytest.mark.parametrize("name", agents.names())
def test_every_agent_conforms(name: str) -> None:
    check_agent(maker(name))


@pytest.mark.parametrize("name", environments.names())
def test_every_environment_conforms(name: str) -> None:
    check_environment(environments.make(name))


class Forgetful(gf.SCALPlus):
    """Plays something else when asked twice."""

    def act(self, state: int) -> int:
        self.calls = getattr(self, "calls", 0) + 1
        return (super().act(state) + self.calls) % self.n_actions


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
        (Forgetful, "asked again before observe"),
        (Clipping, "refuses a transition that cannot be"),
        (Amnesiac, "a saved agent goes on"),
    ],
)
def test_a_broken_agent_is_caught(broken: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(agents.AGENTS, "broken", (__name__, broken.__name__))

    def make(mdp: gf.MDP) -> EpisodicAgent:
        agent: EpisodicAgent = broken(
            mdp.n_states, mdp.n_actions, span=2.0, bonus_scale=0.1, reward_min=mdp.reward_min,
            reward_max=mdp.reward_max, allowed=mdp.allowed,
        )  # fmt: skip
        return agent

    with pytest.raises(ConformanceError, match=message):
        check_agent(make)


def test_a_multichain_environment_is_caught() -> None:
    with pytest.raises(ConformanceError, match="depends on the start"):
        check_environment(gf.MDP(np.eye(2)[:, None, :], [[0.0], [1.0]]))
