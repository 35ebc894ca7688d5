"""Numbers in output: as many digits as are known, and brackets that remain valid when rounded."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from gainful.number_text import count as count


def bracket(low: float, high: float, precision: float) -> tuple[str, str, str]:
    """The middle and both ends of a bracket, to about a hundredth of the precision; the ends are rounded outwards.

    >>> bracket(0.123456783, 0.123456793, 1e-8)
    ('0.1234567880', '0.1234567830', '0.1234567930')
    >>> bracket(2.0, 2.0, 1e-8)
    ('2.0000000000', '2.0000000000', '2.0000000000')
    """
    largest = max(abs(low), abs(high))
    last = math.floor(math.log10(max(high - low, precision))) - 2  # the power of ten of the last digit shown
    fixed = last >= -15 and largest < 1e15
    middle = Decimal(low) + (Decimal(high) - Decimal(low)) / 2
    ends = ((middle, ROUND_HALF_EVEN), (Decimal(low), ROUND_FLOOR), (Decimal(high), ROUND_CEILING))
    shown = []
    for value, rounding in ends:
        rounded = value.quantize(Decimal(1).scaleb(min(last, 0) if fixed else last), context=Context(400, rounding))
        shown.append(f"{rounded:zf}" if fixed else f"{rounded.normalize(Context(400)):e}")
    return shown[0], shown[1], shown[2]


def shortest(value: float) -> str:
    """The number as Python writes it, without a trailing `.0`.

    >>> shortest(3.0), shortest(0.1), shortest(-0.0)
    ('3', '0.1', '0')
    """
    return repr(value + 0.0).removesuffix(".0")


def digits(value: float, significant: int = 6) -> str:
    """A number with this many significant digits; a larger one is whole.

    >>> digits(14.719581), digits(0.0), digits(27_576.14), digits(1_234_567.0), digits(0.00001234)
    ('14.7196', '0', '27,576.1', '1,234,567', '1.234e-05')
    """
    return f"{value:,.0f}" if 10**significant <= abs(value) < 1e15 else f"{value + 0.0:,.{significant}g}"


def column(values: list[float], spread: float) -> list[str]:
    """The numbers of one column, with the same decimals: about six digits of `spread`.

    >>> column([0.0, -1.5, 2.25], 3.75)
    ['0.00000', '-1.50000', '2.25000']
    """
    if spread == 0.0:
        return [digits(v) for v in values]
    decimals = 5 - math.floor(math.log10(spread))
    if not 0 <= decimals <= 12:
        return [f"{v + 0.0:.5e}" for v in values]
    return [f"{v:z.{decimals}f}" for v in values]


def amount(value: float, beside: float = 0.0) -> str:
    """A number of any size without an exponent: four digits, or whole; 0 if it is nothing `beside` another one.

    >>> amount(28_091.4), amount(426.83), amount(0.00123456), amount(8.882e-18, 0.45), amount(0.0)
    ('28,091', '426.8', '0.001235', '0', '0')
    """
    size = abs(value)
    if size <= 1e-12 * abs(beside) or size < 1e-12:
        return "0"
    decimals = 3 - math.floor(math.log10(size))
    return f"{value:,.{max(decimals, 0)}f}" if size < 1e15 else f"{value:.4g}"


def large(value: float) -> str:
    """A large number in words, to three digits.

    >>> large(1.39e9), large(23_456_789.0), large(84_321.0), large(12.0)
    ('1.39 billion', '23.5 million', '84,300', '12')
    """
    for scale, word in ((1e9, "billion"), (1e6, "million")):
        if value >= 0.9995 * scale:
            return f"{value / scale:.3g} {word}"
    return f"{float(f'{value:.3g}'):,.0f}"


def seconds(value: float) -> str:
    """A duration.

    >>> seconds(0.00042), seconds(1.234), seconds(75.0)
    ('0.42 ms', '1.23 s', '75 s')
    """
    if value < 0.1:
        return f"{1000 * value:.2g} ms" if value < 0.01 else f"{1000 * value:.0f} ms"
    return f"{value:.3g} s"
