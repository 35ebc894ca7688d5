"""Numbers for people, wherever text is written."""

from __future__ import annotations


def count(n: int, word: str) -> str:
    """A number of things.

    >>> count(1, "state"), count(12_000, "state")
    ('1 state', '12,000 states')
    """
    return f"{n:,} {word}" + ("" if n == 1 else "s")


def four_digits(x: float) -> str:
    """Four digits, or a whole number; an exponent only where there would be many zeros, or too many digits to read.

    >>> four_digits(496_612.0), four_digits(6.3172), four_digits(-1139.2), four_digits(0.0), four_digits(9.77e-15)
    ('496,612', '6.317', '-1,139', '0', '9.77e-15')
    """
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e15 else f"{x + 0.0:.4g}"
