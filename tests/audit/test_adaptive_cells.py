"""The auditor of adaptive cells: what holds on LQG, and mistakes that it finds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents import adaptive_kl_scal_plus
from gainful.agents.adaptive_kl_scal_plus import KLSCALPlusOnTrees
from gainful.agents.balanced_grids import Balance
from gainful.agents.dyadic_trees import DyadicTrees, MergedRows
from gainful.audit.audit import audit
from gainful.audit.cells import CellsTruth
from gainful.audit.run import audit_run
from gainful.optimism.adaptive_cells import log_union_at

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


def test_an_agent_that_is_told_less_than_the_truth_is_not_judged() -> None:
    env, truth = lqg()
    run = audit_run(made(lipschitz=0.01), env, 200, truth=truth)
    assert "the agent was given L = 0.01" in run.findings["optimism"].reason
    assert run.failed == []
    assert "more than c = 0.1" in audit_run(made(span=0.1), env, 200, truth=truth).findings["optimism"].reason


def splits_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(adaptive_kl_scal_plus, "narrow_enough", lambda level, visits, bias: level <= 2 * visits * bias**2)


def forgets_other_depths(patch: pytest.MonkeyPatch) -> None:
    right = log_union_at
    patch.setattr(adaptive_kl_scal_plus, "log_union_at", lambda _, size, n, delta: right(0, size, n, delta))


def forgets_siblings(patch: pytest.MonkeyPatch) -> None:
    right = DyadicTrees.merged

    def wrong(self: DyadicTrees, begin: Any, length: Any, to: Any, count: Any) -> MergedRows:
        own = np.where(self.leaf == np.arange(self.leaf.size), length, 0)
        return right(self, begin, own, to, count)

    patch.setattr(DyadicTrees, "merged", wrong)


def limits_every_finest_pair(patch: pytest.MonkeyPatch) -> None:
    right = KLSCALPlusOnTrees.plan

    def wrong(self: KLSCALPlusOnTrees, statistics: Any, t: int) -> Any:
        plan = right(self, statistics, t)
        object.__setattr__(plan, "groups", None)
        return plan

    patch.setattr(KLSCALPlusOnTrees, "plan", wrong)


def adds_the_bias_of_the_widest_cell(patch: pytest.MonkeyPatch) -> None:
    right = KLSCALPlusOnTrees.plan

    def wrong(self: KLSCALPlusOnTrees, statistics: Any, t: int) -> Any:
        plan = right(self, statistics, t)
        object.__setattr__(plan, "gain_bounds", tuple(end + 0.1 for end in plan.gain_bounds))
        return plan

    patch.setattr(KLSCALPlusOnTrees, "plan", wrong)


def plays_the_last_action(patch: pytest.MonkeyPatch) -> None:
    right = KLSCALPlusOnTrees.plan

    def wrong(self: KLSCALPlusOnTrees, statistics: Any, t: int) -> Any:
        plan = right(self, statistics, t)
        plan.actions[:] = self.n_actions - 1
        return plan

    patch.setattr(KLSCALPlusOnTrees, "plan", wrong)


@pytest.mark.parametrize(
    ("mistake", "statement"),
    [
        (splits_early, "leaves"),
        (forgets_other_depths, "set-formula"),
        (forgets_siblings, "certificate"),
        (limits_every_finest_pair, "episode-rule"),
        (adds_the_bias_of_the_widest_cell, "certificate"),
        (plays_the_last_action, "greedy"),
    ],
    ids=["splits", "levels", "rows", "limits", "bias", "actions"],
)
def test_a_mistake_is_found(
    mistake: Callable[[pytest.MonkeyPatch], None], statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    env, truth = lqg()
    agent = made()
    mistake(monkeypatch)
    agent = made()
    assert statement in audit_run(agent, env, 1_500, truth=truth).failed


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


def plays_the_finest(patch: pytest.MonkeyPatch) -> None:
    right = Balance.claims
    patch.setattr(Balance, "claims", lambda self: -right(self))


def never_settles(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Balance, "settle", lambda *_: None)


@pytest.mark.parametrize("mistake", [plays_the_finest, never_settles], ids=["claims", "steps"])
def test_a_wrong_grid_is_found(mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    env, truth = lqg()
    mistake(monkeypatch)
    assert "grids" in audit_run(balanced(span=1.4), env, 800, truth=truth).failed
