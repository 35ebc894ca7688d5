"""The audit of PSRL, Opt-PSRL, MBIE-EB, UCBVI, Q-learners and fixed policies: what holds, and what it notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodePlan
from gainful.audit import audit, audit_run
from gainful.audit.calibration import RESOLVED, BetaDraws, Calibration, group_of, uniform_of
from gainful.audit.episodes import block_rule, growing_episode_rule
from gainful.audit.own_problem import block_values, discounted_values
from gainful.audit.truth import Truth

HORIZON = 1500
IN_EVERY_TEST = ("OptPSRL", "MBIEEB", "Fixed")
"""The others compile kernels of their own: for make test-all."""
NAMES = ("PSRL", "PSRL numpy", "OptPSRL", "MBIEEB", "UCBVI", "OptimisticQ", "EpsilonGreedyQ", "Fixed", "IMEDRL")


def maker(name: str, mdp: gf.MDP, horizon: int = HORIZON, **options: Any) -> Callable[[int], Any]:
    """seed -> an agent of this kind for the MDP."""
    name, *sampler = name.split()
    own: dict[str, dict[str, Any]] = {
        "PSRL": {"sampler": sampler[0]} if sampler else {},
        "OptPSRL": {"horizon": horizon},
        "MBIEEB": {"discount": 0.9, "m": horizon},
        "UCBVI": {"episode_length": 15, "horizon": horizon},
        "OptimisticQ": {"span": 1.1 * Truth.of(mdp).span, "horizon": horizon},
    }
    given = {"allowed": mdp.allowed, "reward_min": mdp.reward_min, "reward_max": mdp.reward_max}
    return lambda seed: getattr(gf, name)(
        mdp.n_states, mdp.n_actions, seed=seed, **{**given, **own.get(name, {}), **options}
    )


@pytest.mark.parametrize(
    "name", [name if name in IN_EVERY_TEST else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_nothing_is_violated_on_riverswim_and_every_agent_says_what_is_not_proven(name: str) -> None:
    mdp = gf.environments.riverswim(6)
    found = audit(maker(name, mdp), mdp, HORIZON, runs=1)
    assert found.runs[0].regret == gf.simulate(maker(name, mdp)(0), mdp, HORIZON, seed=0).regret[-1]  # not changed
    assert found.ok
    assert found.runs[0].failed in ([], ["optimism"])
    assert {"clock", "execution", "data"} < set(found.verdicts)
    assert found["regret-bound"].verdict == "no theorem"
    assert found["regret-bound"].reason
    assert not found["regret-bound"].promised


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_violated_in_many_runs_of_several_problems(name: str) -> None:
    for mdp, horizon in (
        (gf.environments.riverswim(6), 5000),
        (gf.environments.garnet(5, 2, 3, reward_law="bernoulli"), 3000),
        (gf.environments.toy3d(0.1), 2000),
        (gf.environments.weakly_communicating_toy(), 1000),
        (gf.environments.machine_replacement(), 1000),
    ):
        found = audit(maker(name, mdp, horizon), mdp, horizon, runs=20)
        assert {s for run in found.runs for s in run.failed} <= {"optimism"}, (name, mdp.name)


# ---------------------------------------------------------------------- calibration


def draws(rng: np.random.Generator, n: int, a: float, b: float, told: tuple[float, float]) -> BetaDraws:
    """n shares of Beta(a, b), said to be Beta(told)."""
    x, y = rng.standard_gamma(a, n), rng.standard_gamma(b, n)
    return BetaDraws(x, y, np.full(n, told[0]), np.full(n, told[1]), group_of(0, np.full(n, 3)))


def judged(*batches: BetaDraws) -> dict[str, Any]:
    calibration = Calibration(0)
    for batch in batches:
        calibration.add_at_places(batch)
    return calibration.findings(len(batches), 1)


@pytest.mark.parametrize(("a", "b"), [(3.0, 2.0), (0.02, 0.05), (1.0, 400.0)])
def test_draws_of_the_law_pass_and_those_of_another_prior_do_not(a: float, b: float) -> None:
    rng = np.random.default_rng(5)
    right = judged(*(draws(rng, 40, a, b, (a, b)) for _ in range(100)))
    assert not right["posterior-sample"].failures
    assert not right["fresh-sample"].failures
    wrong = judged(*(draws(rng, 40, a, b, (2 * a, b)) for _ in range(100)))
    assert wrong["posterior-sample"].failures


def test_the_same_draws_again_are_not_fresh() -> None:
    once = draws(np.random.default_rng(1), 40, 2.0, 3.0, (2.0, 3.0))
    found = judged(*(once for _ in range(30)))
    assert found["fresh-sample"].failures


def test_shares_that_rounding_has_made_equal_are_spread_evenly() -> None:
    rng, n, b = np.random.default_rng(0), 20_000, 0.03
    y = np.exp(np.log(rng.random(n)) / b)  # Beta(b, 1): most are below what can be told from 0
    given = BetaDraws(1.0 - y, np.where(y < 1e-16, 0.0, y), np.full(n, 1.0), np.full(n, b), np.zeros(n, np.int64))
    assert np.mean(y < RESOLVED) > 0.3
    u = np.sort(uniform_of(given, rng))
    assert np.abs(u - (np.arange(n) + 0.5) / n).max() < 2.0 / np.sqrt(n)


# ---------------------------------------------------------------------- mistakes in the agents' own methods


class _OnePriorForAnother(gf.PSRL):
    """Says that its prior is twice what it is."""

    def posterior(self, statistics: Any) -> Any:
        counts, (S, A, prior, *others) = super().posterior(statistics)
        return counts, (S, A, prior / 2.0, *others)


class _SameDrawAgain(gf.PSRL):
    """Draws every model with the same numbers."""

    def posterior(self, statistics: Any) -> Any:
        counts, (*others, _) = super().posterior(statistics)
        return counts, (*others, np.uint64(12345))


class _LongEpisodes(gf.PSRL):
    """Episodes of two steps more than the one before."""

    def plan(self, statistics: Any, t: int) -> EpisodePlan:
        plan = super().plan(statistics, t)
        return EpisodePlan(**{**vars(plan), "last_step": plan.last_step + 1})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "noticed"),
    [(_OnePriorForAnother, "posterior-sample"), (_SameDrawAgain, "fresh-sample"), (_LongEpisodes, "episode-rule")],
    ids=lambda x: x if isinstance(x, str) else x.__name__,
)
def test_the_audit_notices_what_is_wrong_with_the_sample_or_the_episodes(made: Any, noticed: str) -> None:
    run = audit_run(made(6, 2), gf.environments.riverswim(6), 4000)
    assert noticed in run.failed


# ---------------------------------------------------------------------- rules and values by hand


def test_the_rule_of_growing_episodes_by_hand() -> None:
    step, pair = np.array([1.0, 3.0, 6.0, 7.0]), np.zeros(4, dtype=np.int64)
    ratio, full = np.array([0.5, 0.5, 1.0, 0.5]), np.array([False, False, True, False])
    assert not growing_episode_rule(step, ratio, pair, full, np.array([2, 3, 1, 1]), 1).failures
    assert growing_episode_rule(step, ratio, pair, full, np.array([2, 4, 1, 1]), 1).failures  # too long
    assert growing_episode_rule(step, ratio, pair, full, np.array([2, 2, 1, 1]), 1).failures  # nothing ended the second
    assert growing_episode_rule(step, 2 * ratio, pair, full, np.array([2, 3, 1, 1]), 1).failures  # more than doubled


def test_the_rule_of_blocks_by_hand() -> None:
    assert not block_rule(np.array([1.0, 6.0]), np.array([5, 2]), 5).failures
    assert block_rule(np.array([1.0, 5.0]), np.array([4, 2]), 5).failures
    assert block_rule(np.array([1.0, 6.0]), np.array([5, 6]), 5).failures


def test_the_values_of_the_agents_own_problems_agree_with_the_planners() -> None:
    mdp = gf.environments.riverswim(6)
    truth = Truth.of(mdp)
    v, q = discounted_values(truth, truth.rewards, 0.95)
    planned = gf.discounted_value_iteration(mdp, 0.95, precision=1e-9)
    np.testing.assert_allclose(v, planned.values, rtol=0, atol=2e-9)
    np.testing.assert_allclose(q.reshape(6, 2).max(axis=1), v, rtol=0, atol=1e-12)
    blocks = gf.finite_horizon_value_iteration(mdp, 30)
    np.testing.assert_allclose(block_values(truth, truth.rewards, 30), blocks.values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["MBIEEB", pytest.param("UCBVI", marks=pytest.mark.slow)])
def test_small_bonuses_lose_domination_and_nothing_is_promised_then(name: str) -> None:
    mdp = gf.environments.riverswim(6)
    found = audit(maker(name, mdp, bonus_scale=1e-5), mdp, HORIZON, runs=1)
    assert found["value-domination"].failures > 0
    assert not found["value-domination"].promised
    assert found.ok


def test_pairs_with_more_than_m_visits_are_beyond_the_lemma_of_mbie_eb() -> None:
    mdp = gf.environments.riverswim(6)
    found = audit_run(maker("MBIEEB", mdp, m=50)(0), mdp, HORIZON).findings
    assert 0 < found["value-domination"].checks < found["greedy"].checks


@pytest.mark.slow
def test_optimistic_q_says_why_its_lemma_does_not_apply() -> None:
    river, noisy = gf.environments.riverswim(6), gf.environments.garnet(5, 2, 3, reward_law="bernoulli")
    small = audit_run(maker("OptimisticQ", river, span=1.0)(0), river, 300).findings["value-domination"]
    assert "more than the agent's 1" in small.reason
    varying = audit_run(maker("OptimisticQ", noisy)(0), noisy, 300).findings["value-domination"]
    assert "rewards vary" in varying.reason


@pytest.mark.parametrize("counts", ["modulo:buckets=2", "density"])
def test_a_plan_with_pseudo_counts_is_audited_and_no_lemma_is_claimed(counts: str) -> None:
    mdp = gf.environments.riverswim(6)
    found = audit(maker("MBIEEB", mdp, counts=counts), mdp, HORIZON, runs=1)
    assert found.ok
    assert found["bonus-formula"].verdict == "certified"
    assert found["value-domination"].verdict == "no theorem"
