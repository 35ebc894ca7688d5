"""The audit of Balanced KL-SCAL+: nothing is violated, and large enough bounds are kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import gainful as gf
from gainful.agents.planning_agent import Episodes
from gainful.audit.audit import audit
from gainful.audit.run import audit_run

PROBLEMS: dict[str, Callable[[], gf.MDP]] = {
    "river": lambda: gf.environments.riverswim(6),
    "unreachable": gf.environments.weakly_communicating_toy,
    "garnet": lambda: gf.environments.garnet(5, 2, 3, reward_law="bernoulli"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PROBLEMS))
@pytest.mark.parametrize("episodes", ["doubling", "vanishing"])
def test_nothing_is_violated(name: str, episodes: Episodes) -> None:
    mdp = PROBLEMS[name]()
    found = audit(lambda seed: gf.BalancedKLSCALPlus.for_mdp(mdp, seed=seed, episodes=episodes), mdp, 5_000, runs=3)
    assert found.ok
    assert all(not run.failed for run in found.runs)
    for statement in ("base-choice", "base-kept", "bias-domination", "optimism", "span", "episode-rule"):
        assert all(run.findings[statement].checks for run in found.runs)


@pytest.mark.slow
def test_bounds_are_given_up_for_a_reason_and_the_audited_run_is_the_plain_one() -> None:
    mdp = gf.environments.riverswim(6)
    agent = gf.BalancedKLSCALPlus.for_mdp(mdp)
    found = audit_run(agent, mdp, 30_000, seed=1)
    assert not found.failed
    assert agent.ledger.refuted[:2].all()
    plain = gf.BalancedKLSCALPlus.for_mdp(mdp)
    gf.simulate(plain, mdp, 30_000, seed=1)
    assert np.array_equal(plain.ledger.rewards, agent.ledger.rewards)


@pytest.mark.slow
def test_a_wrong_claim_is_noticed() -> None:
    mdp = gf.environments.riverswim(6)
    found = audit_run(gf.BalancedKLSCALPlus.for_mdp(mdp, width_scale=1e-4), mdp, 5_000, seed=1)
    assert "bias-domination" in found.failed  # sets that are far too small
    assert not {"base-choice", "certificate", "span"} & set(found.failed)
