"""KL-SCAL+ with mean rewards bounded by the mean and the variance of the rewards seen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.audit.audit import audit
from gainful.errors import InvalidArgumentError
from gainful.optimism.kl_scal_plus import kl_upper
from gainful.optimism.reward_variance import kl_upper_by_variance
from gainful.theory import kl_scal_plus_radius, klup, klup_by_variance
from tests.agents.test_kl_scal_plus import iota, shown
from tests.audit.test_kl_scal_plus import maker


def with_varied_rewards(scale: float = 1.0) -> gf.MDP:
    """Four states whose rewards depend on the next state, in [-1, 3] times the scale."""
    random = np.random.default_rng(0)
    return gf.MDP(random.dirichlet(np.ones(4), (4, 2)), scale * random.uniform(-1.0, 3.0, (4, 2, 4)))


def learner(mdp: gf.MDP, **options: Any) -> gf.KLSCALPlus:
    return gf.KLSCALPlus.for_mdp(mdp, **{"reward_bound": "variance", **options})


# ---------------------------------------------------------------------- the bound


def test_the_bound_is_that_of_the_equation_and_never_above_the_one_by_the_mean() -> None:
    grid = np.meshgrid([0.0, 1e-3, 0.4, 0.999], [0.0, 1e-9, 0.01, 0.5, 1.0], [1e-6, 1e-3, 0.1, 3.0])
    mean, share, radius = (axis.reshape(-1) for axis in grid)
    variance = share * mean * (1.0 - mean)
    found = np.array([kl_upper_by_variance(*one) for one in zip(mean, variance, radius, strict=True)])
    exact = klup_by_variance(mean, variance, radius)
    assert np.all(found >= exact - 1e-13)
    assert np.all(found <= exact + 1e-5 * (exact - mean) + 1e-13)
    assert np.all(found <= [kl_upper(*one) + 1e-14 for one in zip(mean, radius, strict=True)])


def test_the_bound_of_zeros_and_ones_is_that_by_the_mean() -> None:
    means = np.linspace(0.0, 1.0, 21)
    found = [float(kl_upper_by_variance(x, x * (1.0 - x), 0.05)) for x in means]
    assert found == pytest.approx(klup(means, 0.05), rel=0, abs=1e-7)


def test_the_plan_uses_the_mean_and_the_variance_of_each_pair() -> None:
    mdp = with_varied_rewards()
    agent = learner(mdp)
    assert np.all(shown(agent)["rewards"] == agent.reward_range)  # never visited
    gf.simulate(agent, mdp, 2_000, seed=1)
    found, seen = shown(agent)["rewards"] / agent.reward_range, agent.statistics
    mean = seen.reward_sum / seen.visits / agent.reward_range
    variance = seen.reward_squares / seen.visits / agent.reward_range**2 - mean**2
    radius = kl_scal_plus_radius(seen.visits, 4, 0.05)
    exact = klup_by_variance(mean, variance, radius)
    assert np.all(np.abs(found - exact) <= 1e-5 * (exact - mean))
    assert np.mean((klup(mean, radius) - mean) / (exact - mean)) > 1.5  # what it is good for


def test_the_bound_of_a_certain_reward_shrinks_like_one_over_n() -> None:
    agent = gf.KLSCALPlus(1, 1, reward_bound="variance")
    widths = []
    for n in (100, 400):
        while agent.statistics.visits[0] < n:
            agent.observe(0, 0, 0.3, 0)
        widths.append(shown(agent)["rewards"][0] - 0.3)
        assert widths[-1] == pytest.approx(-0.7 * math.expm1(-iota(1, n) / n), rel=1e-9, abs=1e-12)
    assert widths[1] < widths[0] / 3.0


def test_the_unit_of_reward_does_not_matter_to_it() -> None:
    runs = []
    for mdp in (with_varied_rewards(), with_varied_rewards(scale=4.0)):
        agent = learner(mdp)
        gf.simulate(agent, mdp, 2_000, seed=3)
        runs.append(agent.statistics.visits.tolist())
    assert runs[0] == runs[1]


# ---------------------------------------------------------------------- the agent


def test_the_default_is_the_bound_by_the_mean_and_old_files_have_it() -> None:
    mdp = with_varied_rewards()
    one, other, new = gf.KLSCALPlus.for_mdp(mdp), learner(mdp, reward_bound="mean"), learner(mdp)
    for agent in (one, other, new):
        gf.simulate(agent, mdp, 3_000, seed=2)
    assert one.episodes["gain"].tolist() == other.episodes["gain"].tolist()
    assert one.episodes["gain"].tolist() != new.episodes["gain"].tolist()


def test_a_saved_agent_with_this_bound_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    mdp = with_varied_rewards()
    agent = learner(mdp, episodes="vanishing")
    gf.simulate(agent, mdp, 1_777, seed=1)  # in the middle of an episode
    agent.save(tmp_path / "it")
    again = gf.load_agent(tmp_path / "it")
    assert again.settings() == agent.settings()
    for one in (agent, again):
        gf.simulate(one, mdp, 3_000, seed=2)
    assert agent.episodes["gain"].tolist() == again.episodes["gain"].tolist()
    for name, array in agent.own_arrays().items():
        assert np.array_equal(array, again.own_arrays()[name]), name


def test_what_is_proven_with_this_bound() -> None:
    plain, new = gf.KLSCALPlus(2, 2).guarantee, gf.KLSCALPlus(2, 2, reward_bound="variance").guarantee
    assert new.holds
    assert (new.bound, new.assumptions) == (plain.bound, plain.assumptions)
    assert "lemma 4a" in new.source
    cells = gf.CKLSCALPlus(
        gf.Partition.uniform(bins=4), 2, span=1.0, lipschitz=1.0, holder=1.0, reward_bound="variance"
    )
    assert cells.guarantee.holds
    assert "theorem 13, with lemma 4a" in cells.guarantee.source


def test_what_cannot_have_this_bound_says_so() -> None:
    with pytest.raises(InvalidArgumentError, match="reward_bound is 'entropy'"):
        gf.KLSCALPlus(2, 2, reward_bound="entropy")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="PMEVIDT has no parameter 'reward_bound'"):
        gf.PMEVIDT.for_mdp(with_varied_rewards(), reward_bound="variance")
    with pytest.raises(InvalidArgumentError, match="AdaptiveKLSCALPlus has no parameter 'reward_bound'"):
        gf.AdaptiveKLSCALPlus.for_environment(gf.environments.lqg(), reward_bound="variance")


# ---------------------------------------------------------------------- the audit


def test_the_audit_computes_the_bound_again_and_compares_it_with_the_true_rewards() -> None:
    mdp = with_varied_rewards()
    for scale in (1.0, 1e-3):
        found = audit(maker(mdp, reward_bound="variance", width_scale=scale), mdp, 400, runs=2)
        assert found["set-formula"].failed_runs == 0
        assert (found["reward-domination"].failed_runs > 0) == (scale < 1.0)


@pytest.mark.slow
def test_balanced_kl_scal_plus_hands_the_bound_to_its_bases(tmp_path: Path) -> None:
    mdp = with_varied_rewards()

    def balanced(seed: int) -> gf.BalancedKLSCALPlus:
        return gf.BalancedKLSCALPlus.for_mdp(mdp, reward_bound="variance", seed=seed)

    found = audit(balanced, mdp, 1_000, runs=2)
    assert found["set-formula"].failed_runs == found["reward-domination"].failed_runs == 0
    agent = balanced(1)
    gf.simulate(agent, mdp, 1_777, seed=1)
    agent.save(tmp_path / "it")
    again = gf.load_agent(tmp_path / "it")
    for one in (agent, again):
        gf.simulate(one, mdp, 3_000, seed=2)
    assert again.settings()["reward_bound"] == "variance"
    assert agent.episodes["gain"].tolist() == again.episodes["gain"].tolist()
