"""Tables of many runs: a summary per agent, curves over steps, and comparisons of two agents on shared seeds.

They take the tidy frame of `gainful.results`. The statistics are those of `gainful.experiments.run_statistics`,
`improvement` and `growth`, which are available here too. If the runs of one agent in one environment differ in their
checkpoints, only the steps that all of them share are used, and a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from gainful.errors import InvalidArgumentError, suggestion
from gainful.experiments.growth import GrowthExponent, growth_exponent, last_decades_window
from gainful.experiments.improvement import Improvement, improvement_of, probability_of_improvement
from gainful.experiments.run_statistics import (
    Interval,
    Method,
    bootstrap_interval,
    interquartile_mean,
    mean,
    median,
    quantile_band,
)
from gainful.experiments.run_values import Floats, check_confidence, check_interval, format_number
from gainful.simulation.run import MEASURE_NAMES, REGRETS

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Comparison",
    "EnvironmentComparison",
    "GrowthExponent",
    "Improvement",
    "Interval",
    "Method",
    "bootstrap_interval",
    "compare",
    "curves",
    "default_measure",
    "growth_exponent",
    "interquartile_mean",
    "mean",
    "median",
    "probability_of_improvement",
    "quantile_band",
    "summary",
]

KEYS = ("environment", "agent", "seed", "step", "run_id")


def summary(frame: pd.DataFrame, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0) -> pd.DataFrame:
    """One row per environment and agent: final regrets with intervals, growth, and time spent planning.

    Parameters
    ----------
    frame : pandas.DataFrame
        The tidy table of `gainful.results`.
    confidence : float
        The confidence of all intervals, between 0 and 1.
    resamples : int
        Resamples of each bootstrap interval.
    seed : int
        The seed of the resampling.

    Returns
    -------
    pandas.DataFrame
        The columns below.

    Notes
    -----
    Columns: environment, agent, runs, final_step; for each of expected_regret, pseudo_regret and regret at that step
    the `_mean`, `_median` and `_iqm`, each with `_low` and `_high` (Student's interval for the mean, the expanded
    bootstrap for the others: see `bootstrap_interval`), and `_per_step`, the mean over final_step; growth_exponent
    with growth_low, growth_high and growth_of, the series it is of (the first of these that is known for all runs);
    planning_share, the mean over runs of planning/(planning + acting) seconds; note. A measure that is unknown for
    some run is missing; `default_measure` says which one to show.

    Runs of one row that differ in their checkpoints are aggregated only at the steps all of them share, the last of
    which is final_step; `note` then says so. If they share none, the numbers are missing.
    """
    import pandas as pd

    check_interval(confidence, resamples, seed)
    rows = []
    for group in _groups(_with_expected_regret(frame), (*REGRETS, "planning_seconds", "acting_seconds")):
        steps, values, note = _aligned(group)
        row: dict[str, Any] = {
            "environment": group.environment,
            "agent": group.agent,
            "runs": len(group.seeds),
            "final_step": int(steps[-1]) if steps.size else pd.NA,
        }
        for name in REGRETS:
            final = values[name][:, -1] if steps.size else np.array([np.nan])
            for label, statistic in (("mean", mean), ("median", median), ("iqm", interquartile_mean)):
                method: Method = "student" if statistic is mean else "expanded"
                found = bootstrap_interval(final, statistic, confidence, resamples, seed, method)
                row[f"{name}_{label}"] = found.estimate
                row[f"{name}_{label}_low"], row[f"{name}_{label}_high"] = found.low, found.high
            reached = steps.size and steps[-1] > 0
            row[f"{name}_per_step"] = row[f"{name}_mean"] / int(steps[-1]) if reached else math.nan
        row |= _growth_columns(steps, values, confidence, resamples, seed)
        row["planning_share"] = _planning_share(values)
        row["note"] = note
        rows.append(row)
    return pd.DataFrame(rows).astype({"final_step": "Int64"})


def default_measure(frame: pd.DataFrame) -> str:
    """The measure of regret to show: expected regret if it is known for all runs, and otherwise pseudo-regret.

    Parameters
    ----------
    frame : pandas.DataFrame
        The tidy table of `gainful.results`, or the part of it that is shown together.

    Returns
    -------
    str
        "expected_regret"; or "pseudo_regret"; or "regret" if that alone is known. It is known for a run if it is not
        NaN at the last step.
    """
    names = [name for name in REGRETS if name == "pseudo_regret" or name in getattr(frame, "columns", ())]
    groups = _groups(frame, names)
    # (runs,) whether the value at the last step is known
    known = {
        name: ~np.isnan(np.concatenate([g.columns[name][np.cumsum(g.lengths) - 1] for g in groups])) for name in names
    }
    if "expected_regret" in known and known.pop("expected_regret").all():
        return "expected_regret"
    return next((name for name, found in known.items() if found.any()), "pseudo_regret")


def _with_expected_regret(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame, with unknown expected regret if it is of a version without it."""
    if "expected_regret" in getattr(frame, "columns", ("expected_regret",)):
        return frame
    return frame.assign(expected_regret=np.nan)


