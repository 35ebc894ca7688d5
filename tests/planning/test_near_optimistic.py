"""Near-optimistic supports against the rule applied one state at a time, and plans over them."""

from __future__ import annotations

import numpy as np
import pytest

from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.confidence import Intervals, NearOptimistic
from gainful.planning.extended import extended_value_iteration
from gainful.planning.inner_maximum import inner_maximum
from gainful.reference import most_inside, near_optimistic_support
from tests.planning.rows import dense, maxima, random_mdp, random_values


def test_a_tolerance_of_another_shape_is_refused() -> None:
    mdp = MDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[1.0], [0.0]])
    with pytest.raises(InvalidArgumentError, match=r"tolerance is \(1, 1\), expected the shape of unseen, \(2, 1\)"):
        NearOptimistic.around(mdp, 0.1, 0.1, tolerance=[[0.1]])
    with pytest.raises(InvalidArgumentError, match="tolerance"):
        NearOptimistic.around(mdp, 0.1, 0.1, tolerance=[[0.1], [-1.0]])


def random_sets(rng: np.random.Generator, mdp: MDP) -> NearOptimistic:
    shape = (mdp.n_states, mdp.n_actions)
    width = rng.choice([0.0, 0.02, 0.3, 1.0], size=mdp.n_transitions)
    unseen = rng.choice([0.0, 0.003, 0.02, 0.1, 1.0], size=shape)
    return NearOptimistic.around(mdp, width, unseen, tolerance=rng.choice([0.0, 0.003, 0.05, 0.4, np.inf], size=shape))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_supports_values_and_rows_are_those_of_the_rule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    S, A = int(rng.choice([1, 2, 3, 5, 8, 30])), 2
    mdp = random_mdp(rng, S, A, 3)
    sets, v = random_sets(rng, mdp), random_values(rng, S) + rng.normal()
    q, rows = maxima(mdp, sets, v)
    inner = inner_maximum(mdp, sets)
    inner.values(v, np.zeros(S * A), np.empty(S * A))
    assert inner.kept is not None
    u = v - v.min()
    for k in range(S * A):
        lower, upper, seen = np.zeros(S), np.full(S, sets.unseen.flat[k]), np.zeros(S, dtype=bool)
        for j in range(mdp.indptr[k], mdp.indptr[k + 1]):
            y = mdp.indices[j]
            lower[y], upper[y], seen[y] = sets.lower[j], sets.upper[j], True
        kappa = float(sets.tolerance.flat[k] * np.ptp(v)) if np.ptp(v) > 0.0 else 0.0
        support = near_optimistic_support(lower, upper, u, seen, kappa)
        expected = most_inside(lower, upper, u, support)
        assert q[k] == pytest.approx(v.min() + expected, rel=0, abs=1e-12)
        kept, needed = int(inner.kept[k]), int((support & ~seen).sum())
        if kept != needed:  # a tie up to rounding
            inside = seen.copy()
            inside[[y for y in np.argsort(-u, kind="stable") if not seen[y]][: min(kept, needed)]] = True
            outside = most_inside(np.zeros(S), upper, u, ~inside)
            assert outside == pytest.approx(min(kappa, most_inside(lower, upper, u, inside)), rel=0, abs=1e-12)
        everything = most_inside(lower, upper, u, np.ones(S, dtype=bool))
        assert everything <= expected + max(kappa, 1e-12)
        p = dense(rows, k, S)
        assert p.sum() == pytest.approx(1.0, rel=0, abs=1e-13)
        assert p @ v == pytest.approx(q[k], rel=0, abs=1e-12)
        others = ~support & (u > 0.0)
        assert np.all(p[others] == 0.0)


@pytest.mark.slow
def test_all_states_in_the_support_give_the_plan_of_the_intervals() -> None:
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng, 9, 2, 3)
    sets = NearOptimistic.around(mdp, 0.1, 0.2, tolerance=np.zeros((9, 2)))
    near = extended_value_iteration(mdp, sets, precision=1e-9)
    full = extended_value_iteration(mdp, Intervals(sets.lower, sets.upper, sets.unseen), precision=1e-9)
    assert near.gain == pytest.approx(full.gain, rel=0, abs=2e-9)
    assert np.array_equal(near.policy, full.policy)
    small = NearOptimistic(sets.lower, sets.upper, np.full((9, 2), 0.01), tolerance=np.full((9, 2), np.inf))
    least = extended_value_iteration(mdp, small, precision=1e-9)
    most = extended_value_iteration(mdp, Intervals(small.lower, small.upper, small.unseen), precision=1e-9)
    assert least.gain < most.gain - 1e-3
    assert least.details["kept"].max() < 6  # of six or more outside each row


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_plans_converge_although_supports_change_with_the_values(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    mdp = random_mdp(rng, 8, 2, 2)
    sets = NearOptimistic.around(mdp, 0.05, 0.05, tolerance=rng.choice([0.01, 0.04, 0.06, 0.1], size=(8, 2)))
    plan = extended_value_iteration(mdp, sets, precision=1e-6, max_sweeps=20_000)
    assert plan.gain_bounds[1] - plan.gain_bounds[0] <= 1e-6
    full = extended_value_iteration(mdp, Intervals(sets.lower, sets.upper, sets.unseen), precision=1e-6)
    kappa = float(sets.tolerance.max() * np.ptp(plan.bias))
    assert full.gain - kappa - 1e-6 <= plan.gain <= full.gain + 1e-6
