from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodicAgent
from gainful.errors import InvalidArgumentError
from gainful.optimism.mbie_eb import bonus, coefficient, confidence_log
from tests.agents.test_fixed import assert_saved_goes_on, assert_stepped_equals_simulated, fitting, noise, worlds


def make(mdp: gf.MDP, seed: int) -> EpisodicAgent:
    return gf.MBIEEB(discount=0.9, m=100, bonus_scale=0.1, **fitting(mdp, seed))


@pytest.mark.parametrize("world", worlds())
def test_stepped_equals_simulated(world: str) -> None:
    assert_stepped_equals_simulated(make, worlds()[world], 1500)


def test_a_saved_agent_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    assert_saved_goes_on(make, worlds()["bernoulli"], 777, 1000, tmp_path)


def test_the_equations() -> None:
    log_term = confidence_log(3, 2, 50, 0.1)
    assert log_term == pytest.approx(math.log(6000), rel=1e-15, abs=0)
    beta = coefficient(log_term, 0.9, 2.0, 1.0)
    assert beta == pytest.approx(20.0 * math.sqrt(math.log(6000) / 2), rel=1e-14, abs=0)
    assert [bonus(beta, n) / beta for n in (0, 1, 4)] == pytest.approx([1.0, 1.0, 0.5], rel=1e-15, abs=0)


def test_what_is_planned_solves_the_published_equation() -> None:
    S, A, gamma = 3, 2, 0.8
    agent = gf.MBIEEB(S, A, discount=gamma, m=50, delta=0.1, reward_max=2.0, bonus_scale=0.3)
    for s, a, reward, to in [(0, 0, 1.0, 1), (0, 0, 2.0, 0), (1, 1, 0.5, 2), (2, 0, 0.0, 0), (2, 1, 0.25, 2)]:
        for _ in range(200):
            agent.observe(s, a, reward, to)
    agent.act(0)
    plan = agent.current
    assert plan is not None
    beta = 0.3 * 2.0 / (1 - gamma) * math.sqrt(math.log(2 * S * A * 50 / 0.1) / 2)
    top = (2.0 + beta) / (1 - gamma)
    p = {(0, 0): [0.5, 0.5, 0.0], (1, 1): [0.0, 0.0, 1.0], (2, 0): [1.0, 0.0, 0.0], (2, 1): [0.0, 0.0, 1.0]}
    b = beta / math.sqrt(200)
    r = {(0, 0): 1.5 + beta / 20, (1, 1): 0.5 + b, (2, 0): b, (2, 1): 0.25 + b}
    q, v = np.full((S, A), top), np.zeros(S)  # (0,1) and (1,0) were never visited
    for _ in range(400):
        for (s, a), row in p.items():
            q[s, a] = r[s, a] + gamma * np.dot(row, v)
        v = q.max(axis=1)
    precision = 2.0 / math.sqrt(1001)
    assert np.abs(plan.values - v).max() <= precision
    assert plan.actions.tolist() == [1, 0, int(q[2, 1] > q[2, 0])]
    assert (1 - gamma) * v.min() >= plan.gain_bounds[0] - 1e-9
    assert (1 - gamma) * v.max() <= plan.gain_bounds[1] + 1e-9


def test_before_anything_was_seen_every_pair_is_worth_the_most() -> None:
    agent = gf.MBIEEB(2, 2, discount=0.5, m=10)
    agent.act(0)
    assert agent.current is not None
    beta = 2.0 * math.sqrt(math.log(80 / 0.05) / 2)
    assert agent.current.values == pytest.approx([2 * (1 + beta)] * 2, rel=0, abs=1.0)  # precision r_max/√1
    assert agent.vacuous
    assert not agent.guarantee.holds
    for _ in range(3):  # β = 3.84 and β/√N < 1/(1-γ) = 2 from N = 4 on
        agent.observe(0, 0, 0.0, 0)
    assert agent.vacuous
    agent.observe(0, 0, 0.0, 0)
    assert not agent.vacuous


def test_it_learns_with_a_small_bonus() -> None:
    mdp, T = gf.environments.riverswim(6), 20_000
    run = gf.simulate(gf.MBIEEB(6, 2, discount=0.95, m=1000, bonus_scale=0.02), mdp, T, seed=1)
    allowance = noise(mdp, gf.solve(mdp).bias, T, 1e-3)
    assert run.pseudo_regret[-1] <= 500.0 + allowance  # random play loses 8500
    assert 500.0 + allowance < 0.2 * 8500


@pytest.mark.parametrize(
    "arguments",
    [
        {"discount": 1.0},
        {"discount": -0.1},
        {"discount": math.nan},
        {"m": 0},
        {"m": 2.5},
        {"bonus_scale": 0.0},
        {"bonus_scale": math.inf},
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(arguments))):
        gf.MBIEEB(2, 2, **{"discount": 0.9, "m": 10, **arguments})
