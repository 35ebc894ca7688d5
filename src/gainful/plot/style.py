"""What all figures share: colours, text that is only text, calm axes."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from gainful.errors import InvalidArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text

# Okabe & Ito's palette, told apart by most colour-blind readers; the pale ones last
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#F0E442")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
INK, PALE, HAIR = "#222222", "#666666", "#d9d9d9"
LONGEST = 60


def look(number: int) -> tuple[str, Any]:
    """Colour and line style of series `number`: eight colours, then the same dashed."""
    return COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]


def darker(colour: str, by: float = 0.78) -> str:
    """The colour for small text on white."""
    return "#" + "".join(f"{round(int(colour[i : i + 2], 16) * by):02x}" for i in (1, 3, 5))


def encodable(label: Any) -> str:
    """The label with lone surrogates, which no file can hold, as escapes."""
    return str(label).encode("utf-8", "backslashreplace").decode("utf-8")


def shown(label: Any, longest: int = LONGEST) -> str:
    """A label on one line that every file format can hold: no control characters, not longer than `longest`."""
    text = encodable(label)
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def plain(text: Text) -> Text:
    """The text as it is written, dollar signs and backslashes too."""
    text.set_parse_math(False)
    text.set_usetex(False)
    return text


def needs_matplotlib() -> None:
    """An error that says what to install."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InvalidArgumentError("figures need matplotlib: pip install 'gainful[figures]'") from error


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
    """What a caller gave as `ax`."""
    needs_matplotlib()
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise InvalidArgumentError(f"ax is {type(ax).__name__}, expected matplotlib Axes, or None for a new figure")
    return ax


def calm(ax: Axes, *, grid: bool = True) -> None:
    """Thin grey axes on two sides, a faint grid behind the data."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(PALE)
        spine.set_linewidth(0.8)
    ax.tick_params(which="both", colors=PALE, labelcolor=INK, labelsize=9, width=0.8)
    ax.tick_params(which="minor", length=2, width=0.5)
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
    """A new figure with axes of the size `inside` and such margins around them, in inches."""
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
    """The text on lines about as wide as axes that somebody else has placed."""
    inches = ax.get_window_extent().width / figure_of(ax).dpi
    return textwrap.fill(text, max(20, int(inches / 0.064)))


def heading(ax: Axes, title: str, below: str = "", *, room: float = 0.0) -> None:
    """A title on the left, with smaller grey lines under it; `room` points are left free above the axes."""
    from matplotlib.transforms import ScaledTranslation

    def above(points: float) -> Any:
        return ax.transAxes + ScaledTranslation(0, points / 72, figure_of(ax).dpi_scale_trans)

    lines = 1 + below.count("\n") if below else 0
    if title:
        ax.set_title(shown(title, 90), loc="left", fontsize=11.5, color=INK, pad=room + (8 + 13 * lines))
        plain(ax._left_title)  # type: ignore[attr-defined]
    if below:
        text = ax.text(0, 1, below, transform=above(room + 7), fontsize=9, color=PALE, va="bottom", ha="left")
        plain(text).set_in_layout(False)  # a long line makes no axes narrow


def named_legend(ax: Any, handles: list[Any], labels: list[str], **options: Any) -> Legend:
    """A legend (of axes or a figure) whose labels are only text, whatever they begin with."""
    given: dict[str, Any] = {"frameon": False, "fontsize": 9, "labelcolor": INK, "handlelength": 1.8, **options}
    found: Legend = ax.legend(handles, [f"{i}" for i in range(len(labels))], **given)
    for text, label in zip(found.get_texts(), labels, strict=True):
        plain(text).set_text(shown(label))
    return found
