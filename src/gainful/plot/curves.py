"""Regret curves: one line per agent, a band over its runs, one panel per environment."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError, suggestion
from gainful.plot.style import (
    PALE,
    calm,
    checked_axes,
    darker,
    encodable,
    figure_of,
    heading,
    look,
    named_legend,
    needs_matplotlib,
    new_figure,
    plain,
    shown,
)
from gainful.simulation.run import Run

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Statistic: TypeAlias = Literal["median", "mean", "iqm"]
Value: TypeAlias = Literal["pseudo_regret", "regret", "reward"]
Data: TypeAlias = "str | Path | pd.DataFrame | Run | Sequence[Run] | Mapping[str, Run | Sequence[Run]]"
Floats: TypeAlias = NDArray[np.float64]

VALUES: dict[str, str] = {"pseudo_regret": "pseudo-regret", "regret": "regret", "reward": "total reward"}
STATISTICS = {"median": "median", "mean": "mean", "iqm": "interquartile mean"}
DIRECT = 10
"""Lines up to which each is named where it ends."""
TALL = 3.3
"""Inches of a single panel."""


def regret(
    data: Data, *, value: Value = "pseudo_regret", environment: str | None = None,
    band: tuple[float, float] | None = (0.25, 0.75), statistic: Statistic = "median", log: bool = True,
    per_step: bool = False, seeds: bool = False, ax: Axes | None = None,
) -> Figure:  # fmt: skip
    """Regret against steps: a line per agent, the statistic over its runs, with the quantile band around it.

    `data` is a folder of an experiment, the table of `gf.results`, one Run, a list of Runs of one agent, or a
    dictionary from labels to either. Each environment has a panel, unless one is chosen by its label. The numbers are
    those of `gainful.experiments.aggregates.curves`: runs are compared at the steps all of them share, and a note
    under the figure says where that leaves some out. `seeds` adds a thin line per run, `per_step` divides by the steps,
    `band=None` leaves the band out. On logarithmic axes what is not positive is not shown.
    """
    needs_matplotlib()
    _check(value, statistic, band)
    frame = as_frame(data)
    panels = panels_of(frame, environment, value, band, statistic, per_step, seeds)
    unknown = [p.environment for p in panels if not p.known]
    if unknown:
        where = f" in {', '.join(map(repr, unknown))}" if any(unknown) else ""
        raise InvalidArgumentError(
            f"{value} is NaN{where}, expected numbers: the optimal gain is unknown; draw value='reward', or simulate "
            "with gain="
        )
    return draw(panels, Form(statistic, band, log, per_step), ax)


def _check(value: Any, statistic: Any, band: Any) -> None:
    if value not in VALUES:
        raise InvalidArgumentError(f"value is {value!r}, expected one of {', '.join(VALUES)}")
    if statistic not in get_args(Statistic):
        raise InvalidArgumentError(f"statistic is {statistic!r}, expected one of {', '.join(get_args(Statistic))}")
    if band is not None and not (isinstance(band, Sequence) and len(band) == 2):
        raise InvalidArgumentError(f"band is {band!r}, expected two quantiles such as (0.25, 0.75), or None")


# ---------------------------------------------------------------------- data


def as_frame(data: Any) -> pd.DataFrame:
    """Whatever `regret` accepts as one tidy table."""
    import pandas as pd

    if isinstance(data, (str, Path)):
        from gainful.experiments.results import results

        found = results(data)
        if found.empty:
            raise InvalidArgumentError(f"{data} holds no finished run, expected at least one; run the experiment first")
        return found
    if isinstance(data, pd.DataFrame):
        return data
    groups: Any = data
    if isinstance(data, Run):
        groups = {"": [data]}
    elif not isinstance(data, Mapping):
        groups = {"": data}
    parts = []
    for given, runs in groups.items():
        label = encodable(given)
        listed = [runs] if isinstance(runs, Run) else runs
        if not isinstance(listed, (list, tuple)) or not listed or not all(isinstance(r, Run) for r in listed):
            of = f" of {label!r}" if label else ""
            raise InvalidArgumentError(
                f"the data{of} are {_kind(runs)}, expected a folder, the table of gf.results, a Run, a list of Runs, "
                "or a dictionary from labels to Runs"
            )
        for i, run in enumerate(listed):
            columns = {
                "environment": "", "agent": label, "seed": i, "run_id": f"{label}/{i}", "step": run.steps,
                "reward": run.rewards, "regret": run.regret, "pseudo_regret": run.pseudo_regret,
            }  # fmt: skip
            parts.append(pd.DataFrame(columns))
    if not parts:
        raise InvalidArgumentError("the data are an empty dictionary, expected at least one Run")
    return pd.concat(parts, ignore_index=True)


def _kind(runs: Any) -> str:
    if isinstance(runs, (list, tuple)):
        return f"a {type(runs).__name__} of {', '.join(sorted({type(r).__name__ for r in runs})) or 'nothing'}"
    return f"{type(runs).__name__} {shown(repr(runs), 40)}"


@dataclass(frozen=True, eq=False)
class Line:
    """One agent in one panel; NaN where unknown."""

    agent: str
    number: int
    """Which colour: the same agent has the same in every panel."""
    steps: NDArray[np.int64]
    centre: Floats
    low: Floats
    high: Floats
    runs: int
    each: tuple[tuple[NDArray[np.int64], Floats], ...] = ()
    """Steps and values of every run, where they are asked for."""

    @property
    def known(self) -> bool:
        """Whether there is anything to draw."""
        return bool(np.isfinite(self.centre).any())


@dataclass(frozen=True, eq=False)
class Panel:
    """One environment."""

    environment: str
    value: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether there is anything to draw."""
        return any(line.known for line in self.lines)