def curves(frame: pd.DataFrame, value: str | None = None, band: tuple[float, float] = (0.25, 0.75)) -> pd.DataFrame:
    """One row per environment, agent and step: mean, median, iqm, the quantile band (low, high), and runs.

    Parameters
    ----------
    frame : pandas.DataFrame
        The tidy table of `gainful.results`.
    value : str, optional
        The column to average: "expected_regret", "pseudo_regret", "regret" or "reward"; by default the one that
        `default_measure` names.
    band : tuple of float
        The two quantiles of the band.

    Returns
    -------
    pandas.DataFrame
        Columns environment, agent, step, mean, median, iqm, low, high, mean_low, mean_high, runs.

    Notes
    -----
    `mean_low` and `mean_high` are the ends of Student's 95 % confidence interval of the mean, NaN for a single run.

    Runs of one (environment, agent) that differ in their checkpoints have rows only at the steps all of them share;
    `attrs["notes"]` then says so, a list of sentences. NaN in `value` makes that row NaN.
    """
    import pandas as pd

    parts, notes = [], []
    value = value or default_measure(frame)
    for group in _groups(frame, (value,)):
        steps, values, note = _aligned(group)
        y = values[value]  # (n, k)
        low, high = quantile_band(y, *band)
        half = _student_half_width(y)
        columns = {
            "environment": group.environment,
            "agent": group.agent,
            "step": steps,
            "mean": mean(y),
            "median": median(y),
            "iqm": interquartile_mean(y),
            "low": low,
            "high": high,
            "mean_low": mean(y) - half,
            "mean_high": mean(y) + half,
            "runs": len(y),
        }
        parts.append(pd.DataFrame(columns))
        if note:
            notes.append(f"{group.agent} in {group.environment}: {note}")
    found = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    found.attrs["notes"] = notes
    return found


def _student_half_width(runs: Floats, confidence: float = 0.95) -> Floats:
    """Half the width of Student's interval of the mean over axis 0; NaN for a single run."""
    n = len(runs)
    if n < 2:
        return np.full(runs.shape[1:], np.nan)
    half: Floats = special.stdtrit(n - 1, (1.0 + confidence) / 2) * runs.std(axis=0, ddof=1) / math.sqrt(n)
    return half


@dataclass(frozen=True)
class EnvironmentComparison:
    """Two agents in one environment: their regrets at `step`, the last that all the paired runs share."""

    environment: str
    step: int
    """0 if there is none."""
    improvement: Improvement
    note: str = ""
    """What was left out, or why there is nothing to compare; usually empty."""

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        at = f" at step {format_number(self.step)}" if self.step else ""
        return f"{self.environment}{at}: {self.improvement}{note}"


