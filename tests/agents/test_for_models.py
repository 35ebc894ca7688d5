from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import gainful as gf
from gainful.agents import registry
from gainful.agents.labels import AgentLabels
from gainful.errors import InvalidArgumentError

MACHINE: dict[str, list[Any]] = {
    "state": ["new", "new", "worn", "worn", "worn", "broken"],
    "action": ["run", "run", "run", "run", "service", "repair"],
    "next_state": ["new", "worn", "worn", "broken", "new", "new"],
    "probability": [0.9, 0.1, 0.7, 0.3, 1.0, 1.0],
    "cost": [1.0, 1.0, 3.0, 3.0, 6.0, 40.0],
}
NEEDED: dict[str, dict[str, Any]] = {
    "scal-plus": {"span": 40.0},
    "scal": {"span": 40.0},
    "opt-psrl": {"horizon": 1000},
    "kl-ucrl": {"horizon": 1000},
    "pmevi-dt": {"horizon": 1000},
    "mbie-eb": {"discount": 0.9, "m": 100},
    "ucbvi": {"episode_length": 10, "horizon": 1000},
    "optimistic-q": {"horizon": 1000, "span": 40.0},
}
ON_CELLS: dict[str, dict[str, Any]] = {
    "c-scal-plus": {"span": 2.0},
    "uccrl": {"span": 2.0},
    "discretized": {"agent_class": "ucrl2b"},
}


@pytest.fixture
def machine() -> gf.MDP:
    return gf.MDP.from_table(MACHINE)


def made_for(mdp: gf.MDP) -> Iterator[Any]:
    """Every tabular agent, made for the model."""
    for name in registry.names():
        made: Any = registry.agent_class(name)
        yield made.for_mdp(mdp, seed=1, **NEEDED.get(name, {}))


def test_every_tabular_agent_is_made_for_a_model(machine: gf.MDP) -> None:
    for agent in made_for(machine):
        assert (agent.n_states, agent.n_actions) == (3, 3)
        assert (agent.reward_min, agent.reward_max) == (-40.0, -1.0)
        assert np.array_equal(agent.allowed, machine.allowed)
        assert agent.labels.objective == "cost"
        assert agent.seed == 1
        assert agent.predict("broken") == "repair"
        assert agent.predict(2) == machine.action_index("repair")


def test_a_label_in_is_a_label_out_and_counts_like_its_number(machine: gf.MDP) -> None:
    words, numbers = gf.UCRL2.for_mdp(machine), gf.UCRL2.for_mdp(machine)
    assert words.act("worn") == machine.action_name(numbers.act(1))
    assert words.predict("worn") == machine.action_name(numbers.predict(1))
    words.observe("worn", "service", -6.0, "new")
    numbers.observe(1, machine.action_index("service"), -6.0, 0)
    assert np.array_equal(words.statistics.visits, numbers.statistics.visits)
    words.observe("worn", machine.action_index("run"), -3.0, 2)  # one by one, as one likes
    assert words.t == 2


@pytest.mark.parametrize(
    ("state", "message"),
    [("wron", "there is no state 'wron'; did you mean 'worn'?"), ("x", "labels are 'new', 'worn', 'broken'")],
)
def test_an_unknown_label_is_one_message(state: str, message: str, machine: gf.MDP) -> None:
    agent = gf.UCRL2.for_mdp(machine)
    with pytest.raises(InvalidArgumentError, match="there is no state") as caught:
        agent.act(state)
    assert message in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="have no labels"):
        gf.UCRL2(3, 3).act("new")
    with pytest.raises(InvalidArgumentError, match="there is no action 'go'"):
        agent.observe("new", "go", -1.0, "new")
    assert agent.t == 0


def test_among_many_labels_none_is_suggested_and_few_are_listed() -> None:
    agent = gf.UCRL2(1000, 1)
    agent.labels = AgentLabels(tuple(f"state {i}" for i in range(1000)))
    with pytest.raises(InvalidArgumentError) as caught:
        agent.act("state" * 10**5)
    assert len(str(caught.value)) < 1000