@dataclass(frozen=True)
class Form:
    """How lines are drawn."""

    statistic: str
    band: tuple[float, float] | None
    log: bool
    per_step: bool


def panels_of(
    frame: pd.DataFrame, environment: str | None, value: str, band: tuple[float, float] | None, statistic: str,
    per_step: bool, seeds: bool,
) -> list[Panel]:  # fmt: skip
    """One panel per environment, in the order of the frame."""
    from gainful.experiments.aggregates import curves

    if environment is not None and "environment" in frame.columns:
        known = list(dict.fromkeys(map(str, frame["environment"].unique())))
        if environment not in known:
            raise InvalidArgumentError(f"no environment is {environment!r}; {suggestion(str(environment), known)}")
    found = curves(frame, value, (0.25, 0.75) if band is None else band)
    notes: list[str] = found.attrs["notes"]
    agents = {label: i for i, label in enumerate(dict.fromkeys(found["agent"]))}
    panels = []
    for where, part in found.groupby("environment", sort=False, observed=True):
        if environment is not None and where != environment:
            continue
        lines, here = [], [note for note in notes if f" in {where}: " in note]
        for who, rows in part.groupby("agent", sort=False, observed=True):
            steps = rows["step"].to_numpy(dtype=np.int64)
            by = steps if per_step else 1
            centre, low, high = (rows[name].to_numpy(dtype=np.float64) / by for name in (statistic, "low", "high"))
            each = _each_run(frame, where, who, value, per_step) if seeds else ()
            line = Line(str(who), agents[who], steps, centre, low, high, int(rows["runs"].iloc[0]), each)
            lines.append(line)
            if not line.known:
                here.append(f"{who}: {VALUES[value]} unknown")
        panels.append(Panel(str(where), value, tuple(lines), tuple(here)))
    return panels


def _each_run(
    frame: pd.DataFrame, where: Any, who: Any, value: str, per_step: bool
) -> tuple[tuple[NDArray[np.int64], Floats], ...]:
    mine = frame[(frame["environment"] == where) & (frame["agent"] == who)]
    found = []
    for _, run in mine.groupby("run_id", sort=False, observed=True):
        ordered = run.sort_values("step")
        steps = ordered["step"].to_numpy(dtype=np.int64)
        found.append((steps, ordered[value].to_numpy(dtype=np.float64) / (steps if per_step else 1)))
    return tuple(found)


# ---------------------------------------------------------------------- drawing


def draw(panels: list[Panel], form: Form, ax: Axes | None = None) -> Figure:
    """All panels in one figure, or one panel in `ax`."""
    if ax is not None:
        given = checked_axes(ax)
        if len(panels) > 1:
            raise InvalidArgumentError(
                f"ax is one panel, and the data have {len(panels)} environments; choose one with environment=: "
                + ", ".join(repr(p.environment) for p in panels)
            )
        _panel(
            given, panels[0], form, wide=max(20, int(given.get_window_extent().width / figure_of(given).dpi / 0.064))
        )
        _legend(given, panels, loc="best")
        return figure_of(given)
    if len(panels) == 1:
        return _single(panels[0], form)
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
            _panel(one, panels[i], form, wide=46)
        else:
            one.remove()
    anchor = (0.5, (0.05 + 0.15 * len(notes)) / height)
    _legend(figure, panels, loc="lower center", bbox_to_anchor=anchor, ncols=min(3, len(agents)))
    _write_notes(figure, notes)
    return figure


def _single(panel: Panel, form: Form) -> Figure:
    """Lines are named where they end; many lines in a list beside them."""
    figure = new_figure(6.2, 4.0)
    ax = figure.add_axes((0.12, 0.14, 0.84, 0.7))
    _panel(ax, panel, form)
    named = [line for line in panel.lines if line.known and line.agent]
    wide = 0.0
    if len(named) > DIRECT:
        legend = _legend(ax, [panel], loc="upper left", bbox_to_anchor=(1.01, 1.02))
        wide = legend.get_window_extent().width / figure.dpi
    elif named:
        wide = _name_ends(figure, ax, named)
    notes = _notes([panel])
    inside, left, bottom = 5.0, 0.8, 0.56 + 0.16 * len(notes)
    width, height = left + inside + wide + 0.25, bottom + TALL + 0.62
    figure.set_size_inches(width, height)
    ax.set_position((left / width, bottom / height, inside / width, TALL / height))
    _write_notes(figure, notes)
    return figure


