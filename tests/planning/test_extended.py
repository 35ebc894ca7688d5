from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gainful.errors import InvalidArgumentError, NotConvergedError, PrecisionError
from gainful.mdp.model import MDP
from gainful.planning.confidence import Confidence, Intervals, KLBall, L1Ball
from gainful.planning.extended import extended_value_iteration
from gainful.planning.improvement import improve
from gainful.planning.inner_maximum import inner_maximum
from gainful.planning.plan import Plan
from tests.planning.rows import Array, dense, random_mdp
from tests.strategies import mdps

KINDS = ["l1", "intervals", "kl"]
light = settings(max_examples=20, deadline=None, derandomize=True)


def confidence(kind: str, mdp: MDP, size: float) -> Confidence:
    shape = (mdp.n_states, mdp.n_actions)
    if kind == "l1":
        return L1Ball(np.full(shape, size))
    if kind == "kl":
        return KLBall(np.full(shape, size))
    return Intervals.around(mdp, size, size)


def operator(mdp: MDP, which: Confidence, v: Array, span: float) -> Array:
    """T_c v; L v for an infinite span."""
    S, A = mdp.n_states, mdp.n_actions
    q, best = np.empty(S * A), np.empty(S)
    inner_maximum(mdp, which).values(v.copy(), mdp.pair_rewards.copy(), q)
    _, _, threshold = improve(q, v, A, span, best)
    return np.asarray(np.minimum(best, threshold))


def plain_gain(mdp: MDP) -> float:
    """Damped value iteration in NumPy, to 1e-11."""
    v = np.zeros(mdp.n_states)
    for _ in range(100_000):
        residual = mdp.q_values(v).max(axis=1) - v
        if np.ptp(residual) < 1e-11:
            return float(residual.mean())
        v = v + 0.7 * residual
        v -= v[0]
    raise AssertionError("no convergence")


def chosen_rows(plan: Plan, name: str = "rows") -> Array:
    S = plan.mdp.n_states
    return np.array([dense(plan.details[name], s, S) for s in range(S)])


@light
@given(mdps(communicating=True, disallowed=True), st.sampled_from(KINDS))
def test_sets_of_one_point_are_the_plain_mdp(mdp: MDP, kind: str) -> None:
    found = extended_value_iteration(mdp, confidence(kind, mdp, 0.0))
    gain = plain_gain(mdp)
    assert found.gain_bounds[0] - 1e-11 <= gain <= found.gain_bounds[1] + 1e-11
    assert found.gain == pytest.approx(gain, rel=0, abs=1e-8)
    assert found.actions is not None
    P = mdp.to_dense()[0][np.arange(mdp.n_states), found.actions]
    assert chosen_rows(found) == pytest.approx(P, rel=0, abs=1e-15)


@light
@given(mdps(disallowed=True), st.sampled_from(KINDS))
def test_whole_simplices_give_the_largest_reward(mdp: MDP, kind: str) -> None:
    size = {"l1": 2.0, "intervals": 1.0, "kl": np.inf}[kind]
    found = extended_value_iteration(mdp, confidence(kind, mdp, size))
    assert found.gain == pytest.approx(mdp.rewards[mdp.allowed].max(), rel=0, abs=1e-8)


@light
@given(mdps(communicating=True, costs=True), st.sampled_from(KINDS))
def test_the_optimistic_gain_grows_with_the_sets(mdp: MDP, kind: str) -> None:
    before = plain_gain(mdp)
    for size in (0.01, 0.1, 0.5):
        found = extended_value_iteration(mdp, confidence(kind, mdp, size))
        gain = mdp.units.sign * found.gain  # optimism about costs: lower
        assert gain >= before - 2e-8
        before = gain


@light
@given(mdps(communicating=True), st.sampled_from(KINDS), st.floats(0.01, 0.5))
def test_the_rows_in_details_earn_the_bracket(mdp: MDP, kind: str, size: float) -> None:
    found = extended_value_iteration(mdp, confidence(kind, mdp, size))
    assert found.actions is not None
    r = mdp.rewards[np.arange(mdp.n_states), found.actions]
    residual = r + chosen_rows(found) @ found.bias - found.bias
    assert residual.min() >= found.gain_bounds[0] - 1e-12
    assert residual.max() <= found.gain_bounds[1] + 1e-12
    assert found.gain_bounds[1] - found.gain_bounds[0] <= 1e-8


