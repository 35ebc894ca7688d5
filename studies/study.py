"""What a study is made of: its runs, the statistics of them, and what was found."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import gainful as gf
from gainful.experiments.growth import growth_exponent
from gainful.experiments.run_statistics import Interval, bootstrap_interval, mean
from gainful.plot.style import calm, heading, look, new_figure

Word = Literal["holds", "does not hold with these constants", "not decided"]

WIDTH = 8.4
"""Inches of every picture: the width of a page of the site."""


# ---------------------------------------------------------------------- what a study finds


@dataclass(frozen=True)
class Verdict:
    """One claim, whether it was seen, and the numbers that say so."""

    claim: str
    word: Word
    because: str

    def __str__(self) -> str:
        return f"- {self.claim}: **{self.word}**. {self.because}"


@dataclass(frozen=True)
class Findings:
    """Everything that a study writes into its page."""

    verdicts: Sequence[Verdict]
    tables: str
    """Markdown, with the interval of every number."""
    figure: Figure


def decide(claim: str, found: Interval, expected: tuple[float, float], because: str) -> Verdict:
    """Whether all of an interval, none of it or some of it lies in the `expected` range.

    >>> decide("x is positive", Interval(1.0, 0.5, 1.5), (0.0, math.inf), "It is 1.").word
    'holds'
    """
    low, high = expected
    word: Word = "not decided"
    if low <= found.low and found.high <= high:
        word = "holds"
    elif found.high < low or found.low > high:
        word = "does not hold with these constants"
    return Verdict(claim, word, because)


# ---------------------------------------------------------------------- the runs


@dataclass(frozen=True)
class StudyRuns:
    """The stored runs of a study, one folder for each of its specs."""

    folder: Path

    def part(self, name: str) -> pd.DataFrame:
        """Every checkpoint of every run of one spec, as `gainful.results` returns it, with a column per parameter."""
        return with_parameters(gf.results(self.folder / name))

    def finals(self, name: str) -> pd.DataFrame:
        """One row per run: its last checkpoint."""
        return finals(self.part(name))


def with_parameters(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with a column for each parameter of agents and environments, `given_NAME` if there is one of that name.

    `span`, for example, is the span of the problem, and `given_span` the c that the agent was given.
    """
    texts = [str(text) for text in frame["parameters"].cat.categories]
    read = [json.loads(text) for text in texts]
    rows = pd.DataFrame([{**one["environment"], **one["agent"]} for one in read], index=texts)
    names = {name: f"given_{name}" if name in frame.columns else name for name in rows.columns}
    added = {new: frame["parameters"].astype(str).map(rows[name]) for name, new in names.items()}
    return frame.assign(agent=frame["agent"].astype(str), environment=frame["environment"].astype(str), **added)


def finals(frame: pd.DataFrame) -> pd.DataFrame:
    """The last checkpoint of every run."""
    return frame[frame["step"] == frame.groupby("run_id", observed=True)["step"].transform("max")]


# ---------------------------------------------------------------------- statistics


def interval(values: Iterable[float]) -> Interval:
    """The mean with Student's 95 % interval."""
    return bootstrap_interval(np.asarray(list(values), dtype=float), mean, method="student")


def mean_of(frame: pd.DataFrame, measure: str = "expected_regret", **where: Any) -> Interval:
    """The mean of a column over the rows where other columns have the given values."""
    return interval(chosen(frame, **where)[measure])


