"""The bounds of UCRL3: what they are solutions of, how they behave, and which of the two tails is covered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gainful.theory import bernoulli_proxy, ucrl3_bounds, ucrl3_level, ucrl3_reward_width, ucrl3_terms

LEVEL = ucrl3_level(6, 2, 0.05)


def test_the_terms_are_the_equations() -> None:
    n, eta = 250, 1.12
    peeling, laplace = ucrl3_terms(n, LEVEL)
    ell = eta * math.log(math.log(eta * n) * math.log(eta**2 * n) / (math.log(eta) ** 2 * LEVEL))
    assert peeling == pytest.approx(ell / n, rel=1e-14, abs=0)
    assert laplace == pytest.approx(
        math.sqrt(2 * (1 + 1 / n) * math.log(math.sqrt(n + 1) / LEVEL) / n), rel=1e-14, abs=0
    )
    width, half = ucrl3_reward_width(n, 0.09, LEVEL, 2.0), float(laplace) / 2
    assert width == pytest.approx(2 * min(half, math.sqrt(2 * 0.0225 * ell / n) + 7 * ell / (3 * n)), rel=1e-13)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 10**6), st.floats(0.0, 1.0), st.sampled_from(["proven", "printed"]), st.sampled_from([1.0, 0.1]))
def test_the_ends_of_an_interval_are_where_its_inequalities_turn(
    n: int, share: float, tails: str, scale: float
) -> None:
    p = round(share * n) / n
    low, high = (float(end) for end in ucrl3_bounds(p, n, LEVEL, scale=scale, tails=tails))
    peeling, laplace = (float(term) for term in ucrl3_terms(n, LEVEL))

    def plausible(q: float) -> bool:
        bernstein = math.sqrt(2 * q * (1 - q) * peeling) + peeling / 3
        proxy = float(bernoulli_proxy(q))
        if q > p and (q < 0.5) == (tails == "proven"):
            proxy = q * (1 - q)
        return abs(p - q) <= scale * min(bernstein, laplace * math.sqrt(proxy))

    assert 0.0 <= low <= p <= high <= 1.0
    step = 1e-9
    for end, inward in ((low, 1.0), (high, -1.0)):
        if abs(end - p) > 4 * step:
            assert plausible(end + inward * step)
        if 2 * step < end < 1 - 2 * step:
            assert not plausible(end - inward * step)


def test_intervals_are_nested_as_visits_grow_at_the_same_frequency() -> None:
    n = 10 * np.unique(np.geomspace(1, 10**5, 200).astype(int))
    for p in (0.0, 0.1, 0.5, 0.8, 1.0):
        low, high = ucrl3_bounds(np.full(n.size, p), n, LEVEL)
        assert np.all(np.diff(low) >= 0.0)
        assert np.all(np.diff(high) <= 0.0)


def log_moment(q: float, slope: Any) -> Any:
    """ln E exp(slope·(X − q)) of a Bernoulli variable X of mean q."""
    return np.logaddexp(math.log(q) + slope * (1 - q), math.log1p(-q) - slope * q)


@pytest.mark.parametrize("q", [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_the_lower_tail_has_the_variance_below_a_half_only(q: float) -> None:
    slope = -np.geomspace(1e-3, 1e3, 4000)
    variance = log_moment(q, slope) <= slope**2 * q * (1 - q) / 2 + 1e-12
    assert variance.all() == (q <= 0.5)  # the cases of g̲, which the paper prints the other way round
    assert np.all(log_moment(q, slope) <= slope**2 * bernoulli_proxy(q) / 2 + 1e-12)
    assert np.all(log_moment(q, -slope) <= slope**2 * bernoulli_proxy(q) / 2 + 1e-12)


def test_the_printed_bounds_miss_a_probability_far_more_often_than_their_level() -> None:
    q, n = 0.99, np.arange(1, 51)
    means = np.cumsum(np.random.default_rng(0).random((6_000, n.size)) < q, axis=1) / n

    def missed(tails: str) -> float:
        """How often q is ever above the upper end; tabulated, as it depends on n and on the number of misses only."""
        found = np.zeros(len(means), dtype=bool)
        for i in range(n.size):
            counts, at = np.unique(means[:, i], return_inverse=True)
            found |= (ucrl3_bounds(counts, n[i], LEVEL, tails=tails)[1] < q)[at]
        return float(found.mean())

    assert LEVEL < 2e-4
    assert missed("printed") > 0.03
    assert missed("proven") <= 3e-4
