"""Regret curves: one line per agent, a band over its runs, one panel per environment."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.errors import InvalidArgumentError
from gainful.experiments.run_frames import Data, frame_of
from gainful.plot.centres import CENTRES, DEFAULT_CENTRE, Statistic
from gainful.plot.line_names import PANEL_INCHES, name_ends
from gainful.plot.panels import Band, CurveStyle, Line, Panel, Value, panels_of
from gainful.plot.presets import USUAL_SIZES, Preset, TextSizes, Width, preset_of
from gainful.plot.style import (
    PALE,
    calm,
    checked_axes,
    figure_of,
    heading,
    look,
    named_legend,
    needs_matplotlib,
    new_figure,
    plain,
    shown,
)
from gainful.simulation.run import MEASURE_NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES_NAMED_AT_THEIR_ENDS = 10
"""With more lines than this, a legend names them."""
NEAR_ZERO = 1e-4
"""An axis for values of both signs is linear up to at least this share of the largest one."""


def regret(
    data: Data,
    *,
    value: Value | None = None,
    environment: str | None = None,
    band: Band = "auto",
    statistic: Statistic = DEFAULT_CENTRE,
    log: bool = True,
    per_step: bool = False,
    seeds: bool = False,
    width: Width | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw regret against steps: for each agent a line, the statistic over its runs, with a band around it.

    Each environment has a panel. The numbers are those of `gainful.experiments.aggregates.curves`: runs are compared
    at the steps all of them share, and a note under the figure says where that leaves some out. The report page draws
    the same lines and bands.

    Parameters
    ----------
    data : path, DataFrame, Run, list of Run, or dict
        The folder of an experiment, the table of `gf.results`, one Run, a list of Runs of one agent, or a dictionary
        from labels to Runs or lists of Runs.
    value : {"expected_regret", "pseudo_regret", "regret", "reward"}, optional
        What to draw; "regret" is the realised regret. By default the expected regret, and the pseudo-regret in panels
        where the expected regret is unknown for some run; the axis names what is drawn.
    environment : str, optional
        Draw only the panel of the environment with this label.
    band : "auto", (float, float) or None
        "auto" draws the quartiles around a median or an interquartile mean, and the 95 % confidence interval around a
        mean. Two quantiles, such as (0.1, 0.9), are drawn whatever the statistic; None draws no band.
    statistic : {"median", "mean", "iqm"}
        The centre of the runs, by default the mean, as in the tables; "iqm" is the interquartile mean.
    log : bool
        Whether both axes are logarithmic. If a line has negative values, its axis is linear near 0 and logarithmic on
        both sides of it; values of 0 are left out of a logarithmic axis.
    per_step : bool
        Whether to divide by the number of steps.
    seeds : bool
        Whether to add a thin line for every run.
    width : {"column", "page", "slide"}, optional
        The width of the figure, with text to match: the column of a paper with two (3.25 inches), its page (6.75
        inches), or a slide (12 inches, 16:9). Names stand at the ends of the lines, or in a legend below where they
        do not fit. By default the figure is as wide as its panels and names need.
    ax : matplotlib.axes.Axes, optional
        Where to draw a single panel; by default in a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        A notebook shows it; `figure.savefig("name.pdf")` writes it.

    Raises
    ------
    InvalidArgumentError
        If the value is unknown in some environment: draw "reward" there, or simulate with `gain=`.

    Examples
    --------
    >>> import gainful as gf
    >>> river = gf.environments.riverswim(6)
    >>> agent = gf.PSRL(n_states=6, n_actions=2)
    >>> run = gf.simulate(agent, river, horizon=1000, seed=1)
    >>> figure = gf.plot.regret({"PSRL": run})
    >>> figure.axes[0].get_ylabel()
    'expected regret'
    """
    needs_matplotlib()
    if value is not None and value not in MEASURE_NAMES:
        raise InvalidArgumentError("value", value, f"one of {', '.join(MEASURE_NAMES)}")
    style = CurveStyle(statistic, band, log, per_step, seeds)
    preset = preset_of(width)
    if preset is not None and ax is not None:
        raise InvalidArgumentError("width", width, hint="leave one out", problem="width is given, and ax has its own")
    panels = panels_of(frame_of(data), value, style, environment)
    unknown = [p.environment for p in panels if not p.known]
    if unknown:
        name = "regret" if value is None else MEASURE_NAMES[value]
        where = f" in {', '.join(map(repr, unknown))}" if any(unknown) else ""
        why = "" if value == "expected_regret" else ", because the optimal gain is unknown"
        raise InvalidArgumentError(
            "value", value, hint="draw value='reward', or simulate with gain=", problem=f"{name} is unknown{where}{why}"
        )
    return draw_panels(panels, style, ax, preset)


