"""`gf.evaluate_log`: the gain of a policy from logged data, and refusals where the log does not cover it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError, NotCoveredError
from tests.estimation.test_fit import WORN, walk

RUN = {"new": "run", "worn": "run"}


def test_the_gain_is_that_of_the_policy_in_the_estimated_model() -> None:
    fitted = gf.fit(WORN, replicates=0)
    for policy in (RUN, {"new": "run", "worn": "fix"}, {"new": "run", "worn": {"run": 0.5, "fix": 0.5}}):
        found = gf.evaluate_log(WORN, policy, replicates=20)
        exact = gf.evaluate(fitted.mdp, policy)
        assert found.gain == exact.gain_from_start
        low, high = found.gain_interval or (np.nan, np.nan)
        assert low < found.gain < high
        assert np.array_equal(found.evaluation.stationary, exact.stationary)
    assert found.least_visits == 30
    assert found.to_frame()["visits"].tolist() == [90, 30, 30]


def test_plans_and_arrays_are_taken_too() -> None:
    fitted = gf.fit(WORN, replicates=0)
    assert fitted.plan is not None
    gains = {
        gf.evaluate_log(WORN, policy, replicates=0).gain
        for policy in (fitted.plan, fitted.plan.policy, fitted.plan.actions, ["run", "run"])
    }
    assert gains == {gf.evaluate_log(WORN, RUN, replicates=0).gain}


@pytest.mark.parametrize(
    ("policy", "pair"),
    [({"new": "fix", "worn": "run"}, ("new", "fix", 0)), ({"new": "run", "worn": "scrap"}, ("worn", "scrap", 0))],
)
def test_actions_never_tried_are_refused_by_name(policy: dict[str, str], pair: tuple[str, str, int]) -> None:
    with pytest.raises(NotCoveredError, match="never tried") as caught:
        gf.evaluate_log(WORN, policy)
    assert caught.value.pairs == (pair,)
    assert "collect such data" in caught.value.hint


def test_pairs_with_few_visits_are_refused_unless_they_are_allowed() -> None:
    short = {name: column[:10] for name, column in WORN.items()}
    with pytest.raises(NotCoveredError, match=r"fewer than 5 visits.*run in worn \(2\)"):
        gf.evaluate_log(short, RUN)
    assert gf.evaluate_log(short, RUN, min_visits=2, replicates=0).least_visits == 2


def test_what_the_policy_never_reaches_needs_neither_data_nor_an_action() -> None:
    stays = {
        "state": [0] * 20 + [1], "action": [0, 1] * 10 + [0], "reward": [1.0] * 21,
        "next_state": [0, 0] * 9 + [0, 1, 0],
    }  # fmt: skip
    found = gf.evaluate_log(stays, {0: 0, 99: 7}, replicates=0)
    assert found.gain == 1.0


def test_a_state_that_is_reached_needs_an_action() -> None:
    with pytest.raises(InvalidArgumentError, match="no action for state 'worn'"):
        gf.evaluate_log(WORN, {"new": "run"})


@pytest.mark.parametrize("policy", [[0], [[0.5, 0.5]], 3, [["a", "b"], ["c", "d"]]])
def test_arrays_of_another_size_are_refused(policy: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="policy has shape"):
        gf.evaluate_log(WORN, policy)


@pytest.mark.slow
def test_the_interval_covers_the_gain_about_as_often_as_it_says() -> None:
    river = gf.environments.riverswim(3)
    policy = [1, 1, 0]
    truth = gf.evaluate(river, policy).gain_from_start
    hits = 0
    for seed in range(40):
        low, high = gf.evaluate_log(walk(river, 2000, seed), policy, replicates=100).gain_interval or (np.nan, np.nan)
        hits += low <= truth <= high
    assert hits >= 33  # 0.95 of 40 is 38; 33 or fewer happen with probability 0.003
