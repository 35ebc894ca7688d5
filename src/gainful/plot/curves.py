"""Regret curves: one line per agent, a band over its runs, one panel per environment."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.errors import InvalidArgumentError
from gainful.experiments.run_frames import Data, frame_of
from gainful.plot.centres import CENTRES, DEFAULT_CENTRE, Statistic
from gainful.plot.palette import darker
from gainful.plot.panels import Band, CurveStyle, Floats, Line, Panel, Value, panels_of
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
PANEL_HEIGHT = 3.3
"""Inches of a single panel."""


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
        The centre of the runs, by default the median; "iqm" is the interquartile mean.
    log : bool
        Whether both axes are logarithmic. Values that are not positive are then left out.
    per_step : bool
        Whether to divide by the number of steps.
    seeds : bool
        Whether to add a thin line for every run.
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
    panels = panels_of(frame_of(data), value, style, environment)
    unknown = [p.environment for p in panels if not p.known]
    if unknown:
        name = "regret" if value is None else MEASURE_NAMES[value]
        where = f" in {', '.join(map(repr, unknown))}" if any(unknown) else ""
        why = "" if value == "expected_regret" else ", because the optimal gain is unknown"
        raise InvalidArgumentError(
            "value", value, hint="draw value='reward', or simulate with gain=", problem=f"{name} is unknown{where}{why}"
        )
    return draw_panels(panels, style, ax)


def draw_panels(panels: list[Panel], style: CurveStyle, ax: Axes | None = None) -> Figure:
    """All panels in one figure, or one panel in `ax`."""
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
        wide = _name_ends(figure, ax, named)
    notes = _notes([panel])
    inside, left, bottom = 5.0, 0.8, 0.56 + 0.16 * len(notes)
    width, height = left + inside + wide + 0.25, bottom + PANEL_HEIGHT + 0.62
    figure.set_size_inches(width, height)
    ax.set_position((left / width, bottom / height, inside / width, PANEL_HEIGHT / height))
    _write_notes(figure, notes)
    return figure


def _panel(ax: Axes, panel: Panel, style: CurveStyle, wide: int = 80) -> None:
    """Draw one panel; a line of its heading has at most `wide` characters."""
    shown_lines = [line for line in panel.lines if line.known]
    positive = [c[c > 0] for line in shown_lines for c in (line.centre[np.isfinite(line.centre)],)]
    log_y = style.log and any(c.size for c in positive)
    floor = min((float(c.min()) for c in positive if c.size), default=0.0) / 2
    for line in shown_lines:
        colour, dashes = look(line.number)
        for steps, values in line.each:
            ax.plot(steps, values, color=colour, linewidth=0.6, alpha=0.4, zorder=2, label="_run")
        if style.band is not None and line.runs > 1:
            _band(ax, line, colour, floor if log_y else None)
        ax.plot(line.steps, line.centre, color=colour, linestyle=dashes, linewidth=1.8, zorder=3, label=line.agent)
    calm(ax)
    if style.log:
        ax.set_xscale("log")
    if log_y:
        ax.set_yscale("log", nonpositive="mask")
        ax.set_ylim(bottom=max(floor, ax.get_ylim()[0]))
    ends = [line.steps[[0, -1]] for line in shown_lines if line.steps.size]
    if ends and min(e[0] for e in ends) < max(e[1] for e in ends):
        ax.set_xlim(min(e[0] for e in ends), max(e[1] for e in ends))
    ax.set_xlabel("steps", fontsize=10)
    ax.set_ylabel(MEASURE_NAMES[panel.value] + (" per step" if style.per_step else ""), fontsize=10)
    ends_below = style.band is not None and any(line.runs > 1 and (line.low <= 0.0).any() for line in shown_lines)
    below = log_y and (ends_below or any((line.centre <= 0.0).any() for line in shown_lines))
    said = _says(shown_lines, style) + ("; gaps and pale band: not above 0" if below else "")
    heading(ax, shown(panel.environment, wide), textwrap.fill(said, wide))


def _band(ax: Axes, line: Line, colour: str, floor: float | None) -> None:
    """The band; on a logarithmic axis it is paler where it goes down to zero or below."""
    fill: dict[str, Any] = {"color": colour, "linewidth": 0, "zorder": 1}
    if floor is None or (line.low > 0.0).all():
        ax.fill_between(line.steps, line.low, line.high, alpha=0.17, **fill)
        return
    low, high = np.maximum(line.low, floor), np.maximum(line.high, floor)
    inside = line.low > 0.0
    ax.fill_between(line.steps, low, high, where=inside, alpha=0.17, **fill)
    beyond = ~inside  # and the intervals that lead to it
    beyond[:-1] |= ~inside[1:]
    beyond[1:] |= ~inside[:-1]
    ax.fill_between(line.steps, low, high, where=beyond, alpha=0.07, **fill)


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


def _name_ends(figure: Figure, ax: Axes, lines: list[Line]) -> float:
    """Write every label to the right of its line, moved apart where they would touch; the widest width in inches."""
    last = [(line, int(np.flatnonzero(np.isfinite(line.centre))[-1])) for line in lines]
    ends = np.array([[float(line.steps[i]), max(float(line.centre[i]), ax.get_ylim()[0])] for line, i in last])
    heights = ax.transAxes.inverted().transform(ax.transData.transform(ends))[:, 1]
    places = apart(heights, gap=0.22 / PANEL_HEIGHT)
    texts = []
    for (line, _), (x, y), place in zip(last, ends, places, strict=True):
        colour = look(line.number)[0]
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 0}
        texts.append(
            ax.annotate(
                shown(line.agent, 40),
                (x, y),
                xytext=(1.035, place),
                textcoords="axes fraction",
                va="center",
                ha="left",
                fontsize=9.5,
                color=darker(colour),
                arrowprops=leader,
                annotation_clip=False,
                parse_math=False,
                usetex=False,
            )
        )
    # of the text alone: the extent of an annotation has its leader too
    widths = [figure.text(0, 0, t.get_text(), fontsize=9.5, parse_math=False) for t in texts]
    wide = max(float(t.get_window_extent().width) for t in widths) / figure.dpi
    for text in widths:
        text.remove()
    return wide + 0.2


def apart(places: Floats, gap: float, low: float = 0.0, high: float = 1.0) -> Floats:
    """The places nearest (in squares) to the given ones that are `gap` apart, in the same order, inside [low, high].

    >>> apart(np.array([0.5, 0.5, 0.9]), 0.1).round(6).tolist()
    [0.45, 0.55, 0.9]
    """
    order = np.argsort(places, kind="stable")
    gap = min(gap, (high - low) / max(1, places.size - 1))
    wanted = places[order] - gap * np.arange(places.size)
    blocks: list[tuple[float, int]] = []  # means and sizes: pool adjacent violators
    for place in wanted:
        mean, size = float(place), 1
        while blocks and blocks[-1][0] > mean:
            before, n = blocks.pop()
            mean, size = (mean * size + before * n) / (size + n), size + n
        blocks.append((mean, size))
    flat = np.repeat([m for m, _ in blocks], [n for _, n in blocks])
    flat = np.clip(flat, low, high - gap * (places.size - 1))
    found = np.empty(places.size)
    found[order] = flat + gap * np.arange(places.size)
    return found


def _notes(panels: list[Panel]) -> list[str]:
    return list(dict.fromkeys(shown(note, 120) for p in panels for note in p.notes))


def _write_notes(figure: Figure, notes: list[str]) -> None:
    if notes:
        text = "\n".join(notes)
        height = figure.get_size_inches()[1]
        plain(figure.text(0.01, 0.04 / height, text, fontsize=7.5, color=PALE, ha="left", va="bottom"))
