"""What the tests of agents with confidence sets share: plans, walks, and whether two agents are the same."""

from __future__ import annotations

import numpy as np

from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent
from gainful.simulation.transition_table import TabularStepper


def planned(agent: ExtendedAgent) -> EpisodePlan:
    agent.act(0)
    assert agent.current is not None
    return agent.current


def walk(agent: ExtendedAgent, world: TabularStepper, state: int, steps: int) -> int:
    for _ in range(steps):
        action = agent.act(state)
        reward, to = world.step(agent.t, state, action)
        agent.observe(state, action, reward, to)
        state = to
    return state


def assert_same_agent(one: ExtendedAgent, other: ExtendedAgent) -> None:
    assert one.t == other.t
    mine, theirs = one.statistics.to_arrays(), other.statistics.to_arrays()
    for name, array in mine.items():
        assert np.array_equal(array, theirs[name]), name
    assert [record[:-1] for record in one.records] == [record[:-1] for record in other.records]  # the last is a time
    assert np.array_equal(one.visited, other.visited)
    assert one.vacuous == other.vacuous
