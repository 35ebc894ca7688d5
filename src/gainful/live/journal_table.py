"""The journal as a table: every decision, observation, plan and change, since the beginning."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.agents.labels import AgentLabels
from gainful.atomic_files import write_table
from gainful.errors import InvalidArgumentError, JournalError
from gainful.live.folder import AgentDescription, Folder
from gainful.live.journal import read_all
from gainful.live.records import FROM_HISTORY, TWO_NUMBERS, Record, RecordKind, RecordLayout

if TYPE_CHECKING:
    import pandas as pd

RECORD_NAMES = {
    RecordKind.DECISION: "decision",
    RecordKind.OBSERVATION: "observation",
    RecordKind.BATCH: "observation",
    RecordKind.PLAN: "plan",
    RecordKind.PLAN_BEGUN: "plan begun",
    RecordKind.CHANGE: "change",
    RecordKind.ABANDONED: "abandoned",
}

MAX_REREADS = 100
"""How often a journal is read again if its writer compacts it meanwhile."""


def read_journal(path: str | Path) -> pd.DataFrame:
    """Read everything that a durable agent observed and did, one row each; also while another process writes.

    A last record that is being written, or was torn by a kill, is left out.

    Parameters
    ----------
    path : str or Path
        The folder of the agent.

    Returns
    -------
    DataFrame
        With these columns: `sequence`, the number of the record (a batch has one for all its rows); `time` (UTC; it
        has no influence on anything); `kind`: decision, observation, plan, plan begun, change or abandoned; `step`, the
        number of the observation, or of observations before; `state`, `action`, `reward`, `next_state` (for points of
        several coordinates state_0, state_1, … and next_state_0, …); `state_label`, `action_label` and
        `next_state_label`, if the agent has labels, and `cost`, if its numbers are costs (`reward` is the negative);
        `decision_id`, of decisions and of their outcomes;
        `planned_from` and `adopted_at`, the observations that a plan was made from and adopted at; `source`: "live",
        "batch" or "history"; `request_id`; `detail`, a change as JSON.

    Raises
    ------
    JournalError
        If the folder holds no agent, or cannot be read.
    DamagedJournalError
        If the journal is damaged before its end.

    Examples
    --------
    >>> import tempfile
    >>> from gainful.live import open_agent
    >>> config = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with open_agent(f"{place}/pump", config) as agent:
    ...         receipt = agent.observe(state=0, action=1, reward=0.5, next_state=1)
    ...     read_journal(f"{place}/pump").kind.tolist()
    ['observation']
    """
    folder = Folder(path)
    description = folder.read_description()
    layout = RecordLayout(description.salt, description.dim)
    known = not description.gaps and bool(description.options.get("keep_history", True))
    first = int(description.initial["t"]) if known else None
    for _ in range(MAX_REREADS):
        before = sorted(os.listdir(folder.path))
        try:
            return with_labels(records_table(layout, list(read_all(folder, description, layout)), first), description)
        except JournalError:
            if before == sorted(os.listdir(folder.path)):
                raise
    raise JournalError(
        f"{path}: its files change faster than they can be read",
        name="path",
        found=str(path),
        hint="try again, or close the agent",
    )


def records_table(layout: RecordLayout, records: Iterable[Record], t: int | None) -> pd.DataFrame:
    """The table of some records, `t` observations having been made before the first; None if that is unknown."""
    columns = _Columns(layout.dim, t)
    for record in records:
        name, payload = RECORD_NAMES[RecordKind(record.kind)], record.payload
        if record.kind == RecordKind.DECISION:
            state, action = layout.one_decision(payload)
            columns.add(record, name, state=_parts(state), action=action, decision_id=record.sequence, source="live")
        elif record.kind == RecordKind.OBSERVATION:
            state, action, reward, to, decision = layout.one_row(payload)
            transition = {"state": _parts(state), "action": action, "reward": reward, "next_state": _parts(to)}
            columns.step += 1
            columns.add(record, name, **transition, decision_id=decision or None, source="live")
        elif record.kind == RecordKind.BATCH:
            rows = layout.unpack_rows(payload)
            source = "history" if record.flags & FROM_HISTORY else "batch"
            for s, a, r, to in zip(*(column.tolist() for column in rows), strict=True):
                columns.step += 1
                columns.add(record, name, state=_parts(s), action=a, reward=r, next_state=_parts(to), source=source)
        elif record.kind in (RecordKind.PLAN, RecordKind.PLAN_BEGUN):
            begun, adopted = TWO_NUMBERS.unpack(payload)
            adopted_at = adopted if record.kind == RecordKind.PLAN else None
            columns.add(record, name, planned_from=begun, adopted_at=adopted_at)
        elif record.kind == RecordKind.CHANGE:
            columns.add(record, name, detail=json.dumps(json.loads(payload), ensure_ascii=False))
        else:
            columns.add(record, name, decision_id=TWO_NUMBERS.unpack(payload)[0])
    return columns.to_frame()


def with_labels(frame: pd.DataFrame, description: AgentDescription) -> pd.DataFrame:
    """The table of a journal with the labels of states and actions, and with costs, if the agent has them."""
    labels = AgentLabels.from_json(description.labels)
    if labels is None:
        return frame
    names = {"state": labels.states, "action": labels.actions, "next_state": labels.states}
    for column, known in names.items():
        if known is not None and column in frame:
            place = list(frame.columns).index(column) + 1
            frame.insert(place, f"{column}_label", _labelled(frame[column], known))
    if labels.objective == "cost":
        frame.insert(list(frame.columns).index("reward") + 1, "cost", 0.0 - frame["reward"])
    return frame


def _labelled(numbers: pd.Series, labels: Sequence[str]) -> list[str | None]:
    """The labels of a column of numbers; None where there is no number, or no label for it."""
    found = numbers.fillna(-1).astype("int64").tolist()
    return [labels[i] if 0 <= i < len(labels) else None for i in found]


class _Columns:
    """The columns of a journal's table, filled row by row."""

    LEADING = ("sequence", "time", "kind", "step")
    WHOLE = ("decision_id", "planned_from", "adopted_at")
    TRAILING = ("source", "request_id", "detail")

    def __init__(self, dim: int, t: int | None) -> None:
        self._dim, self._counted = dim, t is not None
        self.step = 0 if t is None else t
        self._states = ["state"] if dim <= 1 else [f"state_{i}" for i in range(dim)]
        self._nexts = ["next_state"] if dim <= 1 else [f"next_state_{i}" for i in range(dim)]
        middle = [*self._states, "action", "reward", *self._nexts]
        self._lists: dict[str, list[Any]] = {name: [] for name in (*self.LEADING, *middle, *self.WHOLE, *self.TRAILING)}

    def add(self, record: Record, kind: str, **values: Any) -> None:
        """One row; what is not given is empty."""
        lists, blank = self._lists, [None] * max(self._dim, 1)
        lists["sequence"].append(record.sequence)
        lists["time"].append(record.time)
        lists["kind"].append(kind)
        lists["step"].append(self.step if self._counted else None)
        lists["request_id"].append(record.request.decode("utf-8", "replace") if record.request else None)
        for name in ("action", "reward", *self.WHOLE, "source", "detail"):
            lists[name].append(values.get(name))
        for names, key in ((self._states, "state"), (self._nexts, "next_state")):
            for name, value in zip(names, values.get(key, blank), strict=True):
                lists[name].append(value)

    def to_frame(self) -> pd.DataFrame:
        """The table, every column with its type."""
        import pandas as pd

        frame = pd.DataFrame(self._lists)
        places = [*self._states, *self._nexts]
        for name in ["step", "action", *self.WHOLE, *([] if self._dim else places)]:
            frame[name] = frame[name].astype("Int64")
        for name in ["reward", *(places if self._dim else [])]:
            frame[name] = frame[name].astype("float64")
        for name in ("kind", *self.TRAILING):
            frame[name] = frame[name].astype("object")
        frame["sequence"] = frame["sequence"].astype("int64")
        frame["time"] = pd.to_datetime(frame["time"].astype("int64"), unit="ns", utc=True)
        return frame


