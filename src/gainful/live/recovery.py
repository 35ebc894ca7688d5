"""Recovering what is intact of a damaged journal, into a new folder; the damaged one is only read."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gainful.archive import read_archive
from gainful.atomic_files import make_folder, write_file, write_table
from gainful.errors import GainfulError, InvalidArgumentError, JournalError
from gainful.live.agent_config import allow_class, import_refusals, rebuild_agent
from gainful.live.durable_agent import DurableAgent
from gainful.live.end_marker import END_FILE, JournalEnd, pack_end, read_end
from gainful.live.folder import (
    SALVAGED_FILE,
    SEGMENT_HEADER_SIZE,
    AgentDescription,
    Folder,
    lock_folder,
    segment_header,
)
from gainful.live.history_files import members_of, pack_history, salvage
from gainful.live.journal_table import records_table, with_labels
from gainful.live.loading import END_MARKER_SINCE
from gainful.live.records import Record, RecordLayout
from gainful.live.snapshots import SNAPSHOT_FORMAT
from gainful.locks import writer_of


@dataclass(frozen=True)
class Recovered:
    """What `recover` found and did.

    Attributes
    ----------
    out : Path
        The new folder.
    observations : int
        Observations of the recovered agent, including those it began with.
    sequence : int
        The number of its last record.
    snapshot : int
        The record covered by the snapshot that it starts from.
    gaps : list of [int, int]
        First and last record of every stretch that its table lacks; its statistics have them, from the snapshot.
    lost : list of [int, int]
        First and last record of every stretch that is lost altogether.
    salvaged : int
        Intact records after the loss, which could not be applied; they are in `salvaged.csv` of the new folder.
    problems : list of str
        The damage that was found.
    in_use : bool
        Whether a process had the agent open for writing meanwhile: what it wrote last may be missing.

    Examples
    --------
    >>> import tempfile
    >>> import gainful as gf
    >>> config = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with gf.open_agent(f"{place}/pump", config) as agent:
    ...         receipt = agent.observe(state=0, action=1, reward=0.5, next_state=1)
    ...     found = recover(f"{place}/pump", f"{place}/saved")
    >>> found.out.name, found.sequence, found.salvaged, found.in_use
    ('saved', 1, 0, False)
    """

    out: Path
    observations: int
    sequence: int
    snapshot: int
    gaps: list[list[int]]
    lost: list[list[int]]
    salvaged: int
    problems: list[str]
    in_use: bool = False


@dataclass(frozen=True)
class _Plan:
    """What a recovered folder is made of: a snapshot, and the records up to `last` that follow it without a gap."""

    description: AgentDescription
    records: dict[int, Record]
    """Every intact record, by its number."""
    snapshot: int
    last: int

    @property
    def beyond(self) -> list[int]:
        """The intact records that cannot be applied."""
        return sorted(number for number in self.records if number > self.last)


def recover(path: str | Path, out: str | Path, *, allow: Sequence[str] = ()) -> Recovered:
    """Save what is intact of a durable agent into a new folder, which `gf.open_agent` then opens.

    The recovered agent has the state of the newest snapshot that can be read and of every record that follows without
    a gap. Records after a gap cannot be applied: they are written as a table to `salvaged.csv`, for `observe_many` if
    you decide so.

    Parameters
    ----------
    path : str or Path
        The folder of the damaged agent. It is only read.
    out : str or Path
        The new folder.
    allow : sequence of str
        Modules that may be imported if the agent's class is defined there, as for `gf.open_agent`.

    Returns
    -------
    Recovered
        What was saved and what was lost.

    Raises
    ------
    JournalError
        If nothing can be saved, or the new folder cannot be written.
    InvalidArgumentError
        If `out` exists already.

    Examples
    --------
    >>> import tempfile
    >>> import gainful as gf
    >>> config = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with gf.open_agent(f"{place}/pump", config) as agent:
    ...         receipt = agent.observe(state=0, action=1, reward=0.5, next_state=1)
    ...     found = recover(f"{place}/pump", f"{place}/saved")
    >>> found.observations, found.lost, found.problems
    (1, [], [])
    """
    folder, target = Folder(path), Folder(out).path
    if not os.path.isdir(folder.path):
        raise JournalError(f"{path}: no such folder", name="path", found=str(path), hint="check the path")
    in_use = writer_of(folder.path) is not None
    _check_target(folder, target)
    problems: list[str] = []
    plan = _plan_recovery(folder, problems, allow)
    _write_recovered(folder, target, plan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent = DurableAgent(
            Folder(target), lock_folder(target), sync_seconds=0.0, planning="inline", snapshot_every=None
        )
        agent.close()
    beyond = plan.beyond
    lost = _missing(plan.records, plan.last + 1, beyond[-1]) if beyond else []
    gaps = plan.description.gaps
    return Recovered(target, agent.t, agent.sequence, plan.snapshot, gaps, lost, len(beyond), problems, in_use)


def _check_target(folder: Folder, target: Path) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidArgumentError(
            "out", str(target), hint="give the name of a new folder", problem=f"{target}: exists already"
        )
    if target.resolve() == folder.path.resolve():
        raise InvalidArgumentError(
            "out", str(target), hint="give the name of a new one", problem=f"{target}: is the damaged folder itself"
        )


def _plan_recovery(folder: Folder, problems: list[str], allow: Sequence[str]) -> _Plan:
    """Choose the snapshot from which the most records can be applied; `problems` is filled."""
    description = _description(folder, problems)
    with import_refusals(folder.path):
        allow_class(description, allow)
    records = _intact(folder, RecordLayout(description.salt, description.dim), problems)
    _note_missing_end(folder, description, problems)
    usable = _snapshots(folder, description, problems)
    if not usable:
        raise JournalError(
            f"{folder.path}: no snapshot can be read ({'; '.join(problems)}), so the agent cannot be restored; "
            f"{len(records)} records are intact",
            name="path",
            found=str(folder.path),
            hint="restore a copy of the snapshot, or of the folder",
        )
    start, last = max(((q, _run(records, q)) for q in usable), key=lambda found: (found[1], found[0]))
    gaps = [list(gap) for gap in description.gaps]
    if description.options.get("keep_history", True):
        gaps = _missing(records, 1, start)
    return _Plan(replace(description, gaps=gaps), records, start, last)


def _write_recovered(folder: Folder, target: Path, plan: _Plan) -> None:
    """Write the files of the recovered agent; agent.json makes the folder valid."""
    description, records, start = plan.description, plan.records, plan.snapshot
    layout, new = RecordLayout(description.salt, description.dim), Folder(target)
    try:
        with contextlib.suppress(FileExistsError):
            make_folder(target)
        write_file(new.snapshot(start), folder.snapshot(start).read_bytes())
        for first, end in _stretches(records, 1, start):
            data = b"".join(_raw(layout, records[n]) for n in range(first, end + 1))
            write_file(new.history(first, end), pack_history(data))
        tail = b"".join(_raw(layout, records[n]) for n in range(start + 1, plan.last + 1))
        data, number = segment_header(description.identity) + tail, _segment_after(folder.snapshot(start))
        write_file(new.segment(number), data)
        write_file(target / END_FILE, pack_end(description.salt, JournalEnd(number, len(data))))
        write_file(new.description_file, description.to_bytes())
        if plan.beyond:
            salvaged = with_labels(records_table(layout, (records[n] for n in plan.beyond), None), description)
            write_table(salvaged, target / SALVAGED_FILE)
    except OSError as error:
        raise JournalError(
            f"{target}: cannot be written: {error.strerror or error}",
            name="out",
            found=str(target),
            hint="check space and permissions, and try again",
        ) from error


def _segment_after(snapshot: Path) -> int:
    """The number of a segment that may follow a snapshot."""
    header, _ = read_archive(SNAPSHOT_FORMAT, snapshot)
    return int(header["journal"][0]) + 1 if "journal" in header else 1


def _note_missing_end(folder: Folder, description: AgentDescription, problems: list[str]) -> None:
    """Note what the end marker says was there and is not."""
    end, problem = read_end(folder.path, description.salt)
    if end is None:
        if description.version >= END_MARKER_SINCE:
            problems.append(f"{END_FILE}: {problem}")
        return
    sizes = {number: path.stat().st_size for number, path in folder.segments()}
    name = folder.segment(end.segment).name
    if max(sizes, default=0) < end.segment:
        problems.append(f"{name}: is missing; it had {end.length} bytes when it was last synced")
    elif sizes.get(end.segment, end.length) < end.length:
        problems.append(f"{name}: {end.length - sizes[end.segment]} bytes are missing at its end")


def _description(folder: Folder, problems: list[str]) -> AgentDescription:
    """The description in agent.json, or the copy in a snapshot."""
    try:
        return folder.read_description()
    except JournalError as error:
        problems.append(error.problem)
    for _, path in folder.snapshots():
        with contextlib.suppress(GainfulError, KeyError):
            return AgentDescription.from_json(path, read_archive(SNAPSHOT_FORMAT, path)[0]["description"])
    raise JournalError(
        f"{folder.path}: neither agent.json nor a snapshot can be read",
        name="path",
        found=str(folder.path),
        hint="restore a copy of one of them",
    )


def _snapshots(folder: Folder, description: AgentDescription, problems: list[str]) -> list[int]:
    """The records that readable snapshots cover."""
    found = []
    for sequence, path in folder.snapshots():
        try:
            header, arrays = read_archive(SNAPSHOT_FORMAT, path)
            if header["description"]["identity"] != description.identity or header["sequence"] != sequence:
                raise ValueError("it belongs to another agent")
            rebuild_agent(header["agent"], arrays["agent_allowed"])
            found.append(sequence)
        except GainfulError as error:
            problems.append(error.problem)
        except (KeyError, TypeError, ValueError) as error:
            problems.append(f"{path.name}: {error}")
    return found


def _intact(folder: Folder, layout: RecordLayout, problems: list[str]) -> dict[int, Record]:
    """Every whole record of every file, by its number."""
    records: dict[int, Record] = {}
    for _, _, path in folder.histories():
        try:
            raw = path.read_bytes()
            members_of(raw)
        except OSError as error:
            problems.append(f"{path.name}: cannot be read: {error.strerror or error}")
            continue
        except ValueError as error:
            problems.append(f"{path.name}: {error}")
        _gather(layout, salvage(raw, str(path)), 0, path.name, records, problems)
    for _, path in folder.segments():
        try:
            raw = path.read_bytes()
        except OSError as error:
            problems.append(f"{path.name}: cannot be read: {error.strerror or error}")
            continue
        _gather(layout, raw, min(SEGMENT_HEADER_SIZE, len(raw)), path.name, records, problems)
    return records


def _gather(
    layout: RecordLayout, data: bytes, at: int, name: str, records: dict[int, Record], problems: list[str]
) -> None:
    while at < len(data):
        record = layout.record_at(data, at)
        if record is None:
            following = layout.find(data, at + 1, 0)
            end = len(data) if following < 0 else following
            problems.append(f"{name}: {end - at} bytes from byte {at} on are not a whole record")
            at = end
            continue
        records.setdefault(record.sequence, record)
        at += layout.size(record)


def _raw(layout: RecordLayout, record: Record) -> bytes:
    return layout.pack(record.kind, record.flags, record.sequence, record.time, record.payload, record.request)


def _run(records: dict[int, Any], after: int) -> int:
    """The last of the records that follow `after` without a gap."""
    while after + 1 in records:
        after += 1
    return after


def _stretches(records: dict[int, Any], first: int, last: int) -> list[tuple[int, int]]:
    """The runs of records within first … last."""
    found: list[tuple[int, int]] = []
    numbers = sorted(x for x in records if first <= x <= last)
    for n in numbers:
        if found and found[-1][1] == n - 1:
            found[-1] = (found[-1][0], n)
        else:
            found.append((n, n))
    return found


def _missing(records: dict[int, Any], first: int, last: int) -> list[list[int]]:
    """The stretches of first … last that are missing."""
    found, at = [], first
    for begin, end in _stretches(records, first, last):
        if begin > at:
            found.append([at, begin - 1])
        at = end + 1
    if at <= last:
        found.append([at, last])
    return found
