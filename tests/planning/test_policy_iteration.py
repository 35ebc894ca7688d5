"""Policy iteration: by hand, against a linear programme, multichain refusals, caps and precision."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from gainful.errors import InvalidArgumentError, MultichainError, NotConvergedError, PrecisionError
from gainful.mdp.model import MDP
from gainful.mdp.structure import structure
from gainful.mdp.units import Units
from gainful.planning.evaluation import evaluate
from gainful.planning.plan import Plan
from gainful.planning.policy_iteration import policy_iteration
from tests.strategies import mdps


def river(S: int = 6) -> MDP:
    """RiverSwim with Osband's parameters (THEORY.md section 6)."""
    P, R = np.zeros((S, 2, S)), np.zeros((S, 2))
    for s in range(S):
        P[s, 0, max(s - 1, 0)] = 1.0
        P[s, 1, [max(s - 1, 0), s, min(s + 1, S - 1)]] = [0.05, 0.6, 0.35]
    P[0, 1] = 0.0
    P[0, 1, [0, 1]] = [0.4, 0.6]
    P[S - 1, 1] = 0.0
    P[S - 1, 1, [S - 2, S - 1]] = [0.4, 0.6]
    R[0, 0], R[S - 1, 1] = 0.005, 1.0
    return MDP(P, R)


def linear_programme(mdp: MDP) -> NDArray[np.float64]:
    """(S,) optimal gains: min sum g with g >= P_a g and g + h >= r + P_a h (Puterman 1994, sec. 9.3)."""
    dense, rewards = mdp.to_dense()
    S = mdp.n_states
    left, right = [], []
    for s, a in np.argwhere(mdp.allowed):
        flow = dense[s, a] - np.eye(S)[s]
        left.append(np.concatenate([flow, np.zeros(S)]))
        right.append(0.0)
        left.append(np.concatenate([-np.eye(S)[s], flow]))
        right.append(-rewards[s, a])
    solved = linprog(
        np.repeat([1.0, 0.0], S), A_ub=np.array(left), b_ub=right, bounds=[(None, None)] * (2 * S), method="highs"
    )
    assert solved.status == 0
    assert solved.x is not None
    return np.asarray(solved.x[:S])


def check_plan(mdp: MDP, plan: Plan, precision: float) -> None:
    low, high = plan.gain_bounds
    assert high - low <= precision
    own = evaluate(mdp, plan)
    assert np.all(own.gain >= low - 1e-12 * (1 + own.span))
    assert np.all(own.gain <= high + 1e-12 * (1 + own.span))


def test_riverswim_has_its_known_gain_and_span() -> None:
    plan = policy_iteration(river(), precision=1e-12)
    assert plan.gain == pytest.approx(7203 / 16805, rel=0, abs=1e-12)
    assert plan.span == pytest.approx(6.310324, rel=0, abs=1e-6)
    assert plan.actions is not None
    assert plan.actions.tolist() == [1] * 6
    assert plan.details["unichain"] is True
    assert plan.sweeps == plan.details["policies"] < 10


@pytest.mark.parametrize("delta", [0.1, 0.5])
def test_toy3d_has_its_known_gain_and_span(delta: float) -> None:
    P = np.zeros((3, 2, 3))
    P[0, :, 1], P[0, :, 2] = delta, 1 - delta
    P[1, :, 0] = 1.0
    P[2, 0, 0], P[2, 0, 1] = 1 - delta, delta
    P[2, 1, 2] = 1.0
    mdp = MDP(P, np.repeat([[0], [1 / 3], [2 / 3]], 2, axis=1), allowed=[[1, 0], [1, 0], [1, 1]])
    plan = policy_iteration(mdp, precision=1e-12)
    assert plan.gain == pytest.approx(2 / 3, rel=0, abs=1e-12)
    assert plan.span == pytest.approx(1 / (1 - delta), rel=0, abs=1e-11)


def test_a_periodic_chain_and_a_single_state() -> None:
    swap = policy_iteration(MDP([[[0, 1]], [[1, 0]]], [[0], [1]]), precision=1e-12)
    assert swap.gain == pytest.approx(0.5, rel=0, abs=1e-12)
    alone = policy_iteration(MDP([[[1], [1]]], [[2, 3]]), precision=1e-12)
    assert alone.gain == pytest.approx(3, rel=0, abs=1e-12)
    assert alone.action(0) == "1"


def test_costs_per_time_are_minimised() -> None:
    mdp = MDP([[[0, 1], [1, 0]], [[1, 0], [0, 1]]], [[1, 5], [3, 4]], objective="cost")
    timed = mdp._replace(units=Units("cost", 0.0, step_duration=0.5))
    plan = policy_iteration(timed, precision=1e-10)
    assert plan.gain == pytest.approx(4, rel=0, abs=1e-10)  # (1 + 3)/2 per step, two steps per unit of time
    assert plan.gain_bounds[0] <= 4 <= plan.gain_bounds[1]


