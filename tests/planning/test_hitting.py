"""Hitting times and diameter: closed forms, published numbers, a linear programme, certificates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from scipy.optimize import linprog

from gainful.errors import InvalidArgumentError, PrecisionError, TooLargeError
from gainful.mdp.model import MDP
from gainful.mdp.structure import structure
from gainful.planning import evaluation, hitting
from gainful.planning.hitting import diameter, diameter_bounds, hitting_times
from tests.planning.test_policy_iteration import river
from tests.strategies import mdps


def toy3d(delta: float) -> MDP:
    P = np.zeros((3, 2, 3))
    P[0, 0, 1], P[0, 0, 2] = delta, 1 - delta
    P[1, 0, 0] = 1.0
    P[2, 0, 0], P[2, 0, 1] = 1 - delta, delta
    P[2, 1, 2] = 1.0
    return MDP(P, np.zeros((3, 2)), allowed=[[1, 0], [1, 0], [1, 1]])


def test_riverswim_6_has_its_known_diameter() -> None:
    low, high = diameter_bounds(river(6))
    assert low <= diameter(river(6)) <= high
    assert diameter(river(6)) == pytest.approx(14.722338, rel=0, abs=1e-6)
    assert high - low <= 1e-9 * low
    times = hitting_times(river(6))
    assert times[0, 5] == times.max()
    np.testing.assert_allclose(times[:, 0], np.arange(6), rtol=1e-12, atol=0)  # swimming left is sure


@pytest.mark.parametrize("delta", [0.01, 0.3, 0.5, 0.9])
def test_toy3d_has_its_known_diameter(delta: float) -> None:
    assert diameter(toy3d(delta)) == pytest.approx(max(1 / delta, 2 / (1 - delta)), rel=1e-9, abs=0)


def test_closed_forms() -> None:
    assert diameter(MDP([[[1.0]]], [[0.0]])) == 0.0
    assert hitting_times(MDP([[[1.0]]], [[0.0]])).tolist() == [[0.0]]
    S = 7  # a cycle: (t - s) mod S steps
    cycle = MDP(np.roll(np.eye(S), 1, axis=1)[:, None, :], np.zeros((S, 1)))
    expected = (np.arange(S)[None, :] - np.arange(S)[:, None]) % S
    np.testing.assert_allclose(hitting_times(cycle), expected, rtol=1e-12, atol=0)
    walk = np.zeros((S, 1, S))  # symmetric walk, reflected at 0: s² -> (S-1)² - s² steps to the other end
    for s in range(S):
        walk[s, 0, abs(s - 1)] += 0.5
        walk[s, 0, min(s + 1, S - 1)] += 0.5
    walk[0, 0] = np.eye(S)[1]
    times = hitting_times(MDP(walk, np.zeros((S, 1))), S - 1)
    np.testing.assert_allclose(times, (S - 1) ** 2 - np.arange(S) ** 2, rtol=1e-12, atol=0)


def test_the_fast_but_unsafe_action_is_not_taken() -> None:
    # from 0: action 0 reaches 2 at once with .99, else is lost in 1 for ever; action 1 reaches 2 with .5, else stays
    mdp = MDP(
        [[[0, 0.01, 0.99], [0.5, 0, 0.5]], [[0, 1, 0], [0, 1, 0]], [[1, 0, 0], [1, 0, 0]]],
        np.zeros((3, 2)),
        state_labels=["go", "lost", "home"],
    )
    times = hitting_times(mdp, "home")
    np.testing.assert_allclose(times, [2, np.inf, 0], rtol=1e-12, atol=0)
    np.testing.assert_allclose(hitting_times(mdp)[:, 0], [0, np.inf, 1], rtol=1e-12, atol=0)
    np.testing.assert_allclose(hitting_times(mdp)[:, 1], [199, 0, 200], rtol=1e-9, atol=0)
    assert diameter(mdp) == np.inf
    assert diameter_bounds(mdp) == (np.inf, np.inf)


def linear_programme(mdp: MDP, target: int) -> NDArray[np.float64]:
    """max sum v with v(target) = 0 and v(s) <= 1 + p(.|s,a) v; only where all states can reach the target."""
    dense, _ = mdp.to_dense()
    S = mdp.n_states
    left = [np.eye(S)[s] - dense[s, a] for s, a in np.argwhere(mdp.allowed) if s != target]
    if not left:
        return np.zeros(S)
    bounds = [(0.0, 0.0) if s == target else (None, None) for s in range(S)]
    solved = linprog(-np.ones(S), A_ub=np.array(left), b_ub=np.ones(len(left)), bounds=bounds, method="highs")
    assert solved.status == 0
    return np.asarray(solved.x)


@settings(deadline=None)
@given(mdps(communicating=True, disallowed=True, laws=("deterministic", "transition")))
def test_agrees_with_the_linear_programme(mdp: MDP) -> None:
    times = hitting_times(mdp)
    for target in range(mdp.n_states):
        np.testing.assert_allclose(times[:, target], linear_programme(mdp, target), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(hitting_times(mdp, target), times[:, target], rtol=2e-9, atol=0)
    low, high = diameter_bounds(mdp)
    assert low * (1 - 1e-9) <= times.max() <= high * (1 + 1e-9)
    assert high - low <= 1e-9 * max(high, 1)


@settings(deadline=None, max_examples=50)
@given(mdps(disallowed=True))
def test_optimality_equation_and_reachability_on_any_mdp(mdp: MDP) -> None:
    times = hitting_times(mdp)
    dense, _ = mdp.to_dense()
    for target in range(mdp.n_states):
        v = times[:, target]
        assert v[target] == 0.0
        outside = np.isinf(v)
        finite = np.where(outside, 0.0, v)
        surely = mdp.allowed & (dense[:, :, outside].sum(axis=2) == 0)  # pairs that cannot lose the target
        q = np.where(surely, 1.0 + dense @ finite, np.inf).min(axis=1)
        others = np.arange(mdp.n_states) != target
        np.testing.assert_allclose(q[others & ~outside], v[others & ~outside], rtol=1e-8, atol=0)
        # most likely to arrive: probability 1 exactly where the time is finite (value iteration from below)
        reach = np.eye(mdp.n_states)[target]
        for _ in range(2000):
            reach = np.where(mdp.allowed, dense @ reach, 0.0).max(axis=1)
            reach[target] = 1.0
        assert np.all(reach[outside] < 1 - 1e-6)
        assert np.all(reach[~outside & (finite < 100)] > 1 - 1e-6)
    assert np.isinf(diameter(mdp)) == (structure(mdp) != "communicating")


def test_sparse_and_dense_solvers_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = hitting_times(river(12))
    monkeypatch.setattr(hitting, "_DENSE_STATES", 0)
    np.testing.assert_allclose(hitting_times(river(12)), dense, rtol=1e-9, atol=0)
    monkeypatch.setattr(evaluation, "DENSE_STATES", 0)
    np.testing.assert_allclose(hitting_times(river(12)), dense, rtol=1e-9, atol=0)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 30, 31])
def test_the_factorisation_solves_m_matrices(n: int) -> None:
    rng = np.random.default_rng(n)
    P = rng.dirichlet(np.ones(n + 1), size=n)[:, :n]  # some mass leaves
    M = np.eye(n) - P
    factors = M.copy()
    hitting.factor(factors)
    b = rng.random(n)
    np.testing.assert_allclose(hitting.substitute(factors, b), np.linalg.solve(M, b), rtol=1e-9, atol=1e-12)


def test_refusals() -> None:
    with pytest.raises(TooLargeError, match="raise max_states"):
        diameter(river(6), max_states=5)
    with pytest.raises(TooLargeError, match="one target"):
        hitting_times(river(6), max_states=5)
    assert hitting_times(river(6), 0, max_states=5).shape == (6,)
    with pytest.raises(InvalidArgumentError, match="precision"):
        diameter(river(6), precision=0.0)
    with pytest.raises(InvalidArgumentError, match="state 6"):
        hitting_times(river(6), 6)
    with pytest.raises(PrecisionError, match="coarser precision"):
        diameter(river(6), precision=1e-17)


def test_astronomical_times_are_refused_not_guessed() -> None:
    S = 60  # against the current: about 9^58 steps
    P = np.zeros((S, 1, S))
    for s in range(S):
        P[s, 0, min(s + 1, S - 1)] += 0.1
        P[s, 0, max(s - 1, 0)] += 0.9
    with pytest.raises(PrecisionError):
        diameter(MDP(P, np.zeros((S, 1))))