@light
@given(mdps(min_states=2), st.sampled_from(KINDS), st.floats(0.0, 2.0), st.integers(0, 2**32 - 1))
def test_the_truncated_operator_is_monotone_nonexpansive_and_bounded(
    mdp: MDP, kind: str, span: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    S = mdp.n_states
    which = confidence(kind, mdp, float(rng.choice([0.0, 0.05, 0.5])))
    v = 3.0 * rng.random(S)
    w = v + rng.random(S)
    Tv, Tw = operator(mdp, which, v, span), operator(mdp, which, w, span)
    assert np.all(Tv <= Tw + 1e-14)
    assert np.abs(Tv - Tw).max() <= np.abs(v - w).max() + 1e-14
    assert np.ptp(Tv) <= span + 1e-14
    assert operator(mdp, which, v + 1.5, span) == pytest.approx(Tv + 1.5, rel=0, abs=1e-14)


@light
@given(mdps(min_states=2), st.sampled_from(KINDS), st.floats(0.0, 1.0), st.sampled_from(["copy", "min-action"]))
def test_the_constrained_policy_earns_the_truncated_operator(mdp: MDP, kind: str, span: float, mixture: Any) -> None:
    """Two-sided on the augmented actions, one-sided for the policy projected on the actions."""
    S, A = mdp.n_states, mdp.n_actions
    which = confidence(kind, mdp, 0.1)
    found = extended_value_iteration(mdp, which, span=span, mixture=mixture, precision=1e-7)
    v, states = found.bias, np.arange(S)
    assert found.span <= span + 1e-15
    assert found.augmented is not None
    assert found.augmented.shape == (S, 2 * A)
    assert found.augmented.min() >= 0.0
    assert found.augmented.sum(axis=1) == pytest.approx(np.ones(S), rel=0, abs=1e-15)
    assert found.policy == pytest.approx(found.augmented[:, :A] + found.augmented[:, A:], rel=0, abs=1e-15)
    greedy, copies = found.details["greedy"], found.details["copies"]
    on_best, on_copy = found.augmented[states, greedy], found.augmented[states, A + copies]
    assert on_best + on_copy == pytest.approx(np.ones(S), rel=0, abs=1e-15)
    best, other = chosen_rows(found) @ v, chosen_rows(found, "copy_rows") @ v
    truncated = operator(mdp, which, v, span)
    earned = on_best * (mdp.rewards[states, greedy] + best) + on_copy * other
    assert earned == pytest.approx(truncated, rel=0, abs=1e-13)
    low, high = found.gain_bounds
    assert (earned - v).min() >= low - 1e-12
    assert (earned - v).max() <= high + 1e-12
    projected = on_best * (mdp.rewards[states, greedy] + best) + on_copy * (mdp.rewards[states, copies] + other)
    assert (projected - v).min() >= low - 1e-12
    if mixture == "copy":
        assert found.actions is not None
        assert np.array_equal(found.actions, greedy)
    if mixture == "min-action" and found.details["truncated"].size:
        mixed = found.details["truncated"]
        assert np.all(other[mixed] <= best[mixed] + 1e-13)


def test_the_min_action_is_the_least_over_the_set() -> None:
    rng = np.random.default_rng(4)
    mdp = random_mdp(rng, 5, 3, 3)
    for kind in KINDS:
        which = confidence(kind, mdp, 0.2)
        found = extended_value_iteration(mdp, which, span=0.05, mixture="min-action")
        least = np.empty(15)
        inner_maximum(mdp, which).values(-found.bias, np.zeros(15), least)
        other = chosen_rows(found, "copy_rows") @ found.bias
        mixed = found.details["truncated"]
        assert mixed.size > 0
        assert other[mixed] == pytest.approx(-least.reshape(5, 3).max(axis=1)[mixed], rel=0, abs=1e-14)


def test_a_wide_span_changes_nothing() -> None:
    mdp = random_mdp(np.random.default_rng(6), 8, 2, 3)
    ball = L1Ball(np.full((8, 2), 0.1))
    free, bound = extended_value_iteration(mdp, ball), extended_value_iteration(mdp, ball, span=100.0)
    assert bound.gain == free.gain
    assert np.array_equal(bound.bias, free.bias)
    assert bound.details["truncated"].size == 0


def test_a_tight_span_lowers_the_gain_to_the_least_best_reward() -> None:
    mdp = random_mdp(np.random.default_rng(6), 8, 2, 3)
    found = extended_value_iteration(mdp, L1Ball(np.full((8, 2), 0.1)), span=0.0)
    assert found.gain == pytest.approx(mdp.rewards.max(axis=1).min(), rel=0, abs=1e-8)


def test_floor_is_contraction() -> None:
    """With half of every row on one state the bracket halves each sweep, even on a cycle without damping."""
    mdp = MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]])
    sets = Intervals.around(mdp, 1.0, 1.0, floor_state=0, floor=0.5)
    found = extended_value_iteration(mdp, sets, damping=1.0, span=1.0, precision=1e-9)
    assert found.sweeps <= 40


