"""The journal as a table: every decision, observation, plan and change, since the beginning."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gainful.errors import InvalidArgumentError, JournalError
from gainful.files import write_table
from gainful.live.folder import Folder
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
"""How often a journal is read again that its writer has compacted meanwhile."""


def read_journal(path: str | Path) -> pd.DataFrame:
    """Everything a durable agent was told and did, one row each; also while another process writes.

    Columns: `sequence`, the number of the record (a batch has one for all its rows); `time` (UTC; it has no influence
    on anything); `kind`: decision, observation, plan, plan begun, change or abandoned; `step`, the number of the
    observation, or of observations before; `state`, `action`, `reward`, `next_state` (for points of several
    coordinates state_0, state_1, … and next_state_0, …); `decision_id`, of decisions and of their outcomes;
    `planned_from` and `adopted_at`, the observations that a plan was made from and adopted at; `source`: "live",
    "batch" or "history"; `request_id`; `detail`, a change as JSON.

    A last record that is being written, or was torn by a kill, is left out.
    Raises JournalError where there is no agent, DamagedJournalError where the journal is damaged before its end.
    """
    folder = Folder(path)
    description = folder.read_description()
    layout = RecordLayout(description.salt, description.dim)
    known = not description.gaps and bool(description.options.get("keep_history", True))
    first = int(description.initial["t"]) if known else None
    for _ in range(MAX_REREADS):
        before = sorted(os.listdir(folder.path))
        try:
            return records_table(layout, list(read_all(folder, description, layout)), first)
        except JournalError:
            if before == sorted(os.listdir(folder.path)):
                raise
    raise JournalError(f"{path}: its files change faster than they can be read; try again, or close the agent")


def records_table(layout: RecordLayout, records: Iterable[Record], t: int | None) -> pd.DataFrame:
    """The table of some records, `t` observations having been made before the first; None where that is unknown."""
    import pandas as pd

    d = layout.dim
    states = ["state"] if d <= 1 else [f"state_{i}" for i in range(d)]
    nexts = ["next_state"] if d <= 1 else [f"next_state_{i}" for i in range(d)]
    leading = [
        "sequence",
        "time",
        "kind",
        "step",
        "action",
        "reward",
        "decision_id",
        "planned_from",
        "adopted_at",
    ]
    columns: dict[str, list[Any]] = {name: [] for name in [*leading, "source", "request_id", "detail", *states, *nexts]}
    step = 0 if t is None else t
    blank = [None] * max(d, 1)

    def add(record: Record, kind: str, **values: Any) -> None:
        columns["sequence"].append(record.sequence)
        columns["time"].append(record.time)
        columns["kind"].append(kind)
        columns["step"].append(step if t is not None else None)
        columns["request_id"].append(record.request.decode("utf-8", "replace") if record.request else None)
        for name in (*leading[4:], "source", "detail"):
            columns[name].append(values.get(name))
        for names, key in ((states, "state"), (nexts, "next_state")):
            for name, value in zip(names, values.get(key, blank), strict=True):
                columns[name].append(value)

    for record in records:
        name, payload = RECORD_NAMES[RecordKind(record.kind)], record.payload
        if record.kind == RecordKind.DECISION:
            state, action = layout.one_decision(payload)
            add(record, name, state=_parts(state), action=action, decision_id=record.sequence, source="live")
        elif record.kind == RecordKind.OBSERVATION:
            state, action, reward, to, told = layout.one_row(payload)
            step += 1
            add(
                record, name, state=_parts(state), action=action, reward=reward, next_state=_parts(to),
                decision_id=told or None, source="live",
            )  # fmt: skip
        elif record.kind == RecordKind.BATCH:
            rows = layout.unpack_rows(payload)
            source = "history" if record.flags & FROM_HISTORY else "batch"
            for s, a, r, to in zip(*(column.tolist() for column in rows), strict=True):
                step += 1
                add(record, name, state=_parts(s), action=a, reward=r, next_state=_parts(to), source=source)
        elif record.kind in (RecordKind.PLAN, RecordKind.PLAN_BEGUN):
            begun, adopted = TWO_NUMBERS.unpack(payload)
            add(record, name, planned_from=begun, adopted_at=adopted if record.kind == RecordKind.PLAN else None)
        elif record.kind == RecordKind.CHANGE:
            add(record, name, detail=json.dumps(json.loads(payload), ensure_ascii=False))
        else:
            add(record, name, decision_id=TWO_NUMBERS.unpack(payload)[0])
    order = [
        *leading[:4],
        *states,
        "action",
        "reward",
        *nexts,
        *leading[6:],
        "source",
        "request_id",
        "detail",
    ]
    frame = pd.DataFrame({name: columns[name] for name in order})
    whole = ["step", "action", "decision_id", "planned_from", "adopted_at"]
    for name in whole + ([*states, *nexts] if d == 0 else []):
        frame[name] = frame[name].astype("Int64")
    for name in ["reward"] + ([*states, *nexts] if d else []):
        frame[name] = frame[name].astype("float64")
    for name in ("kind", "source", "request_id", "detail"):
        frame[name] = frame[name].astype("object")
    frame["sequence"] = frame["sequence"].astype("int64")
    frame["time"] = pd.to_datetime(frame["time"].astype("int64"), unit="ns", utc=True)
    return frame


def _parts(state: Any) -> list[Any]:
    return list(state) if isinstance(state, (list, np.ndarray)) else [state]


def export(path: str | Path, file: str | Path) -> int:
    """Write the journal's table to `file`, by its suffix .csv (also .csv.gz) or .parquet; the number of rows.

    The file is complete or, if anything fails, as it was before.
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
    """Whether a folder is that of a durable agent."""
    try:
        return Folder(path).description_file.exists()
    except (OSError, InvalidArgumentError):  # a name that no file can have
        return False
