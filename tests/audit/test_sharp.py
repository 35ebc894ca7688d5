"""The audit of the sharp bonus: every number from dense arrays, and statements that can fail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.audit import audit
from gainful.audit.sharp import STATEMENTS_OF_THEOREM_11, SharpAuditor
from gainful.audit.trace import STATEMENTS_ABOUT_THE_TRACE
from gainful.audit.truth import Truth
from gainful.simulation.simulate import new_simulation
from gainful.simulation.tabular import TabularSimulation


def riverswim(seed: int = 0, **options: Any) -> gf.SCALPlus:
    return gf.SCALPlus(6, 2, span=6.4, bonus="sharp", seed=seed, **options)


def test_domination_is_that_of_dense_arrays() -> None:
    mdp = gf.environments.riverswim(6)
    truth, agent = Truth.of(mdp), riverswim(bonus_scale=0.01)
    simulation = new_simulation(agent, mdp, 5_000, 3, gain=truth.gain)
    assert isinstance(simulation, TabularSimulation)
    auditor = SharpAuditor(agent, truth, simulation)
    P, R = mdp.to_dense()
    h = truth.bias - truth.bias.min()
    best = (R + P @ h).argmax(axis=1)
    s = np.arange(6)
    expected: list[tuple[float, float, float, float]] = []

    def see(view: Any) -> None:
        auditor.see(view)
        N = np.zeros((6, 2, 6))
        for k in range(12):
            states, counts = view.statistics.row(k)
            N[divmod(k, 2)][states] = counts
        n = N.sum(axis=2)
        p = (N + np.eye(6)[0]) / (n + 1)[:, :, None]
        mean = view.statistics.reward_sum.reshape(6, 2) / np.maximum(1, n)
        rewards, b = gf.theory.sharp_bonus(n, mean, 6, span=6.4, scale=0.01)
        reward_at = int((R - rewards)[s, best].argmax())
        value = (b + p @ h)[s, best]
        bias_at = int(((P @ h)[s, best] - value).argmax())
        expected.append(
            (
                R[reward_at, best[reward_at]],
                rewards[reward_at, best[reward_at]],
                (P @ h)[bias_at, best[bias_at]],
                value[bias_at],
            )
        )

    agent.on_episode = see
    simulation.finish()
    found, _ = auditor.findings()
    cases = auditor.cases
    for k, (reward, most, bias, value) in enumerate(expected):
        assert cases["reward-domination"].found[k] == pytest.approx(reward, rel=0, abs=1e-12)
        assert cases["reward-domination"].allowed[k] == pytest.approx(most, rel=0, abs=1e-12)
        assert cases["bias-domination"].found[k] == pytest.approx(bias, rel=0, abs=1e-9)
        assert cases["bias-domination"].allowed[k] == pytest.approx(value, rel=0, abs=1e-9)
    assert found["bias-domination"].failures == sum(bias > value + 1e-8 for _, _, bias, value in expected) > 0


@pytest.mark.parametrize("replanning", ["full", "local"])
def test_nothing_is_violated_with_the_theorems_constants(replanning: Any) -> None:
    found = audit(lambda seed: riverswim(seed, replanning=replanning), gf.environments.riverswim(6), 3_000, runs=60)
    assert {verdict.verdict for verdict in found.verdicts.values()} <= {"certified", "implied", "cannot fail here"}
    assert tuple(found.verdicts) == (*STATEMENTS_OF_THEOREM_11, *STATEMENTS_ABOUT_THE_TRACE)
    assert found["mean-regret-bound"].allowed == pytest.approx(0.15, rel=1e-12, abs=0)
    assert found["optimism"].allowed == 0.05
    bound = found.regret_curves()["bound"]
    assert bound[-1] == pytest.approx(
        gf.theory.regret_bound(3_000, 6, 2, span=6.4, support=3, bonus="sharp"), rel=1e-12
    )


def test_with_a_small_bonus_optimism_fails_and_is_not_guaranteed() -> None:
    found = audit(lambda seed: riverswim(seed, bonus_scale=0.03), gf.environments.riverswim(6), 20_000, runs=20)
    assert found["bias-domination"].verdict == found["optimism"].verdict == "violated"
    assert not found["optimism"].promised
    assert found.ok  # nothing that was guaranteed
    assert found["span"].verdict == "certified"


def test_a_span_that_is_too_small_is_said() -> None:
    found = audit(lambda seed: gf.SCALPlus(6, 2, span=3.0, bonus="sharp"), gf.environments.riverswim(6), 500, runs=1)
    for name in ("bias-domination", "optimism", "mean-regret-bound"):
        assert "more than c = 3" in found[name].reason
    assert found["reward-domination"].runs == 1


def test_on_cells_domination_is_checked_at_points() -> None:
    env = gf.environments.lqg()
    given: dict[str, Any] = {"n_actions": env.n_actions, "reward_min": env.reward_min, "reward_max": env.reward_max}
    cells = gf.Partition.uniform(bins=8)

    def make(seed: int) -> gf.CSCALPlus:
        return gf.CSCALPlus(partition=cells, span=3.0, lipschitz=10.0, holder=1.0, bonus="sharp", seed=seed, **given)

    found = audit(make, env, 2_000, runs=2)
    assert found.ok
    assert tuple(found.verdicts) == (*STATEMENTS_OF_THEOREM_11, "cells", *STATEMENTS_ABOUT_THE_TRACE)
    assert all(verdict.runs == 2 and verdict.failed_runs == 0 for verdict in found.verdicts.values())
    assert found["bias-domination"].worst is not None
    assert found["bias-domination"].worst.found > 0.0
    limit = gf.theory.regret_bound(
        2_000, 8, env.n_actions, span=3.0, lipschitz=10.0, holder=1.0, bins=8, reward_max=1.0, bonus="sharp"
    )
    assert found.regret_curves()["bound"][-1] == pytest.approx(limit, rel=1e-12, abs=0)
