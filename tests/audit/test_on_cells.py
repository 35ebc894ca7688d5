"""The audit of UCCRL and of tabular agents on cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.audit import audit, audit_run
from gainful.audit.cell_sets import laws_at_points
from gainful.audit.cells import CellsTruth
from gainful.audit.points import POINTS

HORIZON = 1200


def uccrl(env: Any, truth: CellsTruth, bins: int, **options: Any) -> gf.UCCRL:
    part = gf.Partition.uniform(bins=bins, dim=env.dim)
    given = {
        "span": 1.01 * (truth.span or 1.0),
        "lipschitz": truth.lipschitz_for(part, env.reward_max - env.reward_min),
        "holder": env.holder,
        "reward_min": env.reward_min,
        "reward_max": env.reward_max,
    }
    return gf.UCCRL(partition=part, n_actions=env.n_actions, **{**given, **options})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lqg", "rough_mixture", "planar_mixture"])
def test_uccrl_holds_what_its_sets_say_at_points_of_every_cell(name: str) -> None:
    env = getattr(gf.environments, name)()
    truth = CellsTruth.of(env)
    found = audit_run(uccrl(env, truth, 3), env, HORIZON, truth=truth)
    assert found.failed == []
    assert found.findings["rows-in-set"].checks > 0
    assert found.findings["optimism"].applicable
    narrow = audit_run(uccrl(env, truth, 3, width_scale=0.001, lipschitz=1e-3), env, HORIZON, truth=truth)
    assert "the environment has" in narrow.findings["rows-in-set"].reason


@pytest.mark.slow
def test_sets_that_are_too_narrow_lose_the_true_model_and_nothing_is_promised() -> None:
    env = gf.environments.rough_mixture()
    truth = CellsTruth.of(env)
    found = audit(lambda seed: uccrl(env, truth, 40, width_scale=1e-4, seed=seed), env, HORIZON, runs=2)
    assert found["rewards-in-set"].failures + found["rows-in-set"].failures > 0
    assert not found["rows-in-set"].promised
    assert found.ok


@pytest.mark.slow
def test_the_laws_of_cells_are_distributions_and_those_of_the_environment() -> None:
    env = gf.environments.lqg()
    truth = CellsTruth.of(env)
    part = gf.Partition.uniform(bins=4)
    laws = laws_at_points(truth.on(part), 4, env.n_actions)
    np.testing.assert_allclose(laws.sum(axis=2), 1.0, rtol=0, atol=1e-12)
    x = truth.on(part).places.reshape(4, POINTS)[2, 3]
    assert env.law is not None
    below = [float(np.asarray(env.law(np.array([x]), 1, np.array([edge]))[0]).reshape(-1)[0]) for edge in (0.25, 0.5)]
    assert laws[2 * env.n_actions + 1, 3, 1] == pytest.approx(below[1] - below[0], rel=0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("SCALPlus", {"span": 1.0}),
        ("KLSCALPlus", {}),
        ("UCRL2B", {}),
        ("UCRL3", {}),
        ("TUCRL", {}),
        ("PSRL", {}),
        ("MBIEEB", {"discount": 0.9, "m": 500}),
        ("UCBVI", {"episode_length": 10, "horizon": HORIZON}),
        ("OptimisticQ", {"span": 1.0, "horizon": HORIZON, "bonus_scale": 0.01}),
        ("EpsilonGreedyQ", {}),
        ("Fixed", {}),
        pytest.param("IMEDRL", {}, marks=pytest.mark.filterwarnings("ignore::gainful.errors.SteppedInPythonWarning")),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_discretised_agent_is_audited_as_far_as_it_goes_without_a_theorem(name: str, own: dict[str, Any]) -> None:
    env, part = gf.environments.lqg(), gf.Partition.uniform(bins=6)
    given = {"reward_min": env.reward_min, "reward_max": env.reward_max, **own}
    found = audit(
        lambda seed: gf.Discretized(name, part, n_actions=env.n_actions, seed=seed, **given), env, HORIZON, runs=2
    )
    assert found.ok
    assert all(not run.failed or run.failed == ["optimism"] for run in found.runs)
    assert {"clock", "execution", "data"} < set(found.verdicts)
    assert found["regret-bound"].verdict == "no theorem"
