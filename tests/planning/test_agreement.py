"""All planners, exact evaluation and a linear programme give one answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

import gainful as gf
from tests.strategies import mdps

PRECISION = 1e-9


def gain_by_linear_programme(mdp: gf.MDP) -> float:
    """min g such that g + h(s) - p(·|s,a)·h ≥ r(s,a) for every pair (Puterman 1994, sec. 8.8), by HiGHS."""
    S = mdp.n_states
    P, R = mdp.to_dense()
    rows, right = [], []
    for s, a in zip(*np.nonzero(mdp.allowed), strict=True):
        h = P[s, a].copy()
        h[s] -= 1.0
        rows.append(np.concatenate([[-1.0], h]))
        right.append(-R[s, a])
    cost = np.zeros(S + 1)
    cost[0] = 1.0
    bounds = [(None, None), (0.0, 0.0)] + [(None, None)] * (S - 1)
    done = linprog(cost, A_ub=np.array(rows), b_ub=np.array(right), bounds=bounds, method="highs-ds")
    assert done.status == 0
    assert done.fun is not None
    return float(done.fun)


@settings(max_examples=150)
@given(mdps(communicating=True, disallowed=True))
def test_planners_agree_with_each_other_and_with_a_linear_programme(mdp: gf.MDP) -> None:
    plans = [
        gf.solve(mdp, precision=PRECISION),
        gf.relative_value_iteration(mdp, precision=PRECISION),
        gf.policy_iteration(mdp, precision=PRECISION),
        gf.scopt(mdp, span=1e4, precision=PRECISION),
    ]
    low = max(plan.gain_bounds[0] for plan in plans)
    high = min(plan.gain_bounds[1] for plan in plans)
    assert low <= high, "two certified brackets do not meet"
    assert gain_by_linear_programme(mdp) == pytest.approx(plans[0].gain, rel=0, abs=1e-6)  # HiGHS' own tolerance
    for plan in plans:
        earned = gf.evaluate(mdp, plan).gain
        assert earned.min() >= plan.gain_bounds[0] - 1e-10
        assert earned.max() <= high + 1e-10


@settings(max_examples=60)
@given(mdps(communicating=True, max_states=5))
def test_vanishing_discount_and_long_horizons_tend_to_the_gain(mdp: gf.MDP) -> None:
    plan = gf.solve(mdp, precision=PRECISION)
    horizon = 4000
    total = gf.finite_horizon_value_iteration(mdp, horizon).values[0]
    assert np.abs(total / horizon - plan.gain).max() <= (plan.span + 1e-6) / horizon + 1e-9
    discount = 1 - 1 / horizon
    values = gf.discounted_value_iteration(mdp, discount, precision=1e-6).values
    assert np.abs((1 - discount) * values - plan.gain).max() <= (plan.span + 1e-6) / horizon + 1e-9
