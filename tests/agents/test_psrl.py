from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.psrl import dense_counts, sample_mean_rewards, sample_transitions
from gainful.errors import InvalidArgumentError, TooLargeError
from gainful.rng import planning_generator
from tests.agents.test_fixed import (
    assert_saved_goes_on,
    assert_stepped_equals_simulated,
    fitting,
    noise,
    worlds,
)


def make(mdp: gf.MDP, seed: int) -> EpisodicAgent:
    return gf.PSRL(**fitting(mdp, seed))


@pytest.mark.parametrize("world", worlds())
def test_stepped_equals_simulated(world: str) -> None:
    assert_stepped_equals_simulated(make, worlds()[world], 1500)


def test_a_saved_agent_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    assert_saved_goes_on(make, worlds()["bernoulli"], 777, 1000, tmp_path)


@pytest.mark.parametrize("counts", [[0, 0, 0], [1, 0, 0], [3, 0, 1]])
def test_rows_come_from_the_dirichlet_posterior(counts: list[int]) -> None:
    n = 40_000
    rows = sample_transitions(np.tile(np.array(counts, dtype=float), (n, 1)), 1.0, planning_generator(0, 0))
    alpha = 1.0 + np.array(counts)
    mean = alpha / alpha.sum()
    variance = mean * (1 - mean) / (alpha.sum() + 1)
    assert np.allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    assert np.all(np.abs(rows.mean(axis=0) - mean) <= 5 * np.sqrt(variance / n))
    fourth = 3 * variance**2 + variance / 16  # of a variable in [0, 1]: a generous bound of its fourth central moment
    assert np.all(np.abs(rows.var(axis=0) - variance) <= 5 * np.sqrt(fourth / n))


@pytest.mark.parametrize(("visits", "total"), [(0, 0.0), (1, 2.0), (1, 0.0), (8, 4.0)])
def test_mean_rewards_come_from_the_beta_posterior(visits: int, total: float) -> None:
    n, r_max = 40_000, 2.0
    drawn = sample_mean_rewards(np.full(n, visits), np.full(n, total), r_max, 1.0, planning_generator(0, 1))
    a, b = 1 + total / r_max, 1 + visits - total / r_max
    variance = r_max**2 * a * b / ((a + b) ** 2 * (a + b + 1))
    assert drawn.mean() == pytest.approx(r_max * a / (a + b), rel=0, abs=5 * math.sqrt(variance / n))
    assert drawn.min() >= 0.0
    assert drawn.max() <= r_max


def test_counts_are_those_observed() -> None:
    agent = gf.PSRL(3, 2)
    for to in (2, 0, 2):
        agent.observe(1, 1, 0.0, to)
    table = dense_counts(agent.statistics)
    assert table.shape == (6, 3)
    assert table[3].tolist() == [1.0, 0.0, 2.0]
    assert table.sum() == 3.0


def test_an_episode_is_at_most_one_step_longer_than_the_one_before() -> None:
    agent = gf.PSRL(6, 2, seed=2)
    run = gf.simulate(agent, gf.environments.riverswim(6), 3000, seed=2)
    starts = run.episodes["step"]
    lengths = np.diff(starts)
    assert starts[0] == 1
    assert lengths[0] <= 2  # T_0 = 1
    assert np.all(lengths[1:] <= lengths[:-1] + 1)
    assert np.any(lengths[1:] == lengths[:-1] + 1)  # by length
    assert np.any(lengths[1:] < lengths[:-1])  # by doubling


def test_every_plan_solves_the_sampled_mdp() -> None:
    agent, seen = gf.PSRL(4, 2, seed=1), []

    def look(view: Any) -> None:
        found = gf.solve(gf.MDP(view.plan.details["transitions"], view.plan.details["rewards"]), precision=1e-9)
        low, high = view.plan.gain_bounds
        assert low - 1e-9 <= found.gain <= high + 1e-9
        assert high - low <= 1 / math.sqrt(view.step)
        seen.append(view.plan.details["transitions"])

    agent.on_episode = look
    gf.simulate(agent, gf.environments.riverswim(4), 200, seed=1)
    assert not np.array_equal(seen[0], seen[1])
    assert not np.array_equal(gf.PSRL(4, 2, seed=2).plan(agent.statistics, 1).details["transitions"], seen[0])


def test_regret_grows_like_a_square_root() -> None:
    mdp, early, late = gf.environments.riverswim(6), 1000, 100_000
    runs = [gf.simulate(gf.PSRL(6, 2, seed=s), mdp, late, seed=s, checkpoints=[early]) for s in (1, 2, 3)]
    first, last = np.mean([run.pseudo_regret for run in runs], axis=0)
    # Σ(g* - r) is a sum of action gaps, Õ(√T), and the noise of the optimal bias
    allowance = noise(mdp, gf.solve(mdp).bias, late, 1e-3, runs=3)
    assert first > 0.0
    assert last <= first * math.sqrt(late / early) + allowance
    assert first * math.sqrt(late / early) + allowance < 0.1 * late * runs[0].gain  # far from linear


def test_a_model_too_large_to_draw_is_refused() -> None:
    with pytest.raises(TooLargeError, match="S²A = 18000000"):
        gf.PSRL(3000, 2)


@pytest.mark.parametrize("argument", ["transition_prior", "reward_prior"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_bad_priors_are_refused(argument: str, value: float) -> None:
    with pytest.raises(InvalidArgumentError, match=argument):
        gf.PSRL(2, 2, **{argument: value})  # type: ignore[arg-type]


def test_it_says_why_there_is_no_guarantee() -> None:
    assert not gf.PSRL(2, 2).guarantee.holds
    assert "Dirichlet rows have none" in str(gf.PSRL(2, 2).guarantee)