def _parts(state: Any) -> list[Any]:
    return list(state) if isinstance(state, (list, np.ndarray)) else [state]


def export(path: str | Path, file: str | Path) -> int:
    """Write the journal of a durable agent to a file, as a table.

    Parameters
    ----------
    path : str or Path
        The folder of the agent.
    file : str or Path
        The file to write, .csv, .csv.gz or .parquet. It is complete or, if anything fails, as it was before.

    Returns
    -------
    int
        The number of rows.

    Raises
    ------
    JournalError
        If the folder cannot be read, or the file cannot be written.
    InvalidArgumentError
        If the name of the file has another suffix.

    Examples
    --------
    >>> import tempfile
    >>> import gainful as gf
    >>> config = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with gf.open_agent(f"{place}/pump", config) as agent:
    ...         receipt = agent.observe(state=0, action=1, reward=0.5, next_state=1)
    ...     export(f"{place}/pump", f"{place}/pump.csv")
    1
    """
    return export_table(read_journal(path), file)


def export_table(frame: pd.DataFrame, file: str | Path) -> int:
    """Write a journal's table to a file by its suffix; the number of rows, or a JournalError."""
    try:
        return write_table(frame, file)
    except OSError as error:
        raise JournalError(
            f"{file}: cannot be written: {error.strerror or error}",
            name="file",
            found=str(file),
            hint="check space and permissions",
        ) from error


def is_live(path: str | Path) -> bool:
    """Tell whether a folder is that of a durable agent.

    Parameters
    ----------
    path : str or Path
        The folder; it need not exist.

    Returns
    -------
    bool
        True if `gf.open_agent` would find an agent there. Its journal may be damaged all the same.

    Examples
    --------
    >>> is_live("no such folder")
    False
    """
    try:
        return Folder(path).description_file.exists()
    except (OSError, InvalidArgumentError):  # a name that no file can have
        return False