@dataclass(frozen=True)
class Comparison:
    """One agent against another in every environment both ran in."""

    first: str
    second: str
    value: str
    environments: tuple[EnvironmentComparison, ...] = field(repr=False)

    def __str__(self) -> str:
        measure = MEASURE_NAMES.get(self.value, self.value)
        head = f"{self.first} against {self.second}, {measure} on shared seeds (smaller is better)"
        return "\n".join([head, *(f"  {e}" for e in self.environments)])

    def to_frame(self) -> pd.DataFrame:
        """One row per environment: environment, step, the fields of `Improvement`, note."""
        import pandas as pd

        rows = [
            {"environment": e.environment, "step": e.step, **asdict(e.improvement), "note": e.note}
            for e in self.environments
        ]
        return pd.DataFrame(rows)


def compare(
    frame: pd.DataFrame, first: str, second: str, value: str | None = None, *, confidence: float = 0.95
) -> Comparison:
    """Compare two agents by their final regret on shared seeds, with `probability_of_improvement`.

    Parameters
    ----------
    frame : pandas.DataFrame
        The tidy table of `gainful.results`.
    first, second : str
        The labels of the agents.
    value : {"expected_regret", "pseudo_regret", "regret"}, optional
        What is compared; smaller is better. By default what `default_measure` names.
    confidence : float
        The confidence of the intervals, between 0 and 1.

    Returns
    -------
    Comparison
        `print` shows it; `to_frame` makes a table.

    Raises
    ------
    InvalidArgumentError
        If an agent is not in the frame, or the two share no environment.

    Notes
    -----
    One entry per environment both ran in, on the seeds both ran, at the last step that all those runs share. An
    environment without shared seeds, shared steps or known values stays in the result, with no pairs and a note.
    """
    check_confidence(confidence)
    value = value or default_measure(frame)
    if value not in REGRETS:
        raise InvalidArgumentError("value", value, f"one of {', '.join(REGRETS)}")
    groups = _groups(frame, (value,))
    agents = {g.agent for g in groups}
    for name in (first, second):
        if name not in agents:
            raise InvalidArgumentError(
                "agent",
                name,
                hint=suggestion(str(name), map(str, agents)),
                problem=f"no agent in the frame is {name!r}",
            )
    if first == second:
        raise InvalidArgumentError("second", second, "two different agents", problem=f"both agents are {first!r}")
    sides = [{g.environment: g for g in groups if g.agent == name} for name in (first, second)]
    both = [e for e in sides[0] if e in sides[1]]
    if not both:
        raise InvalidArgumentError(
            "second", second, "at least one", problem=f"{first!r} and {second!r} share no environment"
        )
    found = tuple(_compare_in(sides[0][e], sides[1][e], value, confidence) for e in both)
    return Comparison(first, second, value, found)


def _compare_in(a: _Group, b: _Group, value: str, confidence: float) -> EnvironmentComparison:
    shared = np.intersect1d(a.seeds, b.seeds)
    if shared.size == 0:
        nothing = improvement_of(np.empty(0), np.empty(0), confidence)
        return EnvironmentComparison(a.environment, 0, nothing, "no shared seeds")
    a, b = a.of_seeds(shared), b.of_seeds(shared)
    joined = _Group(
        a.environment,
        a.agent,
        np.append(a.seeds, b.seeds),
        np.append(a.lengths, b.lengths),
        np.append(a.steps, b.steps),
        {value: np.append(a.columns[value], b.columns[value])},
    )
    steps, values, note = _aligned(joined)
    if steps.size == 0:
        return EnvironmentComparison(a.environment, 0, improvement_of(np.empty(0), np.empty(0), confidence), note)
    final = values[value][:, -1]
    # the runs of either side are in the order of their seeds
    x, y = final[: shared.size], final[shared.size :]
    known = ~(np.isnan(x) | np.isnan(y))
    notes = [note] if note else []
    if not known.all():
        notes.append(f"{value} is unknown for {shared.size - known.sum()} of {shared.size} pairs")
    improvement = improvement_of(x[known], y[known], confidence)
    return EnvironmentComparison(a.environment, int(steps[-1]), improvement, "; ".join(notes))


