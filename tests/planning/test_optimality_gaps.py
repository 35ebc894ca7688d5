from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gainful as gf
from gainful.errors import InvalidArgumentError, MultichainError
from tests.strategies import mdps


@settings(max_examples=60, deadline=None)
@given(mdps(communicating=True, disallowed=True, costs=True))
def test_gaps_are_those_of_the_optimality_equation(mdp: gf.MDP) -> None:
    low, high = mdp.reward_range
    if high - low < 1e-3:  # relative to rewards of about 1: see the test below for equal ones
        return
    gaps, plan = gf.optimality_gaps(mdp), gf.solve(mdp, precision=1e-10 * (high - low))
    h, gain = mdp.units.amount(plan.bias), mdp.units.sign * plan.gain
    assert np.array_equal(np.isnan(gaps), ~mdp.allowed)
    assert np.all(np.nanmin(gaps, axis=1) == 0.0)
    exact = gain + h[:, None] - mdp.q_values(h)
    np.testing.assert_allclose(gaps[mdp.allowed], exact[mdp.allowed], rtol=0, atol=1e-8 * (high - low))


def test_a_machine_that_may_be_repaired_by_hand() -> None:
    """Two states, and the gaps by hand: wait in the bad state loses g* per step, and h* = (0, -1)."""
    P = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0]]])  # up: same twice; down: wait, repair
    mdp = gf.MDP(P, [[1.0, 0.75], [0.0, 0.0]])
    # g + h0 = 1 + h1/2, g + h1 = h0 = 0: g = 2/3, h1 = -2/3
    np.testing.assert_allclose(gf.optimality_gaps(mdp), [[0.0, 0.25], [2 / 3, 0.0]], rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_gaps_scale_with_the_rewards(scale: float) -> None:
    river = gf.environments.riverswim(6)
    P, R = river.to_dense()
    found = gf.optimality_gaps(gf.MDP(P, scale * R))
    np.testing.assert_allclose(found / scale, gf.optimality_gaps(river), rtol=0, atol=1e-8)


def test_costs_have_the_gaps_of_the_rewards_they_are_the_negative_of() -> None:
    P, R = gf.environments.riverswim(6).to_dense()
    costs, rewards = gf.MDP(P, -R, objective="cost"), gf.MDP(P, R)
    np.testing.assert_allclose(gf.optimality_gaps(costs), gf.optimality_gaps(rewards), rtol=0, atol=1e-9)


def test_a_process_in_continuous_time_has_gaps_per_step() -> None:
    mdp = gf.environments.registry.make("server-routing")
    duration, plan = mdp.units.step_duration, gf.solve(mdp, precision=1e-9)
    h = mdp.units.amount(plan.bias)
    assert duration != 1.0
    exact = mdp.units.sign * plan.gain * duration + h[:, None] - mdp.q_values(h)
    found = gf.optimality_gaps(mdp)
    np.testing.assert_allclose(found[mdp.allowed], exact[mdp.allowed], rtol=0, atol=1e-7)
    assert np.nanmax(found) > 0.01


@given(st.floats(-1e6, 1e6))
@settings(max_examples=10, deadline=None)
def test_equal_rewards_have_no_gaps(reward: float) -> None:
    P = np.eye(2)[:, None, :].repeat(2, axis=1)  # not even communicating
    assert np.array_equal(gf.optimality_gaps(gf.MDP(P, np.full((2, 2), reward))), np.zeros((2, 2)))


def test_rewards_far_from_zero_have_the_gaps_that_float64_can_certify() -> None:
    P, R = gf.environments.riverswim(6).to_dense()
    found = gf.optimality_gaps(gf.MDP(P, R + 1e6))
    assert np.all(found[:, 1] == 0.0)
    np.testing.assert_allclose(found, gf.optimality_gaps(gf.MDP(P, R)), rtol=0, atol=1e-5)


def test_a_gain_that_depends_on_the_start_and_other_things_than_mdps_are_errors() -> None:
    apart = gf.MDP(np.eye(2)[:, None, :], [[0.0], [1.0]])
    with pytest.raises(MultichainError):
        gf.optimality_gaps(apart)
    with pytest.raises(InvalidArgumentError):
        gf.optimality_gaps(3)  # type: ignore[arg-type]
