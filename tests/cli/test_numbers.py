"""Numbers for people: a bracket stays valid after rounding."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from gainful.cli import numbers

finite = st.floats(-1e12, 1e12)


@given(finite, st.floats(0.0, 1.0), st.floats(1e-12, 1.0))
def test_a_shown_bracket_contains_the_true_one(low: float, width: float, precision: float) -> None:
    high = low + width
    middle, below, above = numbers.bracket(low, high, precision)
    assert Decimal(below) <= Decimal(low)
    assert Decimal(high) <= Decimal(above)
    assert Decimal(below) <= Decimal(middle) <= Decimal(above)


def test_tiny_and_huge_numbers() -> None:
    assert numbers.bracket(-1e-12, 1e-12, 1e-8) == ("0.0000000000", "-0.0000000001", "0.0000000001")
    assert numbers.bracket(2.0**-70, 2.0**-69, 1e-25) == ("1.271e-21", "8.47e-22", "1.695e-21")
    assert numbers.bracket(12345.5, 12399.25, 1.0) == ("12372.4", "12345.5", "12399.3")
    assert numbers.column([0.0, 1e-20], 1e-20) == ["0.00000e+00", "1.00000e-20"]
    assert numbers.column([0.0, -1e-9], 1.0) == ["0.00000", "0.00000"]
    assert numbers.column([0.0, 3.0], 0.0) == ["0", "3"]
    assert numbers.seconds(0.05) == "50 ms"
    assert numbers.count(1, "state") == "1 state"
    assert numbers.count(12000, "state") == "12,000 states"
