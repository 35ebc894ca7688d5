"""Bugs that were found once: each test is named after what went wrong."""

from __future__ import annotations

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InfeasibleSpanError, InvalidArgumentError, MultichainError, PrecisionError
from gainful.planning import batches


def test_one_next_state_with_two_rewards_gave_a_wrong_gain_under_another_law() -> None:
    mdp = gf.MDP.from_rows(
        [0, 2, 4], [0, 0, 0, 1], [0.5] * 4, [0.0, 1.0, 0.0, 0.0], n_actions=1, reward_law="deterministic"
    )
    assert mdp.n_transitions == 3
    assert gf.solve(mdp).gain == pytest.approx(0.5, rel=0, abs=1e-8)


@pytest.mark.parametrize("law", ["deterministic", "transition"])
def test_evaluating_a_chain_with_parallel_transitions_never_ended(law: str) -> None:
    mdp = gf.MDP.from_rows([0, 2, 3], [1, 1, 0], [0.5, 0.5, 1.0], [0.0, 1.0, 0.0], n_actions=1, reward_law=law)  # type: ignore[arg-type]
    assert gf.evaluate(mdp, [0, 0]).gain == pytest.approx([0.25, 0.25], rel=0, abs=1e-12)
    assert gf.scopt(mdp, 5.0).gain == pytest.approx(0.25, rel=0, abs=1e-8)


def test_a_large_offset_pushed_the_truth_out_of_the_bracket() -> None:
    cycle = [[[0, 1, 0]], [[0, 0, 1]], [[1, 0, 0]]]
    mdp = gf.MDP(cycle, [[1e6 + 1], [1e6], [1e6]], objective="cost")
    for plan in (gf.solve(mdp.normalised(), precision=1e-6), gf.scopt(mdp, 5.0, augmented=True, precision=1e-6)):
        low, high = plan.gain_bounds
        assert low <= 1e6 + 1 / 3 <= high
        assert high - low <= 1e-6
    with pytest.raises(PrecisionError, match="cannot be certified"):
        gf.solve(gf.MDP(cycle, [[1e12 + 1], [1e12], [1e12]]).normalised())


def test_value_iteration_in_batches_of_one_sweep_never_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_TRANSITIONS", 1)
    mdp = gf.environments.riverswim(6)
    assert gf.scopt(mdp, 10.0).gain == pytest.approx(7203 / 16805, rel=0, abs=1e-8)


def test_every_batch_of_relative_value_iteration_repeated_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = gf.environments.riverswim(6)
    whole = gf.relative_value_iteration(mdp)
    monkeypatch.setattr(batches, "RESUMED_TRANSITIONS", 1)
    in_parts = gf.relative_value_iteration(mdp)
    assert (in_parts.sweeps, in_parts.gain_bounds) == (whole.sweeps, whole.gain_bounds)
    np.testing.assert_array_equal(in_parts.bias, whole.bias)


def test_differences_too_small_to_square_crashed_the_acceleration() -> None:
    mdp = gf.MDP.from_rows(
        np.arange(9), [2, 5, 7, 6, 4, 0, 7, 1], np.ones(8), np.array([0.0, 1, 1, 1, 1, 0, 1, 1])[:, None]
    )
    with pytest.raises(MultichainError):
        gf.solve(mdp)


def test_a_multichain_mdp_whose_gain_is_constant_was_refused() -> None:
    mdp = gf.MDP([[[1, 0], [0.999, 0.001]], [[0, 1], [0, 1]]], [[0.0, -1.0], [1.0, 0]])
    assert gf.solve(mdp).gain == pytest.approx(1.0, rel=0, abs=1e-8)


def test_the_strict_rule_crashed_on_parallel_transitions_and_on_equal_rows() -> None:
    mdp = gf.MDP.from_rows([0, 2, 3], [0, 0, 0], [0.5, 0.5, 1.0], [0.0, 1.0, 0.0], n_actions=1)
    assert gf.scopt(mdp, 1.0, stopping="strict").gain == pytest.approx(0.5, rel=0, abs=1e-8)
    row = np.random.default_rng(0).dirichlet(np.ones(7))
    equal = gf.MDP(np.tile(row, (7, 2, 1)), np.random.default_rng(1).random((7, 2)))
    assert gf.scopt(equal, 5.0, stopping="strict").gain == pytest.approx(gf.solve(equal).gain, rel=0, abs=1e-7)


def test_an_infeasible_operator_was_said_to_rule_out_every_policy() -> None:
    mdp = gf.MDP(
        [[[1, 0, 0], [0, 0, 1]], [[0, 0, 1], [1, 0, 0]], [[1, 0, 0], [0, 1, 0]]], [[3.0, 2.0], [0.0, 0.0], [0.0, 2.0]]
    )
    assert gf.evaluate(mdp, [1, 1, 0]).span == pytest.approx(1.0, rel=0, abs=1e-12)
    with pytest.raises(InfeasibleSpanError, match="cannot be met greedily"):
        gf.scopt(mdp, 1.0001)


def test_a_river_of_three_hundred_states_took_seconds() -> None:
    plan = gf.solve(gf.environments.riverswim(300))
    assert plan.sweeps < 5000
    assert plan.gain == pytest.approx(3 / 7, rel=0, abs=1e-8)


@pytest.mark.parametrize("wrong", ["riverswim", None, 3, [[1.0]]])
def test_something_that_is_no_mdp_gave_an_attribute_error(wrong: object) -> None:
    for planner in (gf.solve, gf.relative_value_iteration, gf.policy_iteration, gf.diameter):
        with pytest.raises(InvalidArgumentError, match="expected an MDP"):
            planner(wrong)  # type: ignore[arg-type]


def test_a_table_whose_states_are_numbers_answered_for_the_wrong_state() -> None:
    import pandas as pd

    table = pd.DataFrame(
        {
            "state": [1, 2, 3], "action": ["a", "b", "c"], "next_state": [2, 3, 1], "probability": [1.0] * 3,
            "reward": [0.0, 0.0, 3.0],
        }
    )  # fmt: skip
    mdp = gf.MDP.from_table(table, start=2)
    plan = gf.solve(mdp)
    assert [plan.action(s) for s in (1, 2, 3)] == ["a", "b", "c"]
    assert mdp.start.tolist() == [0.0, 1.0, 0.0]
    assert mdp.transition(1, "a") == {1: 1.0}
    assert mdp.to_table()["state"].tolist() == [1, 2, 3]
    assert plan.to_frame()["state"].tolist() == [1, 2, 3]
    assert gf.MDP.from_table(mdp.to_table()) == mdp


def test_an_mdp_could_be_changed() -> None:
    mdp = gf.environments.riverswim(3)
    with pytest.raises(AttributeError, match="cannot be changed"):
        mdp.start = 3  # type: ignore[assignment]


@pytest.mark.parametrize("p", [1e-3, 1e-9, 1e-12, 1e-15])
def test_a_small_probability_of_moving_lost_its_digits_in_the_evaluation(p: float) -> None:
    mdp = gf.MDP([[[1 - p, p]], [[p / 2, 1 - p / 2]]], [[0.0], [1.0]])
    assert gf.evaluate(mdp, [0, 0]).gain == pytest.approx([2 / 3, 2 / 3], rel=0, abs=1e-12)
    leak = gf.MDP([[[1 - p, p / 2, p / 2]], [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]], [[0.0], [0.0], [1.0]])
    assert gf.evaluate(leak, [0, 0, 0]).gain[0] == pytest.approx(0.5, rel=0, abs=1e-12)
