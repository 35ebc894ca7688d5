"""Widths of figures, with sizes of text that can be read there. Needs no matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from gainful.errors import InvalidArgumentError

Width: TypeAlias = Literal["column", "page", "slide"]


@dataclass(frozen=True)
class TextSizes:
    """Sizes of text in points, and the width of lines."""

    title: float = 11.5
    axis: float = 10.0
    tick: float = 9.0
    name: float = 9.5
    below: float = 9.0
    note: float = 7.5
    line: float = 1.8


USUAL_SIZES = TextSizes()


@dataclass(frozen=True)
class Preset:
    """A figure of a fixed width."""

    width: float
    """Inches."""
    panel_height: float
    sizes: TextSizes
    columns: int
    """The most panels side by side."""
    longest_name: int
    """Characters after which the name of a line is broken."""


PRESETS: dict[str, Preset] = {
    "column": Preset(3.25, 1.9, TextSizes(8.5, 8.0, 7.0, 7.0, 6.5, 5.5, 1.3), 1, 14),
    "page": Preset(6.75, 2.3, TextSizes(9.5, 9.0, 8.0, 8.0, 7.5, 6.0, 1.5), 2, 14),
    "slide": Preset(12.0, 4.6, TextSizes(22.0, 20.0, 17.0, 17.0, 15.0, 11.0, 3.2), 2, 13),
}
"""A column of a paper with two, the whole width of its page, and a slide with the proportions 16:9."""


def preset_of(width: str | None) -> Preset | None:
    """The preset of a name, or None for None."""
    if width is None:
        return None
    if width not in PRESETS:
        raise InvalidArgumentError("width", width, f"one of {', '.join(PRESETS)}, or None")
    return PRESETS[width]