def test_weakly_communicating_from_a_start_that_stays_in_two_places() -> None:
    # staying in both is a policy with two classes of different gain; the optimum leaves one of them
    mdp = MDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[1, 0], [2, 0]])
    plan = policy_iteration(mdp, precision=1e-12, start_actions=[0, 0])
    assert plan.gain == pytest.approx(2, rel=0, abs=1e-12)
    assert plan.actions is not None
    assert plan.actions.tolist() == [1, 0]


def test_a_multichain_mdp_is_refused_with_its_classes_and_gains() -> None:
    P = [[[1, 0, 0], [1, 0, 0]], [[1, 0, 0], [0, 0.5, 0.5]], [[0, 0, 1], [0, 0, 1]]]
    mdp = MDP(P, [[1, 0.5], [0.0, 0.0], [3.0, 2.0]], state_labels=["safe", "choose", "rich"])
    with pytest.raises(MultichainError, match=r"(?s)gain 1\): safe.*gain 3\): rich") as caught:
        policy_iteration(mdp)
    assert [c.tolist() for c in caught.value.classes] == [[0], [2]]


def test_a_multichain_mdp_with_one_gain_is_solved() -> None:
    mdp = MDP([[[1, 0]], [[0, 1]]], [[2], [2]])
    assert structure(mdp) == "multichain"
    assert policy_iteration(mdp, precision=1e-12).gain == pytest.approx(2, rel=0, abs=1e-12)


def test_the_cap_gives_an_error_with_a_valid_bracket() -> None:
    with pytest.raises(NotConvergedError, match="raise max_policies") as caught:
        policy_iteration(river(), max_policies=1, start_actions=np.zeros(6, dtype=int))
    low, high = caught.value.plan.gain_bounds
    assert low <= 7203 / 16805 <= high


def test_a_precision_finer_than_rounding_is_refused() -> None:
    with pytest.raises(PrecisionError, match="coarser precision") as caught:
        policy_iteration(river(), precision=1e-17)
    assert caught.value.plan.gain == pytest.approx(7203 / 16805, rel=0, abs=1e-12)


@pytest.mark.parametrize(
    "options",
    [{"precision": 0.0}, {"precision": float("nan")}, {"max_policies": 0}, {"start_actions": np.ones((6, 2)) / 2}],
)
def test_bad_arguments(options: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError):
        policy_iteration(river(), **options)  # type: ignore[arg-type]


@settings(deadline=None)
@given(mdps(communicating=True, disallowed=True, costs=True, laws=("deterministic", "bernoulli", "transition")))
def test_agrees_with_the_linear_programme_on_communicating_mdps(mdp: MDP) -> None:
    precision = 1e-9
    plan = policy_iteration(mdp, precision=precision)
    check_plan(mdp, plan, precision)
    best = mdp.units.sign * linear_programme(mdp)
    np.testing.assert_allclose(best, plan.gain, rtol=0, atol=1e-6)


def best_gains(mdp: MDP) -> NDArray[np.float64]:
    """(S,) optimal gains in any MDP: the largest over all deterministic policies."""
    choices = [np.flatnonzero(row) for row in mdp.allowed]
    return np.asarray(np.max([evaluate(mdp, np.array(d)).gain for d in itertools.product(*choices)], axis=0))


@settings(deadline=None)
@given(mdps(disallowed=True, max_states=4))
def test_solves_or_refuses_any_mdp(mdp: MDP) -> None:
    best = best_gains(mdp)
    try:
        plan = policy_iteration(mdp, precision=1e-9)
    except MultichainError as error:
        assert structure(mdp) == "multichain"
        assert np.ptp(best) > 1e-10
        shown = [float(text.split(")")[0]) for text in str(error).split(", gain ")[1:]]
        np.testing.assert_allclose(shown, [best[c[0]] for c in error.classes], rtol=1e-9, atol=1e-9)
    else:
        check_plan(mdp, plan, 1e-9)
        np.testing.assert_allclose(best, plan.gain, rtol=0, atol=1e-9)


@settings(deadline=None)
@given(mdps(communicating=True), st.integers(0, 2**32 - 1), st.floats(-5, 5), st.floats(0.1, 10))
def test_relabelling_shifting_and_scaling(mdp: MDP, seed: int, shift: float, scale: float) -> None:
    plan = policy_iteration(mdp, precision=1e-9)
    dense, rewards = mdp.to_dense()
    order = np.random.default_rng(seed).permutation(mdp.n_states)
    other = policy_iteration(MDP(dense[order][:, :, order], rewards[order]), precision=1e-9)
    assert other.gain == pytest.approx(plan.gain, rel=0, abs=1e-9)
    moved = policy_iteration(MDP(dense, scale * rewards + shift), precision=1e-8)
    assert moved.gain == pytest.approx(scale * plan.gain + shift, rel=0, abs=3e-8)
