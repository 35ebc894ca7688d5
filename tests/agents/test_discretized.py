from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents import registry
from gainful.errors import InvalidArgumentError, UnknownAgentError
from tests.agents.test_c_scal_plus import wander
from tests.every_agent import TABULAR_AGENTS
from tests.test_conformance import REQUIRED


def required(name: str) -> dict[str, Any]:
    wanted = registry.describe(name).parameters
    return {p: REQUIRED[p] for p, value in wanted.items() if value == "required"}


@pytest.mark.parametrize("name", TABULAR_AGENTS)
def test_every_tabular_agent_lives_on_a_partition_as_on_its_cells(name: str) -> None:
    part = gf.Partition.uniform(bins=[3, 2])
    agent = gf.Discretized(name, part, n_actions=3, seed=5, **required(name))
    cells = registry.agent_class(name)(6, 3, seed=5, **required(name))
    rng, x = np.random.default_rng(0), np.array([0.5, 0.5])
    for _ in range(150):
        action = agent.act(x)
        assert cells.act(part.index(x)) == action
        to = rng.random(2)
        agent.observe(x, action, float(x[0]), to)
        cells.observe(part.index(x), action, float(x[0]), part.index(to))
        x = to
    assert np.array_equal(agent.statistics.visits, cells.statistics.visits)
    assert 0 <= agent.predict(x) < 3
    assert agent.policy(rng.random((4, 2))).sum(axis=1).tolist() == pytest.approx([1.0] * 4, rel=0, abs=1e-12)
    assert isinstance(agent.vacuous, bool)


@pytest.mark.parametrize("name", ["ucrl2b", "scal", "psrl", "optimistic-q", "epsilon-greedy-q", "tucrl", "fixed"])
def test_a_saved_agent_goes_on_to_the_same_bits(name: str, tmp_path: Path) -> None:
    agent = gf.Discretized(registry.agent_class(name), gf.Partition.uniform(bins=4), n_actions=3, **required(name))
    x = wander(agent, 300)
    agent.save(tmp_path / "it")
    again = gf.load_agent(tmp_path / "it")
    assert isinstance(again, gf.Discretized)
    assert again.settings() == agent.settings()
    assert np.array_equal(wander(agent, 300, seed=3, start=x), wander(again, 300, seed=3, start=x))
    assert np.array_equal(agent.statistics.visits, again.statistics.visits)


def test_it_promises_nothing() -> None:
    agent = gf.Discretized(gf.UCRL2B, gf.Partition.uniform(bins=4), n_actions=2)
    assert not agent.guarantee.holds
    assert "UCRL2B is meant for finitely many states" in str(agent.guarantee)


def test_a_greedy_learner_predicts_what_its_values_say() -> None:
    agent = gf.Discretized("epsilon-greedy-q", gf.Partition.uniform(bins=2), n_actions=3)
    agent.core.q[:] = [0.0, 2.0, 1.0, 3.0, 0.0, 1.0]  # type: ignore[attr-defined]
    assert [agent.predict(x) for x in (0.2, 0.9)] == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((gf.UCRL2B, 20, {}), "partition is 20"),
        (
            (gf.CSCALPlus, gf.Partition.uniform(bins=2), {}),
            "is not a tabular agent, expected a class such as gf.UCRL2B; it has a partition already",
        ),
        ((7, gf.Partition.uniform(bins=2), {}), "7 is not a tabular agent"),
        ((gf.UCRL2B, gf.Partition.uniform(bins=2), {"span": 2.0}), "UCRL2B has no parameter 'span'; it has"),
        ((gf.SCAL, gf.Partition.uniform(bins=2), {}), "SCAL cannot be made: .*span"),
        ((gf.SCAL, gf.Partition.uniform(bins=2), {"span": -2.0}), "span is -2"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[Any, Any, dict[str, Any]], message: str) -> None:
    made, part, settings = arguments
    with pytest.raises(InvalidArgumentError, match=message):
        gf.Discretized(made, part, n_actions=2, **settings)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UnknownAgentError, match="did you mean 'ucrl2b'"):
        gf.Discretized("ucrl2-b", gf.Partition.uniform(bins=2), n_actions=2)
