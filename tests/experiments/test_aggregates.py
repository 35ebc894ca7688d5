"""Aggregates of runs: exact small cases, SciPy where it knows the answer, coverage measured, hostile input refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import stats

from gainful.errors import InvalidArgumentError
from gainful.experiments.aggregates import (
    Comparison,
    EnvironmentComparison,
    GrowthExponent,
    Improvement,
    Interval,
    Method,
    bootstrap_interval,
    compare,
    curves,
    default_measure,
    growth_exponent,
    interquartile_mean,
    mean,
    median,
    probability_of_improvement,
    quantile_band,
    summary,
)
from gainful.experiments.growth import is_still_linear

STATISTICS = [mean, median, interquartile_mean]
NAMES = ["mean", "median", "iqm"]
values = st.floats(-1e3, 1e3).map(lambda x: round(x, 3))
samples = st.lists(values, min_size=1, max_size=30).map(lambda x: np.array(x))
ROUNDING = 1e-9  # of sums of at most 30 numbers up to 1e3 (or 1e6 after scaling: relative to them)


def within(count: int, trials: int, probability: float) -> bool:
    """Whether a binomial count is between its quantiles 1e-4 and 1 - 1e-4."""
    law = stats.binom(trials, probability)
    return bool(law.ppf(1e-4) <= count <= law.ppf(1 - 1e-4))


# ---------------------------------------------------------------------- statistics


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([7.0], 7.0),
        ([1.0, 5.0], 3.0),
        ([0.0, 1.0, 8.0], (0.25 * 0 + 1 + 0.25 * 8) / 1.5),
        ([9.0, 1.0, 2.0, -50.0], 1.5),
        ([1.0, 2.0, 4.0, 8.0, 1e6], (0.75 * 2 + 4 + 0.75 * 8) / 2.5),
        ([0.0, 1.0, 2.0, 4.0, 8.0, 99.0], (0.5 * 1 + 2 + 4 + 0.5 * 8) / 3),
        ([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 99.0], (0.25 * 1 + 2 + 4 + 8 + 0.25 * 16) / 3.5),
    ],
)
def test_interquartile_mean_by_hand(runs: list[float], expected: float) -> None:
    assert interquartile_mean(runs) == pytest.approx(expected, rel=1e-14, abs=0)


@given(hnp.arrays(float, st.tuples(st.integers(1, 8).map(lambda k: 4 * k), st.integers(1, 3)), elements=values))
def test_interquartile_mean_is_the_trimmed_mean_if_four_divides_n(runs: NDArray[np.float64]) -> None:
    assert interquartile_mean(runs) == pytest.approx(stats.trim_mean(runs, 0.25, axis=0), rel=1e-12, abs=ROUNDING)


def test_interquartile_mean_is_not_the_trimmed_mean_of_five() -> None:
    runs = np.array([0.0, 0.0, 0.0, 1.0, 5.0])
    assert interquartile_mean(runs) == pytest.approx(0.3, rel=1e-14, abs=0)
    assert stats.trim_mean(runs, 0.25) == pytest.approx(1 / 3, rel=1e-14, abs=0)


@given(samples, st.integers(2, 5))
def test_interquartile_mean_of_every_run_repeated_is_the_same(runs: NDArray[np.float64], times: int) -> None:
    assert interquartile_mean(np.repeat(runs, times)) == pytest.approx(
        interquartile_mean(runs), rel=1e-12, abs=ROUNDING
    )


def test_interquartile_mean_of_many_exponential_runs_is_that_of_the_law() -> None:
    expected = 2 * ((0.75 - 0.75 * math.log(0.75)) - (0.25 - 0.25 * math.log(0.25)))
    quantiles = stats.expon.ppf((np.arange(100_000) + 0.5) / 100_000)
    assert interquartile_mean(quantiles) == pytest.approx(expected, rel=0, abs=1e-8)


def test_mean_and_median_by_hand() -> None:
    runs = [[1.0, 10.0], [2.0, 0.0], [6.0, 5.0], [3.0, 1.0]]
    assert mean(runs).tolist() == [3.0, 4.0]
    assert median(runs).tolist() == [2.5, 3.0]
    assert interquartile_mean(runs).tolist() == [2.5, 3.0]
    assert float(mean([4.0])) == float(median([4.0])) == 4.0


@given(samples, st.randoms(use_true_random=False))
def test_statistics_ignore_the_order_of_the_runs(runs: NDArray[np.float64], random: Any) -> None:
    order = list(range(runs.size))
    random.shuffle(order)
    for statistic in STATISTICS:
        assert statistic(runs[order]) == pytest.approx(statistic(runs), rel=1e-12, abs=ROUNDING)


@given(samples, st.floats(-100, 100), st.floats(-1e3, 1e3))
def test_statistics_follow_affine_changes(runs: NDArray[np.float64], scale: float, shift: float) -> None:
    for statistic in STATISTICS:
        expected = scale * statistic(runs) + shift
        assert statistic(scale * runs + shift) == pytest.approx(expected, rel=1e-9, abs=1e3 * ROUNDING)


@given(samples)
def test_statistics_lie_between_the_extremes_and_the_iqm_inside_the_middle(runs: NDArray[np.float64]) -> None:
    for statistic in STATISTICS:
        assert runs.min() - ROUNDING <= statistic(runs) <= runs.max() + ROUNDING
    kept = np.sort(runs)[runs.size // 4 : runs.size - runs.size // 4]
    assert kept[0] - ROUNDING <= interquartile_mean(runs) <= kept[-1] + ROUNDING


@given(hnp.arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 4)), elements=values))
def test_statistics_of_curves_are_those_of_every_checkpoint(runs: NDArray[np.float64]) -> None:
    for statistic in STATISTICS:
        expected = [float(statistic(column)) for column in runs.T]
        assert statistic(runs) == pytest.approx(expected, rel=1e-12, abs=ROUNDING)


def test_quantile_band_by_hand_and_scipy() -> None:
    low, high = quantile_band([[0.0, 5.0], [1.0, 4.0], [10.0, 3.0], [3.0, 2.0]])
    assert (low.tolist(), high.tolist()) == ([0.75, 2.75], [4.75, 4.25])
    x = np.random.default_rng(0).standard_normal(37)
    expected = stats.mstats.mquantiles(x, [0.1, 0.9], alphap=1, betap=1)
    assert [float(end) for end in quantile_band(x, 0.1, 0.9)] == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.filterwarnings("error")
def test_unknown_values_make_only_their_checkpoint_unknown() -> None:
    runs = [[1.0, 1.0], [np.nan, 2.0], [3.0, 6.0], [0.0, 3.0]]
    for found in [*(statistic(runs) for statistic in STATISTICS), *quantile_band(runs)]:
        assert math.isnan(found[0])
        assert math.isfinite(found[1])


@pytest.mark.parametrize("statistic", [*STATISTICS, quantile_band, bootstrap_interval])
@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], r"shape \(0,\)"),
        (3.0, r"shape \(\)"),
        ([1.0, np.inf], "infinite"),
        ([1.0, -np.inf], "infinite"),
        (["a", "b"], "not numbers"),
        ([True, False], "not numbers"),
        (None, "not numbers"),
    ],
)
def test_statistics_refuse_what_is_no_sample(statistic: Callable[[Any], Any], runs: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        statistic(runs)


@pytest.mark.parametrize("statistic", [*STATISTICS, quantile_band])
def test_statistics_refuse_runs_of_unequal_lengths(statistic: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="unequal lengths"):
        statistic([[1.0, 2.0], [3.0]])


@pytest.mark.parametrize("band", [(0.8, 0.2), (-0.1, 0.5), (0.5, 1.1), (np.nan, 0.5)])
def test_quantile_band_refuses_other_bands(band: tuple[float, float]) -> None:
    with pytest.raises(InvalidArgumentError, match="the band is"):
        quantile_band([1.0, 2.0], *band)


# ---------------------------------------------------------------------- intervals


def test_student_interval_is_that_of_scipy() -> None:
    x = np.random.default_rng(1).standard_exponential(7)
    for confidence in (0.5, 0.9, 0.95, 0.999):
        expected = stats.ttest_1samp(x, 0.0).confidence_interval(confidence)
        found = bootstrap_interval(x, mean, confidence, method="student")
        assert found.estimate == pytest.approx(x.mean(), rel=1e-14, abs=0)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-10, abs=1e-12)


def test_student_interval_of_two_strata_is_welch() -> None:
    """The pooled mean of two strata of n runs is (a - (-b))/2, and Welch's interval is that of a - (-b)."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal(6), 5.0 * rng.standard_normal(6) + 3.0
    expected = stats.ttest_ind(a, -b, equal_var=False).confidence_interval(0.95)
    found = bootstrap_interval([a, b], mean, method="student")
    assert (found.low, found.high) == pytest.approx((expected.low / 2, expected.high / 2), rel=1e-10, abs=1e-12)


