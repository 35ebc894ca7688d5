"""Runs as the lines and panels of a figure: one panel per environment, one line per agent. Needs no matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError, suggestion
from gainful.plot.centres import CENTRES, Statistic
from gainful.simulation.run import MEASURE_NAMES

if TYPE_CHECKING:
    import pandas as pd

Value: TypeAlias = Literal["expected_regret", "pseudo_regret", "regret", "reward"]
Band: TypeAlias = "tuple[float, float] | Literal['auto'] | None"
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class CurveStyle:
    """What is drawn of the runs, and on which axes."""

    statistic: Statistic
    band: Band
    log: bool = True
    per_step: bool = False
    seeds: bool = False
    remark: str = ""
    """What else the line under the heading says."""

    def __post_init__(self) -> None:
        if self.statistic not in CENTRES:
            raise InvalidArgumentError("statistic", self.statistic, f"one of {', '.join(CENTRES)}")
        given = self.band is not None and self.band != "auto"
        if given and (isinstance(self.band, str) or not isinstance(self.band, Sequence) or len(self.band) != 2):
            raise InvalidArgumentError(
                "band", self.band, "two quantiles such as (0.25, 0.75), 'auto', or None for no band"
            )

    @property
    def quantiles(self) -> tuple[float, float]:
        """The quantiles to ask for."""
        return (0.25, 0.75) if self.band is None or self.band == "auto" else self.band

    @property
    def columns(self) -> tuple[str, str, str]:
        """The columns of `gainful.experiments.aggregates.curves` that are the centre and the ends of the band."""
        if self.band == "auto":
            centre = CENTRES[self.statistic]
            return self.statistic, centre.low, centre.high
        return self.statistic, "low", "high"

    @property
    def band_in_words(self) -> str:
        """The band, for the line under a heading."""
        if self.band == "auto" and self.statistic == "mean":
            return f"band: {CENTRES[self.statistic].band}"
        low, high = self.quantiles
        return f"band from {100 * low:g} to {100 * high:g} %"


@dataclass(frozen=True, eq=False)
class Line:
    """One agent in one panel; values are NaN if they are unknown."""

    agent: str
    number: int
    """Decides colour and dashes; an agent has the same number in every panel."""
    steps: NDArray[np.int64]
    centre: Floats
    low: Floats
    high: Floats
    runs: int
    each: tuple[tuple[NDArray[np.int64], Floats], ...] = ()
    """Steps and values of every run, if single runs are drawn."""

    @property
    def known(self) -> bool:
        """Whether there is anything to draw."""
        return bool(np.isfinite(self.centre).any())


@dataclass(frozen=True, eq=False)
class Panel:
    """One environment: its lines, and notes on what had to be left out."""

    environment: str
    value: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    @property
    def known(self) -> bool:
        """Whether there is anything to draw."""
        return any(line.known for line in self.lines)


def panels_of(
    frame: pd.DataFrame,
    value: Value | None,
    style: CurveStyle,
    environment: str | None = None,
    *,
    or_reward: bool = False,
) -> list[Panel]:
    """One panel per environment, in the order of the frame, or only that of `environment`.

    Without a `value`, each panel shows the measure of regret that `default_measure` names; with `or_reward`, a panel
    where no regret is known shows the reward.
    """
    if environment is not None and "environment" in frame.columns:
        known = list(dict.fromkeys(map(str, frame["environment"].unique())))
        if environment not in known:
            raise InvalidArgumentError(
                "environment",
                environment,
                hint=suggestion(str(environment), known),
                problem=f"no environment is called {environment!r}",
            )
    tables = _tables(frame, value, style, or_reward)
    every = dict.fromkeys(who for _, table, _ in tables.values() for who in table["agent"])
    agents = {label: i for i, label in enumerate(every)}
    panels = []
    for where, (measure, table, notes) in tables.items():
        if environment is not None and where != environment:
            continue
        lines, here = [], list(notes)
        for who, rows in table.groupby("agent", sort=False, observed=True):
            steps = rows["step"].to_numpy(dtype=np.int64)
            by = steps if style.per_step else 1
            centre, low, high = (rows[name].to_numpy(dtype=np.float64) / by for name in style.columns)
            each = _each_run(frame, where, who, measure, style.per_step) if style.seeds else ()
            line = Line(str(who), agents[who], steps, centre, low, high, int(rows["runs"].iloc[0]), each)
            lines.append(line)
            if not line.known:
                here.append(f"{who}: {MEASURE_NAMES[measure]} unknown")
        panels.append(Panel(str(where), measure, tuple(lines), tuple(here)))
    return panels


def _tables(
    frame: pd.DataFrame, value: Value | None, style: CurveStyle, or_reward: bool
) -> dict[Any, tuple[str, pd.DataFrame, list[str]]]:
    """For every environment what is shown of it, its curves, and notes."""
    from gainful.experiments.aggregates import curves, default_measure

    overall, found = value or default_measure(frame), {}
    if value is not None or overall == "expected_regret":
        table = curves(frame, overall, style.quantiles)
        for where, part in table.groupby("environment", sort=False, observed=True):
            found[where] = overall, part, [note for note in table.attrs["notes"] if f" in {where}: " in note]
        return found
    for where in dict.fromkeys(frame["environment"]):
        here = frame[frame["environment"] == where]
        measure = default_measure(here)
        if or_reward and here[measure].isna().all():
            measure = "reward"
        table = curves(here, measure, style.quantiles)
        found[where] = measure, table, [*table.attrs["notes"], *_partly_known(here, measure)]
    return found


def _partly_known(here: pd.DataFrame, measure: str) -> list[str]:
    """A note if expected regret is known for some runs, but not shown because it is unknown for others."""
    if measure == "expected_regret" or "expected_regret" not in here.columns:
        return []
    last = here.sort_values("step").drop_duplicates("run_id", keep="last")["expected_regret"]
    if last.isna().all():
        return []
    where = here["environment"].iloc[0]
    place = f"{where}: " if where else ""
    unknown = int(last.isna().sum())
    return [
        f"{place}expected regret is unknown for {unknown} of {last.size} runs, so {MEASURE_NAMES[measure]} is drawn"
    ]


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