def _growth_columns(
    steps: NDArray[np.int64], values: Mapping[str, Floats], confidence: float, resamples: int, seed: int
) -> dict[str, Any]:
    found, of = GrowthExponent(math.nan, math.nan, math.nan, 0, "none"), ""
    window = last_decades_window(steps.astype(np.float64), 1.0) if steps.size else np.zeros(0, dtype=bool)
    if window.sum() >= 2:
        of = next((name for name in REGRETS if not np.isnan(values[name][:, window]).any()), "")
    if of:
        found = growth_exponent(steps, values[of], confidence=confidence, resamples=resamples, seed=seed)
    return {
        "growth_exponent": found.exponent,
        "growth_low": found.low,
        "growth_high": found.high,
        "growth_of": of,
    }


def _planning_share(values: Mapping[str, Floats]) -> float:
    """Over the runs whose time was measurable at the last shared step; NaN if there is none."""
    if values["planning_seconds"].shape[1] == 0:
        return math.nan
    planning, acting = (values[name][:, -1] for name in ("planning_seconds", "acting_seconds"))
    timed = planning + acting > 0.0
    return float(np.mean(planning[timed] / (planning + acting)[timed])) if timed.any() else math.nan


@dataclass(frozen=True, eq=False)
class _Group:
    """The runs of one agent in one environment, run after run, each in the order of its steps."""

    environment: str
    agent: str
    seeds: NDArray[np.int64]  # (n,), increasing
    lengths: NDArray[np.int64]  # (n,) numbers of checkpoints
    steps: NDArray[np.int64]  # (sum of lengths,)
    columns: dict[str, Floats]  # each like steps

    def of_seeds(self, wanted: NDArray[np.int64]) -> _Group:
        chosen = np.isin(self.seeds, wanted)
        rows = np.repeat(chosen, self.lengths)
        columns = {name: column[rows] for name, column in self.columns.items()}
        return _Group(self.environment, self.agent, self.seeds[chosen], self.lengths[chosen], self.steps[rows], columns)


def _aligned(group: _Group) -> tuple[NDArray[np.int64], dict[str, Floats], str]:
    """The (k,) steps all runs share, the columns there as (n, k), and a note if some run has others."""
    n = len(group.lengths)
    if (group.lengths == group.lengths[0]).all():
        grid = group.steps.reshape(n, -1)
        if (grid == grid[0]).all():
            return grid[0], {name: column.reshape(n, -1) for name, column in group.columns.items()}, ""
    every, place, counts = np.unique(group.steps, return_inverse=True, return_counts=True)
    keep = (counts == n)[place]
    steps = every[counts == n]
    columns = {name: column[keep].reshape(n, steps.size) for name, column in group.columns.items()}
    ends = group.steps[np.cumsum(group.lengths) - 1]
    where = f"the runs end at steps {format_number(ends.min())} to {format_number(ends.max())} and share "
    if ends.min() == ends.max():
        where = "the runs share "
    where += f"{steps.size} of {every.size} checkpoints"
    return steps, columns, f"{where}: only these are used" if steps.size else where


