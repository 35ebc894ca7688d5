from __future__ import annotations

import math

import pytest
from scipy.stats import binom

from gainful.audit.findings import Finding, Worst, compared, not_applicable
from gainful.audit.verdicts import clopper_pearson, judge, word_for


@pytest.mark.parametrize(("failures", "runs"), [(0, 59), (1, 100), (5, 60), (60, 60)])
def test_the_bounds_are_where_the_binomial_tails_are_five_per_cent(failures: int, runs: int) -> None:
    low, high = clopper_pearson(failures, runs)
    if failures:
        assert binom.sf(failures - 1, runs, low) == pytest.approx(0.05, abs=1e-9)
    else:
        assert low == 0.0
    if failures < runs:
        assert binom.cdf(failures, runs, high) == pytest.approx(0.05, abs=1e-9)
    else:
        assert high == 1.0


def test_fifty_nine_clean_runs_certify_one_in_twenty() -> None:
    assert word_for(0, 59, 0.05) == "certified"
    assert word_for(0, 58, 0.05) == "inconclusive"
    assert word_for(7, 59, 0.05) == "violated"
    assert word_for(6, 59, 0.05) == "inconclusive"


def test_what_may_not_fail_is_violated_by_one_failure() -> None:
    assert word_for(1, 10_000, 0.0) == "violated"
    assert word_for(0, 1, 0.0) == "certified"


def test_the_worst_case_is_the_failure_even_where_rounding_looks_worse() -> None:
    found = compared([1.0, 0.0 + 1e-30, 2.1], [1.0, 0.0, 2.0], [10, 20, 30], states=[7, 8, 9], rounding=1e-12)
    assert found.failures == 1
    assert found.worst is not None
    assert (found.worst.found, found.worst.episode, found.worst.step, found.worst.state) == (2.1, 3, 30, 9)
    assert found.worst.relation == ">"
    assert str(found.worst) == "2.1 > 2 (episode 3, step 30, state 9)"


def test_rounding_is_shown_as_such_and_ranks_last() -> None:
    found = compared([-5.0, 1e-13, -1e-3], 0.0, [10, 20, 30], rounding=1e-12)
    assert found.failures == 0
    assert found.worst is not None
    assert (found.worst.step, found.worst.relation) == (20, "≈")


def test_not_a_number_is_a_failure() -> None:
    found = compared([0.5, math.nan], 1.0, [1, 2])
    assert (found.failures, found.checks) == (1, 2)
    assert found.worst is not None
    assert found.worst.step == 2


def test_a_run_counts_once_however_often_it_failed() -> None:
    bad = Finding(100, 40, Worst(3.0, 2.0, 5, 50, excess=0.33))
    worse = Finding(100, 1, Worst(9.0, 2.0, 6, 60, excess=0.78))
    good = Finding(100, 0, Worst(1.0, 2.0, 7, 70, excess=-0.5))
    verdict = judge("optimism", [(0, bad), (1, worse), *((i, good) for i in range(2, 60))], 0.05, "")
    assert (verdict.failed_runs, verdict.runs, verdict.failures, verdict.checks) == (2, 60, 41, 6000)
    assert verdict.worst == Worst(9.0, 2.0, 6, 60, seed=1, excess=0.78)
    assert verdict.verdict == "inconclusive"


def test_what_does_not_apply_says_why() -> None:
    verdict = judge("optimism", [(0, not_applicable("c is too small"))], 0.05, "")
    assert (verdict.verdict, verdict.reason, verdict.broken) == ("not applicable", "c is too small", False)


def test_without_a_promise_nothing_is_broken() -> None:
    bad = Finding(1, 1, Worst(3.0, 2.0, 1, 1))
    runs = [(i, bad) for i in range(60)]
    assert judge("optimism", runs, 0.05, "bonus_scale is 0.1").verdict == "violated"
    assert not judge("optimism", runs, 0.05, "bonus_scale is 0.1").broken
    assert judge("optimism", runs, 0.05, "").broken
    assert judge("span", runs, 0.05, "bonus_scale is 0.1").broken  # whatever the constants are
