from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gainful as gf
from gainful.errors import InvalidArgumentError, MultichainError, NotConvergedError, PrecisionError
from tests.strategies import mdps

PRECISION = 1e-9


def cycle(n: int) -> gf.MDP:
    """0 → 1 → … → n-1 → 0 for sure: periodic; rewards 1 in state 0 only."""
    P = np.zeros((n, 1, n))
    P[np.arange(n), 0, (np.arange(n) + 1) % n] = 1.0
    return gf.MDP(P, np.eye(n)[0][:, None])


@pytest.mark.parametrize("n", [1, 2, 3, 7, 50, 400])
@pytest.mark.parametrize("planner", [gf.solve, gf.relative_value_iteration, gf.policy_iteration])
def test_periodic_chains_converge(planner, n: int) -> None:  # type: ignore[no-untyped-def]
    if planner is gf.relative_value_iteration and n > 50:
        n = 50  # damped sweeps need about n² of them
    plan = planner(cycle(n), precision=1e-8)
    assert plan.gain == pytest.approx(1 / n, rel=0, abs=1e-8)


@pytest.mark.parametrize("n", [2, 6, 30, pytest.param(300, marks=pytest.mark.slow)])
def test_a_long_river_needs_the_later_stages_and_is_certified_all_the_same(n: int) -> None:
    mdp = gf.environments.riverswim(n)
    plan = gf.solve(mdp, precision=PRECISION)
    reference = gf.policy_iteration(mdp, precision=PRECISION)
    assert plan.gain == pytest.approx(reference.gain, rel=0, abs=2 * PRECISION)
    assert plan.gain_bounds[1] - plan.gain_bounds[0] <= PRECISION


def test_the_accelerated_stage_agrees_with_plain_value_iteration() -> None:
    rng = np.random.default_rng(0)
    S, reach = 400, 8
    P = np.zeros((S, 3, S))
    for s in range(S):
        low, high = max(0, s - reach), min(S, s + reach + 1)
        P[s, :, low:high] = rng.dirichlet(np.ones(high - low), size=3)
    mdp = gf.MDP(P, rng.random((S, 3)))
    fast = gf.solve(mdp, precision=1e-7)
    plain = gf.relative_value_iteration(mdp, precision=1e-7, damping=1.0)
    assert fast.method != "value iteration"
    assert fast.sweeps < plain.sweeps / 4
    assert fast.gain == pytest.approx(plain.gain, rel=0, abs=2e-7)
    assert gf.evaluate(mdp, fast).gain.min() >= fast.gain_bounds[0] - 1e-9


@settings(max_examples=200)
@given(mdps(disallowed=True, costs=True, max_states=5))
def test_any_mdp_is_either_bracketed_rightly_or_refused_as_multichain(mdp: gf.MDP) -> None:
    structure = gf.structure(mdp)
    try:
        plan = gf.solve(mdp, precision=PRECISION)
    except MultichainError as error:
        assert structure == "multichain"
        assert len(error.classes) == len(structure.classes) >= 2
        return
    low, high = plan.gain_bounds
    assert high - low <= PRECISION * (1 + 1e-12)
    best = gf.evaluate(mdp, plan)
    assert best.gain.min() >= low - 1e-9
    assert best.gain.max() <= high + 1e-9


def test_a_multichain_mdp_is_refused_with_its_classes_named() -> None:
    P = np.zeros((3, 1, 3))
    P[0, 0, 0] = P[1, 0, 1] = 1.0
    P[2, 0, :2] = 0.5
    mdp = gf.MDP(P, [[0.0], [1.0], [0.0]], state_labels=["poor", "rich", "fork"])
    with pytest.raises(MultichainError, match="poor") as caught:
        gf.solve(mdp)
    assert "rich" in str(caught.value)
    assert [c.tolist() for c in caught.value.classes] == [[0], [1]]
    assert gf.solve(mdp.restricted(caught.value.classes[1])).gain == pytest.approx(1.0, rel=0, abs=1e-8)


def test_value_iteration_also_refuses_a_multichain_mdp() -> None:
    mdp = gf.MDP(np.eye(2)[:, None, :], [[0.0], [1.0]])
    with pytest.raises(MultichainError):
        gf.relative_value_iteration(mdp, max_sweeps=50)


def test_not_converged_is_an_error_with_a_valid_bracket() -> None:
    mdp = gf.environments.riverswim(6)
    with pytest.raises(NotConvergedError, match="raise max_sweeps") as caught:
        gf.solve(mdp, max_sweeps=3)
    low, high = caught.value.plan.gain_bounds
    assert low <= 7203 / 16805 <= high
    with pytest.raises(NotConvergedError, match="after 3 sweeps") as caught:
        gf.relative_value_iteration(mdp, max_sweeps=3)
    low, high = caught.value.plan.gain_bounds
    assert low <= 7203 / 16805 <= high


@pytest.mark.parametrize("planner", [gf.solve, gf.relative_value_iteration])
def test_a_precision_that_float64_cannot_certify_is_refused(planner) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PrecisionError, match="ask for") as caught:
        planner(gf.environments.riverswim(6), precision=1e-17)
    assert caught.value.plan.gain == pytest.approx(7203 / 16805, rel=0, abs=1e-3)


