"""SCAL+ with the constants of the authors' experiments."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodeView
from gainful.errors import InvalidArgumentError

S, A, C, R_MAX = 3, 2, 1.5, 2.0


def authors(**more: Any) -> gf.SCALPlus:
    return gf.SCALPlus(S, A, span=C, reward_max=R_MAX, bonus="authors", **more)


def planned(agent: gf.SCALPlus) -> dict[str, Any]:
    seen: list[EpisodeView] = []
    agent.on_episode = seen.append
    agent.act(0)
    return seen[-1].plan.details


@pytest.mark.parametrize("visits", [0, 1, 2, 10_000])
def test_the_bonus_is_the_equation(visits: int) -> None:
    agent = authors()
    for _ in range(visits):
        agent.observe(1, 1, 0.25, 2)
    details = planned(agent)
    expected = (
        0.5 * (C + R_MAX) * math.sqrt(math.log(S * A * math.sqrt(visits + 2)) / max(1, visits))
    )  # t_k = visits + 1
    assert details["rewards"][3] == pytest.approx(0.25 * (visits > 0) + expected, rel=1e-14, abs=0)
    assert details["bonus"][1, 1] == pytest.approx(expected, rel=1e-12, abs=0)
    assert gf.theory.authors_bonus(visits, visits + 1, S, A, span=C, reward_max=R_MAX) == pytest.approx(
        expected, rel=1e-14, abs=0
    )


def test_no_reward_is_above_three_times_c_and_the_largest_reward() -> None:
    agent = authors(bonus_scale=10.0)
    agent.observe(0, 0, 1.0, 1)
    details = planned(agent)
    assert details["rewards"].tolist() == [3 * (C + R_MAX)] * (S * A)
    assert details["bonus"][0, 0] == 3 * (C + R_MAX) - 1.0
    assert agent.vacuous


def test_no_guarantee_is_claimed() -> None:
    found = authors().guarantee
    assert not found.holds
    assert "bonus is 'authors'" in str(found)
    assert found.bound == "none"


def test_cells_have_no_such_constants() -> None:
    cells = gf.Partition.uniform(bins=4, dim=1)
    with pytest.raises(InvalidArgumentError, match="without a term for cells"):
        gf.CSCALPlus(partition=cells, n_actions=2, span=1.0, lipschitz=1.0, holder=1.0, bonus="authors")


def test_a_saved_agent_goes_on_with_the_same_constants(tmp_path: Path) -> None:
    mdp = gf.environments.riverswim(6)
    agent = gf.SCALPlus(6, 2, span=7.0, bonus="authors")
    gf.simulate(agent, mdp, 2_000, seed=1)
    agent.save(tmp_path / "agent")
    again = gf.load_agent(tmp_path / "agent")
    assert again.bonus == "authors"
    assert np.array_equal(again.bonuses(), agent.bonuses())
