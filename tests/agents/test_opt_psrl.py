from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.opt_psrl import lower_probability, n_samples, sharpness, threshold
from gainful.errors import InvalidArgumentError, TooLargeError
from gainful.rng import planning_generator
from tests.agents.test_fixed import assert_saved_goes_on, assert_stepped_equals_simulated, fitting, worlds


def make(mdp: gf.MDP, seed: int) -> EpisodicAgent:
    return gf.OptPSRL(horizon=2000, samples=8, **fitting(mdp, seed))


@pytest.mark.parametrize("world", worlds())
def test_stepped_equals_simulated(world: str) -> None:
    assert_stepped_equals_simulated(make, worlds()[world], 1500)


def test_a_saved_agent_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    assert_saved_goes_on(make, worlds()["bernoulli"], 777, 1000, tmp_path)


def test_the_constants() -> None:
    assert n_samples(6, 2, 0.05) == math.ceil(6 * math.log(240)) == 33
    assert sharpness(1000, 0.05) == pytest.approx(math.log(20_000), rel=1e-15, abs=0)
    assert threshold(1000, 6, 2, 2.0) == pytest.approx(math.sqrt(3000) + 12 * 2.0 * 36, rel=1e-15, abs=0)
    agent = gf.OptPSRL(6, 2, horizon=1000)
    assert agent.samples == 33
    assert agent.threshold == pytest.approx(math.sqrt(3000) + 12 * math.log(20_000) * 36, rel=1e-15, abs=0)


@pytest.mark.parametrize(
    ("p", "visits", "expected"),
    [
        (0.0, 0, 0.0),
        (1.0, 1, 0.0),  # 3 ln 24 > 1
        (0.5, 1000, 0.5 - math.sqrt(1.5 * math.log(24) / 1000) - 3 * math.log(24) / 1000),
        (0.0, 1000, 0.0),
    ],
)
def test_the_lower_probability(p: float, visits: int, expected: float) -> None:
    assert lower_probability(p, visits, math.log(24)) == pytest.approx(expected, rel=1e-14, abs=1e-16)


def planned(agent: gf.OptPSRL) -> dict[str, Any]:
    agent.act(0)
    assert agent.current is not None
    return agent.current.details


def test_optimistic_rewards_at_no_visit_one_and_many() -> None:
    agent = gf.OptPSRL(2, 2, horizon=1000, reward_max=2.0)
    assert planned(agent)["rewards"].tolist() == [2.0] * 4
    assert agent.vacuous
    agent.observe(0, 0, 0.5, 1)
    for _ in range(100):
        agent.observe(1, 1, 0.25, 0)
    width = 2.0 * math.sqrt(math.log(4 * 1000 / 0.05) / 200)
    agent.begin_episode()
    found = planned(agent)["rewards"]
    assert found[:3].tolist() == [2.0] * 3  # at one visit the interval reaches r_max
    assert found[3] == pytest.approx(0.25 + width, rel=1e-14, abs=0)
    assert not agent.vacuous


def test_samples_below_the_threshold_put_the_missing_mass_on_one_state() -> None:
    agent = gf.OptPSRL(3, 1, horizon=1000)
    counts, lower = np.zeros((3, 3)), np.array([[0.0, 0.0, 0.0], [0.2, 0.3, 0.1], [0.5, 0.0, 0.0]])
    rows = agent.sample_rows(counts, lower, np.zeros(3, dtype=bool), planning_generator(0, 0))
    assert rows.shape == (3, agent.samples, 3)
    assert np.allclose(rows.sum(axis=2), 1.0, rtol=0, atol=1e-15)
    above = rows - lower[:, None, :]
    assert np.all((above > 1e-12).sum(axis=2) == 1)
    assert set(np.argmax(above, axis=2).reshape(-1)) == {0, 1, 2}


def test_samples_above_the_threshold_come_from_the_flattened_posterior() -> None:
    n = 20_000
    agent = gf.OptPSRL(3, 1, horizon=1000, samples=n)
    counts = np.array([[30.0, 10.0, 0.0]])
    rows = agent.sample_rows(counts, np.zeros((1, 3)), np.ones(1, dtype=bool), planning_generator(0, 0))[0]
    alpha = (counts[0] + agent.omega) / agent.omega
    mean = alpha / alpha.sum()
    assert np.all(np.abs(rows.mean(axis=0) - mean) <= 5 * np.sqrt(mean * (1 - mean) / (alpha.sum() + 1) / n))


def test_both_kinds_of_samples_are_used() -> None:
    agent = gf.OptPSRL(2, 1, horizon=10)  # threshold about 260
    for _ in range(300):
        agent.observe(0, 0, 1.0, 1)
    agent.observe(1, 0, 0.0, 0)
    visits = agent.statistics.visits
    assert (visits >= agent.threshold).tolist() == [True, False]
    agent.act(0)
    low, high = agent.episodes[0]["gain_low"], agent.episodes[0]["gain_high"]
    assert 0.0 <= low <= high <= 1.0 + 1e-9


def test_a_model_whose_gain_depends_on_the_start_is_drawn_again() -> None:
    for seed in range(20):  # both states may draw themselves: one model in four
        agent = gf.OptPSRL(2, 1, horizon=10, samples=1, seed=seed)
        for s in (0, 1):
            for _ in range(50):
                agent.observe(s, 0, float(s), s)
        agent.act(0)
        assert len(agent.episodes) == 1


def test_the_loss_per_step_falls() -> None:
    mdp, T = gf.environments.riverswim(6), 50_000
    run = gf.simulate(gf.OptPSRL(6, 2, horizon=T, seed=1), mdp, T, seed=1, checkpoints=[T // 10])
    assert run.pseudo_regret[1] / T < 0.5 * run.pseudo_regret[0] / (T // 10)


def test_it_says_that_its_bound_was_withdrawn() -> None:
    assert "withdrawn" in str(gf.OptPSRL(2, 2, horizon=10).guarantee)
    assert not gf.OptPSRL(2, 2, horizon=10).guarantee.holds


@pytest.mark.parametrize("arguments", [{"horizon": 0}, {"horizon": 1.5}, {"horizon": math.nan}, {"samples": 0}])
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(arguments))):
        gf.OptPSRL(2, 2, **{"horizon": 10, **arguments})


def test_a_model_too_large_to_draw_is_refused() -> None:
    with pytest.raises(TooLargeError, match="S²Aψ"):
        gf.OptPSRL(200, 4, horizon=10)
