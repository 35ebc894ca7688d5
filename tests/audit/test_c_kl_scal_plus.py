"""The auditor of C-KL-SCAL+: what holds on LQG, against slow recomputations from the raw points, and with mistakes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.refinement import TransitionLog
from gainful.audit.audit import audit
from gainful.audit.c_kl_scal_plus import LEVELS, NextStates
from gainful.audit.cells import CellsTruth
from gainful.audit.run import audit_run
from gainful.environments.continuous.oracle import OracleSolution

BINS = 6


@cache
def lqg() -> tuple[Any, CellsTruth]:
    env = gf.environments.lqg()
    return env, CellsTruth.of(env)


def maker(**options: Any) -> Any:
    """seed -> C-KL-SCAL+ on LQG, with the environment's own constants."""
    env, truth = lqg()
    part = gf.Partition.uniform(bins=BINS)
    given: dict[str, Any] = {
        "lipschitz": truth.lipschitz_for(part, env.reward_max - env.reward_min),
        "holder": env.holder,
        "reward_min": env.reward_min,
        "reward_max": env.reward_max,
        **options,
    }
    return lambda seed: gf.CKLSCALPlus(part, env.n_actions, seed=seed, **given)


@pytest.mark.parametrize("span", [True, False])
def test_everything_that_is_proven_holds(span: bool) -> None:
    env, truth = lqg()
    assert truth.span is not None
    found = audit(maker(span=1.01 * truth.span if span else None), env, 1500, runs=2)
    assert found.ok
    assert all(verdict.failed_runs == 0 for verdict in found.verdicts.values())
    regret, optimism = found["mean-regret-bound"], found["optimism"]
    assert optimism.runs == 2
    assert (regret.verdict != "not applicable") == span
    assert optimism.promised == span  # without a span it is not the guarantee's, but it is checked
    assert found["bias-domination"].worst is not None


def test_a_wrong_constant_for_the_cells_is_no_certificate() -> None:
    env, truth = lqg()
    agent = maker(span=2.0)(0)
    agent.core.model_error *= 2.0
    assert "certificate" in audit_run(agent, env, 300, truth=truth).failed


def test_an_agent_that_is_told_less_than_the_truth_is_not_judged() -> None:
    env, truth = lqg()
    run = audit_run(maker(span=2.0, lipschitz=0.01)(0), env, 200, truth=truth)
    for name in ("optimism", "bias-domination", "reward-domination", "mean-regret-bound"):
        assert "the agent was given L = 0.01" in run.findings[name].reason
    small = audit_run(maker(span=0.1)(0), env, 200, truth=truth)
    assert "more than c = 0.1" in small.findings["optimism"].reason
    unknown = audit_run(maker(lipschitz=None, holder=None)(0), env, 200, truth=truth)
    assert not unknown.findings["optimism"].applicable
    assert unknown.failed == []


def test_next_states_are_counted_by_their_bias_on_right_closed_cells() -> None:
    env, truth = lqg()
    agent, slack = maker(span=2.0)(0), 0.05
    tables = truth.on(agent.partition)
    kept = NextStates(agent, truth, tables, slack)
    log = TransitionLog(1)
    random = np.random.default_rng(5)
    points = random.random((400, 2))
    actions = random.integers(0, env.n_actions, 400)
    for (x, to), a in zip(points, actions, strict=True):
        log.append(x, int(a), 0.0, to)
    kept.absorb(log)
    assert log.n == 0
    solved = truth.solution
    assert isinstance(solved, OracleSolution)
    bias = np.interp(points[:, 1], solved.nodes, solved.bias)
    low, width = solved.bias.min(), np.ptp(solved.bias) / LEVELS
    cells = np.minimum(np.ceil(points[:, 0] * BINS).astype(int) - 1, BINS - 1)
    for pair in range(BINS * env.n_actions):
        mine = bias[(cells == pair // env.n_actions) & (actions == pair % env.n_actions)]
        assert kept.counts[pair].sum() == mine.size
        mean = kept.counts[pair] @ (low + width * np.arange(LEVELS)) / max(1, mine.size)
        if mine.size:
            assert 0.0 <= mine.mean() - mean <= width  # rounded down
    # one level per pair: the largest expected bias of its cell, less the slack and the rounding
    expected = tables.expected.reshape(BINS, -1, env.n_actions).max(axis=1).reshape(-1)
    assert np.allclose(kept.asked.level, expected - slack - width, rtol=0, atol=1e-12)
