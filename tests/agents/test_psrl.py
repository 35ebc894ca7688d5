from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gainful as gf
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.posterior_planning import empty_model, plan_on_sample, write_rows
from gainful.agents.psrl import dense_counts, sample_mean_rewards, sample_transitions
from gainful.errors import InvalidArgumentError, TooLargeError
from gainful.rng import mixed_key, planning_generator
from tests import bits
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


def assert_dirichlet(rows: NDArray[np.float64], alpha: NDArray[Any]) -> None:
    """Means and variances of the entries, and of sums of two, which tell how entries depend on each other."""
    assert np.allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    for found, a in ((rows, alpha), (rows + np.roll(rows, 1, axis=1), alpha + np.roll(alpha, 1))):
        mean = a / alpha.sum()
        variance = mean * (1 - mean) / (alpha.sum() + 1)
        fourth = 3 * variance**2 + variance / 16  # of a variable in [0, 1]: a generous bound of its 4th central moment
        assert np.all(np.abs(found.mean(axis=0) - mean) <= 5 * np.sqrt(variance / len(rows)))
        assert np.all(np.abs(found.var(axis=0) - variance) <= 5 * np.sqrt(fourth / len(rows)))


@pytest.mark.parametrize("prior", [1.0, 0.04])
@pytest.mark.parametrize("counts", [[0, 0, 0], [1, 0, 0], [3, 0, 1]])
def test_rows_come_from_the_dirichlet_posterior(counts: list[int], prior: float) -> None:
    n = 40_000
    rows = sample_transitions(np.tile(np.array(counts, dtype=float), (n, 1)), prior, planning_generator(0, 0))
    assert_dirichlet(rows, prior + np.array(counts))


def drawn(agent: gf.PSRL, number: int, precision: float) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]]:
    """A plan in model `number` of the agent's posterior, and then the whole of that model."""
    counts, (*prior, key) = agent.posterior(agent.statistics)
    model = empty_model(agent.n_states, agent.n_actions)
    law = (*prior, mixed_key(key, number))
    values, actions = np.zeros(agent.n_states), np.empty(agent.n_states, dtype=np.int64)
    found = plan_on_sample(counts, law, precision, 200, tuple(model), values, actions)
    rows = np.empty((agent.n_states * agent.n_actions, agent.n_states))
    write_rows(law, tuple(model), rows)
    return found, rows, model.rewards


@pytest.mark.parametrize("precision", [1e-9, 0.1, 10.0])  # divides nearly all of each row while it plans; some; none
@pytest.mark.parametrize("prior", [0.02, 0.2, 2.0])
@pytest.mark.parametrize("seen", [[], [3], [0, 0, 2], [0, 1, 1, 2, 3, 4]])
def test_a_model_drawn_as_needed_has_the_law_of_the_posterior(seen: list[int], prior: float, precision: float) -> None:
    n, agent = 2_000, gf.PSRL(5, 1, transition_prior=prior)
    for state in range(5):
        for to in seen:
            agent.observe(state, 0, 0.25, to)
    rows = np.empty((n, 5))
    rewards = np.empty(n)
    for i in range(n):
        _, drawn_rows, drawn_rewards = drawn(agent, i, precision)
        rows[i], rewards[i] = drawn_rows[i % 5], drawn_rewards[i % 5]
    assert_dirichlet(rows, prior + np.bincount(seen, minlength=5))
    a, b = 1 + 0.25 * len(seen), 1 + 0.75 * len(seen)
    variance = a * b / ((a + b) ** 2 * (a + b + 1))
    assert rewards.mean() == pytest.approx(a / (a + b), rel=0, abs=5 * math.sqrt(variance / n))
    assert rewards.var() == pytest.approx(variance, rel=0, abs=5 * math.sqrt((3 * variance**2 + variance / 16) / n))


def test_a_plan_in_a_model_drawn_as_needed_is_one_in_the_whole_model() -> None:
    agent = gf.PSRL(6, 2, seed=1)
    gf.simulate(agent, gf.environments.riverswim(6), 500, seed=1)
    for i in range(40):
        (low, high, _, narrow), rows, rewards = drawn(agent, i, 0.05)
        assert narrow
        assert high - low <= 0.05
        found = gf.solve(gf.MDP(rows.reshape(6, 2, 6), rewards.reshape(6, 2)), precision=1e-9)
        assert low - 1e-9 <= found.gain <= high + 1e-9


