"""Logs: transitions, or time-stamped rows of several units, read and checked; states and actions become indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError, InvalidMDPError, suggestion
from gainful.mdp.choices import check_pairs
from gainful.mdp.table_labels import integer_names
from gainful.mdp.table_reading import read_table
from gainful.mdp.table_source import Source
from gainful.mdp.units import Objective
from gainful.number_text import count

Integers = NDArray[np.int64]

LARGEST_REWARD = 1e150
"""The largest absolute reward of a log: squares of larger ones overflow."""
LOG_COLUMNS = ("state", "action", "reward", "cost", "next_state", "unit", "time")
"""The columns that a log may have; others are ignored."""


@dataclass(frozen=True)
class NumberedLog:
    """Transitions in the order of the log, with the trajectory that each one belongs to."""

    title: str
    state: Integers
    action: Integers
    reward: NDArray[np.float64]
    """As the user wrote them: rewards or costs."""
    next_state: Integers
    unit: Integers
    """The number of the trajectory of each row: 0, 1, …"""
    n_units: int
    n_states: int
    n_actions: int
    state_labels: list[str] | None
    action_labels: list[str] | None
    objective: Objective
    rows_read: int
    notes: tuple[str, ...]

    @property
    def n_transitions(self) -> int:
        """The number of transitions."""
        return int(self.state.size)

    @property
    def pair(self) -> Integers:
        """s*A + a of each transition."""
        return self.state * self.n_actions + self.action

    def only(self, rows: NDArray[np.bool_]) -> NumberedLog:
        """The log without the rows outside the mask; states and actions keep their numbers."""
        chosen = {name: getattr(self, name)[rows] for name in ("state", "action", "reward", "next_state", "unit")}
        return replace(self, **chosen)


def read_transition_log(
    log: Any,
    *,
    states: Sequence[Any] | None = None,
    actions: Sequence[Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> NumberedLog:
    """A log as transitions; every failure is an InvalidMDPError that names the file, the line and the column.

    `states` and `actions` list all labels in the order of their numbers; `columns` gives the log's own names of
    columns: {"state": "condition"}.
    """
    if isinstance(log, NumberedLog):
        return log
    source = with_names(read_table(_as_columns(log)), columns or {})
    source.require("state", "action", hint=_own_name("state"))
    values = source.one_of("reward", "cost", hint=_own_name("cost"))
    source.require(values)
    timed = _is_timed(source)
    acted, unit = source, np.zeros(0, dtype=np.int64)
    notes: tuple[str, ...] = ()
    if not timed and "probability" in source.columns():
        notes = (
            "the column 'probability' is ignored and each row counted once; if each row is a transition of a model, "
            "this is no log: gainful solve reads it",
        )
    if timed:
        acted, unit, notes = _with_next_states(source)
    reward = acted.numbers(values)
    too_large = np.abs(reward) > LARGEST_REWARD
    if too_large.any():
        at = int(np.flatnonzero(too_large)[0])
        acted.fail(at, values, f"{reward[at]:g}", f"a number between ±{LARGEST_REWARD:g}", int(too_large.sum()))
    state, target, state_labels, n_states = _numbered(acted, ("state", "next_state"), "state", states)
    action, _, action_labels, n_actions = _numbered(acted, ("action", "action"), "action", actions)
    check_pairs(n_states, n_actions, f"{source.title}: a model")
    if not timed:
        unit = _chained(state, target)
    return NumberedLog(
        title=source.title,
        state=state,
        action=action,
        reward=reward,
        next_state=target,
        unit=unit,
        n_units=int(unit.max()) + 1,
        n_states=n_states,
        n_actions=n_actions,
        state_labels=state_labels,
        action_labels=action_labels,
        objective="cost" if values == "cost" else "reward",
        rows_read=len(source.frame),
        notes=notes,
    )


def _as_columns(log: Any) -> Any:
    """Four arrays (states, actions, rewards, next states) as a dictionary of columns; anything else as it is."""
    if isinstance(log, (tuple, list)):
        if len(log) != 4:
            raise InvalidArgumentError(
                "log",
                len(log),
                "a file, a data frame, a dictionary of columns, or four arrays: states, actions, rewards, next states",
                problem=f"log is a {type(log).__name__} of length {len(log)}",
            )
        arrays = [np.asarray(column) for column in log]
        if any(array.ndim != 1 or array.size != arrays[0].size for array in arrays):
            raise InvalidArgumentError(
                "log",
                [array.shape for array in arrays],
                "four arrays of one length",
                problem=f"log has arrays of shapes {', '.join(str(array.shape) for array in arrays)}",
            )
        return dict(zip(("state", "action", "reward", "next_state"), arrays, strict=True))
    return log


def with_next_states(source: Source) -> Source:
    """A log of transitions as it is, and one of units and times as transitions, each unit's rows in order of time."""
    source.require("state", "action", hint=_own_name("state"))
    return _with_next_states(source)[0] if _is_timed(source) else source


