"""Exact evaluation: by hand, against limits of averages, against plain linear algebra, on large chains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.mdp.units import Units
from gainful.planning import evaluation
from gainful.planning.evaluation import evaluate
from gainful.planning.plan import make_plan
from tests.strategies import mdps

EXACT = 1e-12


def chain(P: list[list[float]], r: list[float], **options: object) -> MDP:
    return MDP(np.array(P)[:, None, :], np.array(r)[:, None], **options)  # type: ignore[arg-type]


def averages(P: NDArray[np.float64]) -> NDArray[np.float64]:
    """P*, the limit of the averages of P^t, from the lazy chain (I + P)/2, which has the same and is aperiodic."""
    lazy = (np.eye(len(P)) + P) / 2
    for _ in range(60):
        lazy = lazy @ lazy
        lazy /= lazy.sum(axis=1, keepdims=True)
    return lazy


def test_two_absorbing_states_share_a_transient_one() -> None:
    found = evaluate(chain([[1, 0, 0], [0.3, 0.5, 0.2], [0, 0, 1]], [5, 0, -1], start=1), [0, 0, 0])
    np.testing.assert_allclose(found.gain, [5, 0.6 * 5 - 0.4, -1], rtol=0, atol=EXACT)
    assert found.gain_from_start == pytest.approx(2.6, rel=0, abs=EXACT)
    np.testing.assert_allclose(found.stationary, [0.6, 0, 0.4], rtol=0, atol=EXACT)
    np.testing.assert_allclose(found.bias, [0, -5.2, 0], rtol=0, atol=EXACT)  # two steps at 0 instead of 2.6
    assert [c.tolist() for c in found.classes] == [[0], [2]]
    assert found.transient.tolist() == [1]
    assert not found.unichain
    assert found.to_frame()["class"].tolist() == [1, 0, 2]


def test_a_periodic_chain() -> None:
    found = evaluate(chain([[0, 1], [1, 0]], [0, 1]), [0, 0])
    np.testing.assert_allclose(found.gain, [0.5, 0.5], rtol=0, atol=EXACT)
    np.testing.assert_allclose(found.bias, [-0.25, 0.25], rtol=0, atol=EXACT)
    np.testing.assert_allclose(found.stationary, [0.5, 0.5], rtol=0, atol=EXACT)
    assert found.span == pytest.approx(0.5, rel=0, abs=EXACT)
    assert found.unichain


def test_one_state() -> None:
    found = evaluate(chain([[1]], [7]), [0])
    assert found.gain.tolist() == [7]
    assert found.bias.tolist() == [0]
    assert found.residual == 0


def test_a_rare_first_state_does_not_spoil_the_accuracy() -> None:
    S = 60  # drift to the right: the first state has probability about 1e-50
    P = np.zeros((S, S))
    for s in range(S):
        P[s, min(s + 1, S - 1)] += 0.9
        P[s, max(s - 1, 0)] += 0.1
    found = evaluate(MDP(P[:, None, :], np.eye(S)[:, :1]), np.zeros(S, dtype=int))
    ratio = 1 / 9.0
    pi = ratio ** np.arange(S)[::-1]
    np.testing.assert_allclose(found.stationary, pi / pi.sum(), rtol=0, atol=EXACT)
    assert found.residual < EXACT


def test_costs_and_time_come_back_in_the_users_units() -> None:
    mdp = chain([[0, 1], [1, 0]], [2, 4], objective="cost")
    found = evaluate(mdp, [0, 0])
    np.testing.assert_allclose(found.gain, [3, 3], rtol=0, atol=EXACT)
    np.testing.assert_allclose(found.bias, [-0.5, 0.5], rtol=0, atol=EXACT)  # a high cost is ahead of state 1
    timed = mdp._replace(units=Units("cost", 0.0, step_duration=0.25))
    assert evaluate(timed, [0, 0]).gain_from_start == pytest.approx(12, rel=0, abs=EXACT)
    shifted = evaluate(mdp.normalised(), [0, 0])
    np.testing.assert_allclose(shifted.gain, found.gain, rtol=0, atol=EXACT)
    np.testing.assert_allclose(shifted.bias, found.bias, rtol=0, atol=EXACT)


@st.composite
def problems(draw: st.DrawFn) -> tuple[MDP, NDArray[np.float64]]:
    mdp = draw(mdps(max_states=6, max_actions=3, disallowed=True, random_start=True,
                    laws=("deterministic", "transition")))  # fmt: skip
    size = mdp.n_states * mdp.n_actions
    weights = np.array(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), dtype=float)
    weights = np.where(mdp.allowed, weights.reshape(mdp.allowed.shape), 0.0)
    empty = weights.sum(axis=1) == 0
    weights[empty] = mdp.allowed[empty]
    return mdp, weights / weights.sum(axis=1, keepdims=True)


@given(problems())
def test_evaluation_agrees_with_limits_of_averages(problem: tuple[MDP, NDArray[np.float64]]) -> None:
    mdp, policy = problem
    dense, rewards = mdp.to_dense()
    P = np.einsum("sa,sat->st", policy, dense)
    r = (policy * rewards).sum(axis=1)
    limit = averages(P)
    found = evaluate(mdp, policy)
    size = 1e-9 * (1 + found.span)
    np.testing.assert_allclose(found.gain, limit @ r, rtol=0, atol=size)
    np.testing.assert_allclose(found.stationary, mdp.start @ limit, rtol=0, atol=1e-9)
    assert found.gain_from_start == pytest.approx(mdp.start @ limit @ r, rel=0, abs=size)
    # the bias is the deviation matrix times r
    deviation = np.linalg.inv(np.eye(len(P)) - P + limit) @ (np.eye(len(P)) - limit)
    np.testing.assert_allclose(found.bias, deviation @ r, rtol=0, atol=size)
    np.testing.assert_allclose(limit @ found.bias, 0.0, rtol=0, atol=size)
    assert found.residual <= size
    assert found.stationary.sum() == pytest.approx(1.0, rel=0, abs=EXACT)


@given(mdps(max_states=5, max_actions=3, disallowed=True))
def test_actions_labels_probabilities_and_plans_are_the_same_policy(mdp: MDP) -> None:
    actions = mdp.allowed.argmax(axis=1)
    table = np.zeros(mdp.allowed.shape)
    table[np.arange(mdp.n_states), actions] = 1.0
    named = mdp._replace(action_labels=[f"a{i}" for i in range(mdp.n_actions)])
    plan = make_plan(
        mdp, low=0.0, high=1.0, values=np.zeros(mdp.n_states), actions=actions.astype(np.int64), sweeps=1, method="test"
    )
    expected = evaluate(mdp, actions)
    for other in (evaluate(mdp, table), evaluate(named, [f"a{i}" for i in actions]), evaluate(mdp, plan)):
        np.testing.assert_array_equal(other.gain, expected.gain)
        np.testing.assert_array_equal(other.bias, expected.bias)


def garnet(S: int, reach: int | None) -> MDP:
    rng = np.random.default_rng(5)
    support = 6
    if reach is None:
        indices = rng.integers(0, S, size=(S, support))
    else:
        indices = np.clip(np.arange(S)[:, None] + rng.integers(-reach, reach + 1, size=(S, support)), 0, S - 1)
    return MDP.from_rows(
        np.arange(S + 1) * support, indices.ravel(), np.full(S * support, 1 / support), rng.random((S, 1))
    )


@pytest.mark.parametrize("reach", [None, 3])
def test_sparse_solvers_agree_with_dense_lu(monkeypatch: pytest.MonkeyPatch, reach: int | None) -> None:
    mdp = garnet(300, reach)
    dense = evaluate(mdp, np.zeros(300, dtype=int))
    monkeypatch.setattr(evaluation, "DENSE_STATES", 0)
    sparse = evaluate(mdp, np.zeros(300, dtype=int))
    tolerance = 1e-10 * (1 + dense.span)
    np.testing.assert_allclose(sparse.gain, dense.gain, rtol=0, atol=tolerance)
    np.testing.assert_allclose(sparse.bias, dense.bias, rtol=0, atol=tolerance)
    np.testing.assert_allclose(sparse.stationary, dense.stationary, rtol=0, atol=1e-11)


def test_many_small_classes() -> None:
    S = 4000  # 2000 periodic classes
    indices = np.arange(S) ^ 1
    mdp = MDP.from_rows(np.arange(S + 1), indices, np.ones(S), np.arange(S, dtype=float)[:, None])
    found = evaluate(mdp, np.zeros(S, dtype=int))
    assert len(found.classes) == S // 2
    np.testing.assert_allclose(found.gain, np.repeat(np.arange(S // 2) * 2 + 0.5, 2), rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([0, 0], "shape"),
        ([0, 2, 0], "action 2 in state up"),
        ([0, -1, 0], "expected 0 … 1"),
        ([0, 0, 1], "state c does not have action go"),
        ([0.0, 1.0, 0.0], "dtype float64"),
        ([[1, 0], [0.5, 0.4], [1, 0]], "state up"),
        ([[1, 0], [1.5, -0.5], [1, 0]], "expected numbers >= 0"),
        ([[1, 0], [np.nan, 1], [1, 0]], "state up"),
        ([[1, 0], [1, 0], [0.5, 0.5]], "state c does not have action go"),
        (["stay", "go", "goo"], "did you mean 'go'"),
    ],
)
def test_a_bad_policy_is_named(policy: object, message: str) -> None:
    mdp = MDP(
        np.tile(np.eye(3)[:, None, :], (1, 2, 1)),
        np.zeros((3, 2)),
        allowed=[[1, 1], [1, 1], [1, 0]],
        state_labels=["a", "up", "c"],
        action_labels=["stay", "go"],
    )
    with pytest.raises(InvalidArgumentError, match=message):
        evaluate(mdp, policy)  # type: ignore[arg-type]