def test_labels_that_are_numbers_are_strings_and_integers_stay_numbers() -> None:
    numbers = {"new": "1", "worn": "2", "broken": "3"}
    columns = {name: [numbers.get(str(x), x) for x in MACHINE[name]] for name in ("state", "next_state")}
    table = {**MACHINE, **columns}
    agent = gf.UCRL2.for_mdp(gf.MDP.from_table(table))
    assert agent.labels is not None
    assert agent.labels.states == ("1", "2", "3")
    assert agent.act("3") == "repair"  # the state labelled "3", number 2
    assert agent.act(2) == agent.labels.action_numbers["repair"]
    with pytest.raises(InvalidArgumentError, match="state is 3"):
        agent.act(3)


def test_labels_survive_saving_and_a_checkpoint(machine: gf.MDP, tmp_path: Path) -> None:
    agent = gf.UCRL2.for_mdp(machine)
    gf.simulate(agent, machine, 100, checkpoint_file=tmp_path / "run")
    agent.save(tmp_path / "agent")
    assert gf.load_agent(tmp_path / "agent").labels == agent.labels
    again = gf.UCRL2.for_mdp(machine)
    gf.simulate(again, machine, 100, checkpoint_file=tmp_path / "run")
    assert again.labels == agent.labels


def test_a_model_without_labels_makes_an_agent_without_labels() -> None:
    mdp = gf.MDP([[[0.5, 0.5]], [[1.0, 0.0]]], [[1.0], [1.0]])
    agent = gf.UCRL2.for_mdp(mdp)
    assert agent.labels is None
    assert agent.reward_min == 1.0 < agent.reward_max  # a constant reward is given a range


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "SCALPlus needs span, which no model gives"),
        ({"span": 1.0, "n_states": 3}, "n_states is given, but the model has it"),
        ({"span": 1.0, "bonus_scal": 1.0}, "SCALPlus has no parameter 'bonus_scal'"),
    ],
)
def test_what_for_mdp_refuses(parameters: dict[str, Any], message: str, machine: gf.MDP) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        gf.SCALPlus.for_mdp(machine, **parameters)


def test_for_mdp_of_something_else_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="expected an MDP"):
        gf.UCRL2.for_mdp("machine.csv")  # type: ignore[arg-type]


def test_every_agent_on_cells_is_made_for_an_environment() -> None:
    env = gf.environments.lqg()
    for name in registry.continuous_names():
        made: Any = registry.continuous_class(name)
        agent = made.for_environment(env, bins=7, seed=2, **ON_CELLS.get(name, {}))
        assert (agent.n_states, agent.n_actions) == (7, 5)
        assert (agent.reward_min, agent.reward_max) == (env.reward_min, env.reward_max)
        assert (agent.partition.low, agent.partition.high) == (tuple(env.low), tuple(env.high))
        assert agent.labels.actions == env.action_labels
        agent.observe(0.5, env.action_labels[3], float(env.reward_min), 0.4)
        assert agent.statistics.visits.reshape(7, 5)[:, 3].sum() == 1


def test_an_agent_for_a_gymnasium_environment_has_its_box_and_actions() -> None:
    env = gymnasium.make("MountainCar-v0")
    agent = gf.CKLSCALPlus.for_environment(env, bins=4, reward_min=-1.0, reward_max=0.0)
    assert (agent.n_states, agent.n_actions, agent.dim) == (16, 3, 2)
    with pytest.raises(InvalidArgumentError, match="no bounds on axes 1, 3"):
        gf.CKLSCALPlus.for_environment(gymnasium.make("CartPole-v1"))
    with pytest.raises(InvalidArgumentError, match="for_mdp of the tabular agents"):
        gf.CKLSCALPlus.for_environment(gf.environments.riverswim(6))


def test_the_horizon_chooses_the_cells() -> None:
    env = gf.environments.lqg()
    made = [gf.CSCALPlus.for_environment(env, span=2.0, horizon=10**k) for k in (3, 6)]
    assert made[0].n_states < made[1].n_states