def draw_panels(panels: list[Panel], style: CurveStyle, ax: Axes | None = None, preset: Preset | None = None) -> Figure:
    """All panels in one figure, of its natural width or that of a preset, or one panel in `ax`."""
    if ax is not None:
        given = checked_axes(ax)
        if len(panels) > 1:
            raise InvalidArgumentError(
                "ax",
                ax,
                hint="choose one with environment=: " + ", ".join(repr(p.environment) for p in panels),
                problem=f"ax is one panel, and the data have {len(panels)} environments",
            )
        _panel(
            given, panels[0], style, wide=max(20, int(given.get_window_extent().width / figure_of(given).dpi / 0.064))
        )
        _legend(given, panels, loc="best")
        return figure_of(given)
    if preset is not None:
        return _of_width(panels, style, preset)
    if len(panels) == 1:
        return _single(panels[0], style)
    columns = 2 if len(panels) in (2, 4) else 3
    rows = math.ceil(len(panels) / columns)
    agents = {line.agent for p in panels for line in p.lines}
    notes = _notes(panels)
    below = 0.1 + 0.2 * math.ceil(len(agents) / 3) + 0.15 * len(notes)
    width, height = 3.9 * columns, 3.1 * rows + below
    figure = new_figure(width, height)
    figure.set_layout_engine("constrained", rect=(0, below / height, 1, 1 - below / height), w_pad=0.1, h_pad=0.1)
    every = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for i, one in enumerate(every):
        if i < len(panels):
            _panel(one, panels[i], style, wide=46)
        else:
            one.remove()
    anchor = (0.5, (0.05 + 0.15 * len(notes)) / height)
    _legend(figure, panels, loc="lower center", bbox_to_anchor=anchor, ncols=min(3, len(agents)))
    _write_notes(figure, notes)
    return figure


def _single(panel: Panel, style: CurveStyle) -> Figure:
    """One panel whose lines are named where they end, or in a legend beside them if there are many."""
    figure = new_figure(6.2, 4.0)
    ax = figure.add_axes((0.12, 0.14, 0.84, 0.7))
    _panel(ax, panel, style)
    named = [line for line in panel.lines if line.known and line.agent]
    wide = 0.0
    if len(named) > LINES_NAMED_AT_THEIR_ENDS:
        legend = _legend(ax, [panel], loc="upper left", bbox_to_anchor=(1.01, 1.02))
        wide = legend.get_window_extent().width / figure.dpi
    elif named:
        wide = name_ends(figure, ax, named, PANEL_INCHES)
    notes = _notes([panel])
    inside, left, bottom = 5.0, 0.8, 0.56 + 0.16 * len(notes)
    width, height = left + inside + wide + 0.25, bottom + PANEL_INCHES + 0.62
    figure.set_size_inches(width, height)
    ax.set_position((left / width, bottom / height, inside / width, PANEL_INCHES / height))
    _write_notes(figure, notes)
    return figure


