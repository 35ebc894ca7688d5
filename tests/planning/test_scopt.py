from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gainful as gf
from gainful.errors import InfeasibleSpanError, InvalidArgumentError, NotConvergedError
from gainful.planning.bellman import StoppingRule, sparse_model
from gainful.planning.scopt import contraction_bound, truncated_sweeps
from tests.strategies import mdps

PRECISION = 1e-9


def truncated(mdp: gf.MDP, v: np.ndarray, c: float) -> np.ndarray:
    """T_c v = min{Lv, min Lv + c}, from the definition."""
    Lv = mdp.q_values(v).max(axis=1)
    return np.asarray(np.minimum(Lv, Lv.min() + c))


vectors = st.lists(st.floats(-10, 10), min_size=6, max_size=6).map(np.array)
spans = st.floats(0.0, 5.0)


@given(mdps(max_states=6), vectors, vectors, spans, st.floats(-3, 3))
def test_the_truncated_operator_is_monotone_non_expansive_and_bounded(
    mdp: gf.MDP, x: np.ndarray, y: np.ndarray, c: float, shift: float
) -> None:
    x, y = x[: mdp.n_states], y[: mdp.n_states]
    Tx, Ty = truncated(mdp, x, c), truncated(mdp, y, c)
    assert np.ptp(Tx) <= c + 1e-12
    assert np.abs(Tx - Ty).max() <= np.abs(x - y).max() + 1e-12
    assert np.all(truncated(mdp, np.minimum(x, y), c) <= np.minimum(Tx, Ty) + 1e-12)
    np.testing.assert_allclose(truncated(mdp, x + shift, c), Tx + shift, rtol=0, atol=1e-12)


@given(mdps(max_states=6, disallowed=True), vectors, spans, st.floats(0.1, 1.0))
def test_the_compiled_iteration_is_the_operator_of_the_definition(
    mdp: gf.MDP, x: np.ndarray, c: float, damping: float
) -> None:
    v = x[: mdp.n_states].copy()
    v = np.minimum(v, v.min() + c)
    Tv = truncated(mdp, v, c)
    model = sparse_model(mdp)
    w, act = np.empty(mdp.n_states), np.zeros(mdp.n_states, dtype=np.int64)
    moved = v.copy()
    _, low, high, _, met = truncated_sweeps(model, moved, w, act, c, 0, StoppingRule(damping, -1.0, 0.0, 0.0, 1))
    assert not met
    assert (low, high) == pytest.approx(((Tv - v).min(), (Tv - v).max()), rel=0, abs=1e-13)
    np.testing.assert_array_equal(moved, v)  # v is the vector of the last test
    if high > low:  # else it stops there
        truncated_sweeps(model, moved, w, act, c, 0, StoppingRule(damping, -1.0, 0.0, 0.0, 2))
        step = v + damping * (Tv - v)
        np.testing.assert_allclose(moved, step - step[0], rtol=0, atol=1e-13)
        assert np.ptp(moved) <= c + 1e-13


def two_state_toy() -> gf.MDP:
    """s0: go (r 0) or stay (r ½); s1: go (r 0) or stay (r 1)."""
    P = np.zeros((2, 2, 2))
    P[0, 0, 1] = P[0, 1, 0] = P[1, 0, 0] = P[1, 1, 1] = 1.0
    return gf.MDP(P, [[0.0, 0.5], [0.0, 1.0]], action_labels=["go", "stay"])


@pytest.mark.parametrize("c", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 3.0])
def test_on_the_two_state_toy_the_best_gain_is_the_clipped_span(c: float) -> None:
    plan = gf.scopt(two_state_toy(), span=c, precision=PRECISION)
    assert plan.gain == pytest.approx(np.clip(c, 0.5, 1.0), rel=0, abs=PRECISION)
    leaving = 1 / (2 + 2 * c) if c < 0.5 else max(0.0, (1 - c) / (1 + c))
    assert plan.policy[1, 0] == pytest.approx(leaving, rel=0, abs=1e-7)
    assert plan.span <= c
    assert plan.details["unichain"] == (plan.policy[1, 0] > 0 or c >= 0.5)