@pytest.mark.parametrize("precision", [0.0, -1.0, np.nan, np.inf])
def test_a_precision_that_is_not_one_is_refused(precision: float) -> None:
    with pytest.raises(InvalidArgumentError, match="precision"):
        gf.solve(gf.environments.riverswim(6), precision=precision)


@pytest.mark.parametrize("planner", [gf.solve, gf.relative_value_iteration])
def test_a_warm_start_saves_sweeps_and_changes_no_answer(planner) -> None:  # type: ignore[no-untyped-def]
    mdp = gf.environments.garnet(200, 3, 5)
    cold = planner(mdp, precision=1e-9)
    warm = planner(mdp, precision=1e-8, start_values=cold.bias)
    assert warm.sweeps == 1
    assert warm.gain == pytest.approx(cold.gain, rel=0, abs=2e-8)
    with pytest.raises(InvalidArgumentError, match="start_values"):
        planner(mdp, start_values=[1.0, 2.0])


def test_a_warm_start_of_a_cost_problem_is_given_in_its_own_units() -> None:
    mdp = gf.environments.inventory_control()
    cold = gf.solve(mdp, precision=1e-9)
    assert gf.solve(mdp, precision=1e-7, start_values=cold.bias).sweeps == 1


@given(mdps(communicating=True), st.floats(-5, 5))
def test_a_constant_reward_moves_only_the_gain(mdp: gf.MDP, constant: float) -> None:
    plan = gf.solve(mdp, precision=PRECISION)
    moved = gf.MDP(mdp.to_dense()[0], np.where(mdp.allowed, mdp.rewards + constant, 0.0), allowed=mdp.allowed)
    assert gf.solve(moved, precision=PRECISION).gain == pytest.approx(plan.gain + constant, rel=0, abs=2 * PRECISION)


@given(mdps(communicating=True), st.floats(0.1, 10))
def test_scaling_rewards_scales_the_gain(mdp: gf.MDP, factor: float) -> None:
    plan = gf.solve(mdp, precision=PRECISION)
    scaled = gf.MDP(mdp.to_dense()[0], mdp.rewards * factor, allowed=mdp.allowed)
    found = gf.solve(scaled, precision=PRECISION)
    assert found.gain == pytest.approx(factor * plan.gain, rel=0, abs=(1 + factor) * PRECISION)


@given(mdps(communicating=True, disallowed=True), st.randoms(use_true_random=False))
def test_relabelling_states_and_actions_changes_nothing(mdp: gf.MDP, random) -> None:  # type: ignore[no-untyped-def]
    states, actions = list(range(mdp.n_states)), list(range(mdp.n_actions))
    random.shuffle(states)
    random.shuffle(actions)
    P, R = mdp.to_dense()
    other = gf.MDP(
        P[np.ix_(states, actions, states)], R[np.ix_(states, actions)], allowed=mdp.allowed[np.ix_(states, actions)]
    )
    first, second = gf.solve(mdp, precision=PRECISION), gf.solve(other, precision=PRECISION)
    assert first.gain == pytest.approx(second.gain, rel=0, abs=2 * PRECISION)
    assert gf.evaluate(mdp, first).gain.min() >= second.gain - 2 * PRECISION


def test_a_continuous_time_process_answers_per_unit_of_time_and_in_money() -> None:
    # a machine that breaks at rate 1 and is repaired at rate 3 earns 8 per hour while up: 8·3/4 per hour
    mdp = gf.MDP.from_rates([[[0, 1.0]], [[3.0, 0]]], [[8.0], [0.0]])
    plan = gf.solve(mdp, precision=1e-10)
    assert plan.gain == pytest.approx(6.0, rel=0, abs=1e-10)
    # g + λ(h0 - h1) = 8 in money: h0 - h1 = 2, whatever the uniformisation rate
    assert plan.span == pytest.approx(2.0, rel=0, abs=1e-9)
    finer = gf.solve(gf.MDP.from_rates([[[0, 1.0]], [[3.0, 0]]], [[8.0], [0.0]], uniformization=40.0), precision=1e-10)
    assert finer.gain == pytest.approx(6.0, rel=0, abs=1e-10)
    assert finer.span == pytest.approx(2.0, rel=0, abs=1e-8)


def test_costs_come_back_as_costs() -> None:
    P = np.full((2, 2, 2), 0.5)
    plan = gf.solve(gf.MDP(P, [[3.0, 1.0], [5.0, 9.0]], objective="cost"))
    assert plan.gain == pytest.approx(3.0, rel=0, abs=1e-8)
    assert plan.gain_bounds[0] <= 3.0 <= plan.gain_bounds[1]
    assert plan.actions is not None
    assert plan.actions.tolist() == [1, 0]
    assert plan.bias == pytest.approx([0.0, 4.0], rel=0, abs=1e-7)  # a start in state 1 costs 4 more


def test_a_plan_is_read_only_and_speaks_in_labels() -> None:
    mdp = gf.environments.riverswim(3)
    plan = gf.solve(mdp)
    with pytest.raises(ValueError, match="read-only"):
        plan.bias[0] = 1.0
    with pytest.raises(AttributeError):
        plan.gain = 2.0  # type: ignore[misc]
    assert plan.policy.sum(axis=1).tolist() == [1.0, 1.0, 1.0]
    assert plan.action(0) in (mdp.action_labels or ())
    assert plan.to_frame().columns.tolist() == ["state", "action", "bias"]
    assert "certified to" in repr(plan)
