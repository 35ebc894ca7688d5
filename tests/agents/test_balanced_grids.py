"""KL-SCAL+ on balanced grids: who plays, who is eliminated, by hand and on LQG."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.balanced_grids import Balance
from gainful.agents.files import agent_state
from gainful.agents.rebuilding import rebuilt
from gainful.errors import InvalidAgentError, InvalidArgumentError


def test_the_grid_with_the_least_claim_plays_next() -> None:
    balance = Balance([1, 4], 2.0, 0.1, 0.5)
    assert balance.choose() == 0  # nobody has lost anything: the coarsest
    balance.begin(0)
    balance.credit(10, 3.0)
    assert balance.claims().tolist() == [0.5 * 2.0 * math.sqrt(10 * math.log(11)), 0.0]
    assert balance.choose() == 1
    balance.begin(1)
    balance.credit(12, 4.0)
    assert balance.steps.tolist() == [10, 2]
    assert balance.rewards.tolist() == [3.0, 1.0]
    assert balance.choose() == 1  # sqrt(4·2·ln 3) < sqrt(10·ln 11)
    assert balance.segments.tolist() == [1, 1]


def test_a_grid_that_earns_less_than_it_claims_is_eliminated() -> None:
    balance = Balance([2, 8], 1.0, 0.05, 1.0)
    balance.steps[:], balance.segments[:] = 10_000, 3
    allowed = math.sqrt(2 * 10_000 * math.log(10_001)) + 2 * (3 * 1.5 + math.sqrt(10_000 * math.log(2 / 0.05)))
    balance.rewards[:] = 9_000.0 - allowed + 1e-6, 9_000.0
    balance.eliminate(1.5)
    assert balance.active.tolist() == [True, True]
    balance.rewards[0] -= 1e-3
    balance.eliminate(1.5)
    assert balance.active.tolist() == [False, True]
    balance.steps[1], balance.rewards[1] = 10**7, 0.0  # it earns nothing any more: less than the one given up
    balance.eliminate(1.5)
    assert balance.active.tolist() == [False, True]


def test_the_proven_test_leaves_room_for_the_luck_of_states() -> None:
    balance = Balance([2, 8], 2.0, 0.05, 1.0, "proven")
    balance.steps[:], balance.segments[:] = 10_000, 3
    widths = 2.0 * gf.theory.balanced_deviation(balance.steps, span=0.75, delta=0.05)  # c = 1.5
    assert balance.widths(np.arange(2), 1.5) == pytest.approx(widths, rel=1e-14, abs=0)
    allowed = 2.0 * math.sqrt(2 * 10_000 * math.log(10_001)) + 2 * 3 * 1.5 + widths.sum()
    balance.rewards[:] = 18_000.0 - allowed + 1e-6, 18_000.0
    balance.eliminate(1.5)
    assert balance.active.tolist() == [True, True]
    balance.rewards[0] -= 1e-3
    balance.eliminate(1.5)
    assert balance.active.tolist() == [False, True]


def test_a_file_without_the_test_has_the_plain_one(tmp_path: Path) -> None:
    agent = gf.BalancedGrids(gf.Partition.uniform(bins=2), 2, span=1.0)
    assert "no grid which keeps its claim is given up" in agent.guarantee.reason_void
    agent.save(tmp_path / "it")
    assert gf.load_agent(tmp_path / "it").settings()["elimination"] == "proven"
    header, arrays = agent_state(agent)
    del header["settings"]["elimination"]
    again = rebuilt(gf.BalancedGrids, header["settings"], arrays["allowed"])
    assert again.settings()["elimination"] == "plain"


@pytest.mark.slow
def test_grids_that_are_too_coarse_are_given_up_on_lqg() -> None:
    env = gf.environments.lqg()
    agent = gf.BalancedGrids(gf.Partition.uniform(bins=16), env.n_actions, span=1.4, elimination="plain")
    gf.simulate(agent, env, 60_000, seed=1, gain=0.0)
    found = agent.grids()
    assert [grid.bins for grid in found] == [1, 2, 4, 8, 16]
    assert [grid.active for grid in found] == [False, False, True, True, True]
    assert sum(grid.steps for grid in found) <= 60_000
    assert found[3].average_reward > found[1].average_reward
    assert not agent.guarantee.holds


@pytest.mark.slow
def test_compiled_stepped_and_loaded_runs_are_the_same(tmp_path: Path) -> None:
    env = gf.environments.lqg()
    compiled, stepped = (gf.BalancedGrids(gf.Partition.uniform(bins=6), env.n_actions) for _ in range(2))
    run = gf.simulate(compiled, env, 2_000, seed=1, gain=0.0)
    x, total = env.start.copy(), 0.0
    for t in range(2_000):
        if t in (500, 1_111):
            stepped.save(tmp_path / "it")
            stepped = gf.load_agent(tmp_path / "it")
        action = stepped.act(x)
        reward, to = env.step(t, x, action, seed=1)
        stepped.observe(x, action, reward, to)
        x, total = to, total + reward
    assert total == run.rewards[-1]
    assert np.array_equal(compiled.episodes["gain"], stepped.episodes["gain"])
    assert compiled.grids()[1:] == stepped.grids()[1:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda balance: balance.active.fill(False),
        lambda balance: setattr(balance, "playing", 9),
        lambda balance: balance.steps.__setitem__(0, -1),
    ],
    ids=["nobody", "unknown", "negative"],
)
def test_a_balance_that_cannot_be_is_refused(damage: Any, tmp_path: Path) -> None:
    agent = gf.BalancedGrids(gf.Partition.uniform(bins=2), 2)
    damage(agent.core.balance)
    agent.save(tmp_path / "it")
    with pytest.raises(InvalidAgentError, match="balance"):
        gf.load_agent(tmp_path / "it")


def test_arguments_that_cannot_be_are_named() -> None:
    cells = gf.Partition.uniform(bins=2)
    with pytest.raises(InvalidArgumentError, match="regret_scale"):
        gf.BalancedGrids(cells, 2, regret_scale=0.0)
    with pytest.raises(InvalidArgumentError, match="every action"):
        gf.BalancedGrids(cells, 2, allowed=[[True, False], [True, True]])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adaptive-kl-scal-plus", "balanced-grids"])
@pytest.mark.parametrize("planning", ["inline", "background"])
def test_agents_on_trees_live_on_disk_and_plan_in_the_background(name: str, planning: Any, tmp_path: Path) -> None:
    env, cells = gf.environments.lqg(), {"bins": [8], "low": [0.0], "high": [1.0], "outside": "error"}
    config = {"agent": name, "n_actions": env.n_actions, "partition": cells, "span": 1.4}
    x = env.start.copy()
    for part in range(3):
        with gf.open_agent(tmp_path / "a", config if part == 0 else None, fsync="off", planning=planning) as agent:
            for t in range(100 * part, 100 * part + 100):
                action = agent.act(x)
                reward, to = env.step(t, x, action, seed=1)
                agent.observe(x, action, reward, to)
                x = to
            assert agent.t == 100 * part + 100
            assert agent.status()["episodes"] >= 1
