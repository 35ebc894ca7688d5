from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError
from tests.agents.test_c_scal_plus import wander


def on_lqg(**options: Any) -> gf.CKLSCALPlus:
    env = gf.environments.lqg()
    given: dict[str, Any] = {"reward_min": env.reward_min, "reward_max": env.reward_max, **options}
    return gf.CKLSCALPlus(gf.Partition.uniform(bins=8, dim=env.dim), env.n_actions, **given)


def test_its_radius_is_that_of_all_pairs_of_cells_and_actions() -> None:
    agent = gf.CKLSCALPlus(gf.Partition.uniform(bins=4), 3)
    views: list[Any] = []
    agent.on_episode = views.append
    for _ in range(100):
        agent.observe(0.1, 2, 0.5, 0.9)
    agent.begin_episode()
    expected = (math.log(2 * 4 * 3 / 0.05) + 0.5 * math.log(100) + math.log(2)) / 100
    assert views[-1].plan.details["radius"][2] == pytest.approx(expected, rel=1e-14, abs=0)


def test_smoothness_moves_the_gain_and_nothing_else() -> None:
    env = gf.environments.lqg()
    plain, smooth = on_lqg(span=3.0), on_lqg(span=3.0, lipschitz=2.0, holder=0.5)
    for agent in (plain, smooth):
        gf.simulate(agent, env, 3_000, seed=1, gain=0.0)
    assert np.array_equal(plain.statistics.visits, smooth.statistics.visits)
    error = (smooth.reward_range + 1.5) * 2.0 / math.sqrt(8)
    assert smooth.model_error == pytest.approx(error, rel=1e-14, abs=0)
    assert smooth.episodes["gain"] - plain.episodes["gain"] == pytest.approx(error, rel=0, abs=1e-9)


def test_what_is_proven() -> None:
    whole = on_lqg(span=3.0, lipschitz=1.0, holder=1.0).guarantee
    assert whole.holds
    assert "theorem 13" in whole.source
    assert "probability 0.85" in whole.bound
    assert "optimistic up to" in str(on_lqg(lipschitz=1.0, holder=1.0).guarantee)
    assert "lipschitz and holder not given" in str(on_lqg(span=3.0).guarantee)
    assert "width_scale is 0.1" in str(on_lqg(span=3.0, lipschitz=1.0, holder=1.0, width_scale=0.1).guarantee)
    clipped = gf.Partition.uniform(bins=4, outside="clip")
    assert "clip" in str(gf.CKLSCALPlus(clipped, 2, span=1.0, lipschitz=1.0, holder=1.0).guarantee)


def test_the_tabular_agent_on_cells_has_another_radius_and_no_guarantee() -> None:
    agent = gf.Discretized(gf.KLSCALPlus, gf.Partition.uniform(bins=4), n_actions=3)
    wander(agent, 200)
    assert not agent.guarantee.holds


@pytest.mark.parametrize("options", [{}, {"span": 1.0, "lipschitz": 1.0, "holder": 1.0, "episodes": "vanishing"}])
def test_a_saved_agent_goes_on_to_the_same_bits(options: dict[str, Any], tmp_path: Path) -> None:
    agent = gf.CKLSCALPlus(gf.Partition.uniform(bins=4), 3, **options)
    x = wander(agent, 300)
    agent.save(tmp_path / "it")
    again = gf.load_agent(tmp_path / "it")
    assert isinstance(again, gf.CKLSCALPlus)
    assert again.settings() == agent.settings()
    assert again.model_error == agent.model_error
    assert np.array_equal(wander(agent, 300, seed=3, start=x), wander(again, 300, seed=3, start=x))
    assert np.array_equal(agent.episodes["gain"], again.episodes["gain"])


@pytest.mark.parametrize("options", [{"span": -1.0}, {"lipschitz": 0.0}, {"holder": 2.0}])
def test_bad_arguments_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{next(iter(options))} is"):
        on_lqg(**options)
