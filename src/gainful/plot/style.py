"""What all figures share: new figures, axes, headings, legends, and text that is never read as markup."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from gainful.errors import InvalidArgumentError
from gainful.plot.palette import DASH_PATTERNS, SERIES_COLOURS, series_style
from gainful.plot.presets import USUAL_SIZES, TextSizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text

INK, PALE, HAIR = "#222222", "#666666", "#d9d9d9"


def look(number: int) -> tuple[str, Any]:
    """Colour and matplotlib line style of series `number`."""
    colour, dashes = series_style(number)
    pattern = DASH_PATTERNS[dashes]
    return SERIES_COLOURS[colour], (0, pattern) if pattern else "-"


def encodable(label: Any) -> str:
    """The label with lone surrogates, which no file can hold, as escapes."""
    return str(label).encode("utf-8", "backslashreplace").decode("utf-8")


def shown(label: Any, longest: int = 60) -> str:
    """A label on one line that every file format can hold: no control characters, not longer than `longest`."""
    text = encodable(label)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def plain(text: Text) -> Text:
    """Keep matplotlib from reading dollar signs and backslashes in a text as formulas."""
    text.set_parse_math(False)
    text.set_usetex(False)
    return text


def needs_matplotlib() -> None:
    """Raise an error that says what to install if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InvalidArgumentError(
            "matplotlib",
            hint="pip install 'gainful[figures]'",
            problem="figures need matplotlib, which is not installed",
        ) from error


def new_figure(width: float, height: float) -> Figure:
    """An empty white figure, in inches."""
    needs_matplotlib()
    from gainful.plot.figure import NotebookFigure

    return NotebookFigure(figsize=(width, height), dpi=150, facecolor="white", edgecolor="white")


def figure_of(ax: Axes) -> Figure:
    """The figure that axes belong to, also in a subfigure."""
    owner: Any = ax.figure
    found: Figure = getattr(owner, "figure", None) or owner
    return found


def checked_axes(ax: Any) -> Axes:
    """The `ax` that a caller gave, if it is one."""
    needs_matplotlib()
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise InvalidArgumentError(
            "ax", ax, "matplotlib Axes, or None for a new figure", problem=f"ax is {type(ax).__name__}"
        )
    return ax


def calm(ax: Axes, *, grid: bool = True, sizes: TextSizes = USUAL_SIZES) -> None:
    """Thin grey axes on two sides, a faint grid behind the data."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(PALE)
        spine.set_linewidth(0.8)
    scale = sizes.tick / USUAL_SIZES.tick
    ax.tick_params(which="both", colors=PALE, labelcolor=INK, labelsize=sizes.tick, width=0.8 * scale)
    ax.tick_params(which="major", length=3.5 * scale, pad=3.5 * scale)
    ax.tick_params(which="minor", length=2 * scale, width=0.5 * scale)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(visible=True, which="major", color=HAIR, linewidth=0.6)
    else:
        ax.grid(visible=False)


def bare(ax: Axes) -> None:
    """No axes at all, for drawings whose coordinates mean nothing."""
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(visible=False)


def framed(inside: tuple[float, float], left: float, right: float, bottom: float, top: float) -> tuple[Figure, Axes]:
    """A new figure with axes of the size `inside` and the given margins around them, in inches."""
    width, height = left + inside[0] + right, bottom + inside[1] + top
    figure = new_figure(width, height)
    box = left / width, bottom / height, inside[0] / width, inside[1] / height
    return figure, figure.add_axes(box)


def colour_bar(ax: Axes, colours: Any, label: str, *, beside: float | None = None) -> None:
    """A scale at the right: in the margin of a framed figure, `beside` inches from the axes, or taken from the axes."""
    figure = figure_of(ax)
    if beside is None:
        bar: Any = figure.colorbar(colours, ax=ax, fraction=0.045, pad=0.02, aspect=22)
    else:
        box, (width, _) = ax.get_position(), figure.get_size_inches()
        place = box.x1 + beside / width, box.y0 + 0.04 * box.height, 0.13 / width, 0.92 * box.height
        bar = figure.colorbar(colours, cax=figure.add_axes(place))
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=PALE, labelcolor=INK, labelsize=8.5)
    bar.set_label(label, fontsize=9.5, color=INK)
    bar.ax.yaxis.get_offset_text().set_fontsize(8)
    if hasattr(bar.formatter, "set_powerlimits"):  # a linear scale
        bar.formatter.set_powerlimits((-3, 4))


def fitted(ax: Axes, text: str) -> str:
    """The text, wrapped to about the width of axes that the caller has placed."""
    inches = ax.get_window_extent().width / figure_of(ax).dpi
    return textwrap.fill(text, max(20, int(inches / 0.064)))


def heading(ax: Axes, title: str, below: str = "", *, room: float = 0.0, sizes: TextSizes = USUAL_SIZES) -> None:
    """A title on the left, with smaller grey lines under it or alone; `room` points are left free above the axes."""
    from matplotlib.transforms import ScaledTranslation

    def above(points: float) -> Any:
        return ax.transAxes + ScaledTranslation(0, points / 72, figure_of(ax).dpi_scale_trans)

    lines = 1 + below.count("\n") if below else 0
    if title:
        pad = room + 0.9 * sizes.below + sizes.below * 13 / 9 * lines
        plain(ax.set_title(shown(title, 90), loc="left", fontsize=sizes.title, color=INK, pad=pad))
    elif below:  # in place of the title, so that it counts as one where a figure is cut to its content
        pad = room + 7 / 9 * sizes.below
        plain(ax.set_title(below, loc="left", fontsize=sizes.below, color=PALE, pad=pad))
        return
    if below:
        text = ax.text(
            0,
            1,
            below,
            transform=above(room + 7 / 9 * sizes.below),
            fontsize=sizes.below,
            color=PALE,
            va="bottom",
            ha="left",
        )
        plain(text).set_in_layout(False)  # a long line must not make the axes narrow


def named_legend(ax: Any, handles: list[Any], labels: list[str], **options: Any) -> Legend:
    """A legend (of axes or a figure) whose labels are shown as written, even if they begin with an underscore."""
    given: dict[str, Any] = {"frameon": False, "fontsize": 9, "labelcolor": INK, "handlelength": 1.8, **options}
    found: Legend = ax.legend(handles, [f"{i}" for i in range(len(labels))], **given)
    for text, label in zip(found.get_texts(), labels, strict=True):
        plain(text).set_text(shown(label))
    return found
