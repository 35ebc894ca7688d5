"""Cards for notebooks: a title, facts and tables as plain HTML, with every text escaped and no colours of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

CURVE_WIDTH, CURVE_HEIGHT, ROOM_LEFT, ROOM_BELOW, ROOM_ABOVE = 360, 180, 52, 40, 22
"""The size of a curve in pixels, and the room for its axes and title."""
MOST_ROWS = 30
"""Rows of a table that a card shows."""


def card(title: str, facts: Mapping[str, str], *parts: str) -> str:
    """A card with a title, a table of facts, and further HTML made by the functions below.

    >>> card("Run", {"seed": "<1>"})
    '<div><strong>Run</strong><table><tr><th style="text-align:left">seed</th><td>&lt;1&gt;</td></tr></table></div>'
    """
    rows = [(f'<th style="text-align:left">{escape(name)}</th>', escape(text)) for name, text in facts.items()]
    lines = "".join(f"<tr>{head}<td>{text}</td></tr>" for head, text in rows)
    return f"<div><strong>{escape(title)}</strong><table>{lines}</table>{''.join(parts)}</div>"


def rows_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a line of headings.

    >>> rows_table(["state"], [["a & b"]])
    '<table><thead><tr><th>state</th></tr></thead><tbody><tr><td>a &amp; b</td></tr></tbody></table>'
    """
    first = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def left_out(shown: int, total: int, of: str, where: str = "") -> str:
    """A line that says how many rows were left out, and where they are; empty if none were.

    >>> left_out(30, 31, "states", "plan.to_frame()")
    '<p>… and 1 more states; <code>plan.to_frame()</code> has all of them</p>'
    """
    if shown >= total:
        return ""
    source = f"; <code>{escape(where)}</code> has all of them" if where else ""
    return f"<p>… and {total - shown:,} more {escape(of)}{source}</p>"


def logarithmic_curve(steps: NDArray[np.int64], values: NDArray[np.float64], name: str) -> str:
    """The positive part of a curve over steps, with axes, both logarithmic; empty if that is no line."""
    drawn = np.isfinite(values) & (values > 0.0)
    if drawn.sum() < 2:
        return ""
    x, y = np.log10(steps[drawn]), np.log10(values[drawn])
    across, up = (
        _Axis(x[0], x[-1], ROOM_LEFT, CURVE_WIDTH - 12),
        _Axis(y.min(), y.max(), CURVE_HEIGHT - ROOM_BELOW, ROOM_ABOVE),
    )
    points = " ".join(f"{across(a):.1f},{up(b):.1f}" for a, b in zip(x, y, strict=True))
    grid = [
        f'<path d="M{ROOM_LEFT} {up(k):.1f}H{CURVE_WIDTH - 12}" stroke="currentColor" opacity="0.15"/>'
        f'<text x="{ROOM_LEFT - 6}" y="{up(k) + 4:.1f}" text-anchor="end">{_power(k)}</text>'
        for k in up.powers
    ]
    grid += [
        f'<text x="{across(k):.1f}" y="{CURVE_HEIGHT - 22}" text-anchor="middle">{_power(k)}</text>'
        for k in across.powers
    ]
    middle = (ROOM_LEFT + CURVE_WIDTH) // 2
    return (
        f'<svg width="{CURVE_WIDTH}" height="{CURVE_HEIGHT}" viewBox="0 0 {CURVE_WIDTH} {CURVE_HEIGHT}" role="img" '
        'font-family="sans-serif" font-size="11" fill="currentColor">'
        f"<title>{escape(name)} against steps, both axes logarithmic</title>"
        f'<text x="0" y="12" font-size="12">{escape(name)}</text>'
        f'{"".join(grid)}<text x="{middle}" y="{CURVE_HEIGHT - 5}" font-size="12" text-anchor="middle">steps</text>'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
    )


class _Axis:
    """A logarithmic axis between two pixels: called with an exponent of ten, it gives its pixel."""

    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        self._low, self._high = floor(low + 1e-9), max(ceil(high - 1e-9), floor(low + 1e-9) + 1)
        self._first, self._scale = first, (last - first) / (self._high - self._low)

    def __call__(self, exponent: float) -> float:
        return self._first + (exponent - self._low) * self._scale

    @property
    def powers(self) -> range:
        """At most six exponents to write beside the axis."""
        return range(self._low, self._high + 1, ceil((self._high - self._low) / 5))


def _power(exponent: int) -> str:
    """A power of ten in few characters.

    >>> _power(0), _power(3), _power(6), _power(-3)
    ('1', '1000', '10⁶', '10⁻³')
    """
    if -2 <= exponent <= 3:
        return f"{10.0**exponent:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