@pytest.mark.parametrize("c", [0.2, 0.5, 0.8])
def test_with_augmentation_the_greedy_action_is_mixed_with_its_own_copy(c: float) -> None:
    plan = gf.scopt(two_state_toy(), span=c, precision=PRECISION, augmented=True)
    assert plan.augmented is not None
    assert plan.augmented[1, 1] == pytest.approx(max(0.5, c), rel=0, abs=1e-7)
    assert plan.augmented[1, 3] == pytest.approx(1 - max(0.5, c), rel=0, abs=1e-7)
    assert plan.actions is not None  # the projection is deterministic
    assert plan.policy[1].tolist() == [0.0, 1.0]


def check_bellman_error(mdp: gf.MDP, plan: gf.Plan, weights: np.ndarray, rewards: np.ndarray, two_sided: bool) -> None:
    """(E:gerror.app2): |g + v - r_π - P_π v| ≤ ε on A⁺; one-sided on A, where the copies earn their reward."""
    P, _ = mdp.to_dense()
    doubled = np.concatenate([P, P], axis=1)
    backed = np.einsum("sa,sa->s", weights, rewards + doubled @ plan.bias)
    error = plan.gain + plan.bias - backed
    assert error.max() <= PRECISION + 1e-10
    if two_sided:
        assert error.min() >= -PRECISION - 1e-10


@settings(max_examples=150)
@given(mdps(max_states=5), st.floats(0.05, 3.0), st.sampled_from(["copy", "min-action"]))
def test_bellman_error_of_the_augmented_policy(mdp: gf.MDP, c: float, mixture: str) -> None:
    plan = gf.scopt(mdp, span=c, precision=PRECISION, augmented=True, mixture=mixture)  # type: ignore[arg-type]
    assert plan.augmented is not None
    assert plan.span <= c + 1e-12
    np.testing.assert_allclose(plan.augmented.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    copies = np.zeros_like(mdp.rewards)
    check_bellman_error(mdp, plan, plan.augmented, np.concatenate([mdp.rewards, copies], axis=1), two_sided=True)
    both = np.concatenate([mdp.rewards, mdp.rewards], axis=1)
    check_bellman_error(mdp, plan, plan.augmented, both, two_sided=False)


@settings(max_examples=150)
@given(mdps(communicating=True, max_states=5), st.floats(0.05, 3.0))
def test_without_augmentation_the_policy_earns_the_gain_promised_or_the_state_is_named(mdp: gf.MDP, c: float) -> None:
    best = gf.solve(mdp, precision=PRECISION)
    try:
        plan = gf.scopt(mdp, span=c, precision=PRECISION)
    except InfeasibleSpanError as error:
        assert best.span > c - 1e-7
        assert 0 <= error.state < mdp.n_states
        assert error.plan.span <= c + 1e-12
        return
    earned = gf.evaluate(mdp, plan)
    assert earned.gain.min() >= plan.gain_bounds[0] - 1e-9
    assert earned.gain.max() <= plan.gain_bounds[1] + 1e-9
    assert plan.gain <= best.gain + 2 * PRECISION
    if best.span <= c:
        assert plan.gain == pytest.approx(best.gain, rel=0, abs=2 * PRECISION)


def test_an_infeasible_span_names_the_state_and_keeps_the_upper_bound() -> None:
    mdp = gf.MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[0.0], [1.0]], state_labels=["low", "high"])
    with pytest.raises(InfeasibleSpanError, match="state high") as caught:
        gf.scopt(mdp, span=0.25)
    assert caught.value.state == 1
    assert caught.value.plan.gain_bounds[1] == pytest.approx(0.25, rel=0, abs=1e-8)


def attractive(seed: int) -> gf.MDP:
    """A random MDP in which every pair moves to state 0 with probability at least 0.2."""
    rng = np.random.default_rng(seed)
    P = 0.8 * rng.dirichlet(np.ones(5), size=(5, 2))
    P[:, :, 0] += 0.2
    return gf.MDP(P, rng.random((5, 2)))