def _panel(ax: Axes, panel: Panel, form: Form, wide: int = 80) -> None:
    """Draw; a line of the heading has at most `wide` characters."""
    shown_lines = [line for line in panel.lines if line.known]
    positive = [c[c > 0] for line in shown_lines for c in (line.centre[np.isfinite(line.centre)],)]
    log_y = form.log and any(c.size for c in positive)
    floor = min((float(c.min()) for c in positive if c.size), default=0.0) / 2
    for line in shown_lines:
        colour, dashes = look(line.number)
        for steps, values in line.each:
            ax.plot(steps, values, color=colour, linewidth=0.6, alpha=0.4, zorder=2, label="_run")
        if form.band is not None and line.runs > 1:
            _band(ax, line, colour, floor if log_y else None)
        ax.plot(line.steps, line.centre, color=colour, linestyle=dashes, linewidth=1.8, zorder=3, label=line.agent)
    calm(ax)
    if form.log:
        ax.set_xscale("log")
    if log_y:
        ax.set_yscale("log", nonpositive="mask")
        ax.set_ylim(bottom=max(floor, ax.get_ylim()[0]))
    ends = [line.steps[[0, -1]] for line in shown_lines if line.steps.size]
    if ends and min(e[0] for e in ends) < max(e[1] for e in ends):
        ax.set_xlim(min(e[0] for e in ends), max(e[1] for e in ends))
    ax.set_xlabel("steps", fontsize=10)
    ax.set_ylabel(VALUES[panel.value] + (" per step" if form.per_step else ""), fontsize=10)
    ends_below = form.band is not None and any(line.runs > 1 and (line.low <= 0.0).any() for line in shown_lines)
    below = log_y and (ends_below or any((line.centre <= 0.0).any() for line in shown_lines))
    said = _says(shown_lines, form) + ("; gaps and pale band: not above 0" if below else "")
    heading(ax, shown(panel.environment, wide), textwrap.fill(said, wide))


def _band(ax: Axes, line: Line, colour: str, floor: float | None) -> None:
    """The band; on a logarithmic axis it is paler where it goes down to zero or below."""
    style: dict[str, Any] = {"color": colour, "linewidth": 0, "zorder": 1}
    if floor is None or (line.low > 0.0).all():
        ax.fill_between(line.steps, line.low, line.high, alpha=0.17, **style)
        return
    low, high = np.maximum(line.low, floor), np.maximum(line.high, floor)
    inside = line.low > 0.0
    ax.fill_between(line.steps, low, high, where=inside, alpha=0.17, **style)
    beyond = ~inside  # and the intervals that lead to it
    beyond[:-1] |= ~inside[1:]
    beyond[1:] |= ~inside[:-1]
    ax.fill_between(line.steps, low, high, where=beyond, alpha=0.07, **style)


def _says(lines: list[Line], form: Form) -> str:
    runs = {line.runs for line in lines}
    if not runs or max(runs) == 1:
        return "one run" if runs else ""
    count = f"{min(runs)}" if len(runs) == 1 else f"{min(runs)} to {max(runs)}"
    said = f"{STATISTICS[form.statistic]} of {count} runs"
    if form.band is None:
        return said
    return f"{said}, band from {100 * form.band[0]:g} to {100 * form.band[1]:g} %"


def _legend(owner: Any, panels: list[Panel], **options: Any) -> Any:
    from matplotlib.lines import Line2D

    labels = {line.agent: line.number for p in panels for line in p.lines if line.known and line.agent}
    if not labels:
        return None
    looks = [look(number) for number in labels.values()]
    handles = [Line2D([], [], color=colour, linestyle=dashes, linewidth=1.8) for colour, dashes in looks]
    return named_legend(owner, handles, [shown(label, 40) for label in labels], **options)


def _name_ends(figure: Figure, ax: Axes, lines: list[Line]) -> float:
    """Every line's label right of where it ends, moved apart where they would touch; the widest in inches."""
    last = [(line, int(np.flatnonzero(np.isfinite(line.centre))[-1])) for line in lines]
    ends = np.array([[float(line.steps[i]), max(float(line.centre[i]), ax.get_ylim()[0])] for line, i in last])
    heights = ax.transAxes.inverted().transform(ax.transData.transform(ends))[:, 1]
    places = apart(heights, gap=0.22 / TALL)
    texts = []
    for (line, _), (x, y), place in zip(last, ends, places, strict=True):
        colour = look(line.number)[0]
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 0}
        texts.append(
            ax.annotate(
                shown(line.agent, 40), (x, y), xytext=(1.035, place), textcoords="axes fraction", va="center",
                ha="left", fontsize=9.5, color=darker(colour), arrowprops=leader, annotation_clip=False,
                parse_math=False, usetex=False,
            )
        )  # fmt: skip
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
