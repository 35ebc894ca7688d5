"""The colours and dashes of series, shared by the figures and the report page. Needs no matplotlib."""

from __future__ import annotations

SERIES_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7F3C1D")
"""Okabe and Ito's palette, which colour-blind readers can tell apart, with a brown for its yellow, which is too pale on
white paper; a darker yellow looks like the orange to many of them."""
DARK_SERIES_COLOURS = ("#4FA8E0", "#F07A2B", "#1FC296", "#E09BC2", "#8FD0F5", "#E69F00", "#F5F5F5", "#A0643C")
"""The same hues for a dark background."""
DASH_PATTERNS: tuple[tuple[float, ...], ...] = ((), (5.0, 2.0), (1.5, 1.5), (6.0, 2.0, 1.5, 2.0))
"""Lengths of dashes and gaps in line widths; the first pattern is a solid line."""


def series_style(number: int) -> tuple[int, int]:
    """Indices of the colour and the dash pattern of series `number`: eight solid colours, then the same ones dashed.

    >>> series_style(0), series_style(9)
    ((0, 0), (1, 1))
    """
    n = len(SERIES_COLOURS)
    return number % n, number // n % len(DASH_PATTERNS)


def darker(colour: str, by: float = 0.78) -> str:
    """A darker shade, for small text on white.

    >>> darker("#ff8000", 0.5)
    '#804000'
    """
    return "#" + "".join(f"{round(int(colour[i : i + 2], 16) * by):02x}" for i in (1, 3, 5))
