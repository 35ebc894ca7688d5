from __future__ import annotations

import math

import pytest
from scipy.stats import binom

import gainful as gf
from gainful.audit import audit
from gainful.audit.findings import Finding, Worst, compared, not_applicable
from gainful.audit.verdicts import Verdict, clopper_pearson, judge, with_implications, word_for


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


def found_in(names: dict[str, Finding]) -> dict[str, Verdict]:
    return with_implications({name: judge(name, [(0, finding)], 0.05, "") for name, finding in names.items()})


def test_a_statement_that_follows_from_others_that_held_says_so() -> None:
    held, failed = Finding(3, 0, None), Finding(3, 1, None)
    both = found_in({"span": held, "feasible": held})
    assert (both["feasible"].verdict, both["feasible"].words, both["span"].verdict) == (
        "implied",
        "implied by span",
        "certified",
    )
    assert found_in({"span": failed, "feasible": held})["feasible"].verdict == "certified"
    assert found_in({"feasible": held})["feasible"].verdict == "certified"  # nobody looked at the span
    assert found_in({"span": held, "feasible": failed})["feasible"].verdict == "violated"
    assert found_in({"span": not_applicable("why"), "feasible": held})["feasible"].verdict == "certified"
    assert found_in({"unichain": held})["unichain"].words == "implied by the definition of p̂"


def test_a_statement_cannot_fail_where_all_that_is_possible_is_allowed_in_every_run() -> None:
    sure, unsure = compared([1.0, 2.0], [5.0, 5.0], [1, 2], certain=[True, True]), compared([1.0], [5.0], [1])
    assert judge("regret-bound", [(0, sure), (1, sure)], 0.05, "").verdict == "cannot fail here"
    assert judge("regret-bound", [(0, sure), (1, unsure)], 0.05, "").verdict == "inconclusive"
    assert not compared([1.0, 2.0], [5.0, 5.0], [1, 2], certain=[True, False]).certain
    assert Finding.from_dict(sure.to_dict()) == sure


def test_the_regret_bound_cannot_fail_on_a_short_riverswim() -> None:
    found = audit(lambda seed: gf.SCALPlus(6, 2, span=7.0, seed=seed), gf.environments.riverswim(6), 1000, runs=2)
    assert found["regret-bound"].verdict == found["decomposition"].verdict == "cannot fail here"
    assert found["bonus-bias"].words == "implied by bonus-rewards and bonus-transitions"
    assert found["optimism"].verdict == "inconclusive"
    assert found["episode-count"].words == "implied by episode-rule"
    assert found.ok
