"""Names of lines at their right ends, moved apart where they would touch."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.plot.palette import darker
from gainful.plot.panels import Floats, Line
from gainful.plot.presets import USUAL_SIZES, TextSizes
from gainful.plot.style import look, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE_SPACING = 1.25
"""Height of a line of text in sizes of its font."""


def broken_name(name: str, longest: int | None) -> str:
    """A name on one line, or broken at spaces into lines of up to `longest` characters, three at most."""
    if longest is None:
        return shown(name, 40)
    lines = textwrap.wrap(shown(name, 3 * longest), longest, break_long_words=True)
    return "\n".join([*lines[:2], shown(" ".join(lines[2:]), longest)] if len(lines) > 3 else lines)


def name_ends(
    figure: Figure,
    ax: Axes,
    lines: list[Line],
    panel_height: float,
    sizes: TextSizes = USUAL_SIZES,
    longest: int | None = None,
) -> float:
    """Write every name to the right of its line; the inches that the names need, or -1 if they do not fit.

    `panel_height` is the height that the axes will have, in inches. Names that do not fit are not written.
    """
    from matplotlib.transforms import ScaledTranslation

    names = [broken_name(line.agent, longest) for line in lines]
    heights = np.array([(1 + n.count("\n")) * LINE_SPACING * sizes.name / 72 for n in names]) / panel_height
    if longest is None:
        heights = np.full(len(names), 0.22 / PANEL_INCHES)
    if len(names) > 1 and heights.sum() > 1.15:
        return -1.0
    last = [(line, int(np.flatnonzero(np.isfinite(line.centre))[-1])) for line in lines]
    ends = np.array([[float(line.steps[i]), max(float(line.centre[i]), ax.get_ylim()[0])] for line, i in last])
    places = ax.transAxes.inverted().transform(ax.transData.transform(ends))[:, 1]
    beside = ax.transAxes + ScaledTranslation(1.5 * sizes.name / 72, 0.0, figure.dpi_scale_trans)
    for name, (line, _), end, place in zip(names, last, ends, apart(places, heights), strict=True):
        colour = look(line.number)[0]
        leader = {
            "arrowstyle": "-",
            "color": colour,
            "linewidth": 0.45 * sizes.line,
            "shrinkA": 1,
            "shrinkB": 0,
            "relpos": (0.0, 0.5),
        }
        ax.annotate(
            name,
            (end[0], end[1]),
            xytext=(1.0, place),
            textcoords=beside,
            va="center",
            ha="left",
            fontsize=sizes.name,
            linespacing=1.0,
            color=darker(colour),
            arrowprops=leader,
            annotation_clip=False,
            parse_math=False,
            usetex=False,
        )
    return widest(figure, names, sizes.name) + 1.6 * sizes.name / 72


def widest(figure: Figure, names: list[str], size: float) -> float:
    """The inches of the widest of some texts."""
    # of the text alone: the extent of an annotation has its leader too
    texts = [figure.text(0, 0, name, fontsize=size, parse_math=False) for name in names]
    wide = max(float(text.get_window_extent().width) for text in texts) / figure.dpi
    for text in texts:
        text.remove()
    return wide


PANEL_INCHES = 3.3
"""Height of a single panel whose figure has no preset width."""


def apart(places: Floats, gap: Any, low: float = 0.0, high: float = 1.0) -> Floats:
    """The middles nearest (in squares) to the given ones of texts that do not touch, inside [low, high], in order.

    `gap` is the height of each, or of all.

    >>> apart(np.array([0.5, 0.5, 0.9]), 0.1).round(6).tolist()
    [0.45, 0.55, 0.9]
    """
    order = np.argsort(places, kind="stable")
    heights = np.broadcast_to(np.asarray(gap, dtype=np.float64), places.shape)[order]
    offsets = np.append(0.0, np.cumsum((heights[1:] + heights[:-1]) / 2))
    low, high = low + heights[0] / 2, high - heights[-1] / 2
    if offsets[-1] > high - low:
        offsets *= max(0.0, high - low) / offsets[-1]
    wanted = places[order] - offsets
    blocks: list[tuple[float, int]] = []  # means and sizes: pool adjacent violators
    for place in wanted:
        mean, size = float(place), 1
        while blocks and blocks[-1][0] > mean:
            before, n = blocks.pop()
            mean, size = (mean * size + before * n) / (size + n), size + n
        blocks.append((mean, size))
    flat = np.repeat([m for m, _ in blocks], [n for _, n in blocks])
    flat = np.clip(flat, low, high - offsets[-1])
    found = np.empty(places.size)
    found[order] = flat + offsets
    return found