def test_samples_do_not_depend_on_how_much_of_them_a_plan_needed() -> None:
    agent = gf.PSRL(6, 2, seed=1)
    gf.simulate(agent, gf.environments.riverswim(6), 100, seed=1)
    for i in range(20):
        early, late = (drawn(agent, i, precision) for precision in (0.5, 0.4))
        assert np.array_equal(early[2], late[2])
        seen = agent.statistics.to_arrays()
        at = np.repeat(np.arange(12), seen["length"]), seen["next_state"]
        assert np.array_equal(early[1][at], late[1][at])


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
    agent, seen = gf.PSRL(4, 2, seed=1, sampler="numpy"), []

    def look(view: Any) -> None:
        found = gf.solve(gf.MDP(view.plan.details["transitions"], view.plan.details["rewards"]), precision=1e-9)
        low, high = view.plan.gain_bounds
        assert low - 1e-9 <= found.gain <= high + 1e-9
        assert high - low <= 1 / math.sqrt(view.step)
        seen.append(view.plan.details["transitions"])

    agent.on_episode = look
    gf.simulate(agent, gf.environments.riverswim(4), 200, seed=1)
    assert not np.array_equal(seen[0], seen[1])
    other = gf.PSRL(4, 2, seed=2, sampler="numpy").plan(agent.statistics, 1)
    assert not np.array_equal(other.details["transitions"], seen[0])


def test_regret_grows_like_a_square_root() -> None:
    mdp, early, late = gf.environments.riverswim(6), 1000, 100_000
    runs = [gf.simulate(gf.PSRL(6, 2, seed=s), mdp, late, seed=s, checkpoints=[early]) for s in (1, 2, 3)]
    first, last = np.mean([run.pseudo_regret for run in runs], axis=0)
    # Σ(g* - r) is a sum of action gaps, Õ(√T), and the noise of the optimal bias
    allowance = noise(mdp, gf.solve(mdp).bias, late, 1e-3, runs=3)
    assert first > 0.0
    assert last <= first * math.sqrt(late / early) + allowance
    assert first * math.sqrt(late / early) + allowance < 0.1 * late * runs[0].gain  # far from linear


def test_the_default_prior_learns_on_a_long_river_where_a_uniform_one_does_not() -> None:
    mdp, T = gf.environments.riverswim_bourel(25), 30_000
    lost = [
        float(gf.simulate(gf.PSRL(25, 2, transition_prior=prior), mdp, T, seed=1).expected_regret[-1])
        for prior in (None, 1.0)
    ]
    assert lost[0] < 0.2 * T
    assert lost[1] > 0.8 * T  # 0.825 per step: it stays on the left bank


def test_the_prior_weighs_one_observation_by_default() -> None:
    assert gf.PSRL(25, 2).transition_prior == 1 / 25
    assert gf.PSRL(25, 2).settings()["transition_prior"] == 1 / 25
    old = gf.load_agent(bits.V1 / "agents" / "psrl.npz")
    assert (old.transition_prior, old.sampler) == (1.0, "numpy")


def test_a_model_that_falls_apart_is_planned_in_as_far_as_possible() -> None:
    # two states that lead to themselves, with rewards 0 and 1: with this prior their sampled rows hardly ever leave
    agent = gf.PSRL(2, 1, transition_prior=1e-6)
    for state in (0, 1):
        for _ in range(50):
            agent.observe(state, 0, float(state), state)
    plan = agent.plan(agent.statistics, 10_000)
    assert plan.gain_bounds[0] < 0.2
    assert plan.gain_bounds[1] > 0.8


def test_a_model_too_large_to_draw_is_refused() -> None:
    with pytest.raises(TooLargeError, match="S²A = 18000000"):
        gf.PSRL(3000, 2)


@pytest.mark.parametrize("argument", ["transition_prior", "reward_prior"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "flat"])
def test_bad_priors_are_refused(argument: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=argument):
        gf.PSRL(2, 2, **{argument: value})
    with pytest.raises(InvalidArgumentError, match="sampler is 'fast'"):
        gf.PSRL(2, 2, sampler="fast")  # type: ignore[arg-type]


def test_it_says_why_there_is_no_guarantee() -> None:
    assert not gf.PSRL(2, 2).guarantee.holds
    assert "Dirichlet rows have none" in str(gf.PSRL(2, 2).guarantee)