def test_periodic_rows_converge_with_damping_and_say_so_without() -> None:
    mdp = MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]])
    ball = L1Ball(np.zeros((2, 1)))
    assert extended_value_iteration(mdp, ball).gain == pytest.approx(0.5, rel=0, abs=1e-8)
    with pytest.raises(NotConvergedError, match=r"bracket 1\.0e\+00 wide after 50 sweeps") as caught:
        extended_value_iteration(mdp, ball, damping=1.0, max_sweeps=50)
    low, high = caught.value.plan.gain_bounds
    assert low <= 0.5 <= high
    assert caught.value.plan.actions.tolist() == [0, 0]


def test_a_precision_below_rounding_is_refused() -> None:
    mdp = random_mdp(np.random.default_rng(6), 8, 2, 3)
    with pytest.raises(PrecisionError, match="cannot be certified"):
        extended_value_iteration(mdp, L1Ball(np.full((8, 2), 0.1)), precision=1e-16)


def test_warm_starts_and_batches_give_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = random_mdp(np.random.default_rng(7), 20, 3, 4)
    for kind in KINDS:
        which = confidence(kind, mdp, 0.05)
        found = extended_value_iteration(mdp, which)
        warm = extended_value_iteration(mdp, which, start_values=found.bias)
        assert warm.sweeps == 1
        assert warm.gain == pytest.approx(found.gain, rel=0, abs=1e-8)
        with monkeypatch.context() as patch:
            patch.setattr("gainful.planning.batches.RESUMED_TRANSITIONS", 1)
            stepped = extended_value_iteration(mdp, which)
        assert (stepped.sweeps, stepped.gain_bounds) == (found.sweeps, found.gain_bounds)
        assert np.array_equal(stepped.bias, found.bias)


def test_costs_and_offsets_come_back_in_the_users_units() -> None:
    rng = np.random.default_rng(8)
    P = rng.dirichlet(np.ones(4), size=(4, 2))
    costs = 5.0 + rng.random((4, 2))
    mdp = MDP(P, costs, objective="cost")
    ball = L1Ball(np.full((4, 2), 0.2))
    found = extended_value_iteration(mdp, ball)
    mirror = extended_value_iteration(MDP(P, -costs), ball)
    assert found.gain == pytest.approx(-mirror.gain, rel=0, abs=1e-12)
    assert found.bias == pytest.approx(-mirror.bias, rel=0, abs=1e-12)
    shifted = extended_value_iteration(mdp.normalised(), ball)
    assert shifted.gain == pytest.approx(found.gain, rel=0, abs=1e-8)
    with pytest.raises(InvalidArgumentError, match=r"rewards >= 0: plan on mdp\.normalised"):
        extended_value_iteration(mdp, ball, span=1.0)
    assert extended_value_iteration(mdp.normalised(), ball, span=0.1).gain >= found.gain - 1e-8
    cheaper = extended_value_iteration(mdp, ball, rewards=mdp.rewards + 1.0)
    assert cheaper.gain == pytest.approx(found.gain - 1.0, rel=0, abs=1e-8)


def test_ties_go_to_the_lowest_action_and_state() -> None:
    mdp = MDP(np.full((3, 2, 3), 1 / 3), np.ones((3, 2)))
    found = extended_value_iteration(mdp, L1Ball(np.full((3, 2), 0.2)))
    assert found.actions is not None
    assert found.actions.tolist() == [0, 0, 0]
    assert found.gain == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": 0.0}, "precision is 0"),
        ({"max_sweeps": 0}, "max_sweeps is 0"),
        ({"damping": 1.5}, "damping is 1.5"),
        ({"span": -1.0}, "span is -1"),
        ({"span": float("nan")}, "span is nan"),
        ({"mixture": "greedy"}, "mixture is 'greedy'"),
        ({"rewards": [[1.0]]}, "rewards have shape"),
        ({"start_values": [1.0]}, "start_values"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    mdp = random_mdp(np.random.default_rng(3), 2, 2, 2)
    with pytest.raises(InvalidArgumentError, match=message):
        extended_value_iteration(mdp, L1Ball(np.ones((2, 2))), **options)


def test_a_set_for_another_mdp_is_an_error() -> None:
    mdp = random_mdp(np.random.default_rng(3), 2, 2, 2)
    with pytest.raises(InvalidArgumentError, match=r"radius has shape \(3, 2\), expected \(S, A\) = \(2, 2\)"):
        extended_value_iteration(mdp, KLBall(np.ones((3, 2))))
    with pytest.raises(InvalidArgumentError, match="expected an L1Ball"):
        extended_value_iteration(mdp, 0.1)  # type: ignore[arg-type]
