"""Lemma 4a of docs/kl_scal_plus.md: what the mean and the variance of numbers in [0, 1] leave possible."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from gainful.theory import binary_kl, kinf, klup, klup_by_variance

Floats = NDArray[np.float64]


def two_points(mean: float, variance: float) -> tuple[float, float]:
    """a and w of the law on a and 1 with this mean and variance."""
    a = mean - variance / (1.0 - mean)
    return a, (mean - a) / (1.0 - a)


def test_the_law_on_two_points_has_the_mean_and_the_variance() -> None:
    for mean, variance in ((0.3, 0.05), (0.9, 0.01), (0.5, 0.25)):
        a, w = two_points(mean, variance)
        assert w + (1 - w) * a == pytest.approx(mean, rel=1e-12, abs=0)
        assert w * (1 - mean) ** 2 + (1 - w) * (a - mean) ** 2 == pytest.approx(variance, rel=1e-12, abs=0)
        assert w == pytest.approx(variance / (variance + (1 - mean) ** 2), rel=1e-12, abs=0)


def test_the_parabola_lies_below_the_logarithm() -> None:
    """It touches ln(1 - λ(x-r)/(1-r)) at a and meets it at 1; the third derivative does the rest."""
    x = np.linspace(0.0, 1.0, 501)
    for a, r, lam in ((0.0, 0.5, 0.9), (0.3, 0.4, 0.2), (0.6, 0.7, 0.99), (0.8, 0.81, 0.01)):
        slope = -lam / (1 - r)

        def f(y: Floats, r: float = r, lam: float = lam) -> Floats:
            return np.asarray(np.log1p(-lam * (y - r) / (1 - r)))

        tangent = slope / (1 + slope * (a - r))
        bend = (f(np.array(1.0)) - f(np.array(a)) - tangent * (1 - a)) / (1 - a) ** 2
        assert np.all(f(x) >= f(np.array(a)) + tangent * (x - a) + bend * (x - a) ** 2 - 1e-12)


def test_no_law_with_this_mean_and_variance_is_nearer_to_a_larger_mean() -> None:
    """kinf of any law at the bound is at least ρ, and of the law on two points it is ρ: the bound cannot be smaller."""
    random, nearest = np.random.default_rng(0), math.inf
    for _ in range(50):
        x, row = random.random(4), random.dirichlet(np.full(4, random.choice([0.3, 1.0, 5.0])))
        mean, radius = float(row @ x), float(10 ** random.uniform(-4, 0))
        variance = float(row @ (x - mean) ** 2)
        bound = float(klup_by_variance(mean, variance, radius))
        assert bound <= float(klup(mean, radius)) + 1e-12
        if bound < 1.0 - 1e-9:
            least = kinf([*row, 0.0], [*x, 1.0], bound) / radius
            nearest = min(nearest, least)
            a, w = two_points(mean, variance)
            assert kinf([1 - w, w], [a, 1.0], bound) == pytest.approx(radius, rel=1e-6, abs=0)
            assert least >= 1.0 - 1e-6
    assert nearest < 1.05


def test_the_width_is_that_of_bernstein() -> None:
    """sqrt(2Vρ) + O(ρ): with lemma 7 for the law on two points, at most sqrt(2Vρ) + 2ρ(1-a)."""
    radius = np.geomspace(1e-8, 1e-1, 20)
    for mean, variance in ((0.5, 0.01), (0.9, 0.03), (0.2, 1e-4)):
        width = klup_by_variance(mean, variance, radius) - mean
        a, _ = two_points(mean, variance)
        assert np.all(width <= np.sqrt(2 * variance * radius) + 2 * (1 - a) * radius)
        assert width[0] == pytest.approx(math.sqrt(2 * variance * radius[0]), rel=0.05, abs=0)


def failures(scale: float, runs: int = 400, steps: int = 1000, failure: float = 0.3) -> float:
    """How often the bound is below the mean at some n: rewards 0.45, 0.5 or 1, of mean 0.5, δ' = 0.3, ι times scale."""
    points, law, mean = np.array([0.45, 0.5, 1.0]), [0.1, 0.89, 0.01], 0.5
    n = np.arange(1, steps + 1)
    iota = scale * (math.log(1 / failure) + 0.5 * np.log(n) + math.log(2))
    rewards = np.random.default_rng(1).choice(points, (runs, steps), p=law)
    means, squares = np.cumsum(rewards, axis=1) / n, np.cumsum(rewards**2, axis=1) / n
    below = means < mean - 1e-12
    means = np.where(below, means, 0.0)
    a = np.where(below, means - np.maximum(squares - means**2, 0.0) / (1 - means), 0.0)
    w, y = np.clip((means - a) / (1 - a), 0.0, 1.0), (mean - a) / (1 - a)
    missed = below & (n * binary_kl(w, y) > iota)  # klup_by_variance(means, …, iota/n) < mean, without bisection
    return float(missed.any(axis=1).mean())


def test_the_bound_holds_at_all_times_in_as_many_runs_as_it_should_and_a_smaller_one_does_not() -> None:
    assert 0.0 < failures(1.0) <= 0.3
    assert failures(0.25) > 0.3
