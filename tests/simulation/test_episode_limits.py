"""Episodes that end before the visits of a pair have doubled: the limit max{1, ⌊f·N_k⌋} of a plan's multiplier f."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodePlan, EpisodeView
from gainful.agents.files import agent_state, take_state
from gainful.agents.statistics import Statistics
from gainful.simulation.transition_table import TabularStepper

MDP = gf.environments.riverswim(6)


class Quarter(gf.UCRL2B):
    """UCRL2B with the multiplier 0.25."""

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        return replace(super().plan(statistics, t), multiplier=0.25)


class Varying(gf.UCRL2B):
    """UCRL2B whose multiplier changes from episode to episode."""

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        return replace(super().plan(statistics, t), multiplier=(1.0, 0.25, 0.6)[len(self.records) % 3])


def stepped(agent: Any, steps: int, seed: int) -> Any:
    world = TabularStepper(MDP, seed)
    state = world.first_state
    for t in range(steps):
        action = agent.act(state)
        reward, to = world.step(t, state, action)
        agent.observe(state, action, reward, to)
        state = to
    return agent


def executed_limits(agent: Any) -> np.ndarray[Any, Any]:
    """What is left of the limits of the pairs that this episode has executed."""
    touched = agent.statistics.visits > agent.visits_before
    return np.where(touched, agent.remaining, -1)


def assert_equal(one: Any, other: Any) -> None:
    assert np.array_equal(one.statistics.visits, other.statistics.visits)
    assert np.array_equal(one.statistics.reward_sum, other.statistics.reward_sum)
    assert np.array_equal(one.visits_before, other.visits_before)
    assert np.array_equal(executed_limits(one), executed_limits(other))
    assert np.array_equal(one.episodes["step"], other.episodes["step"])


@pytest.mark.parametrize("kind", [Quarter, Varying])
def test_compiled_runs_and_runs_side_by_side_have_the_limits_of_stepped_ones(kind: Any) -> None:
    def make(_: int) -> Any:
        agents.append(kind(6, 2))
        return agents[-1]

    agents: list[Any] = []
    gf.simulate_many(make, MDP, 20_000, range(4), threads=1)
    for seed, agent in enumerate(agents):
        alone = kind(6, 2)
        gf.simulate(alone, MDP, 20_000, seed=seed)
        assert_equal(alone, agent)
    assert_equal(stepped(kind(6, 2), 20_000, 3), agents[3])


@pytest.mark.parametrize("kind", [Quarter, Varying])
def test_an_episode_executes_no_pair_more_often_than_its_limit_and_one_exactly_so_often(kind: Any) -> None:
    views: list[tuple[float, np.ndarray[Any, Any]]] = []

    def see(view: EpisodeView) -> None:
        views.append((view.plan.multiplier, view.statistics.visits.copy()))

    agent = kind(6, 2)
    agent.on_episode = see
    gf.simulate(agent, MDP, 20_000, seed=1)
    assert len(views) > 50
    for (f, before), (_, after) in itertools.pairwise(views):
        limit = np.maximum(1, np.floor(f * before))
        assert np.all(after - before <= limit)
        assert np.any(after - before == limit)


def test_a_file_keeps_the_multiplier_and_the_visits_before_the_episode(tmp_path: Path) -> None:
    agent, again = Quarter(6, 2), Quarter(6, 2)
    gf.simulate(agent, MDP, 777, seed=2)
    header, arrays = agent_state(agent)
    take_state(again, header, {name: np.array(a) for name, a in arrays.items()})
    assert again.current is not None
    assert again.current.multiplier == 0.25
    assert_equal(again, agent)
    for each in (agent, again):
        gf.simulate(each, MDP, 5000, seed=3)
    assert_equal(again, agent)


def test_a_gymnasium_run_has_the_limits_of_a_stepped_one() -> None:
    fast, slow = Quarter(16, 4), Quarter(16, 4)
    gf.simulate(fast, gymnasium.make("FrozenLake-v1"), 3000, seed=1)
    env = gymnasium.make("FrozenLake-v1")
    state, _ = env.reset(seed=1)
    for _ in range(3000):
        action = slow.act(state)
        to, reward, terminated, truncated, _ = env.step(action)
        if terminated:
            to, _ = env.reset()
        slow.observe(state, action, float(reward), to)
        state = env.reset()[0] if truncated and not terminated else to
    assert_equal(fast, slow)


def test_a_file_without_the_visits_before_the_episode_is_read_with_those_that_doubling_implies() -> None:
    agent, again = gf.UCRL2B(6, 2), gf.UCRL2B(6, 2)
    gf.simulate(agent, MDP, 1234, seed=2)
    header, arrays = agent_state(agent)
    assert "multiplier" not in header["plan"]
    take_state(again, header, {name: np.array(a) for name, a in arrays.items() if name != "visits_before"})
    assert_equal(again, agent)
