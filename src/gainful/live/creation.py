"""Creating a durable agent: the first files of its folder."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gainful.agents.files import agent_state
from gainful.agents.rebuilding import module_of
from gainful.archive import write_archive
from gainful.atomic_files import write_file
from gainful.errors import InvalidArgumentError, JournalError
from gainful.live.agent_config import make_agent, plain_settings, statistics_digest
from gainful.live.decision_ledger import DecisionLedger
from gainful.live.end_marker import END_FILE, JournalEnd, pack_end
from gainful.live.folder import DESCRIPTION_FILE, SEGMENT_HEADER_SIZE, AgentDescription, Folder, segment_header
from gainful.live.logs import log_digest, read_log
from gainful.live.records import FROM_HISTORY, RecordKind, RecordLayout, TransitionColumns
from gainful.live.snapshots import SNAPSHOT_FORMAT

DEFAULT_OPTIONS = {"keep_history": True, "remember": 4096, "max_pending": 10_000}
"""What is fixed when a folder is made."""
MAX_HISTORY_ROWS = 1 << 16
"""Rows of a log that go into one record."""


@dataclass(frozen=True)
class AgentRequest:
    """What the caller of `open_agent` asks for."""

    config: Any
    history: Any
    states: Any
    actions: Any
    options: dict[str, Any]
    """As DEFAULT_OPTIONS; None if the caller gives no value."""

    def read_history(self, agent: Any) -> TransitionColumns:
        """The rows of the log that was given, checked against an agent."""
        return read_log(self.history, agent, states=self.states, actions=self.actions)


def create_agent(folder: Folder, wanted: AgentRequest) -> None:
    """Write the files of a new agent; agent.json is the last, and makes the folder valid."""
    _refuse_remains(folder)
    agent, prior = make_agent(wanted.config)
    rows = None if wanted.history is None else wanted.read_history(agent)
    description = AgentDescription(
        identity=secrets.token_hex(16),
        agent=type(agent).__name__,
        settings=plain_settings(agent.settings()),
        dim=agent.dim,
        initial={"t": agent.core.t, "digest": statistics_digest(agent)},
        prior=prior,
        options=DEFAULT_OPTIONS | {name: value for name, value in wanted.options.items() if value is not None},
        history="" if rows is None else log_digest(rows),
        module=module_of(type(agent)),
        labels=None if agent.labels is None else agent.labels.to_json(),
    )
    with system_errors(folder.path, "created"):
        for _, segment in folder.segments():
            segment.unlink()
        for _, snapshot in folder.snapshots():
            snapshot.unlink()
        for file in folder.unfinished_files():
            file.unlink()
        write_archive(SNAPSHOT_FORMAT, folder.snapshot(0), *_first_snapshot(agent, description))
        data = segment_header(description.identity)
        if rows is not None:
            data += _history_records(RecordLayout(description.salt, description.dim), rows)
        write_file(folder.segment(1), data)
        write_file(folder.path / END_FILE, pack_end(description.salt, JournalEnd(1, len(data))))
        write_file(folder.description_file, description.to_bytes())


def _refuse_remains(folder: Folder) -> None:
    """Raise a JournalError if the folder holds records or snapshots of an agent without its description."""
    remains = ""
    if any(sequence > 0 for sequence, _ in folder.snapshots()):
        remains = "there are snapshots"
    for number, path in folder.segments():
        if path.stat().st_size > SEGMENT_HEADER_SIZE:
            remains = f"segment {number} has records"
            break
    if remains:
        raise JournalError(
            f"{folder.path}: {remains}, but {DESCRIPTION_FILE} is missing",
            name="path",
            found=str(folder.path),
            hint=f"gainful recover {folder.path} OUT restores it from a snapshot",
        )


def _history_records(layout: RecordLayout, rows: TransitionColumns) -> bytes:
    now, parts = time.time_ns(), []
    together = min(MAX_HISTORY_ROWS, layout.most_rows)
    for i, at in enumerate(range(0, len(rows.actions), together)):
        some = slice(at, at + together)
        part = TransitionColumns(rows.states[some], rows.actions[some], rows.rewards[some], rows.next_states[some])
        parts.append(layout.pack(int(RecordKind.BATCH), FROM_HISTORY, i + 1, now, layout.pack_rows(part)))
    return b"".join(parts)


def _first_snapshot(agent: Any, description: AgentDescription) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of the snapshot that covers no record."""
    agent_header, arrays = agent_state(agent)
    ledger = DecisionLedger(RecordLayout(description.salt, description.dim), 1, 1).to_arrays()
    header = {
        "sequence": 0,
        "description": description.to_json(),
        "journal": [1, SEGMENT_HEADER_SIZE],
        "live": {"decided": [-1, 0], "renew": False, "late_plans": 0, "late_outcomes": 0, "changes": []},
        "agent": {**agent_header, "settings": plain_settings(agent_header["settings"])},
    }
    contents = {f"agent_{name}": np.array(array) for name, array in arrays.items()}
    return header, contents | {f"memory_{name}": array for name, array in ledger.items()}


@contextlib.contextmanager
def system_errors(path: Path, done: str) -> Iterator[None]:
    """Turn errors of the system, and of what is written, into a JournalError: "the agent cannot be {done}"."""
    try:
        yield
    except InvalidArgumentError as error:  # of write_archive, and of records too large
        raise JournalError(
            f"{path}: the agent cannot be {done}: {error.problem}",
            name="path",
            found=str(path),
            expected=error.expected,
            hint=error.hint,
        ) from error
    except OSError as error:
        raise JournalError(
            f"{path}: the agent cannot be {done}: {error.strerror or error}",
            name="path",
            found=str(path),
            hint="check the name, space and permissions",
        ) from error
