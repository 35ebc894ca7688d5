"""R. A. Howard, Dynamic Programming and Markov Processes, MIT Press 1960.

Data of the taxicab also in the public example "Cab" of P. Jensen's Operations Research Models and Methods pages,
which quotes the book. The figures of the book's policy iteration (two decimals; 1, 2, 10 for the toymaker) are given as
commonly quoted, without a page: each is compared with the rational value computed here, and agrees.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import gainful as gf
from tests.published.exact import PRECISION, Choice, arrays, evaluated, optimum


def trip(p: list[Fraction], r: list[int]) -> Choice:
    return p, sum((a * b for a, b in zip(p, r, strict=True)), Fraction(0))


# chapter 4, the taxicab problem: towns A, B, C; cruise, cab stand, radio call (no radio in B)
TAXICAB = [
    [
        trip([Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)], [10, 4, 8]),
        trip([Fraction(1, 16), Fraction(3, 4), Fraction(3, 16)], [8, 2, 4]),
        trip([Fraction(1, 4), Fraction(1, 8), Fraction(5, 8)], [4, 6, 4]),
    ],
    [
        trip([Fraction(1, 2), Fraction(0), Fraction(1, 2)], [14, 0, 18]),
        trip([Fraction(1, 16), Fraction(7, 8), Fraction(1, 16)], [8, 16, 8]),
    ],
    [
        trip([Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)], [10, 2, 8]),
        trip([Fraction(1, 8), Fraction(3, 4), Fraction(1, 8)], [6, 4, 2]),
        trip([Fraction(3, 4), Fraction(1, 16), Fraction(3, 16)], [4, 0, 8]),
    ],
]

# chapters 3 and 4, the toymaker: successful or not; without or with advertising (research when unsuccessful)
TOYMAKER = [
    [trip([Fraction(1, 2), Fraction(1, 2)], [9, 3]), trip([Fraction(4, 5), Fraction(1, 5)], [4, 4])],
    [trip([Fraction(2, 5), Fraction(3, 5)], [3, -7]), trip([Fraction(7, 10), Fraction(3, 10)], [1, -19])],
]


def taxicab() -> gf.MDP:
    P, R, allowed = arrays(TAXICAB)
    return gf.MDP(P, R, allowed=allowed, state_labels="ABC", action_labels=("cruise", "stand", "radio"))


def test_taxicab_gain_and_policy() -> None:
    gain, policy = optimum(TAXICAB)
    assert gain == Fraction(1588, 119)
    found = gf.solve(taxicab(), precision=PRECISION)
    assert found.gain == pytest.approx(float(gain), rel=0, abs=PRECISION)
    assert round(found.gain, 2) == 13.34
    assert found.actions is not None
    assert found.actions.tolist() == policy == [1, 1, 1]
    assert [found.action(town) for town in "ABC"] == ["stand"] * 3


def test_taxicab_relative_values() -> None:
    found = gf.solve(taxicab(), precision=PRECISION)
    relative = found.bias - found.bias[2]
    assert relative[:2].round(2).tolist() == [-1.18, 12.66]


@pytest.mark.parametrize(
    ("policy", "printed"), [((0, 0, 0), 9.20), ((0, 1, 1), 13.15), ((1, 1, 1), 13.34)], ids=["first", "second", "last"]
)
def test_taxicab_policies_met_by_policy_iteration(policy: tuple[int, ...], printed: float) -> None:
    gain, _ = evaluated([TAXICAB[s][a] for s, a in enumerate(policy)])
    found = gf.evaluate(taxicab(), np.array(policy))
    assert float(np.max(found.gain)) == pytest.approx(float(gain), rel=0, abs=PRECISION)
    assert float(np.min(found.gain)) == pytest.approx(float(gain), rel=0, abs=PRECISION)
    assert round(float(gain), 2) == printed


def test_toymaker() -> None:
    P, R, _ = arrays(TOYMAKER)
    found = gf.solve(gf.MDP(P, R), precision=PRECISION)
    assert optimum(TOYMAKER) == (Fraction(2), [1, 1])
    assert found.gain == pytest.approx(2.0, rel=0, abs=PRECISION)
    assert found.actions is not None
    assert found.actions.tolist() == [1, 1]
    assert found.bias[0] - found.bias[1] == pytest.approx(10.0, rel=0, abs=1e-6)


def test_toymaker_without_advertising_or_research() -> None:
    P, R, _ = arrays(TOYMAKER)
    found = gf.evaluate(gf.MDP(P, R), np.array([0, 0]))
    assert np.asarray(found.gain) == pytest.approx(1.0, rel=0, abs=PRECISION)
