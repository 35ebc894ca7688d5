"""The KL maximum from above, and the planner that uses it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gainful as gf
from gainful.agents.statistics import Statistics
from gainful.errors import NotConvergedError
from gainful.planning.confidence import KLBall
from gainful.planning.kl import kl_best
from gainful.planning.kl_dual import (
    DualLimits,
    DualRows,
    DualSpace,
    KLPairs,
    bisect,
    log_and_inverse,
    measure,
    rounding_of,
    solve_pairs,
)
from gainful.planning.kl_on_counts import KLPlanner

Floats = NDArray[np.float64]


class Row:
    """One pair with its ball, evaluated by the dual."""

    def __init__(self, to: Any, counts: Any, v: Floats, radius: float, x: float = 0.0) -> None:
        self.to, self.counts, self.v = np.array(to, dtype=np.uint32), np.array(counts, dtype=np.int64), v
        self.radius, one = radius, np.zeros(1, dtype=np.int64)
        self.rows = DualRows(one, np.array([self.to.size]), self.to, self.counts, np.array([self.counts.sum()]))
        level = np.zeros(1, dtype=np.uint8)
        self.pairs = KLPairs(
            np.zeros(1), np.array([radius]), level, np.array([x]), np.full(1, np.inf), np.zeros(1), np.zeros(1)
        )
        room = np.empty(600 + v.size)
        self.space = DualSpace(
            np.empty((2, v.size)), np.empty(2), room, room.copy(), room.copy(), np.zeros(1, dtype=np.int64)
        )
        self.span = float(measure(v, np.ones(v.size, dtype=bool), self.space))

    def limits(self, precision: float, certify: bool) -> DualLimits:
        return DualLimits(self.span, rounding_of(self.span), 0.02 * precision, 0.05 * precision, certify, 0.0)

    def solve(self, precision: float, certify: bool) -> tuple[float, float]:
        """The upper bound, and the lower one."""
        self.space.todo[0] = 0
        solve_pairs(self.rows, self.pairs, self.space, self.limits(precision, certify), 1)
        return self.bounds

    def bisect(self, precision: float) -> tuple[float, float]:
        bisect(self.rows, self.pairs, self.space, self.limits(precision, True), 0)
        return self.bounds

    @property
    def bounds(self) -> tuple[float, float]:
        value = float(self.pairs.value[0])
        return value, value - float(self.pairs.gap[0])

    @property
    def exact(self) -> float:
        p = self.counts / self.counts.sum()
        return float(kl_best(self.v, self.v.max(), self.to, p, 0, self.to.size, self.radius, np.nan)[0])


def random_row(rng: np.random.Generator, i: int) -> Row:
    """Spans from 1e-8 to 1e6, up to 1e9 visits, ties, values of very different size, and any start."""
    S = int(rng.integers(2, 12))
    span = 10.0 ** rng.uniform(-8, 6)
    shape = (rng.random(S), rng.integers(0, 3, S).astype(np.float64), 10.0 ** rng.uniform(-8, 0, S))[i % 3]
    n = int(10.0 ** rng.uniform(0, 9))
    support = rng.choice(S, int(rng.integers(1, S + 1)), replace=False)
    counts = rng.multinomial(n, rng.dirichlet(np.full(support.size, 0.5)))
    seen = np.sort(support[counts > 0])
    radius = (math.log(1000) + 0.5 * math.log(n)) / n * 10.0 ** rng.uniform(-2, 1)
    x = 0.0 if i % 2 else 10.0 ** rng.uniform(-3, 3) * span
    return Row(seen, counts[np.argsort(support)][counts[np.argsort(support)] > 0], shape * span, radius, x)


def test_the_maximum_lies_between_the_bounds_whatever_the_scale() -> None:
    rng = np.random.default_rng(5)
    for i in range(3000):
        row = random_row(rng, i)
        if row.span == 0.0:
            continue
        precision = 10.0 ** rng.uniform(-6, -1) * row.span
        exact, rounding, near = row.exact, 1e-12 * row.span, 0.1 * precision + 1e-9 * row.span
        high, _ = row.solve(precision, False)
        assert exact - rounding <= high <= exact + 5.0 * near, i  # its tolerance is an estimate
        for high, low in (row.solve(precision, True), row.bisect(precision)):
            assert exact - rounding <= high <= exact + near, i
            assert exact - near <= low <= exact + rounding, i


def test_the_upper_bound_holds_at_any_dual_variable() -> None:
    rng = np.random.default_rng(6)
    for i in range(300):
        row = random_row(rng, i)
        loose, _ = row.solve(1e6 * max(row.span, 1e-300), False)  # satisfied with where it starts
        assert loose >= row.exact - 1e-9 * row.span


def inverse_divergence(p: Floats, h: Floats, mu: float) -> float:
    """inf{KL(p‖q) : q·h ≥ μ}: max over λ in [0,1] of Σ p ln(1 - λ(h-μ)/(M-μ)), by golden section."""
    z = (h - mu) / (h.max() - mu)

    def phi(weight: float) -> float:
        return (
            float(np.sum(p[p > 0] * np.log1p(-weight * z[p > 0]))) if weight < 1 or np.all(z[p > 0] < 1) else -math.inf
        )

    low, high = 0.0, 1.0
    for _ in range(200):
        a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, b) if phi(a) > phi(b) else (a, high)
    return max(phi(low), phi(1.0))


def test_the_maximum_is_where_the_inverse_divergence_is_the_radius() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        S = int(rng.integers(2, 6))
        v, counts = rng.random(S), rng.integers(1, 30, S)
        row = Row(np.arange(S), counts, v, float(rng.uniform(0.01, 0.5)))
        found, _ = row.solve(1e-10, True)
        assert inverse_divergence(counts / counts.sum(), v, found) == pytest.approx(row.radius, rel=1e-6, abs=0)


def test_equal_values_and_a_never_visited_pair_need_no_search() -> None:
    assert Row([0, 1], [3, 4], np.full(3, 0.7), 0.5).solve(1e-6, True) == (0.7, 0.7)
    assert Row([0, 1], [3, 4], np.array([0.0, 1.0, 2.0]), np.inf).solve(1e-6, True) == (2.0, 2.0)


def test_the_logarithm_is_right_to_the_last_places() -> None:
    rng = np.random.default_rng(8)
    for x in np.concatenate([10.0 ** rng.uniform(-300, 300, 1000), 1.0 + rng.uniform(-1e-3, 1e-3, 100), [1.0, 0.5]]):
        log, inverse = log_and_inverse(x)
        assert log == pytest.approx(math.log(x), rel=1e-15, abs=1e-15)
        assert inverse == pytest.approx(1.0 / x, rel=1e-15, abs=0)


# ---------------------------------------------------------------------- the planner


def counted(P: Floats, visits: int) -> Statistics:
    """Counts as near as possible to the rows P (S,A,S)."""
    S, A, _ = P.shape
    statistics = Statistics(S, A)
    counts = np.rint(P.reshape(S * A, S) * visits).astype(np.int64)
    seen = counts > 0
    n = counts.sum(axis=1)
    to = np.broadcast_to(np.arange(S, dtype=np.uint32), counts.shape)[seen]
    zero = np.zeros(S * A)
    statistics.from_arrays(
        {
            "visits": n,
            "reward_sum": zero,
            "reward_squares": zero,
            "length": seen.sum(axis=1),
            "next_state": to,
            "count": counts[seen],
        }
    )
    return statistics


def planner_for(statistics: Statistics, rewards: Floats, radius: float, span: float, **options: Any) -> KLPlanner:
    S, A = statistics.n_states, statistics.n_actions
    planner = KLPlanner(S, A, span, np.ones((S, A), dtype=bool), **options)
    planner.pairs.rewards[:], planner.pairs.radius[:] = rewards.reshape(-1), radius
    return planner


@pytest.mark.parametrize("span", [np.inf, 0.3])
def test_the_bracket_agrees_with_extended_value_iteration(span: float) -> None:
    rng = np.random.default_rng(3)
    S, A = 8, 3
    P = rng.dirichlet(np.full(S, 0.3), size=(S, A))
    statistics, rewards = counted(P, 200), rng.random((S, A))
    planner = planner_for(statistics, rewards, 0.02, span)
    counts = np.zeros((S, A, S))
    for k in range(S * A):
        to, n = statistics.row(k)
        counts[k // A, k % A, to] = n / n.sum()
    exact = gf.extended_value_iteration(
        gf.MDP(counts, rewards),
        KLBall(np.full((S, A), 0.02)),
        precision=1e-9,
        span=None if span == np.inf else span,
    )
    for precision in (0.1, 0.01, 1e-4, 1e-6):  # each from the last plan, with lazy keys
        found = planner.plan(statistics, precision, 10_000)
        assert found.high - found.low <= precision
        assert found.low - 1e-9 <= exact.gain <= found.high + 1e-9
        assert found.span <= span + 1e-12
    assert np.array_equal(found.actions, exact.details["greedy"])
    assert np.ptp(found.values - exact.bias) <= 1e-3


def test_undamped_iteration_may_oscillate_for_ever_and_damped_does_not() -> None:
    """Two groups of states that swap at every step: the best laws are as periodic as the rows."""
    P = np.zeros((4, 1, 4))
    P[:2, 0, 2:] = P[2:, 0, :2] = 0.5
    statistics, rewards = counted(P, 1000), np.array([[0.0], [0.5], [0.3], [0.8]])
    undamped = planner_for(statistics, rewards, 0.01, np.inf, damping=1.0)
    with pytest.raises(NotConvergedError, match="after 5000 sweeps"):
        undamped.plan(statistics, 0.05, 5000)
    damped = planner_for(statistics, rewards, 0.01, np.inf)
    found = damped.plan(statistics, 0.05, 5000)
    assert found.sweeps < 20
    assert found.low <= 0.4 + 0.1 + 0.05  # the mean reward, and a little optimism
    assert found.high >= 0.4


def test_ties_go_to_the_lowest_action() -> None:
    statistics = counted(np.full((3, 4, 3), 1 / 3), 300)
    found = planner_for(statistics, np.full((3, 4), 0.5), 0.05, np.inf).plan(statistics, 1e-3, 1000)
    assert found.actions.tolist() == [0, 0, 0]


def test_a_precision_below_rounding_is_refused() -> None:
    rng = np.random.default_rng(1)
    statistics = counted(rng.dirichlet(np.ones(4), size=(4, 2)), 1000)
    planner = planner_for(statistics, rng.random((4, 2)), 0.01, np.inf)
    with pytest.raises(NotConvergedError, match="rounding allows no less"):
        planner.plan(statistics, 1e-16, 100_000)
