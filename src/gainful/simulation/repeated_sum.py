"""The same number added many times, with the roundings of a loop and without the loop."""

from __future__ import annotations

import math
from typing import Any

from gainful._compiled import inlined

MANTISSA = 53
"""Bits of the mantissa of a float64."""
FEW = 8
"""Additions that are made one by one: quicker than finding out how many of them round alike."""


@inlined
def repeated_sum(total: float, amount: float, n: Any) -> Any:
    """The total after adding `amount` n times, one by one, as a loop of steps does: equal bits.

    Between two powers of 2 all totals are multiples of one unit, so that each addition rounds alike and adds the same
    `step`, unless it is a tie. All additions up to the next power of 2 are therefore one product, which is exact.
    """
    if amount == math.floor(amount):
        return total + n * amount  # whole numbers: no rounding
    if n <= FEW:
        for _ in range(n):
            total += amount
        return total
    while n > 0:
        after = total + amount
        step = after - total
        exponent = math.frexp(total)[1]
        at_once = 1
        if total > 0.0 and step > 0.0 and 2.0 * abs(amount - step) != math.ldexp(1.0, exponent - MANTISSA):
            room = min((math.ldexp(1.0, exponent) - total) / step, float(n))
            at_once = max(1, min(n, int(room) - 2))
        total = after + (at_once - 1) * step
        n -= at_once
    return total
