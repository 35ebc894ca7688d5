"""The audit of the count-based bonus: with counts of every kind, with a mistake, and stepped in Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.episodic import EpisodePlan
from gainful.audit import audit, audit_run
from gainful.errors import SteppedInPythonWarning
from tests.agents.test_count_bonus import OwnCounts, OwnTable

MDP = gf.environments.riverswim(6)
COUNTS = ("exact", "modulo:buckets=2", "simhash:bits=3", "density:shape=3x2")


@pytest.mark.parametrize("counts", [*COUNTS, OwnTable()], ids=[*COUNTS, "own"])
@pytest.mark.parametrize("beta", [1.0, *(pytest.param(beta, marks=pytest.mark.slow) for beta in (0.0, 50.0))])
def test_nothing_is_violated_whatever_is_counted(counts: Any, beta: float) -> None:
    found = audit(lambda seed: gf.CountBonus.for_mdp(MDP, beta=beta, counts=counts, seed=seed), MDP, 1000, runs=1)
    assert (
        found.runs[0].regret == gf.simulate(gf.CountBonus.for_mdp(MDP, beta=beta, counts=counts), MDP, 1000).regret[-1]
    )
    assert found.ok
    assert set(found.runs[0].failed) <= {"optimism"}
    assert found["bonus-formula"].verdict == found["greedy"].verdict == "certified"
    assert {found[name].verdict for name in ("optimism", "regret-bound")} == {"no theorem"}


def test_a_small_beta_is_seen_not_to_be_optimistic_and_breaks_no_promise() -> None:
    found = audit(lambda seed: gf.CountBonus.for_mdp(MDP, beta=0.1, seed=seed), MDP, 1000, runs=1)
    assert found["optimism"].failed_runs == 1
    assert "derived" in found["optimism"].reason
    assert found.ok


def test_a_run_that_is_stepped_in_python_is_repeated_step_by_step() -> None:
    agent = gf.CountBonus.for_mdp(MDP, beta=1.0, counts=OwnCounts())
    with pytest.warns(SteppedInPythonWarning):
        found = audit_run(agent, MDP, 300)
    assert set(found.failed) <= {"optimism"}  # the clock stood still between returns of the simulation
    exact = audit_run(gf.CountBonus.for_mdp(MDP, beta=1.0), MDP, 300)
    assert found.findings == exact.findings


class _Untruthful(gf.CountBonus):
    """Says other things of its plans than it did."""

    lie: str

    def plan(self, statistics: Any, t: int) -> EpisodePlan:
        plan = super().plan(statistics, t)
        low, high = plan.gain_bounds
        lies: dict[str, dict[str, Any]] = {
            "actions": {"actions": 1 - plan.actions},
            "bracket": {"gain_bounds": (low + 0.5, high + 0.5)},
            "width": {"gain_bounds": (low - 1.0, high + 1.0)},
            "bonus": {"details": {**plan.details, "bonus": 0.9 * plan.details["bonus"]}},
            "rewards": {"details": {**plan.details, "rewards": plan.details["rewards"] + 0.01}},
        }
        return replace(plan, **lies[self.lie])


@pytest.mark.parametrize(
    ("lie", "noticed"),
    [
        ("actions", "greedy"),
        ("bracket", "certificate"),
        ("width", "precision"),
        ("bonus", "bonus-formula"),
        ("rewards", "bonus-formula"),
    ],
)
def test_what_is_wrong_with_a_plan_is_noticed(lie: str, noticed: str) -> None:
    agent = _Untruthful.for_mdp(MDP, beta=1.0)
    agent.lie = lie
    assert set(audit_run(agent, MDP, 300).failed) - {"optimism"} == {noticed}


# ---------------------------------------------------------------------- the counts, a second time


@pytest.mark.parametrize("most", [3, 1000, 10**6])
def test_pseudo_counts_are_the_equations(most: int) -> None:
    rng = np.random.default_rng(most)
    for _ in range(20):
        visits = rng.integers(0, most, (6, 2)) * rng.integers(0, 2, (6, 2))
        features = rng.integers(0, 3, (6, 3))
        density = gf.DensityCounts(features).table(visits)
        np.testing.assert_allclose(gf.theory.density_counts(visits, features), density, rtol=1e-9, atol=0)
        hashed = gf.HashedCounts(features[:, 0]).table(visits)
        np.testing.assert_array_equal(gf.theory.hashed_counts(visits, features[:, 0]), hashed)


def test_the_density_of_one_feature_that_tells_states_apart_counts_visits() -> None:
    visits = np.array([[3, 0], [0, 0], [10**9, 7]])
    assert gf.theory.density_counts(visits, [[0], [1], [2]]).tolist() == visits.tolist()