def expanded_tail(n: int) -> float:
    return float(stats.norm.cdf(-math.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1)))


@pytest.mark.parametrize("statistic", STATISTICS, ids=NAMES)
@pytest.mark.parametrize(("method", "tail"), [("percentile", 0.025), ("expanded", expanded_tail(5))])
def test_bootstrap_ends_are_quantiles_of_all_resamples(
    statistic: Callable[[Any], Any], method: Method, tail: float
) -> None:
    """All 5^5 resamples are listed; the end of B drawn ones is off by the binomial error of its rank."""
    x = np.array([0.3, 1.1, 1.9, 4.2, 9.5])
    every = statistic(x[np.array(list(itertools.product(range(5), repeat=5)))].T)
    B = 40_000
    slack = stats.binom.isf(1e-4, B, tail) / B - tail
    found = bootstrap_interval(x, statistic, resamples=B, seed=3, method=method)
    assert found.estimate == pytest.approx(float(statistic(x)), rel=1e-14, abs=0)
    for end, side in ((found.low, every), (-found.high, -every)):
        assert (side < end - 1e-12).mean() <= tail + slack
        assert (side <= end + 1e-12).mean() >= tail - slack


def test_percentile_ends_agree_with_scipy() -> None:
    x = np.random.default_rng(4).standard_normal(40)
    B = 20_000
    expected = stats.bootstrap(
        (x,), np.mean, n_resamples=B, method="percentile", rng=np.random.default_rng(5)
    ).confidence_interval
    found = bootstrap_interval(x, mean, resamples=B, seed=6, method="percentile")
    # an end of B draws has standard error sqrt(p(1-p)/B)/density; two are compared, at 4 standard errors
    se = x.std() / math.sqrt(40)
    error = 4 * math.sqrt(2 * 0.025 * 0.975 / B) / stats.norm.pdf(1.96) * se
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=0, abs=error)


def test_runs_are_resampled_within_their_stratum() -> None:
    """Strata at 0, 0 and 100, 100.4: every resample has two zeros and a mean of 50 to 50.2."""
    found = bootstrap_interval([[0.0, 0.0], [100.0, 100.4]], mean, method="percentile")
    assert (found.estimate, found.low, found.high) == pytest.approx((50.1, 50.0, 50.2), rel=0, abs=1e-12)
    pooled = bootstrap_interval([0.0, 0.0, 100.0, 100.4], mean, method="percentile")
    assert pooled.low < 1.0
    assert pooled.high > 99.0


def test_strata_count_by_their_number_of_runs() -> None:
    assert bootstrap_interval([[0.0, 0.0, 0.0], [4.0]], mean).estimate == 1.0
    assert bootstrap_interval([np.zeros(3), np.array([4.0])], median).estimate == 0.0


def test_one_stratum_in_a_list_is_the_plain_array() -> None:
    x = [3.0, 1.0, 4.0, 1.0, 5.0]
    assert bootstrap_interval([x]) == bootstrap_interval(x) == bootstrap_interval(np.array(x))


