"""Hashed counts, counts of a density model, their names, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.errors import ConformanceError, InvalidArgumentError
from gainful.pseudo_counts.named import parse_counts
from gainful.testing import check_counts

VISITS = np.random.default_rng(0).integers(0, 9, (12, 3))


def by_definition(features: np.ndarray, visits: np.ndarray, state: int, action: int) -> Fraction:
    """N̂ = ρ(1-ρ′)/(ρ′-ρ) in exact arithmetic, the density after one more visit by counting again."""

    def density(n: np.ndarray) -> Fraction:
        found = Fraction(1)
        for column in features.T:
            found *= Fraction(int(n[column == column[state]].sum()), int(n.sum()))
        return found

    more = visits[:, action].copy()
    more[state] += 1
    before, after = density(visits[:, action]), density(more)
    return before * (1 - after) / (after - before)


def test_density_counts_are_those_of_the_definition() -> None:
    features = np.stack(np.unravel_index(np.arange(12), (3, 2, 2)), axis=1)
    found = gf.DensityCounts(features).table(VISITS)
    for s in range(12):
        for a in range(3):
            exact = float(by_definition(features, VISITS, s, a))
            assert found[s, a] == pytest.approx(exact, rel=1e-12, abs=0)


def test_a_density_of_one_feature_that_tells_states_apart_counts_exactly() -> None:
    large = VISITS * 10**9
    assert gf.DensityCounts(np.arange(12)).table(large) == pytest.approx(large, rel=1e-12, abs=0)
    alone = np.zeros((12, 3), dtype=np.int64)
    alone[5] = 7, 0, 1
    assert np.array_equal(gf.DensityCounts(np.arange(12)).table(alone), alone)


def test_a_cell_never_seen_whose_row_and_column_were_seems_familiar() -> None:
    visits = np.array([[4], [4], [4], [0]])
    assert gf.DensityCounts([[0, 0], [0, 1], [1, 0], [1, 1]]).table(visits)[3, 0] > 2.0


def test_hashed_counts_are_sums_over_equal_codes() -> None:
    codes = np.array([7, -1, 7, 3])
    found = gf.HashedCounts(codes).table(VISITS[:4])
    assert np.array_equal(found, [VISITS[:4][codes == code].sum(axis=0) for code in codes])


def test_simhash_keeps_neighbours_together_and_more_bits_tell_more_apart() -> None:
    features = np.random.default_rng(1).normal(size=(300, 5))
    twice = np.concatenate([features, features * (1 + 1e-12)])
    counts = gf.HashedCounts.simhash(twice, bits=8, seed=2)
    assert np.array_equal(counts.codes[:300], counts.codes[300:])
    sizes = [gf.HashedCounts.simhash(features, bits=bits).n_codes for bits in (1, 4, 16)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 100
    assert not np.array_equal(counts.codes, gf.HashedCounts.simhash(twice, bits=8, seed=3).codes)


@pytest.mark.parametrize("text", ["exact", "simhash:bits=3,seed=1,shape=3x4", "modulo:buckets=5", "density:shape=3x4"])
def test_counts_by_name_conform(text: str) -> None:
    assert str(parse_counts(text)) == text
    check_counts(lambda: parse_counts(text).make(12), 12, 2, steps=50)


@pytest.mark.parametrize(
    "text",
    ["", "exakt", "exact:bits=1", "simhash", "simhash:bits", "simhash:bits=-1", "simhash:bits=2x2", "modulo:buckets=",
     "modulo:buckets=9999999999999", "density:shape=3x", "density:shape=²", "density:x=1", ":", "modulo:buckets=2;"],
)  # fmt: skip
def test_a_name_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="counts is"):
        parse_counts(text)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda: gf.HashedCounts([0.5, 1.0]), "codes have"),
        (lambda: gf.HashedCounts([]), "codes have"),
        (lambda: gf.HashedCounts([[1], [2]]), "codes have"),
        (lambda: gf.HashedCounts.simhash([[1.0], [np.nan]], bits=2), "feature 0 of state 1 is nan"),
        (lambda: gf.HashedCounts.simhash([1.0, 2.0], bits=63), "bits is 63"),
        (lambda: gf.HashedCounts.modulo(5, 0), "buckets is 0"),
        (lambda: gf.DensityCounts("abc"), "features is"),
        (lambda: gf.DensityCounts(np.zeros((2, 2, 2))), "features have shape"),
        (lambda: gf.DensityCounts([]), "features have shape"),
        (lambda: parse_counts("density:shape=2x3").make(7), "shape=2x3 has 6 states"),
        (lambda: parse_counts("density:shape=0x3").make(7), "shape is 0"),
        (lambda: parse_counts("modulo:buckets=0").make(7), "buckets is 0"),
    ],
)  # fmt: skip
def test_features_and_codes_that_are_none_are_refused(make: Any, found: str) -> None:
    with pytest.raises(InvalidArgumentError, match=found):
        make()


class Learned:
    """Counts of the user's own, which see every step; broken in a way that the test chooses."""

    def __init__(self, broken: str = "") -> None:
        self.seen, self.broken = np.zeros((4, 2)), broken

    def update(self, state: int, action: int) -> None:
        self.seen[state, action] += -1 if self.broken == "falls" else 1

    def count(self, state: int, action: int) -> float:
        if self.broken == "asking":
            self.seen += 1
        if self.broken == "random":
            return float(np.random.default_rng().random())
        return float("nan") if self.broken == "nan" else float(10 + self.seen[state, action])


def test_counts_that_see_every_step_conform() -> None:
    check_counts(Learned, 4, 2)


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        ("nan", "finite numbers of at least 0"),
        ("asking", "asking for counts changes nothing"),
        ("random", "changes nothing|the same steps"),
        ("falls", "does not lower"),
    ],
)  # fmt: skip
def test_broken_counts_are_caught(broken: str, promise: str) -> None:
    with pytest.raises(ConformanceError, match=promise):
        check_counts(lambda: Learned(broken), 4, 2)
