"""The inequalities of docs/kl_scal_plus.md, each checked numerically where it is tightest and at random."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betaln, ndtr

import gainful as gf
from gainful.theory import binary_kl, kinf, klmax, klup
from gainful.theory.kl_regret import short_doubling_episodes, switching

Floats = NDArray[np.float64]
LEAST_LOG = math.log(6.0 * math.sqrt(3.0))
"""The least Λ: S = A = 1, T = 3, δ = 1."""


def random_cases(n: int = 400) -> list[tuple[Floats, Floats, float, np.random.Generator]]:
    """Rows with and without zeros, values of many shapes, and radii from tiny to large."""
    cases = []
    for seed in range(n):
        random = np.random.default_rng(seed)
        S = int(random.integers(2, 7))
        row = random.dirichlet(np.full(S, random.choice([0.1, 1.0, 10.0])))
        row[random.random(S) < 0.3] = 0.0
        row = row / row.sum() if row.sum() > 0 else np.eye(S)[0]
        cases.append((row, random.normal(size=S) ** 3, float(10 ** random.uniform(-4, 1)), random))
    return cases


def xlogy(x: Floats, y: Floats) -> Floats:
    return np.asarray(np.where(x > 0, x * np.log(np.where(x > 0, y, 1.0)), 0.0))


def test_lemma_2_the_mixture_loses_at_most_twice_the_root_of_n() -> None:
    n = np.arange(1, 1500)[:, None]
    j = np.minimum(np.arange(1500)[None, :], n).astype(float)
    m = n - j
    mean = betaln(j + 0.5, m + 0.5) - math.log(math.pi)
    loss = mean - xlogy(j, j / n) - xlogy(m, m / n) + 0.5 * np.log(n) + math.log(2.0)
    assert loss.min() == pytest.approx(0.0, rel=0, abs=1e-9)  # attained at n = 1
    assert np.unravel_index(np.argmin(loss), loss.shape)[0] == 0


def test_lemma_2_both_factors_of_the_ratio() -> None:
    x = np.concatenate([[1e-9], np.geomspace(1e-3, 1e5, 1000)])
    assert np.all((x + 0.5) * np.log1p(1.0 / x) >= 1.0 - 1e-9)
    assert np.all(np.log(x + 0.5) + x * np.log(x) - (x + 1) * np.log(x + 1) >= -1.0 - 1e-9)


def test_the_dual_of_lemma_3_is_the_primal_maximum() -> None:
    for row, values, radius, random in random_cases(60):
        best = klmax(row, values, radius)
        assert row @ values <= best + 1e-12
        assert best <= values.max() + 1e-12
        # every feasible law is worth no more, whether near p̄, mixed with a vertex, or tilted towards large values
        for _ in range(30):
            weight = random.random()
            q = weight * row + (1 - weight) * random.dirichlet(np.ones(row.size))
            with np.errstate(divide="ignore"):
                divergence = float(np.sum(xlogy(row, row)) - np.sum(row[row > 0] * np.log(q[row > 0])))
            if divergence <= radius:
                assert q @ values <= best + 1e-9 * np.ptp(values)
        below, above = best - 1e-9 * np.ptp(values), best + 1e-6 * np.ptp(values)
        assert kinf(row, values, below) <= radius * (1 + 1e-9)
        if above < values.max():
            assert kinf(row, values, above) > radius * (1 - 1e-9)


def test_klmax_is_monotone_homogeneous_and_moves_with_constants() -> None:
    for row, values, radius, random in random_cases(40):
        best, scale = klmax(row, values, radius), float(np.ptp(values)) + 1.0
        assert klmax(row, 3.0 * values + 2.0, radius) == pytest.approx(3.0 * best + 2.0, rel=0, abs=1e-7 * scale)
        assert klmax(row, values + random.random(row.size), radius) >= best - 1e-9 * scale


def test_lemma_0_the_mixture_with_one_state_lies_in_the_ball() -> None:
    for row, values, radius, _ in random_cases(60):
        least = values.max() - math.exp(-radius) * np.ptp(values)
        assert klmax(row, values, radius) >= least - 1e-9 * np.ptp(values)


def test_lemma_4_the_chord_gives_the_binary_divergence() -> None:
    for r, mean in product(np.linspace(0.05, 0.95, 10), np.linspace(0.0, 0.94, 10)):
        if mean < r:
            lam = 1.0 - mean / r
            chord = (mean * math.log(1.0 - lam) if mean else 0.0) + (1 - mean) * math.log(1.0 + lam * r / (1 - r))
            assert chord == pytest.approx(float(binary_kl(mean, r)), rel=1e-9, abs=1e-12)
    x = np.linspace(0, 1, 11)
    assert np.all(binary_kl(x, klup(x, 0.1)) <= 0.1 + 1e-9)
    assert np.all(klup(x, 0.1) - x <= math.sqrt(0.05))  # Pinsker


def test_lemma_7_holds_and_its_first_constant_cannot_be_smaller() -> None:
    closest = 0.0
    for row, values, radius, _ in random_cases():
        mean = row @ values
        variance, span = float(row @ (values - mean) ** 2), float(np.ptp(values))
        right = math.sqrt(2.0 * variance * radius) + 2.0 * span * radius
        left = klmax(row, values, radius) - float(mean)
        assert left <= right * (1 + 1e-9) + 1e-12
        closest = max(closest, left / right if right > 0 else 0.0)
    assert closest > 0.9  # for tiny radii it is nearly an equation


def test_talebi_and_maillards_second_inequality_is_not_true() -> None:
    v, p, q = np.array([0.0, 1.0]), np.array([0.5, 0.5]), np.array([0.01, 0.99])
    divergence = float(np.sum(p * np.log(p / q)))
    right = math.sqrt(2.0 * float(q @ (v - q @ v) ** 2) * divergence)
    assert (q - p) @ v == pytest.approx(0.49, rel=0, abs=1e-12)
    assert right == pytest.approx(0.18, rel=0, abs=0.002)


def test_bernsteins_inequality_for_two_coins() -> None:
    p, mean = np.meshgrid(np.linspace(0.001, 0.999, 300), np.linspace(0.0, 1.0, 301))
    x = binary_kl(mean, p)
    assert np.all(np.abs(mean - p) <= np.sqrt(2.0 * p * (1 - p) * x) + 2.0 * x / 3.0 + 1e-12)
    gamma = np.arange(1, 1000)
    assert np.all(math.sqrt(7 / 3) * np.sqrt(gamma) + 2.0 + 2.0 / 3.0 * gamma <= 4.2 * gamma)


def test_lemma_8_the_one_sided_mixture() -> None:
    x = np.linspace(0.0, 8.0, 1000)
    assert np.all(2.0 * ndtr(x) * np.exp(x**2 / 2) >= 2.0 * np.exp(x**2 / 2) - 1.0 - 1e-9)


def test_lemma_9_the_small_inequalities() -> None:
    x = np.linspace(-50.0, 1.0, 2000)
    assert np.all(np.exp(x) <= 1.0 + x + x**2 + 1e-15)
    i = np.arange(40.0)
    assert np.all((i + 1) * (i + 2) <= 3.0 * 2.0**i)
    assert float(np.sum(1.0 / ((i + 1) * (i + 2)))) < 1.0


@pytest.mark.parametrize(("s", "a"), [(1, 1), (2, 1), (1, 2), (3, 2), (6, 2), (50, 4)])
def test_sums_over_visits_and_episodes_of_the_fastest_doubling(s: int, a: int) -> None:
    """A run that ends episodes as often as it can: round robin, one pair full in each."""
    pairs, T = s * a, 3000
    counts, before = np.zeros(pairs, int), np.zeros(pairs, int)
    episodes, begin, t = 1, 1, 0
    inverse = roots = precision = 0.0
    while t < T:
        pair = int(np.argmin(counts))
        if counts[pair] - before[pair] >= max(1, before[pair]):
            before, begin, episodes = counts.copy(), t + 1, episodes + 1
        t += 1
        if before[pair]:
            inverse, roots = inverse + 1.0 / before[pair], roots + before[pair] ** -0.5
        precision += begin**-0.5
        counts[pair] += 1
        assert t <= 2 * begin + pairs
        if t >= pairs:
            assert episodes <= pairs * math.log2(4 * t / pairs) + 1e-9
        assert episodes <= float(short_doubling_episodes(np.array([float(t)]), pairs)[0]) + 1e-9
    assert inverse <= 2 * pairs * math.log(T)
    assert roots <= 2 * math.sqrt(2) * math.sqrt(pairs * T)
    assert precision <= 2 * pairs + 4 * math.sqrt(T)


@pytest.mark.parametrize("rule", ["vanishing", "vanishing-sqrt"])
@pytest.mark.parametrize("pairs", [1, 2, 12])
def test_vanishing_episodes_are_as_few_as_the_bound_says(rule: str, pairs: int) -> None:
    H, T = 5.0, 20_000
    counts, before = np.zeros(pairs, int), np.zeros(pairs, int)
    total, t, f = H, 0, 1.0
    while t < T:
        pair = int(np.argmin(counts))  # full episodes of one pair would be fewer
        if counts[pair] - before[pair] >= max(1, math.floor(f * before[pair])):
            before, begin = counts.copy(), t + 1
            f = min(1.0, math.sqrt(pairs * H / begin)) if rule == "vanishing" else math.sqrt(math.log(begin) / begin)
            total += H
        t += 1
        counts[pair] += 1
        assert total <= float(switching(np.array([float(t)]), pairs, H, rule)[0]) + 1e-9
    assert total > 20 * H


def rounded(T: float, s: int, a: int, H: float, gamma: int, delta: float, first: float, last: float) -> float:
    """Theorem 10, as stated."""
    log = math.log(6 * s**2 * a * math.sqrt(T) / delta)
    pairs = s * a
    root = math.sqrt(H * pairs * T * log * math.log(T))
    return (
        (first + 2 * math.sqrt(2 * gamma)) * root
        + 4 * math.sqrt(pairs * T * log)
        + 15 * math.sqrt(T)
        + last * H * gamma * pairs * log * math.log(T)
    )


@pytest.mark.parametrize(("rule", "first", "last"), [("doubling", 8.1, 190.0), ("vanishing", 12.4, 220.0)])
def test_theorem_10_is_a_rounding_of_the_bound_that_is_computed(rule: str, first: float, last: float) -> None:
    for s, a, H, delta in product((1, 2, 7, 300), (1, 2, 9), (1.0, 3.0, 1e4), (1.0, 0.05, 1e-9)):
        for gamma in {1, min(2, s), s}:
            for T in (3.0, 4.0, 10.0, 1e3, 1e6, 1e12):
                if s * a <= T:
                    terms = gf.theory.kl_scal_plus_terms(T, s, a, span=H, support=gamma, delta=delta, episodes=rule)
                    assert terms.total <= rounded(T, s, a, H, gamma, delta, first, last)


def test_the_constants_of_the_rounding() -> None:
    """Each number in the last paragraph of the proof, at S = A = Γ = 1, T = 3 and δ = 1, where they are tightest."""
    Q, log = 2 * math.log(3.0), LEAST_LOG
    W = log * math.log(3.0)
    assert Q >= 2.19
    assert 2 + 3 / math.sqrt(Q) <= 4.03
    assert 2 * 4.03 <= 8.1
    assert (4.03 + math.sqrt(2.0)) * math.sqrt(2.0) <= 7.71
    assert math.log2(12) + log + 2 + 8.4 * log * Q <= 19.9 * W
    assert 7.71 * math.sqrt(19.9) <= 34.4
    assert W >= 2.57
    assert 7.71 * 2 / math.sqrt(W) <= 9.7
    assert 7.71 * math.sqrt(8.0) <= 21.82
    assert 10.91 + 4 <= 15
    assert 2 * 7.71**2 <= 118.9
    assert 8.4 * W + log + math.log2(12) + 4 <= 12.3 * W
    assert 34.4 + 9.7 + 10.91 + 118.9 + 12.3 <= 190
    # and the same sum with shorter episodes
    assert 1.5 * 2 * math.sqrt(2.0) <= 4.25
    assert 1.5 * (2 / W + 3 / log) <= 3.1
    assert 7.71**2 / 2 <= 29.8
    assert 34.4 + 9.7 + 10.91 + 118.9 + 12.3 + 3.1 + 29.8 <= 220


def test_theorem_11_and_13_the_constants() -> None:
    for n, s, delta in product((1, 2, 10, 10**6), (1, 5, 100), (1.0, 0.01)):
        log = math.log(6 * s**2 * math.sqrt(n) / delta)
        beta = math.sqrt((1 + 1 / n) * math.log(0.5 + s * math.sqrt(n + 1) / delta) / (2 * n))
        assert beta <= math.sqrt(log / n)
        last = math.sqrt((n + 1) / 2 * math.log(0.5 + math.sqrt(n + 1) / (2 * delta)))
        assert last <= math.sqrt(n * log)
        unions = math.log(0.5 + math.sqrt(n + 1) * s * 2.0**s / delta)
        assert (1 + 1 / n) / 2 * unions <= s * math.log(2) + log
    assert (1 + math.sqrt(0.5)) * 2 * math.sqrt(2) <= 5
    assert 1 + math.sqrt(0.5) <= 1.71


def bernstein(v: Floats, row: Floats, n: int, c: float, iota: float) -> float:
    """The function f of section 6, with s̄ = 0."""
    pulled = (n * row + np.eye(row.size)[0]) / (n + 1)
    variance = row @ (v - row @ v) ** 2
    width = max(3 / math.sqrt(2) * math.sqrt(variance * iota / (n - 1)), 7 * c * iota / (n - 1))
    return float(pulled @ v + width + c / (n + 1))


def test_the_bernstein_bonus_is_monotone_and_contracts() -> None:
    active = 0
    for seed in range(2000):
        random = np.random.default_rng(seed)
        S, c, n = int(random.integers(2, 6)), 1.0, int(10 ** random.uniform(0.4, 5))
        iota, row = float(random.uniform(0.05, 12)), random.dirichlet(np.ones(S))
        v, w = random.random(S) * c, random.random(S) * c
        low, high = np.minimum(v, w), np.maximum(v, w)
        found = bernstein(high, row, n, c, iota) - bernstein(low, row, n, c, iota)
        assert found >= -1e-12
        # weight of at least 1/(n+1) on s̄ = 0
        assert found >= (high - low)[0] / (n + 1) - 1e-12
        active += 3 / math.sqrt(2) * math.sqrt(row @ (v - row @ v) ** 2 * iota / (n - 1)) > 7 * c * iota / (n - 1)
    assert active > 100  # the variance rules often enough for the test to mean something


def crossings(draw: Any, level: Any, n: int, runs: int) -> float:
    """The share of runs in which the statistic exceeds its level at some time."""
    return sum(bool(np.any(draw(seed, n) > level)) for seed in range(runs)) / runs


def test_the_deviation_level_is_kept_and_not_by_far() -> None:
    """Lemma 4 at δ' = 0.3, for a coin, at 1,000 times: between 1 and 30 % of 400 runs cross it."""
    n = np.arange(1, 1001)
    level = math.log(1 / 0.3) + 0.5 * np.log(n) + math.log(2)

    def statistic(seed: int, length: int) -> Floats:
        mean = np.cumsum(np.random.default_rng(seed).random(length) < 0.3) / n
        return np.asarray(np.where(mean < 0.3, n * binary_kl(mean, 0.3), 0.0))

    assert 0.01 <= crossings(statistic, level, n.size, 400) <= 0.3
