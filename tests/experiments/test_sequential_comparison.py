"""Comparisons that are looked at again and again: decided once, at one error for all pairs and looks."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from gainful.errors import InvalidArgumentError
from gainful.experiments.sequential_comparison import compare_sequentially, most_equal_pairs
from gainful.experiments.sequential_test import PairTest, SequentialDesign, SignFlips

SMALL = SequentialDesign(error=0.05, seeds_per_interim=10, max_interims=4, flips=4_000)


def decided(found: Any) -> set[tuple[str, str, str, int]]:
    return {(pair.environment, pair.better, pair.worse, pair.seeds) for pair in found.pairs if pair.decided}


def test_agents_that_differ_are_ordered_and_equal_ones_stay_undecided() -> None:
    rng = np.random.default_rng(4)
    means = {"good": 0.0, "also good": 0.0, "bad": 3.0}
    river = {name: rng.normal(mean, 1.0, 40) for name, mean in means.items()}
    found = compare_sequentially({"river": river, "alone": {"good": river["good"]}}, SMALL)
    assert {(better, worse) for _, better, worse, _ in decided(found)} == {("good", "bad"), ("also good", "bad")}
    (open_pair,) = found.undecided
    assert open_pair.seeds == 40
    assert "undecided after 40 seeds" in open_pair.sentence
    assert not found.decided
    assert found.finished
    assert found.open_agents("river") == ["good", "also good"]
    assert found.open_agents("alone") == []


def test_rewards_are_better_the_larger() -> None:
    values = {"low": np.arange(10.0), "high": np.arange(10.0) + 5.0}
    design = SequentialDesign(seeds_per_interim=10, max_interims=2)
    assert decided(compare_sequentially({"e": values}, design)) == {("e", "low", "high", 10)}
    found = compare_sequentially({"e": values}, design, larger_is_better=["e"])
    assert decided(found) == {("e", "high", "low", 10)}
    assert found.pairs[0].difference == 5.0


def test_what_is_decided_does_not_depend_on_seeds_that_came_later_nor_on_when_it_is_asked() -> None:
    rng = np.random.default_rng(5)
    values = {"a": rng.normal(0.0, 1.0, 40), "b": rng.normal(0.9, 1.0, 40), "c": rng.normal(4.0, 1.0, 40)}
    whole = compare_sequentially({"e": values}, SMALL)
    assert whole.decided
    for interims in range(1, 5):
        part = compare_sequentially({"e": {name: v[: 10 * interims + 3] for name, v in values.items()}}, SMALL)
        assert decided(part) == {one for one in decided(whole) if one[3] <= 10 * part.interims}
    # an agent whose comparisons are decided needs no more seeds
    needed = {name: v[: whole.seeds_used["e"][name]] for name, v in values.items()}
    assert min(map(len, needed.values())) < 40
    assert compare_sequentially({"e": needed}, SMALL) == whole


def test_identical_agents_are_never_decided() -> None:
    same = np.random.default_rng(1).normal(size=40)
    found = compare_sequentially({"e": {"a": same, "b": same}}, SMALL)
    assert not found.pairs[0].decided


def test_the_first_look_decides_as_often_as_an_exact_test_of_its_level() -> None:
    # with one look, the test is the sign-flip test at level α: compare with all 2¹⁰ flips
    design = SequentialDesign(seeds_per_interim=10, max_interims=1, flips=60_000)
    signs = np.array([[1 if i >> j & 1 else -1 for j in range(10)] for i in range(2**10)])
    flips, agreed = SignFlips(design), 0
    for shift in np.linspace(0.0, 1.5, 40):
        d = np.random.default_rng(int(100 * shift)).normal(shift, 1.0, 10)
        exact = float((np.abs(signs @ d) >= abs(d.sum()) - 1e-9).mean())
        test = PairTest(flips)
        test.add(d)
        if abs(exact - 0.05) > 0.005:  # five standard errors of the share of drawn flips
            assert (test.divisor(1) == 1) == (exact <= 0.05)
            agreed += 1
    assert agreed > 30


def test_the_number_of_pairs_that_can_be_equal() -> None:
    def by_enumeration(agents: int, different: int) -> int:
        counts: set[int] = set()
        for groups in np.ndindex(*(agents,) * agents):
            equal = sum(int(groups[i] == groups[j]) for i, j in combinations(range(agents), 2))
            if equal <= agents * (agents - 1) // 2 - different:
                counts.add(equal)
        return max(counts)

    for agents in (2, 3, 4):
        for different in range(agents * (agents - 1) // 2 + 1):
            assert most_equal_pairs(agents, different) == by_enumeration(agents, different)


@pytest.mark.parametrize(
    ("values", "design", "words"),
    [
        ({"e": {"a": [1.0] * 10}}, {}, "nothing to compare"),
        ({"e": {"a": [1.0] * 10, "b": [1.0, np.nan] * 5}}, {}, "not a list of finite numbers"),
        ({"e": {"a": [1.0] * 10, "b": [1.0] * 9}}, {}, "too few seeds"),
        ({"e": {"a": [1.0] * 10, "b": [1.0] * 10}}, {"max_interims": 1, "seeds_per_interim": 5}, "by chance"),
        ({"e": {"a": [1.0] * 10, "b": [1.0] * 10}}, {"flips": 100}, "at least 200"),
        ({"e": {}}, {"error": 1.0}, "between 0 and 1"),
        ({"e": {}}, {"max_interims": 0}, "at least 1"),
    ],
    ids=["one agent", "nan", "too few seeds", "undecidable", "too few flips", "error", "no looks"],
)
def test_what_cannot_be_compared(values: Any, design: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        compare_sequentially(values, SequentialDesign(**design))


@pytest.mark.slow
@pytest.mark.parametrize("differs", [False, True], ids=["all equal", "one of four differs"])
def test_the_error_of_a_thousand_studies(differs: bool) -> None:
    # strong sense: also where one agent differs, the probability of a wrong decision is at most 5 %
    wrong, studies = 0, 1_000
    for seed in range(studies):
        rng = np.random.default_rng(seed)
        values = {name: rng.normal(size=30) for name in "abcd"}
        values["d"] = values["d"] + 3.0 * differs
        found = compare_sequentially({"e": values}, SequentialDesign(0.05, 10, 3, flips=2_000, seed=seed))
        wrong += any("d" not in (pair.better, pair.worse) or not differs for pair in found.pairs if pair.decided)
    assert wrong <= 72  # 0.1 % quantile of 1,000 trials at 5 %
    if differs:
        assert wrong > 0  # a comparison that never decides anything has no error either