@given(st.lists(values, min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_intervals_ignore_the_order_of_the_runs(runs: list[float], random: Any) -> None:
    shuffled = list(runs)
    random.shuffle(shuffled)
    assert bootstrap_interval(shuffled, resamples=50) == bootstrap_interval(runs, resamples=50)


@given(st.lists(values, min_size=2, max_size=12), st.floats(0.01, 100), st.floats(-1e3, 1e3))
def test_intervals_follow_increasing_affine_changes(runs: list[float], scale: float, shift: float) -> None:
    cases: list[tuple[Any, Method]] = [(mean, "student"), (median, "percentile"), (interquartile_mean, "expanded")]
    for statistic, method in cases:
        base = bootstrap_interval(runs, statistic, resamples=50, method=method)
        found = bootstrap_interval(scale * np.array(runs) + shift, statistic, resamples=50, method=method)
        expected = [scale * v + shift for v in (base.estimate, base.low, base.high)]
        # Student's ends of 2 runs are 12.7 standard errors away
        assert [found.estimate, found.low, found.high] == pytest.approx(expected, rel=1e-8, abs=1e-4)


@given(st.lists(values, min_size=2, max_size=12), st.sampled_from(STATISTICS))
def test_bootstrap_intervals_stay_inside_the_data_and_widen_with_the_method(runs: list[float], statistic: Any) -> None:
    inner = bootstrap_interval(runs, statistic, resamples=200, method="percentile")
    outer = bootstrap_interval(runs, statistic, resamples=200, method="expanded")
    assert min(runs) - ROUNDING <= outer.low <= inner.low + ROUNDING
    assert inner.high - ROUNDING <= outer.high <= max(runs) + ROUNDING


def test_the_seed_decides_the_resamples() -> None:
    x = np.random.default_rng(7).standard_normal(12)
    assert bootstrap_interval(x, mean, seed=1) == bootstrap_interval(x, mean, seed=1)
    assert bootstrap_interval(x, mean, seed=1) != bootstrap_interval(x, mean, seed=2)


def test_resamples_in_several_chunks_are_all_used() -> None:
    """With 300,000 runs a chunk has 3 resamples; the spread of the mean is known."""
    x = np.random.default_rng(8).standard_normal(300_000)
    found = bootstrap_interval(x, mean, resamples=40, method="percentile")
    se = x.std() / math.sqrt(x.size)
    # the extremes of 40 normal values have standard deviations of about 0.5
    assert (found.estimate - found.low) / se == pytest.approx(2.0, rel=0, abs=1.5)
    assert (found.high - found.estimate) / se == pytest.approx(2.0, rel=0, abs=1.5)


def test_equal_runs_have_an_interval_of_no_width_and_one_run_has_none() -> None:
    equal = bootstrap_interval([0.1] * 7, mean)
    assert equal.estimate == equal.low == equal.high == pytest.approx(0.1, rel=1e-14, abs=0)
    for strata in ([5.0], [[5.0], [6.0, 7.0]]):
        found = bootstrap_interval(strata, mean)
        assert math.isfinite(found.estimate)
        assert math.isnan(found.low)
        assert math.isnan(found.high)
    unknown = bootstrap_interval([1.0, np.nan, 2.0])
    assert all(map(math.isnan, (unknown.estimate, unknown.low, unknown.high)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"confidence": 0.0}, "confidence is 0.0"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"confidence": 95}, "confidence is 95"),
        ({"confidence": math.nan}, "confidence is nan"),
        ({"resamples": 0}, "resamples is 0"),
        ({"resamples": 10.5}, "resamples is 10.5"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": None}, "seed is None"),
        ({"method": "bca"}, "method is 'bca'"),
        ({"method": "student"}, "is for statistic=mean"),
        ({"statistic": lambda x: x.mean()}, r"made shape \(\)"),
        ({"statistic": lambda x: x}, r"made shape \(3, 1\)"),
    ],
)
def test_bootstrap_refuses_other_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        bootstrap_interval([1.0, 2.0, 3.0], **arguments)


@pytest.mark.parametrize(
    ("strata", "message"),
    [
        (np.ones((2, 3)), r"strata have shape \(2, 3\)"),
        ({"a": [1.0]}, "mapping"),
        ([[1.0, 2.0], []], "stratum 1 have shape"),
        ([[1.0, 2.0], 3.0], "stratum 1 have shape"),
        ([[1.0, 2.0], [[3.0]]], r"stratum 1 have shape \(1, 1\)"),
        ([[1.0, 2.0], [np.inf]], "stratum 1 have infinite"),
    ],
)
def test_bootstrap_refuses_other_strata(strata: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        bootstrap_interval(strata)


LAWS: dict[str, tuple[str, Sequence[float]]] = {
    # the true mean, median and interquartile mean
    "normal": ("standard_normal", (0.0, 0.0, 0.0)),
    "exponential": ("standard_exponential", (1.0, math.log(2), 0.7383759281176705)),
}


def covered(law: str, n: int, statistic: Any, method: Method, trials: int) -> int:
    draw, truths = LAWS[law]
    truth = truths[STATISTICS.index(statistic)]
    count = 0
    for seed, x in enumerate(getattr(np.random.default_rng(n), draw)((trials, n))):
        found = bootstrap_interval(x, statistic, seed=seed, method=method)
        count += found.low <= truth <= found.high
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "n", "statistic", "method", "coverage"),
    [
        # the table in the docstring of bootstrap_interval; exact: 0.95 for Student's interval of normal runs, and
        # 1 - 2/2^5 for the range of five
        ("normal", 5, mean, "student", 0.95),
        ("exponential", 5, mean, "student", 0.883),
        ("normal", 10, mean, "student", 0.95),
        ("exponential", 10, mean, "student", 0.901),
        ("normal", 5, mean, "expanded", 0.922),
        ("exponential", 5, mean, "expanded", 0.868),
        ("normal", 10, mean, "expanded", 0.943),
        ("exponential", 10, mean, "expanded", 0.909),
        ("normal", 5, mean, "percentile", 0.838),
        ("exponential", 5, mean, "percentile", 0.784),
        ("normal", 10, mean, "percentile", 0.9),
        ("exponential", 10, mean, "percentile", 0.863),
        ("normal", 5, median, "expanded", 0.9375),
        ("exponential", 5, median, "expanded", 0.9375),
        ("normal", 10, median, "expanded", 0.964),
        ("exponential", 10, median, "expanded", 0.964),
        ("normal", 5, median, "percentile", 0.9375),
        ("exponential", 5, median, "percentile", 0.9375),
        ("normal", 10, median, "percentile", 0.938),
        ("exponential", 10, median, "percentile", 0.938),
        ("normal", 5, interquartile_mean, "expanded", 0.94),
        ("exponential", 5, interquartile_mean, "expanded", 0.937),
        ("normal", 10, interquartile_mean, "expanded", 0.969),
        ("exponential", 10, interquartile_mean, "expanded", 0.971),
        ("normal", 5, interquartile_mean, "percentile", 0.909),
        ("exponential", 5, interquartile_mean, "percentile", 0.905),
        ("normal", 10, interquartile_mean, "percentile", 0.931),
        ("exponential", 10, interquartile_mean, "percentile", 0.936),
    ],
)
def test_coverage_is_what_the_documentation_says(
    law: str, n: int, statistic: Any, method: Method, coverage: float
) -> None:
    trials = 800
    assert within(covered(law, n, statistic, method, trials), trials, coverage)


def test_the_expanded_interval_of_a_median_of_five_is_the_whole_range() -> None:
    """It covers the median of any continuous law with probability 1 - 2/2^5 = 0.9375."""
    x = np.array([0.2, 3.0, -1.0, 7.0, 2.5])
    found = bootstrap_interval(x, median)
    assert (found.estimate, found.low, found.high) == (2.5, -1.0, 7.0)


