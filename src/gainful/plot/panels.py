"""Runs as the lines and panels of a figure: one panel per environment, one line per agent. Needs no matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError, suggestion
from gainful.plot.centres import CENTRES, Statistic
from gainful.plot.style import encodable, shown
from gainful.simulation.run import Run

if TYPE_CHECKING:
    import pandas as pd

Value: TypeAlias = Literal["pseudo_regret", "regret", "reward"]
Band: TypeAlias = "tuple[float, float] | Literal['auto'] | None"
Data: TypeAlias = "str | Path | pd.DataFrame | Run | Sequence[Run] | Mapping[str, Run | Sequence[Run]]"
Floats: TypeAlias = NDArray[np.float64]

VALUE_NAMES: dict[str, str] = {"pseudo_regret": "pseudo-regret", "regret": "regret", "reward": "total reward"}


@dataclass(frozen=True)
class CurveStyle:
    """What is drawn of the runs, and on which axes."""

    statistic: Statistic
    band: Band
    log: bool = True
    per_step: bool = False
    seeds: bool = False

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


def as_frame(data: Any) -> pd.DataFrame:
    """Anything that `gainful.plot.regret` accepts, as one tidy table."""
    import pandas as pd

    if isinstance(data, (str, Path)):
        from gainful.experiments.results import results

        found = results(data)
        if found.empty:
            raise InvalidArgumentError(
                "data",
                data,
                "at least one finished run",
                "run the experiment first",
                problem=f"{data} holds no finished run",
            )
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
                "data",
                runs,
                "a folder, the table of gf.results, a Run, a list of Runs, or a dictionary from labels to Runs",
                problem=f"the data{of} are {_kind(runs)}",
            )
        for i, run in enumerate(listed):
            columns = {
                "environment": "",
                "agent": label,
                "seed": i,
                "run_id": f"{label}/{i}",
                "step": run.steps,
                "reward": run.rewards,
                "regret": run.regret,
                "pseudo_regret": run.pseudo_regret,
            }
            parts.append(pd.DataFrame(columns))
    if not parts:
        raise InvalidArgumentError("data", data, "at least one Run", problem="the data are an empty dictionary")
    return pd.concat(parts, ignore_index=True)


def _kind(runs: Any) -> str:
    if isinstance(runs, (list, tuple)):
        return f"a {type(runs).__name__} of {', '.join(sorted({type(r).__name__ for r in runs})) or 'nothing'}"
    return f"{type(runs).__name__} {shown(repr(runs), 40)}"


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


def panels_of(frame: pd.DataFrame, value: Value, style: CurveStyle, environment: str | None = None) -> list[Panel]:
    """One panel per environment, in the order of the frame; or only that of `environment`."""
    from gainful.experiments.aggregates import curves

    if environment is not None and "environment" in frame.columns:
        known = list(dict.fromkeys(map(str, frame["environment"].unique())))
        if environment not in known:
            raise InvalidArgumentError(
                "environment",
                environment,
                hint=suggestion(str(environment), known),
                problem=f"no environment is called {environment!r}",
            )
    found = curves(frame, value, style.quantiles)
    notes: list[str] = found.attrs["notes"]
    agents = {label: i for i, label in enumerate(dict.fromkeys(found["agent"]))}
    panels = []
    for where, part in found.groupby("environment", sort=False, observed=True):
        if environment is not None and where != environment:
            continue
        lines, here = [], [note for note in notes if f" in {where}: " in note]
        for who, rows in part.groupby("agent", sort=False, observed=True):
            steps = rows["step"].to_numpy(dtype=np.int64)
            by = steps if style.per_step else 1
            centre, low, high = (rows[name].to_numpy(dtype=np.float64) / by for name in style.columns)
            each = _each_run(frame, where, who, value, style.per_step) if style.seeds else ()
            line = Line(str(who), agents[who], steps, centre, low, high, int(rows["runs"].iloc[0]), each)
            lines.append(line)
            if not line.known:
                here.append(f"{who}: {VALUE_NAMES[value]} unknown")
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
