"""The constant of Burnetas and Katehakis: published values, a bandit, a convex solver, and what it is refused for."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import gainful as gf
from gainful.errors import InvalidArgumentError
from gainful.theory import asymptotic_slope, binary_kl

TINY = 1e-12
ERGODIC = gf.environments.riverswim_ergodic(6)


@pytest.mark.parametrize(("unknown", "expected"), [("transitions", 25.957), ("product", 26.359), ("joint", 31.419)])
def test_ergodic_riverswim(unknown: Any, expected: float) -> None:
    found = asymptotic_slope(ERGODIC, unknown=unknown)
    assert found.slope == pytest.approx(expected, rel=0, abs=1e-3)
    assert found.to_frame()["slope"].sum() == pytest.approx(found.slope, rel=1e-12, abs=0)


@pytest.mark.parametrize("unknown", ["product", "joint"])
def test_one_state_is_lai_and_robbins(unknown: Any) -> None:
    means = np.array([0.3, 0.5, 0.7])
    bandit = gf.MDP(np.ones((1, 3, 1)), [means], reward_law="bernoulli")
    expected = sum((0.7 - m) / float(binary_kl(m, 0.7)) for m in means[:2])
    found = asymptotic_slope(bandit, unknown=unknown).slope
    assert found == pytest.approx(expected, rel=1e-9, abs=0)


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    some = p > 0
    return float(np.sum(p[some] * np.log(p[some] / np.maximum(q[some], TINY))))


def least(cost: Any, value: np.ndarray, laws: slice, needed: float) -> float:
    """The least cost of laws q with q·value ≥ needed, by a general convex solver."""
    rules: Any = [
        {"type": "eq", "fun": lambda q: q[laws].sum() - 1},
        {"type": "ineq", "fun": lambda q: q @ value - needed},
    ]
    start = np.where(value == value[laws].max(), 0.9, 0.1 / value.size)
    options: Any = {"maxiter": 500, "ftol": 1e-14}
    bounds = [(TINY, 1.0)] * value.size
    solved = minimize(cost, start, method="SLSQP", bounds=bounds, constraints=rules, options=options)
    assert abs(rules[0]["fun"](solved.x)) < 1e-8
    assert rules[1]["fun"](solved.x) > -1e-8
    return float(solved.fun)


@pytest.mark.parametrize("unknown", ["product", "joint"])
def test_information_is_what_a_convex_solver_finds(unknown: Any) -> None:
    mdp = gf.environments.riverswim_ergodic(4, reward_law="bernoulli")
    P, r = mdp.to_dense()
    plan = gf.solve(mdp, precision=1e-11)
    found, h = asymptotic_slope(mdp, unknown=unknown).information, plan.bias
    pairs = list(zip(*np.nonzero(np.isfinite(found)), strict=True))
    assert len(pairs) == 4
    for s, a in pairs:
        p, coin = P[s, a], r[s, a]
        if unknown == "joint":  # a law on rewards 0 and 1 with next states
            both = np.concatenate([p * (1 - coin), p * coin])
            cheapest = least(partial(divergence, both), np.concatenate([h, 1 + h]), slice(None), plan.gain + h[s])
        else:  # a law on next states, and a coin

            def cost(q: np.ndarray, p: np.ndarray = p, coin: float = coin) -> float:
                return divergence(p, q[:-1]) + float(binary_kl(coin, np.clip(q[-1], TINY, 1 - TINY)))

            cheapest = least(cost, np.append(h, 1.0), slice(None, -1), plan.gain + h[s])
        assert found[s, a] == pytest.approx(cheapest, rel=1e-5, abs=1e-7)


def test_the_more_is_unknown_the_steeper() -> None:
    known: Any = ("transitions", "product", "joint")
    slopes = [asymptotic_slope(ERGODIC, unknown=unknown).slope for unknown in known]
    assert slopes == sorted(slopes)


def test_it_scales_with_the_rewards() -> None:
    P, r = ERGODIC.to_dense()
    tenfold = asymptotic_slope(gf.MDP(P, 10.0 * r))
    assert tenfold.slope == pytest.approx(10.0 * asymptotic_slope(ERGODIC).slope, rel=1e-6, abs=0)


def test_nothing_is_said_of_a_process_that_is_not_ergodic() -> None:
    with pytest.raises(InvalidArgumentError, match="a policy may never visit state 'river 1'"):
        asymptotic_slope(gf.environments.riverswim(6))