def test_coverage_of_a_mean_over_unequal_strata() -> None:
    """Two environments, one ten times noisier and with fewer runs: the intervals keep about 95 %."""
    rng = np.random.default_rng(9)
    trials = 600
    counts = {"student": 0, "expanded": 0, "percentile": 0}
    for seed in range(trials):
        strata = [rng.standard_normal(8), 10.0 * rng.standard_normal(5) + 50.0]
        truth = 50.0 * 5 / 13
        for method in counts:
            found = bootstrap_interval(strata, mean, seed=seed, resamples=1000, method=method)  # type: ignore[arg-type]
            counts[method] += found.low <= truth <= found.high
    assert within(counts["student"], trials, 0.95)
    assert within(counts["expanded"], trials, 0.93)
    assert counts["percentile"] < stats.binom.ppf(1e-4, trials, 0.93)


# ---------------------------------------------------------------------- pairs


def test_probability_of_improvement_by_hand() -> None:
    first = {1: 1.0, 2: 2.0, 3: 3.0, 4: 9.0, 9: 0.0}
    second = {4: 5.0, 3: 3.0, 2: 4.0, 1: 4.0, 8: 1.0}
    found = probability_of_improvement(first, second)
    assert (found.pairs, found.wins, found.ties) == (4, 2, 1)
    assert found.probability == 2.5 / 4
    assert found.difference == pytest.approx((-3 - 2 + 0 + 4) / 4, rel=1e-14, abs=0)


@pytest.mark.parametrize(("n", "wins"), [(1, 0), (1, 1), (5, 5), (5, 3), (10, 0), (10, 7), (40, 22)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_without_ties_is_that_of_scipy(n: int, wins: int, confidence: float) -> None:
    expected = stats.binomtest(wins, n).proportion_ci(confidence, method="exact")
    found = probability_of_improvement(
        np.arange(n) - 0.5, np.where(np.arange(n) < wins, 50.0, -50.0), confidence=confidence
    )
    assert (found.wins, found.ties) == (wins, 0)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-12)


def test_the_interval_of_the_difference_is_that_of_the_paired_t_test() -> None:
    rng = np.random.default_rng(10)
    x = rng.standard_exponential(9)
    y = x + rng.standard_normal(9)
    expected = stats.ttest_rel(x, y).confidence_interval(0.9)
    found = probability_of_improvement(x, y, confidence=0.9)
    ends = (found.difference_low, found.difference_high)
    assert ends == pytest.approx((expected.low, expected.high), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_the_interval_covers_with_any_share_of_ties(n: int) -> None:
    """By enumeration of (wins, ties): the multinomial law gives the coverage exactly, and it is never below 95 %."""
    outcomes = np.array([(w, t, n - w - t) for w in range(n + 1) for t in range(n + 1 - w)])
    ends = []
    for w, t, lost in outcomes:
        found = probability_of_improvement(np.zeros(n), np.repeat([1.0, 0.0, -1.0], [w, t, lost]))
        assert (found.wins, found.ties) == (w, t)
        ends.append((found.low, found.high))
    low, high = np.array(ends).T
    for tied, share in itertools.product(np.linspace(0, 1, 11), np.linspace(0, 1, 21)):
        won, lost = (1 - tied) * share, (1 - tied) * (1 - share)
        p = won + tied / 2
        chance = stats.multinomial.pmf(outcomes, n, [won, tied, lost])
        assert chance.sum() == pytest.approx(1.0, rel=0, abs=1e-9)
        assert chance[(low <= p + 1e-12) & (p <= high + 1e-12)].sum() >= 0.95


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_swapping_the_two_mirrors_the_answer(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs).T
    one, other = probability_of_improvement(x, y), probability_of_improvement(y, x)
    assert one.probability + other.probability == pytest.approx(1.0, rel=1e-12, abs=0)
    assert one.low == pytest.approx(1.0 - other.high, rel=0, abs=1e-9)
    assert one.difference == pytest.approx(-other.difference, rel=1e-12, abs=1e-12)
    assert one.low <= one.probability <= one.high
    assert (one.pairs, one.ties) == (other.pairs, other.ties)
    assert one.wins + other.wins + one.ties == len(pairs)


def test_mappings_series_and_arrays_agree() -> None:
    x, y = [3.0, 1.0, 2.0], [2.0, 5.0, 2.0]
    by_array = probability_of_improvement(x, y)
    seeds = [7, 8, 9]
    assert probability_of_improvement(dict(zip(seeds, x, strict=True)), dict(zip(seeds, y, strict=True))) == by_array
    series = pd.Series(y, index=seeds)[::-1]  # by seed, not by position
    assert probability_of_improvement(pd.Series(x, index=seeds), series) == by_array


def test_pairs_with_an_unknown_value_do_not_count() -> None:
    found = probability_of_improvement([1.0, np.nan, 3.0], [2.0, 2.0, np.nan])
    assert (found.pairs, found.wins, found.difference) == (1, 1, -1.0)
    assert math.isnan(found.difference_low)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({1: 1.0}, {2: 1.0}, "share no seed"),
        ({}, {}, "share no seed"),
        ({1: 1.0}, [1.0], "two mappings or two arrays"),
        ([1.0, 2.0], [1.0], r"shapes \(2,\) and \(1,\)"),
        ([[1.0]], [[1.0]], "shapes"),
        ([], [], "at least one run"),
        ([np.nan], [1.0], "none of the 1 shared seeds"),
        ({1: np.inf}, {1: 1.0}, "first have infinite"),
        ({1: "x"}, {1: 1.0}, "first are"),
        (pd.Series([1.0, 2.0], index=[3, 3]), pd.Series([1.0], index=[3]), "first has a seed twice"),
    ],
)
def test_probability_of_improvement_refuses_what_cannot_be_paired(first: Any, second: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        probability_of_improvement(first, second)


# ---------------------------------------------------------------------- growth

STEPS = np.unique(np.rint(np.logspace(0, 5, 101)).astype(int))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 2 / 3, 1.0, -0.25])
def test_powers_have_their_exponent(exponent: float) -> None:
    found = growth_exponent(STEPS, [[c * t**exponent for t in STEPS.astype(float)] for c in (0.1, 1.0, 70.0)])
    ends = (found.exponent, found.low, found.high)
    assert ends == pytest.approx((exponent,) * 3, rel=0, abs=1e-9)
    assert (found.runs_used, found.fit) == (3, "runs")


