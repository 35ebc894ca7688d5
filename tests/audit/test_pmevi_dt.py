"""The audit of PMEVI-DT: what holds on every base, with every option, and what it says where the span is too small."""

from __future__ import annotations

from typing import Any

import pytest

import gainful as gf
from gainful.audit import audit_run
from gainful.audit.truth import Truth

LIKELY = {"bias-differences", "mitigation", "optimism"}


@pytest.mark.slow
@pytest.mark.parametrize("base", ["kl-scal-plus", "ucrl2", "ucrl2b", "kl-ucrl"])
@pytest.mark.parametrize("options", [{"span": 6.5}, {"span": 6.5, "bias": "azuma"}, {"bias": "none"}], ids=str)
def test_nothing_is_violated(base: Any, options: dict[str, Any]) -> None:
    mdp = gf.environments.riverswim(6)
    found = audit_run(gf.PMEVIDT(6, 2, horizon=2000, base=base, **options), mdp, 2000, seed=1)
    assert found.failed == []
    again = gf.PMEVIDT(6, 2, horizon=2000, base=base, **options)
    assert found.regret == gf.simulate(again, mdp, 2000, seed=1).regret[-1]  # not changed by the audit
    bounded = base == "kl-scal-plus"
    assert ("projected-regret-bound" in found.findings) == bounded == ("regret-bound" not in found.findings)
    if "span" in options:
        assert all(found.findings[name].checks for name in LIKELY)
        assert not bounded or found.findings["projected-regret-bound"].checks
    else:
        assert all("more than c" in found.findings[name].reason for name in LIKELY)


@pytest.mark.slow
def test_the_differences_hold_in_many_runs_and_become_smaller_than_the_span() -> None:
    mdp = gf.environments.garnet(4, 2, 2, instance=3, reward_law="bernoulli")
    truth = Truth.of(mdp)
    for seed in range(8):
        agent = gf.PMEVIDT(4, 2, horizon=8000, span=1.01 * truth.span)
        found = audit_run(agent, mdp, 8000, seed=seed, truth=truth)
        assert found.failed == []  # 2δ of all runs may fail; these do not
        assert (agent.differences() < 0.999 * agent.span).sum() > 4


@pytest.mark.slow
def test_it_is_audited_on_cells() -> None:
    env = gf.environments.lqg()
    agent = gf.Discretized("pmevi-dt", gf.Partition.uniform(bins=5), n_actions=env.n_actions, horizon=1000, span=2.0)
    found = audit_run(agent, env, 1000, seed=0)
    assert found.failed == []
    assert found.findings["bias-formula"].checks
    assert "no one bias" in found.findings["bias-differences"].reason