def chosen(frame: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """The rows where these columns have these values."""
    for name, value in where.items():
        frame = frame[frame[name] == value]
    return frame


def ratio_of(frame: pd.DataFrame, first: Mapping[str, Any], second: Mapping[str, Any], unit: str = "seed",
             measure: str = "expected_regret") -> Interval:  # fmt: skip
    """The geometric mean of first/second over units that both have, with Student's interval of its logarithm."""
    sides = [chosen(frame, **where).groupby(unit, observed=True)[measure].mean() for where in (first, second)]
    shared = sorted(set(sides[0].index) & set(sides[1].index))
    return exponential(interval(np.log(sides[0][shared].to_numpy()) - np.log(sides[1][shared].to_numpy())))


def exponential(found: Interval) -> Interval:
    """The interval of e^x from that of x."""
    return Interval(math.exp(found.estimate), math.exp(found.low), math.exp(found.high), found.confidence)


def power(frame: pd.DataFrame, x: str, unit: str = "seed", measure: str = "expected_regret") -> Interval:
    """The exponent e of measure ∝ x^e: the least-squares slope of logarithms, unit by unit, with Student's interval.

    A unit is what was repeated: a seed, or a random instance of the environment (its seeds are averaged first).
    """
    slopes = []
    for _, rows in frame.groupby(unit, observed=True):
        means = rows.groupby(x, observed=True)[measure].mean()
        slopes.append(np.polyfit(np.log(means.index.to_numpy(dtype=float)), np.log(means.to_numpy()), 1)[0])
    return interval(slopes)


def growth(frame: pd.DataFrame, measure: str = "expected_regret", decades: float = 1.0) -> Interval:
    """The exponent of the growth of regret over the last decade(s) of steps, of the runs in the frame."""
    table = frame.pivot_table(index="run_id", columns="step", values=measure, observed=True)
    found = growth_exponent(table.columns.to_numpy(), table.to_numpy(), decades)
    return Interval(found.exponent, found.low, found.high)


# ---------------------------------------------------------------------- text


def number(x: float) -> str:
    """A number with about three digits that matter, and no more than three decimals.

    >>> number(197632.4), number(0.8234), number(12.34), number(-0.0004)
    ('197,632', '0.823', '12.3', '0.000')
    """
    if not math.isfinite(x):
        return "–"
    decimals = 0 if abs(x) >= 100 or x == round(x) else 1 if abs(x) >= 10 else 2 if abs(x) >= 1 else 3
    text = f"{x:,.{decimals}f}"
    return text.removeprefix("-") if not float(text.replace(",", "")) else text.replace("-", "−")


def shown(found: Interval, brackets: bool = True) -> str:
    """An estimate with its 95 % interval."""
    ends = f" [{number(found.low)}, {number(found.high)}]"
    return number(found.estimate) + (ends if brackets else "")


def steps_text(steps: int) -> str:
    """10⁶ or 2·10⁷ for whole multiples of powers of ten.

    >>> steps_text(20_000_000), steps_text(10**6), steps_text(1234)
    ('2·10⁷', '10⁶', '1,234')
    """
    power, head = 0, steps
    while head and head % 10 == 0:
        head, power = head // 10, power + 1
    if power < 3 or head > 99:
        return f"{steps:,}"
    raised = "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(power))
    return raised if head == 1 else f"{head}·{raised}"


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> str:
    """A table in Markdown; all columns but the first `left` are aligned right."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * left + "---:|" * (len(heads) - left)]
    for row in rows:
        cells = [shown(cell) if isinstance(cell, Interval) else str(cell) for cell in row]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


# ---------------------------------------------------------------------- pictures


def panels(titles: Sequence[str], height: float = 3.4, below: Sequence[str] = (), columns: int | None = None
           ) -> tuple[Figure, list[Axes]]:  # fmt: skip
    """Panels side by side, with a title on each and the look of `gainful.plot`."""
    columns = columns or len(titles)
    rows = math.ceil(len(titles) / columns)
    figure = new_figure(WIDTH, height * rows)
    figure.set_layout_engine("constrained", w_pad=0.08, h_pad=0.08)
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(len(titles))]
    for i, (ax, title) in enumerate(zip(axes, titles, strict=True)):
        calm(ax)
        heading(ax, title, below[i] if below else "")
    return figure, axes


def draw_points(ax: Axes, x: Sequence[float], found: Sequence[Interval], series: int, label: str, **options: Any
                ) -> None:  # fmt: skip
    """Means over x, joined by a line, with their intervals."""
    colour, dashes = look(series)
    y = np.array([one.estimate for one in found])
    ends = np.array([[one.estimate - one.low, one.high - one.estimate] for one in found]).T
    style: dict[str, Any] = {"marker": "o", "markersize": 4, "linewidth": 1.6, "capsize": 2.5, "linestyle": dashes}
    ax.errorbar(x, y, np.nan_to_num(np.maximum(ends, 0.0)), color=colour, label=label, **{**style, **options})


def draw_curves(ax: Axes, frame: pd.DataFrame, agents: Sequence[str], measure: str = "expected_regret") -> None:
    """The mean curve of each agent over steps, with the range of its runs."""
    for i, agent in enumerate(agents):
        rows = frame[frame["agent"] == agent].groupby("step", observed=True)[measure]
        curve = rows.agg(["mean", "min", "max"])
        colour, dashes = look(i)
        ax.plot(curve.index, curve["mean"], color=colour, linestyle=dashes, linewidth=1.8, label=agent)
        ax.fill_between(curve.index, curve["min"], curve["max"], color=colour, alpha=0.15, linewidth=0)


def legend_below(ax: Axes, columns: int = 2) -> None:
    """A legend under the axes, where it hides nothing."""
    style: dict[str, Any] = {"frameon": False, "fontsize": 9, "handlelength": 1.6, "columnspacing": 1.2}
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=columns, **style)


def draw_slope(ax: Axes, x: Sequence[float], through: tuple[float, float], exponent: float, label: str) -> None:
    """A dashed grey line x^exponent through a point, for comparison."""
    ends = np.array([min(x), max(x)], dtype=float)
    line = through[1] * (ends / through[0]) ** exponent
    ax.plot(ends, line, color="#666666", linestyle=(0, (4, 3)), linewidth=1, label=label)
