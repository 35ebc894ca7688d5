"""SCAL+ and C-SCAL+ with the sharp bonus: the equation, its caps, and what the theorem says of every plan."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from tests.agents.test_scal_plus_local import Judge, made


def planned(agent: gf.SCALPlus) -> dict[str, Any]:
    agent.on_episode = lambda view: None
    agent.act(0)
    assert agent.current is not None
    return agent.current.details


@pytest.mark.parametrize("visits", [1, 2, 50, 10_000])
def test_the_rewards_are_the_equation(visits: int) -> None:
    S, A, c, delta = 3, 2, 1.5, 0.1
    agent = gf.SCALPlus(S, A, span=c, reward_min=-1.0, reward_max=3.0, delta=delta, bonus="sharp")
    for _ in range(visits):
        agent.observe(1, 1, 0.0, 2)
    beta = math.sqrt((1 + 1 / visits) * math.log(0.5 + S * math.sqrt(visits + 1) / delta) / (2 * visits))
    reward, bonus = min(4.0, 1.0 + 4.0 * beta), c * min(1.0, (visits * beta + 1) / (visits + 1))
    found = planned(agent)
    assert found["rewards"][3] == pytest.approx(reward + bonus, rel=1e-14, abs=0)
    assert found["rewards"][0] == 4.0 + c  # never visited
    assert found["bonus"][1, 1] == pytest.approx(reward + bonus - 1.0, rel=1e-13, abs=0)
    assert agent.bonuses()[1, 1] == found["bonus"][1, 1]


def test_bonus_scale_multiplies_beta_and_voids_the_guarantee() -> None:
    agent = gf.SCALPlus(2, 1, span=2.0, bonus="sharp", bonus_scale=0.01)
    agent.observe(0, 0, 0.0, 1)
    beta = 0.01 * math.sqrt(math.log(0.5 + 2 * math.sqrt(2) / 0.05))
    assert planned(agent)["bonus"][0, 0] == pytest.approx(beta + 2.0 * (beta + 1) / 2, rel=1e-14, abs=0)
    assert not agent.guarantee.holds
    drawn = gf.SCALPlus(2, 1, span=2.0, bonus="sharp", mixture="min-action")
    assert "greedy action alone" in str(drawn.guarantee)
    assert gf.SCALPlus(2, 1, span=2.0, mixture="min-action").guarantee.holds  # the paper's has a proof for it
    assert not gf.SCALPlus(2, 1, span=2.0, bonus="sharp", delta=0.4).guarantee.holds
    said = str(gf.SCALPlus(2, 1, span=2.0, bonus="sharp").guarantee)
    assert "probability 0.85" in said
    assert "optimistic with probability 0.95" in said
    assert "theorem 11" in said


@pytest.mark.parametrize("replanning", ["full", "local"])
def test_every_plan_is_optimistic_and_keeps_span_and_precision(replanning: Any) -> None:
    mdp = gf.environments.riverswim(6)
    agent = gf.SCALPlus(6, 2, span=6.4, bonus="sharp", replanning=replanning)
    worst = 0.0

    def look(view: Any) -> None:
        nonlocal worst
        N = np.zeros((6, 2, 6))
        for k in range(12):
            states, counts = view.statistics.row(k)
            N[divmod(k, 2)][states] = counts
        p = (N + np.eye(6)[0]) / (N.sum(axis=2) + 1)[:, :, None]
        v = view.plan.values
        q = view.plan.details["rewards"].reshape(6, 2) + p @ v
        Lv = q.max(axis=1)
        gaps = np.minimum(Lv, Lv.min() + 6.4) - v
        low, high = view.plan.gain_bounds
        assert low <= gaps.min() + 1e-12
        assert gaps.max() <= high + 1e-12
        assert high - low <= 1 / math.sqrt(view.step)
        assert gaps.max() >= 7203 / 16805  # g*
        assert np.ptp(v) <= 6.4 + 1e-12
        assert view.plan.details["drift"] == 0.0
        assert np.all(q[np.arange(6), view.plan.actions] - v >= low - 1e-12)
        worst = max(worst, np.ptp(gaps) * math.sqrt(view.step))

    agent.on_episode = look
    run = gf.simulate(agent, mdp, 50_000, seed=3)
    assert 0.5 < worst <= 1.0
    assert not agent.vacuous
    assert run.pseudo_regret[-1] < 0.3 * run.gain * 50_000  # it has learned


def test_local_plans_hold_where_the_span_constraint_cuts() -> None:
    mdp = gf.environments.garnet(60, 3, 5)
    agent = made(mdp, 0.2, bonus="sharp", bonus_scale=0.1)
    agent.on_episode = judge = Judge(agent)
    gf.simulate(agent, mdp, 4_000, seed=1)
    assert judge.episodes > 5


def test_a_periodic_mdp_needs_few_sweeps() -> None:
    P = np.zeros((4, 1, 4))
    P[:2, 0, 2:] = P[2:, 0, :2] = 0.5
    mdp = gf.MDP(P, [[0.0], [0.5], [0.3], [0.8]])
    agent = gf.SCALPlus(4, 1, span=1.0, bonus="sharp")
    assert gf.simulate(agent, mdp, 100_000, seed=1).episodes["sweeps"].max() <= 10  # thousands if not damped


def test_a_saved_local_agent_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    mdp = gf.environments.riverswim(6)
    agent = gf.SCALPlus(6, 2, span=7.0, bonus="sharp", replanning="local")
    gf.simulate(agent, mdp, 3210, seed=1)
    agent.save(tmp_path / "it.agent")
    again = gf.load_agent(tmp_path / "it.agent")
    assert again.settings() == agent.settings()
    first, second = gf.simulate(agent, mdp, 5000, seed=2), gf.simulate(again, mdp, 5000, seed=2)
    assert np.array_equal(first.rewards, second.rewards)
    assert np.array_equal(first.episodes["gain_high"], second.episodes["gain_high"])


def test_on_cells_all_pairs_are_bounded_and_the_hoelder_term_is_added() -> None:
    K, A, c = 10, 2, 2.0
    cells = gf.Partition.uniform(bins=K)
    agent = gf.CSCALPlus(partition=cells, n_actions=A, span=c, lipschitz=1.0, holder=1.0, bonus="sharp")
    for _ in range(100):
        agent.observe(0.55, 1, 0.0, 0.55)
    beta = math.sqrt(1.01 * math.log(0.5 + K * A * math.sqrt(101) / 0.05) / 200)
    expected = beta + c * (100 * beta + 1) / 101 + (c + 1.0) / K
    assert agent.core.bonuses()[5, 1] == pytest.approx(expected, rel=1e-13, abs=0)
    assert agent.guarantee.holds
    assert "probability 0.85" in str(agent.guarantee)


def test_with_a_doubling_horizon_every_number_of_cells_has_a_share_of_delta(tmp_path: Path) -> None:
    agent = gf.CSCALPlus(n_actions=2, span=1.0, lipschitz=1.0, holder=1.0, bonus="sharp")
    rng, x = np.random.default_rng(0), 0.5
    for _ in range(1500):
        a = agent.act(x)
        to = rng.random()
        agent.observe(x, a, x, to)
        x = to
    agent.act(x)
    n = agent.n_states
    assert agent.stage == 1
    assert agent.core.n_deviations == n * 2 * n * (n + 1)
    agent.save(tmp_path / "it.agent")
    again = gf.load_agent(tmp_path / "it.agent")
    assert np.array_equal(again.core.bonuses(), agent.core.bonuses())