def test_slopes_and_their_interval_are_those_of_scipy() -> None:
    rng = np.random.default_rng(11)
    runs = np.exp(0.6 * np.log(STEPS) + 0.3 * rng.standard_normal((6, STEPS.size)))
    for decades in (0.5, 1.0, 2.5):
        late = STEPS[-1] / 10**decades <= STEPS
        slopes = [stats.linregress(np.log(STEPS[late]), np.log(y[late])).slope for y in runs]
        expected = stats.ttest_1samp(slopes, 0.0).confidence_interval(0.95)
        found = growth_exponent(STEPS, runs, last_decades=decades)
        assert found.exponent == pytest.approx(np.mean(slopes), rel=1e-10, abs=0)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=0)


def test_the_window_includes_both_ends_of_its_decade() -> None:
    steps = [1, 10, 30, 100, 1000]
    inside = growth_exponent(steps, [[1.0, 1.0, 1.0, 1.0, 10.0]])
    assert inside.exponent == pytest.approx(1.0, rel=1e-12, abs=0)  # from 100 to 1000, and nothing before
    assert math.isnan(inside.low)
    wide = growth_exponent(steps, [[1.0, 1.0, 1.0, 1.0, 10.0]], last_decades=2)
    assert 0.0 < wide.exponent < 1.0
    assert growth_exponent([0, *steps], [[0.0, 1.0, 1.0, 1.0, 1.0, 10.0]], last_decades=50).fit == "runs"


def test_a_run_that_is_not_positive_turns_the_fit_to_the_mean_curve() -> None:
    t = STEPS.astype(float)
    runs = np.array([3.0 * t**0.5, -(t**0.5), 4.0 * t**0.5])  # the mean is 2 √t, whichever slopes exist
    found = growth_exponent(STEPS, runs)
    assert (found.fit, found.runs_used) == ("mean curve", 3)
    assert found.exponent == pytest.approx(0.5, rel=0, abs=1e-12)
    # a resample of the second run alone (chance 1/27) has a negative mean, and the tail is below 1/27
    assert (found.low, found.high) == (-math.inf, math.inf)


@pytest.mark.filterwarnings("error")
def test_a_run_without_regret_counts_in_the_mean_curve() -> None:
    found = growth_exponent([10, 100], [[0.0, 0.0], [2.0, 20.0]])
    assert (found.fit, found.runs_used) == ("mean curve", 2)
    assert found.exponent == pytest.approx(1.0, rel=1e-12, abs=0)


def test_the_mean_curve_is_nan_where_it_is_not_positive() -> None:
    found = growth_exponent([10, 100], [[1.0, -4.0], [2.0, 3.0]])
    assert (found.fit, found.runs_used) == ("none", 2)
    assert math.isnan(found.exponent)
    assert math.isnan(found.low)
    zero = growth_exponent([10, 100], [[0.0, 0.0]])
    assert math.isnan(zero.exponent)


def test_early_regret_that_is_not_positive_does_not_matter() -> None:
    found = growth_exponent([1, 10, 100], [[-5.0, 1.0, 10.0], [0.0, 2.0, 20.0]])
    assert found.exponent == pytest.approx(1.0, rel=1e-12, abs=0)
    assert found.fit == "runs"