def _of_width(panels: list[Panel], style: CurveStyle, preset: Preset) -> Figure:
    """Panels in rows, in a figure of the width of the preset: names at the lines' ends, or a legend."""
    sizes, inch = preset.sizes, preset.sizes.tick / 9.0  # margins grow with the text
    columns = min(len(panels), preset.columns)
    rows = math.ceil(len(panels) / columns)
    figure = new_figure(preset.width, preset.width)
    axes = [figure.add_axes((0.1, 0.1, 0.8, 0.8), label=f"panel {i}") for i in range(len(panels))]
    characters = int((preset.width / columns - 0.06 * sizes.axis) / (sizes.below * 0.0078))  # right of the axis title
    lines = max(_panel(one, panel, style, characters, sizes) for one, panel in zip(axes, panels, strict=True))
    tall = preset.panel_height if rows == 1 else 0.85 * preset.panel_height
    beside = _names_beside(figure, axes, panels, preset, tall)
    legend = None
    if beside == 0.0 and any(line.agent for panel in panels for line in panel.lines):
        legend = _fitting_legend(figure, panels, sizes, preset.width)
    below = 0.0 if legend is None else float(legend.get_window_extent().height) / figure.dpi + 0.02 * sizes.axis
    notes = _notes(panels)
    under = below + 0.02 * sizes.note * len(notes) + 0.03
    left, right = max(_left_room(one) for one in axes) + 0.03, beside + 0.14 * inch
    named = sizes.title * 1.5 if any(panel.environment for panel in panels) else 0.0
    top = (named + sizes.below * (1.2 + 1.45 * lines)) / 72
    bottom = (sizes.tick + sizes.axis) / 72 * 1.75
    cell = preset.width / columns
    height = rows * (top + tall + bottom) + under
    figure.set_size_inches(preset.width, height)
    for i, one in enumerate(axes):
        row, column = divmod(i, columns)
        y = height - (row + 1) * (top + tall + bottom) + bottom
        one.set_position(
            ((column * cell + left) / preset.width, y / height, (cell - left - right) / preset.width, tall / height)
        )
    if legend is not None:
        legend.set_bbox_to_anchor((0.5, (under - below) / height))
    _write_notes(figure, notes, sizes.note)
    return figure


def _names_beside(figure: Figure, axes: list[Axes], panels: list[Panel], preset: Preset, tall: float) -> float:
    """Name the lines at their ends; the inches that the names need beside every panel, or 0 if they do not fit."""
    cell = preset.width / min(len(panels), preset.columns)
    widths: list[float] = []
    headings = [len(one.texts) for one in axes]
    for one, panel in zip(axes, panels, strict=True):
        named = [line for line in panel.lines if line.known and line.agent]
        if len(named) > LINES_NAMED_AT_THEIR_ENDS:
            widths.append(-1.0)
        elif named:
            widths.append(name_ends(figure, one, named, tall, preset.sizes, preset.longest_name))
            if widths[-1] > (0.42 if len(panels) == 1 else 0.36) * cell:
                widths[-1] = -1.0
    if min(widths, default=-1.0) < 0.0:
        for one, kept in zip(axes, headings, strict=True):
            for text in list(one.texts)[kept:]:
                text.remove()
        return 0.0
    return max(widths)


def _fitting_legend(figure: Figure, panels: list[Panel], sizes: TextSizes, wide: float) -> Any:
    """A legend at the bottom with as many columns as fit."""
    agents = len({line.agent for panel in panels for line in panel.lines})
    for columns in range(min(4, agents), 0, -1):
        legend = _legend(
            figure, panels, loc="lower center", ncols=columns, fontsize=sizes.name, borderpad=0, borderaxespad=0.1
        )
        if columns == 1 or legend.get_window_extent().width / figure.dpi <= wide:
            return legend
        legend.remove()
    return None


def _left_room(ax: Axes) -> float:
    """The inches that the labels at the left of axes need."""
    box = ax.yaxis.get_tightbbox()
    return 0.4 if box is None else float(ax.get_window_extent().x0 - box.x0) / figure_of(ax).dpi


