"""The lazy sweep must be the full sweep, whatever was done before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gainful as gf
from gainful.planning import rounding
from gainful.planning.arguments import lowest_allowed
from gainful.planning.sweeper import Sweeper
from tests.strategies import mdps


def reference(mdp: gf.MDP, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    q = mdp.q_values(v)
    return q.max(axis=1), q.argmax(axis=1)


def assert_is_a_bellman_sweep(mdp: gf.MDP, sweeper: Sweeper, v: np.ndarray) -> None:
    low, high = sweeper.bellman(v)
    w, _ = reference(mdp, v)
    tolerance = 1e-13 * (1 + np.abs(v).max())
    np.testing.assert_allclose(sweeper.w, w, rtol=0, atol=tolerance)
    chosen = mdp.q_values(v)[np.arange(mdp.n_states), sweeper.act]
    np.testing.assert_allclose(chosen, w, rtol=0, atol=tolerance)
    assert low == pytest.approx((w - v).min(), rel=0, abs=tolerance)
    assert high == pytest.approx((w - v).max(), rel=0, abs=tolerance)


@given(mdps(disallowed=True), st.lists(st.floats(-3, 3), min_size=1, max_size=12), st.booleans())
def test_a_lazy_sweep_equals_a_full_one_after_any_changes_of_v(
    mdp: gf.MDP, jumps: list[float], from_zero: bool
) -> None:
    rng = np.random.default_rng(0)
    v = np.zeros(mdp.n_states) if from_zero else rng.normal(size=mdp.n_states)
    with Sweeper(mdp, 1) as sweeper:
        assert_is_a_bellman_sweep(mdp, sweeper, v)
        for size in jumps:
            v = sweeper.w - sweeper.w[0] + size * rng.normal(size=mdp.n_states) * (size > 0)
            assert_is_a_bellman_sweep(mdp, sweeper, v)


@pytest.mark.parametrize("instance", range(5))
def test_lazy_sweeps_really_are_lazy_and_still_right(instance: int) -> None:
    mdp = gf.environments.garnet(300, 4, 6, instance=instance)
    v = np.zeros(300)
    with Sweeper(mdp, 1) as sweeper:
        for _ in range(25):
            assert_is_a_bellman_sweep(mdp, sweeper, v)
            v = sweeper.w - sweeper.w[0]
        assert sweeper.incumbents_ready  # the last sweeps read the incumbents' rows only
        gaps = np.empty(300)
        low, high = sweeper.policy_gaps(v, gaps)
    exact = mdp.q_values(v)[np.arange(300), sweeper.act] - v
    np.testing.assert_allclose(gaps, exact, rtol=0, atol=1e-13)
    assert (low, high) == (gaps.min(), gaps.max())


@pytest.mark.parametrize("fill", [1.0, 0.7])
def test_dense_and_sparse_sweeps_agree(fill: float) -> None:
    rng = np.random.default_rng(3)
    P = rng.random((40, 3, 40)) * (rng.random((40, 3, 40)) < fill)
    P /= P.sum(axis=2, keepdims=True)
    allowed = rng.random((40, 3)) < 0.8
    allowed[:, 1] = True
    mdp = gf.MDP(P, rng.random((40, 3)), allowed=allowed)
    v = rng.normal(size=40)
    with Sweeper(mdp, 1) as sweeper:
        for _ in range(6):
            assert_is_a_bellman_sweep(mdp, sweeper, v)
            v = sweeper.w - sweeper.w[0]
        gaps = np.empty(40)
        sweeper.policy_gaps(v, gaps)
    np.testing.assert_allclose(gaps, mdp.q_values(v)[np.arange(40), sweeper.act] - v, rtol=0, atol=1e-13)


def test_no_bit_depends_on_the_number_of_threads() -> None:
    mdp = gf.environments.garnet(2000, 3, 5, instance=1)
    plans = [gf.solve(mdp, precision=1e-9, threads=n) for n in (1, 2, 3)]
    for plan in plans[1:]:
        assert plan.gain_bounds == plans[0].gain_bounds
        assert np.array_equal(plan.bias, plans[0].bias)
        assert np.array_equal(plan.actions, plans[0].actions)  # type: ignore[arg-type]


def test_ties_go_to_the_lowest_action() -> None:
    P = np.zeros((2, 3, 2))
    P[:, :, 0] = P[:, :, 1] = 0.5
    plan = gf.solve(gf.MDP(P, [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]]))
    assert plan.actions is not None
    assert plan.actions.tolist() == [1, 0]


@pytest.mark.parametrize("at_once", [1, 2, 3, 1000])
def test_what_sweeps_need_to_know_of_a_model(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "ROWS_AT_ONCE", at_once)
    rows, to = np.array([0, 1, 1, 2, 4]), np.array([1, 0, 0, 1])  # the second action of state 0 is not allowed
    mdp = gf.MDP.from_rows(rows, to, np.array([1.0, 1.0, 0.5, 0.5]), np.array([[0.5, 0.0], [0.25, -0.75]]))
    assert rounding.longest_row(mdp) == 2
    assert rounding.reward_scale(mdp) == 0.75
    assert lowest_allowed(mdp).tolist() == [0, 0]
    swapped = gf.MDP.from_rows(np.array([0, 0, 1, 2, 3]), np.array([1, 0, 1]), np.ones(3), np.zeros((2, 2)))
    assert lowest_allowed(swapped).tolist() == [1, 0]