def mean_curve_runs(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Regrets A √t + B t/√T of mean √t, with A and B of mean 1 and 0 and some runs negative."""
    t = STEPS.astype(float)
    A, B = rng.normal(1.0, 0.5, (n, 1)), rng.normal(0.0, 0.5, (n, 1))
    runs: NDArray[np.float64] = A * np.sqrt(t) + B * t / np.sqrt(t[-1])
    return runs


def test_coverage_of_the_exponent_of_a_mean_curve() -> None:
    rng = np.random.default_rng(12)
    trials, count, fits = 400, 0, 0
    for seed in range(trials):
        found = growth_exponent(STEPS, mean_curve_runs(rng, 20), seed=seed, resamples=1000)
        count += found.low <= 0.5 <= found.high
        fits += found.fit == "mean curve"
    assert fits > trials / 2
    assert within(count, trials, 0.95)


def test_the_interval_of_a_mean_curve_ignores_the_order_of_the_runs() -> None:
    runs = mean_curve_runs(np.random.default_rng(13), 20)
    runs[0] *= -0.1
    found = growth_exponent(STEPS, runs)
    assert found.fit == "mean curve"
    assert found.low < found.exponent < found.high
    again = growth_exponent(STEPS, runs[::-1])
    assert (again.low, again.high) == (found.low, found.high)
    assert again.exponent == pytest.approx(found.exponent, rel=1e-12, abs=0)
    assert growth_exponent(STEPS, runs, seed=1) != found


def test_unknown_runs_are_left_out_and_not_counted() -> None:
    found = growth_exponent([10, 100], [[1.0, 10.0], [np.nan, 3.0], [2.0, 20.0]])
    assert found.exponent == pytest.approx(1.0, rel=1e-12, abs=0)
    assert found.runs_used == 2
    nothing = growth_exponent([10, 100], [[np.nan, np.nan]])
    assert (nothing.runs_used, nothing.fit) == (0, "none")


@pytest.mark.parametrize(
    ("steps", "runs", "arguments", "message"),
    [
        ([10, 100], [1.0, 2.0], {}, r"shapes \(2,\) and \(2,\)"),
        ([10, 100], [[1.0, 2.0, 3.0]], {}, r"shapes \(2,\) and \(1, 3\)"),
        ([100, 10], [[1.0, 2.0]], {}, "increasing"),
        ([10, 10], [[1.0, 2.0]], {}, "increasing"),
        ([-1, 10], [[1.0, 2.0]], {}, "none below 0"),
        ([np.nan, 10.0], [[1.0, 2.0]], {}, "increasing"),
        ([1, 100], [[1.0, 2.0]], {}, "1 of the steps is within 1 decade"),
        ([10], [[1.0]], {}, "at least 2"),
        ([10, 100], [[1.0, np.inf]], {}, "infinite"),
        ([10, 100], [[1.0, 2.0]], {"last_decades": 0.0}, "last_decades is 0.0"),
        ([10, 100], [[1.0, 2.0]], {"last_decades": np.nan}, "last_decades is nan"),
        ([10, 100], [[1.0, 2.0]], {"confidence": 2}, "confidence is 2"),
        ([10, 100], np.empty((0, 2)), {}, "at least one run"),
    ],
)
def test_growth_exponent_refuses_other_input(steps: Any, runs: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        growth_exponent(steps, runs, **arguments)


# ---------------------------------------------------------------------- frames


def a_run(
    environment: str, agent: str, seed: int, steps: Sequence[int], regret: Any, pseudo: Any = None, **columns: Any
) -> pd.DataFrame:
    """The rows of one run; `pseudo_regret` is the regret unless given."""
    regret = np.broadcast_to(np.asarray(regret, dtype=float), len(steps))
    row = {
        "experiment": "x",
        "environment": environment,
        "agent": agent,
        "seed": seed,
        "step": list(steps),
        "reward": -regret,
        "regret": regret,
        "pseudo_regret": regret if pseudo is None else pseudo,
        "horizon": steps[-1],
        "planning_seconds": 1.0,
        "acting_seconds": 3.0,
        "run_id": f"{environment}/{agent}/{seed}",
    }
    return pd.DataFrame({**row, **columns})


def an_experiment() -> pd.DataFrame:
    rng = np.random.default_rng(14)
    steps = [1, 10, 20, 50, 100]
    parts = []
    for environment, agent in itertools.product(["river", "bandit"], ["ucrl", "random"]):
        for seed in range(5):
            base = 2.0 * np.sqrt(steps) if agent == "ucrl" else 1.0 * np.array(steps)
            y = base * (1 + 0.1 * rng.random())
            parts.append(a_run(environment, agent, seed, steps, y + 1.0, pseudo=y))
    return pd.concat(parts, ignore_index=True)


def test_summary_says_what_its_parts_say() -> None:
    frame = an_experiment()
    found = summary(frame)
    labels = list(zip(found.environment, found.agent, strict=True))
    assert labels == [("river", "ucrl"), ("river", "random"), ("bandit", "ucrl"), ("bandit", "random")]
    for _, row in found.iterrows():
        part = frame[(frame.environment == row.environment) & (frame.agent == row.agent)]
        assert (row.runs, row.final_step, row.note, row.growth_of) == (5, 100, "", "pseudo_regret")
        for name in ("regret", "pseudo_regret"):
            final = part.loc[part.step == 100, name].to_numpy()
            for label, statistic in zip(NAMES, STATISTICS, strict=True):
                expected = bootstrap_interval(final, statistic, method="student" if label == "mean" else "expanded")
                ends = [row[f"{name}_{label}{end}"] for end in ("", "_low", "_high")]
                assert ends == [expected.estimate, expected.low, expected.high]
            assert row[f"{name}_per_step"] == pytest.approx(final.mean() / 100, rel=1e-12, abs=0)
        wide = part.pivot(index="seed", columns="step", values="pseudo_regret")
        growth = growth_exponent(wide.columns.to_numpy(), wide.to_numpy())
        assert [row.growth_exponent, row.growth_low, row.growth_high] == pytest.approx(
            [growth.exponent, growth.low, growth.high], rel=1e-12, abs=0
        )
        assert growth.exponent == pytest.approx(0.5 if row.agent == "ucrl" else 1.0, rel=0, abs=1e-9)
        assert row.planning_share == pytest.approx(0.25, rel=1e-14, abs=0)


def test_curves_say_what_their_parts_say() -> None:
    frame = an_experiment()
    found = curves(frame, "regret", band=(0.1, 0.8))
    assert list(found.columns) == [
        "environment",
        "agent",
        "step",
        "mean",
        "median",
        "iqm",
        "low",
        "high",
        "mean_low",
        "mean_high",
        "runs",
    ]
    assert len(found) == 4 * 5
    assert found.attrs["notes"] == []
    for _, row in found.iterrows():
        part = frame[(frame.environment == row.environment) & (frame.agent == row.agent) & (frame.step == row.step)]
        x = part.regret.to_numpy()
        expected = [*(statistic(x) for statistic in STATISTICS), *quantile_band(x, 0.1, 0.8), np.array(5)]
        assert row[["mean", "median", "iqm", "low", "high", "runs"]].tolist() == pytest.approx(
            [float(v) for v in expected], rel=1e-12, abs=0
        )


def test_the_order_of_the_rows_changes_nothing_but_the_order() -> None:
    frame = an_experiment()
    shuffled = frame.sample(frac=1.0, random_state=0)
    for function in (summary, curves):
        keys = ["environment", "agent"] + (["step"] if function is curves else [])
        one, other = (function(f).set_index(keys).sort_index() for f in (frame, shuffled))
        pd.testing.assert_frame_equal(one, other, rtol=1e-12, atol=0)
    assert dict(zip(["river", "bandit"], compare(frame, "ucrl", "random").environments, strict=True)) == {
        e.environment: e for e in compare(shuffled, "ucrl", "random").environments
    }


def test_runs_with_other_checkpoints_are_aggregated_where_all_are() -> None:
    frame = pd.concat(
        [
            a_run("e", "a", 0, [1, 10, 100, 1000], [1.0, 2.0, 4.0, 8.0]),
            a_run("e", "a", 1, [1, 10, 100], [3.0, 4.0, 8.0]),  # stopped
            a_run("e", "a", 2, [1, 100], [2.0, 6.0]),
            a_run("e", "b", 0, [1, 10], [1.0, 1.0]),
        ]
    )
    found = summary(frame)
    assert found.final_step.tolist() == [100, 10]
    assert found.regret_mean.tolist() == [6.0, 1.0]
    assert found.note.tolist() == [
        "the runs end at steps 100 to 1,000 and share 2 of 4 checkpoints: only these are used",
        "",
    ]
    drawn = curves(frame)
    assert drawn.step.tolist() == [1, 100, 1, 10]
    assert drawn["mean"].tolist() == [2.0, 6.0, 1.0, 1.0]
    assert drawn.attrs["notes"] == [f"a in e: {found.note[0]}"]


def test_grids_of_the_same_length_may_differ() -> None:
    frame = pd.concat([a_run("e", "a", 0, [1, 5, 10], [1, 2, 3]), a_run("e", "a", 1, [1, 6, 10], [3, 4, 5])])
    drawn = curves(frame)
    assert (drawn.step.tolist(), drawn["mean"].tolist()) == ([1, 10], [2.0, 4.0])
    assert drawn.attrs["notes"] == ["a in e: the runs share 2 of 4 checkpoints: only these are used"]


def test_runs_that_share_no_checkpoint_have_no_numbers() -> None:
    frame = pd.concat(
        [a_run("e", "a", 0, [1, 10], 1.0), a_run("e", "a", 1, [2, 20], 1.0), a_run("e", "b", 0, [1], 1.0)]
    )
    found = summary(frame)
    assert found.final_step.isna().tolist() == [True, False]
    assert found.runs.tolist() == [2, 1]
    assert np.isnan([found.regret_mean[0], found.growth_exponent[0], found.planning_share[0]]).all()
    assert "share 0 of 4 checkpoints" in found.note[0]
    assert curves(frame).agent.tolist() == ["b"]


@pytest.mark.filterwarnings("error")
def test_one_run_has_values_without_intervals() -> None:
    row = summary(a_run("e", "a", 3, [10, 100], [2.0, 20.0])).iloc[0]
    assert (row.runs, row.regret_mean, row.pseudo_regret_iqm) == (1, 20.0, 20.0)
    assert row.growth_exponent == pytest.approx(1.0, rel=1e-12, abs=0)
    assert row[["regret_mean_low", "regret_iqm_high", "growth_low"]].isna().all()


@pytest.mark.filterwarnings("error")
def test_an_unknown_pseudo_regret_stays_unknown_and_the_growth_is_of_the_regret() -> None:
    steps = [10, 100]
    frame = pd.concat([a_run("e", "a", s, steps, [1.0 + s, 10.0 + 10 * s], pseudo=np.nan) for s in range(3)])
    for unknown in (frame, frame.assign(pseudo_regret=None)):
        row = summary(unknown).iloc[0]
        assert (row.regret_median, row.growth_of) == (20.0, "regret")
        assert row.growth_exponent == pytest.approx(1.0, rel=1e-12, abs=0)
        assert row[["pseudo_regret_mean", "pseudo_regret_iqm_low", "pseudo_regret_per_step"]].isna().all()
        assert curves(unknown, "pseudo_regret")["iqm"].isna().all()
        assert default_measure(unknown) == "regret"
        assert curves(unknown).equals(curves(unknown, "regret"))
    row = summary(frame.assign(regret=np.nan)).iloc[0]
    assert default_measure(frame.assign(regret=np.nan)) == "pseudo_regret"
    assert row.growth_of == ""
    assert math.isnan(row.growth_exponent)


@pytest.mark.filterwarnings("error")
def test_expected_regret_is_what_is_shown_where_it_is_known_for_all_runs() -> None:
    steps = [1, 5, 10, 100]
    runs = [a_run("e", a, s, steps, 9.0, expected_regret=np.sqrt(steps) + s) for a in "ab" for s in range(3)]
    frame = pd.concat(runs, ignore_index=True)
    assert default_measure(frame) == "expected_regret"
    assert curves(frame).equals(curves(frame, "expected_regret"))
    assert compare(frame, "a", "b").value == "expected_regret"
    assert str(compare(frame, "a", "b")).startswith("a against b, expected regret on shared seeds")
    row = summary(frame).iloc[0]
    assert (row.expected_regret_mean, row.expected_regret_per_step, row.growth_of) == (11.0, 0.11, "expected_regret")
    early = frame.assign(expected_regret=frame.expected_regret.where(frame.step > 1))  # resumed from an older file
    assert default_measure(early) == "expected_regret"
    assert summary(early).iloc[0].growth_of == "expected_regret"
    assert curves(early)["median"].isna().tolist() == [True, False, False, False] * 2


@pytest.mark.filterwarnings("error")
def test_expected_regret_that_one_run_lacks_is_unknown_for_its_agent_and_not_shown() -> None:
    steps = [1, 10, 100]
    runs = [a_run("e", a, s, steps, 9.0, expected_regret=np.sqrt(steps)) for a in "ab" for s in range(3)]
    runs[1] = a_run("e", "a", 1, steps, 9.0, expected_regret=np.nan)
    frame = pd.concat(runs, ignore_index=True)
    assert default_measure(frame) == "pseudo_regret"
    first, second = (row for _, row in summary(frame).iterrows())
    assert math.isnan(first.expected_regret_mean)
    assert (first.growth_of, second.growth_of) == ("pseudo_regret", "expected_regret")
    assert second.expected_regret_mean == 10.0
    without = frame.drop(columns="expected_regret")  # a table of a version without it
    assert default_measure(without) == "pseudo_regret"
    assert summary(without)["expected_regret_mean"].isna().all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("curve", "linear"),
    [
        (lambda t: 0.1 * t, True),
        (lambda t: 0.01 * t, False),  # linear, but small: 2 % of the gain
        (lambda t: 5.0 * t**0.85, True),
        (lambda t: 10.0 * t**0.75, False),
        (lambda t: 10.0 * np.sqrt(t), False),
        (lambda t: np.minimum(0.3 * t, 1000.0), False),  # learned long ago
        (lambda t: np.maximum(0.0, t - 5000.0), True),  # worse than in the beginning
        (lambda t: np.where(t < 10_000, np.nan, t), False),  # unknown in the middle
    ],
)
def test_a_regret_is_still_linear_if_its_last_half_is_as_bad_as_all_of_it(curve: Any, linear: bool) -> None:
    steps = np.unique(np.logspace(0, 4, 81).astype(int))
    assert is_still_linear(steps, curve(steps.astype(float)), 0.5) == linear
    assert not is_still_linear([1, 10_000], curve(np.array([1.0, 1e4])), 0.5)  # nothing is known of the middle


@pytest.mark.filterwarnings("error")
def test_planning_share_is_over_the_runs_whose_time_was_measurable() -> None:
    times = [(1.0, 1.0), (0.0, 0.0), (0.0, 5.0)]
    frame = pd.concat(
        [a_run("e", "a", s, [1, 10], 1.0, planning_seconds=p, acting_seconds=a) for s, (p, a) in enumerate(times)]
    )
    assert summary(frame).planning_share.tolist() == [0.25]
    untimed = summary(frame.assign(planning_seconds=0.0, acting_seconds=0.0))
    assert untimed.planning_share.isna().all()


def test_compare_pairs_shared_seeds_at_the_last_shared_step() -> None:
    frame = pd.concat(
        [
            *(a_run("river", "good", s, [1, 10, 100], [0.0, 1.0, 10.0 * s]) for s in (1, 2, 3, 4)),
            *(a_run("river", "bad", s, [1, 10, 100], [0.0, 2.0, 35.0 - s]) for s in (5, 4, 3, 2)),
            *(a_run("bandit", "good", s, [1, 10, 100], [0.0, 1.0, 99.0]) for s in (1, 2)),
            *(a_run("bandit", "bad", s, [1, 10], [0.0, 1.0 + s]) for s in (1, 2)),
            a_run("lonely", "good", 1, [1, 10], 1.0),
            a_run("apart", "good", 1, [1, 10], 1.0),
            a_run("apart", "bad", 2, [1, 10], 1.0),
        ]
    )
    found = compare(frame, "good", "bad")
    assert [e.environment for e in found.environments] == ["river", "bandit", "apart"]
    river, bandit, apart = found.environments
    # 20 against 33, 30 against 32, 40 against 31
    assert river == EnvironmentComparison(
        "river", 100, probability_of_improvement({2: 20.0, 3: 30.0, 4: 40.0}, {2: 33.0, 3: 32.0, 4: 31.0})
    )
    assert (river.improvement.wins, river.improvement.pairs) == (2, 3)
    assert (bandit.step, bandit.improvement.wins, bandit.improvement.difference) == (10, 2, -1.5)
    assert "share 2 of 3 checkpoints" in bandit.note
    assert (apart.improvement.pairs, apart.note) == (0, "no shared seeds")
    table = found.to_frame()
    assert table.pairs.tolist() == [3, 2, 0]
    assert table.probability.tolist()[:2] == [2 / 3, 1.0]
    assert table.note.tolist() == [e.note for e in found.environments]


def test_compare_takes_no_step_from_runs_without_a_partner() -> None:
    """A run of seed 9 that stopped early has no partner, and does not shorten the others."""
    frame = pd.concat(
        [
            a_run("e", "a", 1, [1, 10], [1.0, 2.0]),
            a_run("e", "b", 1, [1, 10], [1.0, 3.0]),
            a_run("e", "a", 9, [1], [1.0]),
        ]
    )
    (only,) = compare(frame, "a", "b", "regret").environments
    assert (only.step, only.improvement.difference, only.note) == (10, -1.0, "")


def test_compare_says_where_the_value_is_unknown_or_no_step_is_shared() -> None:
    frame = pd.concat(
        [
            *(a_run("dark", agent, s, [1, 10], 1.0, pseudo=np.nan) for agent in "ab" for s in (0, 1)),
            a_run("odd", "a", 0, [1, 10], 1.0),
            a_run("odd", "b", 0, [2, 20], 1.0),
        ]
    )
    dark, odd = compare(frame, "a", "b").environments
    assert (dark.improvement.pairs, dark.note) == (0, "pseudo_regret is unknown for 2 of 2 pairs")
    assert odd.improvement.pairs == 0
    assert "share 0 of 4 checkpoints" in odd.note
    assert compare(frame, "a", "b", "regret").environments[0].improvement.ties == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ucrl", "randon"), "no agent in the frame is 'randon'; did you mean 'random'"),
        (("ucrl", "ucrl"), "both agents are 'ucrl'"),
        (("ucrl", "random", "reward"), "value is 'reward'"),
    ],
)
def test_compare_refuses_other_arguments(arguments: Any, message: str) -> None:
    frame = an_experiment()
    with pytest.raises(InvalidArgumentError, match=message):
        compare(frame, *arguments)


def test_compare_refuses_agents_that_never_met() -> None:
    frame = pd.concat([a_run("e", "a", 0, [1], 1.0), a_run("f", "b", 0, [1], 1.0)])
    with pytest.raises(InvalidArgumentError, match="share no environment"):
        compare(frame, "a", "b")


def with_last(frame: pd.DataFrame, column: str, value: Any) -> pd.DataFrame:
    changed = frame.copy()
    changed[column] = [*changed[column][:-1], value]
    return changed


@pytest.mark.parametrize("function", [summary, curves])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns=["pseudo_regret", "seed"]), "no column 'seed', 'pseudo_regret'"),
        (lambda f: f.iloc[:0], "no rows"),
        (lambda f: f.to_dict(), "expected a pandas DataFrame"),
        (lambda f: pd.concat([f, f]), "'river/ucrl/0' has step 1 twice"),
        (lambda f: pd.concat([f, f.assign(run_id=f.run_id + "'")]), "seed 0 of 'ucrl' in 'river' has the runs"),
        (lambda f: f.assign(run_id="same"), "run_id 'same' has several"),
        (lambda f: with_last(f, "seed", 77), "run_id 'bandit/random/4' has several"),
        (lambda f: with_last(f, "agent", None), "agent is missing in row 99"),
        (lambda f: with_last(f, "step", -1), "step is -1 in some row"),
        (lambda f: with_last(f, "step", 99.5), "step is 99.5 in some row"),
        (lambda f: with_last(f, "step", np.nan), "step is nan in some row"),
        (lambda f: with_last(f, "pseudo_regret", np.inf), "'pseudo_regret' has infinite values"),
        (lambda f: f.assign(pseudo_regret="much"), "'pseudo_regret' has type"),
    ],
)
def test_frames_that_are_not_tidy_are_refused(function: Any, change: Any, message: str) -> None:
    frame = change(an_experiment())
    with pytest.raises(InvalidArgumentError, match=message):
        function(frame)


def test_curves_refuse_a_column_that_is_not_there() -> None:
    with pytest.raises(InvalidArgumentError, match="no column 'gain'"):
        curves(an_experiment(), "gain")


# ---------------------------------------------------------------------- words


def test_results_read_well() -> None:
    assert str(Interval(1234567.8, 0.12345, 2e6)) == "1,234,568 [0.1235, 2,000,000] (95 %)"
    assert str(bootstrap_interval([3.0])) == "3 [no interval] (95 %)"
    improvement = Improvement(0.85, 0.5, 0.99, -12.3, -20.0, -4.0, 10, 8, 1)
    assert str(improvement) == (
        "better in 8 of 10 pairs, 1 tied: probability 0.85 [0.5, 0.99], mean difference -12.3 [-20, -4] (95 %)"
    )
    assert str(GrowthExponent(0.5, 0.45, 0.55, 10, "mean curve", 0.9)) == (
        "steps^0.500 [0.45, 0.55] (90 %, the mean of 10 runs)"
    )
    assert str(GrowthExponent(math.nan, math.nan, math.nan, 1, "none")) == (
        "no growth exponent: regret unknown or not positive on average (1 run)"
    )
    nan = math.nan
    nothing = Improvement(nan, nan, nan, nan, nan, nan, 0, 0, 0)
    pair = (EnvironmentComparison("river", 100, improvement), EnvironmentComparison("x", 0, nothing, "no shared seeds"))
    assert str(Comparison("a", "b", "pseudo_regret", pair)).splitlines() == [
        "a against b, pseudo-regret on shared seeds (smaller is better)",
        f"  river at step 100: {improvement}",
        "  x: no pairs to compare (no shared seeds)",
    ]