def _groups(frame: pd.DataFrame, columns: Sequence[str]) -> list[_Group]:
    """The runs of a tidy frame by (environment, agent), in the order in which either first appears."""
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise InvalidArgumentError(
            "frame", frame, "a pandas DataFrame", problem=f"the frame is a {type(frame).__name__}"
        )
    missing = [name for name in (*KEYS, *columns) if name not in frame.columns]
    if missing:
        raise InvalidArgumentError(
            "frame",
            hint=f"it has {', '.join(map(repr, frame.columns))}",
            problem=f"the frame has no column {', '.join(map(repr, missing))}",
        )
    if frame.empty:
        raise InvalidArgumentError("frame", expected="one per run and checkpoint", problem="the frame has no rows")
    coded = {}
    for name in ("environment", "agent", "run_id"):
        codes, labels = pd.factorize(frame[name])
        if (codes < 0).any():
            raise InvalidArgumentError(
                name, expected="a label", problem=f"{name} is missing in row {int((codes < 0).argmax())}"
            )
        coded[name] = codes.astype(np.int64), labels
    step, seed = _whole_numbers(frame, "step"), _whole_numbers(frame, "seed")
    (environment, environments), (agent, agents), (run, run_ids) = coded.values()
    group = environment * len(agents) + agent
    order = np.lexsort((step, run, seed, group))
    group, run, step, seed = group[order], run[order], step[order], seed[order]
    values = {name: _numbers(frame, name)[order] for name in dict.fromkeys(columns)}

    def name_of(row: int) -> str:
        return f"{agents[group[row] % len(agents)]!r} in {environments[group[row] // len(agents)]!r}"

    new = np.flatnonzero((np.diff(group) != 0) | (np.diff(run) != 0) | (np.diff(seed) != 0)) + 1
    starts = np.append(0, new)  # of the runs
    if np.unique(run[starts]).size < starts.size:
        ids, counts = np.unique(run[starts], return_counts=True)
        raise InvalidArgumentError(
            "run_id",
            run_ids[ids[counts > 1][0]],
            "one of each",
            problem=f"run_id {run_ids[ids[counts > 1][0]]!r} has several seeds, agents or environments",
        )
    twice = np.flatnonzero((np.diff(run) == 0) & (np.diff(step) == 0))
    if twice.size:
        raise InvalidArgumentError(
            "run_id",
            run_ids[run[twice[0]]],
            "one row per run and checkpoint",
            "select one experiment",
            problem=f"run_id {run_ids[run[twice[0]]]!r} has step {step[twice[0]]} twice",
        )
    repeated = np.flatnonzero((np.diff(group[starts]) == 0) & (np.diff(seed[starts]) == 0))
    if repeated.size:
        one, other = starts[repeated[0]], starts[repeated[0] + 1]
        raise InvalidArgumentError(
            "seed",
            int(seed[one]),
            "one",
            "select one experiment",
            problem=f"seed {seed[one]} of {name_of(one)} has the runs {run_ids[run[one]]!r} and "
            f"{run_ids[run[other]]!r}",
        )
    lengths = np.diff(np.append(starts, len(step)))
    first_runs = np.append(0, np.flatnonzero(np.diff(group[starts])) + 1)
    found = []
    for i, j in zip(first_runs, np.append(first_runs[1:], len(starts)), strict=True):
        rows = slice(starts[i], starts[j] if j < len(starts) else len(step))
        code = int(group[starts[i]])
        here = {name: column[rows] for name, column in values.items()}
        where, who = environments[code // len(agents)], agents[code % len(agents)]
        found.append(_Group(where, who, seed[starts[i:j]], lengths[i:j], step[rows], here))
    return found


def _whole_numbers(frame: pd.DataFrame, name: str) -> NDArray[np.int64]:
    numbers = _numbers(frame, name)
    wrong = ~((numbers >= 0.0) & (numbers == np.floor(numbers)) & (numbers < 2.0**63))
    if wrong.any():
        raise InvalidArgumentError(
            name,
            float(numbers[wrong][0]),
            "whole numbers, none negative",
            problem=f"{name} is {numbers[wrong][0]:g} in some row",
        )
    return numbers.astype(np.int64) if frame[name].dtype.kind == "f" else frame[name].to_numpy(dtype=np.int64)


def _numbers(frame: pd.DataFrame, name: str) -> Floats:
    import pandas as pd

    column = frame[name]
    if column.dtype == object and column.isna().all():  # None if the optimal gain is unknown
        column = pd.Series(np.full(len(frame), np.nan))
    if column.dtype.kind not in "fiu":
        raise InvalidArgumentError(name, column.dtype, "numbers", problem=f"column {name!r} has type {column.dtype}")
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(numbers).any():
        raise InvalidArgumentError(
            name, expected="finite numbers or NaN", problem=f"column {name!r} has infinite values"
        )
    return numbers