def _with_next_states(source: Source) -> tuple[Source, Integers, tuple[str, ...]]:
    """The rows whose next state is known, with it; their units, and notes."""
    begin, end, unit, notes = _rows_of_units(source)
    arrived = source.frame["state"].iloc[end].to_numpy()
    frame = source.frame.iloc[begin].assign(next_state=arrived)
    return replace(source, frame=frame, row_numbers=source.row_numbers[begin]), unit, notes


def _own_name(name: str) -> str:
    """How to say which column of the log is meant."""
    return f"say which column of yours it is: --column {name}=COLUMN, in Python columns={{'{name}': 'COLUMN'}}"


def with_names(source: Source, columns: Mapping[str, str]) -> Source:
    """The log with its columns named as gainful names them."""
    if not columns:
        return source
    have = source.columns()
    for name, own in columns.items():
        if name not in LOG_COLUMNS:
            raise InvalidArgumentError(
                "columns", name, f"one of {', '.join(LOG_COLUMNS)}", suggestion(name, LOG_COLUMNS)
            )
        if own not in have:
            raise InvalidMDPError(
                f"{source.title}: there is no column '{own}'", name=own, found=have, hint=suggestion(own, have)
            )
    wanted = {own: name for name, own in columns.items()}
    kept = [c for c in have if c in wanted or c not in columns]
    return replace(source, frame=source.frame[kept].rename(columns=wanted))


def _is_timed(source: Source) -> bool:
    """Whether a row's next state is that of the unit's next row; InvalidMDPError if the log shows neither."""
    have = source.columns()
    if "next_state" in have:
        source.require("next_state")
        return False
    if "unit" in have or "time" in have:
        for name in ("unit", "time"):
            if name in have:
                source.require(name)
        return True
    raise InvalidMDPError(
        f"{source.title}: no column 'next_state', and no columns 'unit' and 'time'; found "
        + ", ".join(f"'{c}'" for c in have),
        name="next_state",
        found=have,
        hint="a log has one transition per row (state, action, reward, next_state), or one row per unit and time "
        "(unit, time, state, action, reward), whose next state is in the unit's next row",
    )


def _rows_of_units(source: Source) -> tuple[Integers, Integers, Integers, tuple[str, ...]]:
    """The rows at which transitions begin and end, their units, and notes; a unit's last row begins none."""
    n = len(source.frame)
    have = source.columns()
    codes = np.zeros(n, dtype=np.int64)
    if "unit" in have:
        codes = pd.factorize(source.labels("unit"))[0].astype(np.int64)
    time = _times(source) if "time" in have else np.arange(n, dtype=np.float64)
    order = np.lexsort((time, codes))
    ordered_unit, ordered_time = codes[order], time[order]
    follows = ordered_unit[1:] == ordered_unit[:-1]
    twice = np.flatnonzero(follows & (ordered_time[1:] == ordered_time[:-1]))
    if twice.size:
        row = int(order[twice[0] + 1])
        unit = f"unit '{source.frame['unit'].iloc[row]}'" if "unit" in have else "the log"
        raise InvalidMDPError(
            f"{source.place(row)}, column 'time': {unit} has the time {source.frame['time'].iloc[row]} twice",
            name="time",
            found=str(source.frame["time"].iloc[row]),
            expected="one row per unit and time",
            hint=f"{twice.size} of {n} rows"
            + ("" if "unit" in have else "; if the log has several units, name their column: --column unit=machine"),
        )
    if not follows.any():
        raise InvalidMDPError(
            f"{source.title}: every unit has one row only, so no next state is known",
            name="unit",
            found=n,
            expected="several rows per unit",
            hint="is the column 'unit' the right one?",
        )
    begin, end = order[:-1][follows], order[1:][follows]
    unit = pd.factorize(codes[begin])[0].astype(np.int64)
    steps = (ordered_time[1:] - ordered_time[:-1])[follows]
    return begin, end, unit, _notes_on_time(n - begin.size, steps if "time" in have else np.ones(1))


