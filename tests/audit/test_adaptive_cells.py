"""The auditor of adaptive cells: what holds on LQG; `mutants_of_adaptive_cells` has mistakes that it finds."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import gainful as gf
from gainful.audit.audit import audit
from gainful.audit.cells import CellsTruth
from gainful.audit.run import audit_run

pytestmark = pytest.mark.slow


@cache
def lqg() -> tuple[Any, CellsTruth]:
    env = gf.environments.lqg()
    return env, CellsTruth.of(env)


def made(seed: int = 0, **options: Any) -> gf.AdaptiveKLSCALPlus:
    env, truth = lqg()
    assert truth.span is not None
    told: dict[str, Any] = {"span": 1.01 * truth.span, "lipschitz": env.lipschitz, "holder": 1.0, **options}
    return gf.AdaptiveKLSCALPlus(gf.Partition.uniform(bins=13), env.n_actions, seed=seed, **told)


@pytest.mark.parametrize(
    "options", [{}, {"rule": "zorl", "episodes": "vanishing"}, {"bias_scale": 0.1}], ids=["variance", "zorl", "biased"]
)
def test_everything_that_is_proven_holds(options: dict[str, Any]) -> None:
    found = audit(lambda seed: made(seed, **options), lqg()[0], 1_500, runs=2)
    assert found.ok
    assert all(verdict.failed_runs == 0 for verdict in found.verdicts.values())
    assert found["leaves"].verdict == "certified"
    assert found["optimism"].promised == ("bias_scale" not in options)
    assert found["regret-bound"].verdict == "no theorem"
    for name in ("reward-domination", "bias-domination"):
        assert found[name].checks > 0
        assert found[name].worst is not None


def test_an_agent_that_is_told_less_than_the_truth_is_not_judged() -> None:
    env, truth = lqg()
    run = audit_run(made(lipschitz=0.01), env, 200, truth=truth)
    for name in ("optimism", "reward-domination", "bias-domination"):
        assert "the agent was given L = 0.01" in run.findings[name].reason
    assert run.failed == []
    assert "more than c = 0.1" in audit_run(made(span=0.1), env, 200, truth=truth).findings["optimism"].reason


# ---------------------------------------------------------------------- balanced grids


def balanced(**options: Any) -> gf.BalancedGrids:
    return gf.BalancedGrids(gf.Partition.uniform(bins=6), lqg()[0].n_actions, **options)


@pytest.mark.parametrize("span", [1.4, None], ids=["span", "no span"])
def test_balanced_grids_are_those_of_the_rule(span: float | None) -> None:
    found = audit(lambda seed: balanced(seed=seed, span=span), lqg()[0], 1_500, runs=2)
    assert found.ok
    assert all(verdict.failed_runs == 0 for verdict in found.verdicts.values())
    assert found["grids"].verdict == "certified"
    assert found["optimism"].verdict == "no theorem"