@pytest.mark.parametrize("seed", range(4))
def test_the_published_stopping_rule_asks_for_more_and_agrees(seed: int) -> None:
    mdp = attractive(seed)
    gamma = contraction_bound(mdp)
    assert gamma <= 0.8
    quick = gf.scopt(mdp, span=0.3, precision=1e-6, augmented=True, damping=1.0)
    strict = gf.scopt(mdp, span=0.3, precision=1e-6, augmented=True, stopping="strict")
    assert strict.sweeps >= quick.sweeps
    assert strict.gain == pytest.approx(quick.gain, rel=0, abs=2e-6)
    # by the rule itself: 2γⁿ/(1-γ)·sp(v₁-v₀) ≤ ε needs at least this many sweeps
    first = np.ptp(truncated(mdp, np.zeros(5), 0.3))
    needed = np.log(1e-6 * (1 - gamma) / (2 * first)) / np.log(gamma)
    assert strict.sweeps - 1 >= needed - 1e-9
    tighter = gf.scopt(mdp, span=0.3, precision=1e-6, augmented=True, stopping="strict", contraction=0.99)
    assert tighter.sweeps > strict.sweeps


def test_the_contraction_bound_is_one_where_no_state_is_common() -> None:
    assert contraction_bound(two_state_toy()) == 1.0
    with pytest.raises(InvalidArgumentError, match="contraction"):
        gf.scopt(two_state_toy(), span=1.0, stopping="strict")


def test_a_warm_start_beyond_the_span_is_projected_first() -> None:
    mdp = attractive(0)
    plan = gf.scopt(mdp, span=0.2, precision=PRECISION, augmented=True, start_values=[0, 50, -30, 7, 1])
    assert plan.span <= 0.2 + 1e-12
    assert plan.gain == pytest.approx(
        gf.scopt(mdp, span=0.2, precision=PRECISION, augmented=True).gain, abs=2e-9, rel=0
    )
    again = gf.scopt(mdp, span=0.2, precision=1e-8, augmented=True, start_values=plan.bias)
    assert again.sweeps == 1


def test_rewards_below_zero_are_shifted_for_the_copies_and_come_back() -> None:
    mdp = attractive(1)
    lower = gf.MDP(mdp.to_dense()[0], mdp.rewards - 3.0)
    a = gf.scopt(mdp, span=0.3, precision=PRECISION, augmented=True)
    b = gf.scopt(lower, span=0.3, precision=PRECISION, augmented=True)
    assert b.gain + 3.0 == pytest.approx(a.gain, rel=0, abs=2e-9)
    np.testing.assert_allclose(b.bias, a.bias, rtol=0, atol=1e-7)
    assert b.actions is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"span": -1.0}, "span is -1"),
        ({"span": np.nan}, "span is nan"),
        ({"span": 1.0, "stopping": "never"}, "'span' or 'strict'"),
        ({"span": 1.0, "mixture": "copy"}, "augmented=True"),
        ({"span": 1.0, "mixture": "all", "augmented": True}, "'copy' or 'min-action'"),
        ({"span": 1.0, "damping": 0.0}, "damping"),
        ({"span": 1.0, "reference": 9}, "out of range"),
        ({"span": 1.0, "max_sweeps": 0}, "max_sweeps"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        gf.scopt(two_state_toy(), **options)  # type: ignore[arg-type]


def test_the_iteration_cap_is_an_error_with_the_partial_plan() -> None:
    with pytest.raises(NotConvergedError, match="wanted") as caught:
        gf.scopt(gf.environments.riverswim(6), span=3.0, max_sweeps=2)
    assert caught.value.plan.span <= 3.0


@settings(max_examples=50)
@given(mdps(communicating=True, max_states=5))
def test_a_span_that_does_not_bind_changes_nothing(mdp: gf.MDP) -> None:
    best = gf.solve(mdp, precision=PRECISION)
    assume(best.span < 50)
    plan = gf.scopt(mdp, span=best.span + 0.1, precision=PRECISION)
    assert plan.gain == pytest.approx(best.gain, rel=0, abs=2 * PRECISION)
    assert plan.details["truncated"].size == 0
