"""A curve drawn in characters, for terminals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

Scale: TypeAlias = Literal["logarithmic", "linear"]

SMALLEST_SHARE = 1e-4
"""An axis for both signs is linear between minus and plus this share of the largest value, or the smallest value."""


class Axis(NamedTuple):
    """Where a value lies on the vertical axis, and what the axis is called."""

    name: str
    position: Callable[[float], float]


def axis_for(values: Sequence[float], scale: Scale) -> Axis:
    """The vertical axis of a curve: logarithmic on both sides of zero if there are negative values."""
    if scale == "linear":
        return Axis("linear", float)
    if min(values) >= 0.0:
        return Axis("logarithmic", math.log10)
    sizes = [abs(y) for y in values if y != 0.0]
    unit = max(min(sizes), SMALLEST_SHARE * max(sizes))
    return Axis(
        "logarithmic on both sides of 0", lambda y: math.copysign(math.log10(1.0 + abs(y) / unit), y) if y else 0.0
    )


def sketch(
    steps: Sequence[int], values: Sequence[float], width: int = 60, height: int = 12, *, scale: Scale = "logarithmic"
) -> list[str]:
    """Lines that draw the curve, over steps on a logarithmic axis; the last ones name what could not be drawn.

    Values are on a logarithmic axis too, on both sides of zero if there are negative ones, or on a linear one.
    """
    known = [(s, y) for s, y in zip(steps, values, strict=True) if math.isfinite(y)]
    notes = [_left_out(len(values) - len(known), len(values), "unknown, and not drawn")]
    if not known:
        return ["(nothing is known to draw)"]
    axis = axis_for([y for _, y in known], scale)
    drawn = [(s, y) for s, y in known if axis.name != "logarithmic" or y > 0.0]
    notes.append(_left_out(len(known) - len(drawn), len(values), "0, which a logarithmic axis does not have"))
    if not drawn:
        return ["(0 all along)"]
    low, high = min(y for _, y in drawn), max(y for _, y in drawn)
    if low == high:
        return [f"({low:.3g} all along)", *filter(None, notes)]
    first, last = known[0][0], known[-1][0]
    points = [(_share(s, first, last), axis.position(y)) for s, y in drawn]
    rows = _points(points, width, height)
    label = {0: _label(high), height - 1: _label(low)}
    if low < 0.0 < high:
        bottom, top = axis.position(low), axis.position(high)
        zero = height - 1 - round((0.0 - bottom) / (top - bottom) * (height - 1))
        label.setdefault(zero, "0")
    lines = [f"{label.get(i, ''):>9} {'┤' if i in label else '│'}{row.rstrip()}" for i, row in enumerate(rows)]
    left, right = f"{first:,}", f"{last:,}"
    below = [" " * 10 + "└" + "─" * width, " " * 11 + left + right.rjust(width - len(left))]
    return [*lines, *below, *filter(None, notes)]


def _label(value: float) -> str:
    """A value beside its axis, to three digits, with an exponent only if it needs one.

    >>> _label(16_010.4), _label(0.4236), _label(2.5e9)
    ('16,000', '0.424', '2.5e+09')
    """
    return f"{float(f'{value:.3g}'):,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def _share(step: int, first: int, last: int) -> float:
    """Where a step lies between the first and the last, on a logarithmic axis, from 0 to 1."""
    return math.log(step / first) / math.log(last / first) if last > first else 0.0


def _points(points: list[tuple[float, float]], width: int, height: int) -> list[str]:
    """The rows of the picture, from the top; x is in [0, 1]."""
    low, high = min(y for _, y in points), max(y for _, y in points)
    rows = [[" "] * width for _ in range(height)]
    for x, y in points:
        rows[height - 1 - round((y - low) / (high - low) * (height - 1))][round(x * (width - 1))] = "•"
    return ["".join(row) for row in rows]


def _left_out(n: int, total: int, why: str) -> str:
    """A line about points that are not drawn; empty if there are none."""
    return f"({n} of {total} points {'is' if n == 1 else 'are'} {why})" if n else ""