def _notes_on_time(last_rows: int, steps: NDArray[np.float64]) -> tuple[str, ...]:
    rows = f"{count(last_rows, 'last row')} of units"
    notes = [f"{rows} left out: their next state is not known"]
    low, high = float(steps.min()), float(steps.max())
    if high > 1.001 * low:
        notes.append(
            f"the times between rows differ (the longest is {high / low:.3g} times the shortest): each row is taken as "
            "one step"
        )
    return tuple(notes)


def _times(source: Source) -> NDArray[np.float64]:
    """The column of times as numbers that order the rows: numbers as they are, dates in microseconds."""
    series = source.frame["time"]
    if pd.api.types.is_numeric_dtype(series.dtype) and not pd.api.types.is_bool_dtype(series.dtype):
        return source.numbers("time")
    if pd.api.types.is_timedelta64_dtype(series.dtype):
        return np.asarray(series.dt.total_seconds(), dtype=np.float64)
    dates = pd.api.types.is_datetime64_any_dtype(series.dtype)
    if not dates and bool(pd.to_numeric(series, errors="coerce").notna().all()):
        return source.numbers("time")
    times = pd.to_datetime(series, errors="coerce", utc=True, format=None if dates else "ISO8601")
    bad = times.isna().to_numpy()
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        source.fail(
            at, "time", source.shown(series.iloc[at]), "a number or a date such as 2025-03-31 14:05", int(bad.sum())
        )
    return times.dt.tz_localize(None).to_numpy().astype("datetime64[us]").astype(np.int64).astype(np.float64)


def _chained(state: Integers, next_state: Integers) -> Integers:
    """Trajectories of a log without units: a row continues the one before if it begins where that one ended."""
    breaks = np.concatenate([[0], (state[1:] != next_state[:-1]).astype(np.int64)])
    return np.cumsum(breaks)


def _numbered(
    source: Source, columns: tuple[str, str], kind: str, labels: Sequence[Any] | None
) -> tuple[Integers, Integers, list[str] | None, int]:
    """Two columns of names as numbers: the labels given; else integers in their order, other names as they come."""
    first = source.labels(columns[0])
    second = first if columns[1] == columns[0] else source.labels(columns[1])
    if first.dtype != second.dtype:
        first, second = (np.array([str(x) for x in column], dtype=object) for column in (first, second))
    together = first if second is first else np.concatenate([first, second])
    codes, unique = pd.factorize(together)
    numbers = integer_names(unique, source.is_text)
    if labels is not None:
        names = _given_labels(kind, labels)
        place = pd.Index(names).get_indexer(pd.Index([str(x) for x in unique]))
        if np.any(place < 0):
            missing = int(np.flatnonzero(place < 0)[0])
            row = int(np.flatnonzero(codes == missing)[0])
            column = columns[0] if row < first.size else columns[1]
            raise InvalidMDPError(
                f"{source.place(row % first.size)}, column '{column}': '{unique[missing]}' is not in {kind}s=",
                name=column,
                found=unique[missing],
                hint=suggestion(str(unique[missing]), names),
            )
    elif numbers is not None:  # in the order of the numbers; 0 … n-1 need no labels
        place = np.empty(numbers.size, dtype=np.int64)
        place[np.argsort(numbers)] = np.arange(numbers.size)
        ordered = np.sort(numbers)
        names = [] if ordered[0] == 0 and ordered[-1] == ordered.size - 1 else [str(x) for x in ordered]
    else:
        place, names = np.arange(len(unique)), [str(x) for x in unique]
    found = place[codes].astype(np.int64)
    n = len(names) or len(unique)
    return found[: first.size], found if second is first else found[first.size :], names or None, n


def _given_labels(kind: str, labels: Sequence[Any]) -> list[str]:
    if isinstance(labels, str) or not hasattr(labels, "__iter__"):
        raise InvalidArgumentError(f"{kind}s", labels, "a list of labels")
    names = [str(x) for x in labels]
    if not names or len(set(names)) < len(names):
        raise InvalidArgumentError(f"{kind}s", labels, "distinct labels, at least one")
    return names