def _panel(ax: Axes, panel: Panel, style: CurveStyle, wide: int = 80, sizes: TextSizes = USUAL_SIZES) -> int:
    """Draw one panel; a line under its heading has at most `wide` characters. The number of these lines."""
    shown_lines = [line for line in panel.lines if line.known]
    centres = np.concatenate([line.centre[np.isfinite(line.centre)] for line in shown_lines] or [np.empty(0)])
    above = centres[centres > 0.0]
    least = min([float(np.nanmin(values)) for line in shown_lines for _, values in line.each], default=0.0)
    least = min(least, float(centres.min()) if centres.size else 0.0)
    two_sided = style.log and above.size > 0 and least < 0.0
    log_y = style.log and above.size > 0 and not two_sided
    floor = float(above.min()) / 2 if above.size else 0.0
    for line in shown_lines:
        colour, dashes = look(line.number)
        for steps, values in line.each:
            ax.plot(steps, values, color=colour, linewidth=sizes.line / 3, alpha=0.4, zorder=2, label="_run")
        if style.band is not None and line.runs > 1:
            _band(ax, line, colour, floor if log_y else None)
        ax.plot(
            line.steps, line.centre, color=colour, linestyle=dashes, linewidth=sizes.line, zorder=3, label=line.agent
        )
    calm(ax, sizes=sizes)
    if style.log:
        ax.set_xscale("log")
    else:
        ax.xaxis.set_major_formatter(lambda steps, _: f"{steps:,.0f}")
    if log_y:
        ax.set_yscale("log", nonpositive="mask")
        ax.set_ylim(bottom=max(floor, ax.get_ylim()[0]))
    if two_sided:
        _both_signs(ax, least, float(centres.max()))
    ends = [line.steps[[0, -1]] for line in shown_lines if line.steps.size]
    if ends and min(e[0] for e in ends) < max(e[1] for e in ends):
        ax.set_xlim(min(e[0] for e in ends), max(e[1] for e in ends))
    ax.set_xlabel("steps", fontsize=sizes.axis)
    ax.set_ylabel(MEASURE_NAMES[panel.value] + (" per step" if style.per_step else ""), fontsize=sizes.axis)
    gaps = log_y and bool((centres <= 0.0).any())
    said = _says(shown_lines, style) + ("; gaps: not above 0" if gaps else "") + style.remark
    heading(ax, shown(panel.environment, wide), textwrap.fill(said, wide), sizes=sizes)
    return len(textwrap.wrap(said, wide))


def _both_signs(ax: Axes, low: float, high: float) -> None:
    """An axis that is linear near 0 and logarithmic beyond, with a line at 0."""
    linear = 10.0 ** math.floor(math.log10(max(-low / 10, NEAR_ZERO * max(high, -low))))
    ends = ax.dataLim.y0, ax.dataLim.y1
    ax.set_yscale("symlog", linthresh=linear, linscale=0.6)
    scale = ax.yaxis.get_transform()  # room on the axis itself: on a linear one it would reach far below 0
    bottom, top = scale.transform(np.asarray(ends)).tolist()
    room = 0.04 * (top - bottom)
    ax.set_ylim(*scale.inverted().transform(np.array([bottom - room, top + room])).tolist())
    ax.axhline(0.0, color=PALE, linewidth=0.8, zorder=1, label="_zero")


def _band(ax: Axes, line: Line, colour: str, floor: float | None) -> None:
    """The band, in one piece; on a logarithmic axis it is cut off at `floor`."""
    known = np.isfinite(line.low) & np.isfinite(line.high)
    low, high = line.low, line.high
    if floor is not None:
        known &= line.high > 0.0
        low = np.where(low > 0.0, low, np.minimum(floor, high))
    ax.fill_between(line.steps[known], low[known], high[known], alpha=0.17, color=colour, linewidth=0, zorder=1)


def _says(lines: list[Line], style: CurveStyle) -> str:
    runs = {line.runs for line in lines}
    if not runs or max(runs) == 1:
        return "one run" if runs else ""
    count = f"{min(runs)}" if len(runs) == 1 else f"{min(runs)} to {max(runs)}"
    said = f"{CENTRES[style.statistic].name} of {count} runs"
    return said if style.band is None else f"{said}, {style.band_in_words}"


def _legend(owner: Any, panels: list[Panel], **options: Any) -> Any:
    from matplotlib.lines import Line2D

    labels = {line.agent: line.number for p in panels for line in p.lines if line.known and line.agent}
    if not labels:
        return None
    looks = [look(number) for number in labels.values()]
    handles = [Line2D([], [], color=colour, linestyle=dashes, linewidth=1.8) for colour, dashes in looks]
    return named_legend(owner, handles, [shown(label, 40) for label in labels], **options)


def _notes(panels: list[Panel]) -> list[str]:
    return list(dict.fromkeys(shown(note, 120) for p in panels for note in p.notes))


def _write_notes(figure: Figure, notes: list[str], size: float = USUAL_SIZES.note) -> None:
    if notes:
        text = "\n".join(notes)
        height = figure.get_size_inches()[1]
        plain(figure.text(0.01, 0.04 / height, text, fontsize=size, color=PALE, ha="left", va="bottom"))
