from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError
from gainful.optimism.uccrl import cell_widening, reward_width, transition_radius
from tests.agents.test_c_scal_plus import wander


def of_unit(bins: int = 6, **options: Any) -> gf.UCCRL:
    given: dict[str, Any] = {"n_actions": 3, "span": 2.0, "lipschitz": 1.0, "holder": 1.0, **options}
    return gf.UCCRL(partition=gf.Partition.uniform(bins=bins), **given)


def test_radii_by_hand() -> None:
    assert cell_widening(2.0, 0.5, 16) == 0.5
    # sqrt(56·4·2/7) = 8, sqrt(3.5·2/7) = 1
    assert transition_radius(4, 2.0, 7, 0.25, 1.0) == pytest.approx(8.25, rel=1e-15, abs=0)
    assert reward_width(2.0, 7, 3.0, 0.25, 1.0) == pytest.approx(3.75, rel=1e-15, abs=0)
    assert transition_radius(4, 2.0, 7, 0.25, 0.5) == pytest.approx(4.25, rel=1e-15, abs=0)  # L stays as it is


def test_the_sets_of_a_plan_by_hand() -> None:
    agent = of_unit(3, span=1.0, lipschitz=0.3, delta=0.1)
    seen: list[Any] = []
    agent.on_episode = seen.append
    n = 2_000_000
    agent.observe(0.1, 1, 0.25, 0.3)
    s = agent.statistics
    s.visits[1], s.count[s.begin[1]], s.reward_sum[1], agent.core.t = n, n, 0.25 * n, n
    agent.act(0.1)
    view = seen[-1]
    radius = math.sqrt(56 * 3 * math.log(2 * 3 * (n + 1) / 0.1) / n) + 0.1
    assert view.plan.details["confidence"].radius[0, 1] == pytest.approx(radius, rel=1e-14, abs=0)
    reward = 0.25 + math.sqrt(7 * math.log(2 * 3 * 3 * (n + 1) / 0.1) / (2 * n)) + 0.1
    assert view.plan.details["rewards"][0, 1] == pytest.approx(reward, rel=1e-14, abs=0)
    assert view.plan.details["confidence"].radius[2, 0] == 2.0
    assert view.plan.details["rewards"][2, 0] == 1.0


def test_without_widening_and_with_a_wide_span_it_is_ucrl2_with_other_constants() -> None:
    """Where every radius is 2 and rewards are at their cap, both are the same agent."""
    part = gf.Partition.uniform(bins=5)
    own, tabular = of_unit(5, span=1e6, lipschitz=None), gf.Discretized(gf.UCRL2, part, n_actions=3)
    assert np.array_equal(wander(own, 500), wander(tabular, 500))
    assert np.array_equal(own.statistics.visits, tabular.statistics.visits)


def test_plans_are_certified_keep_the_span_and_are_optimistic() -> None:
    agent = of_unit(6, span=1.0, lipschitz=0.05, width_scale=0.02)
    wander(agent, 6000)
    records = agent.episodes
    assert records["span"].max() <= 1.0 + 1e-9
    assert np.all(records["gain_high"] - records["gain_low"] <= 1 / np.sqrt(records["step"]) + 1e-12)
    assert not agent.vacuous
    # the walk's best: always up, which stays near 1
    assert records["gain"][-1] > 0.9


def test_it_learns_to_go_where_the_reward_is() -> None:
    agent = of_unit(6, span=3.0, lipschitz=0.01, width_scale=0.005)
    wander(agent, 8000)
    assert [agent.predict(x) for x in (0.5, 0.7)] == [2, 2]


def test_no_guarantee_is_claimed_for_a_variant_without_a_proof() -> None:
    assert not of_unit().guarantee.holds
    assert "no proof is published" in str(of_unit().guarantee)
    assert "width_scale is 0.5" in str(of_unit(width_scale=0.5).guarantee)
    assert "lipschitz not given" in str(of_unit(lipschitz=None).guarantee)


def test_the_horizon_chooses_the_cells() -> None:
    agent = gf.UCCRL(n_actions=4, span=1.0, lipschitz=2.0, holder=1.0, horizon=1e6, dim=2)
    assert agent.partition.bins == (8, 8)
    assert agent.core.widening == 0.25


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition": None}, "give a partition, or the horizon"),
        ({"partition": None, "horizon": 100, "holder": None}, "no formula"),
        ({"span": -1.0}, "span is -1"),
        ({"lipschitz": -2.0}, "lipschitz is -2"),
        ({"holder": 2.0}, "holder is 2"),
        ({"width_scale": -1.0}, "width_scale is -1"),
        ({"high": 2.0}, "a partition was given"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "partition": gf.Partition.uniform(bins=4),
        "n_actions": 3,
        "span": 1.0,
        "lipschitz": 1.0,
        "holder": 1.0,
        **options,
    }
    with pytest.raises(InvalidArgumentError, match=message):
        gf.UCCRL(**given)


def test_a_saved_agent_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    for k, agent in enumerate(
        (of_unit(width_scale=0.02), gf.UCCRL(n_actions=3, span=1.0, lipschitz=1.0, holder=1.0, horizon=1000))
    ):
        x = wander(agent, 700)
        agent.save(tmp_path / f"{k}")
        again = gf.load_agent(tmp_path / f"{k}")
        assert again.settings() == agent.settings()
        assert again.guarantee == agent.guarantee
        assert np.array_equal(wander(agent, 500, seed=3, start=x), wander(again, 500, seed=3, start=x))
        assert np.array_equal(agent.statistics.visits, again.statistics.visits)
        assert [r[:-1] for r in agent.core.records] == [r[:-1] for r in again.core.records]
