"""What can be saved of a damaged journal, into a new folder; the damaged one is only read."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import warnings
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gainful.archive import read_archive
from gainful.errors import GainfulError, InvalidArgumentError, JournalError
from gainful.files import write_file, write_table
from gainful.live.agent import DurableAgent
from gainful.live.agent_config import rebuild_agent
from gainful.live.folder import (
    SALVAGED_FILE,
    SEGMENT_HEADER_SIZE,
    AgentDescription,
    Folder,
    lock_folder,
    segment_header,
)
from gainful.live.journal_table import records_table
from gainful.live.records import Record, RecordLayout
from gainful.live.snapshots import SNAPSHOT_FORMAT
from gainful.locks import writer_of


@dataclass(frozen=True)
class Recovered:
    """What `recover` found and did."""

    out: Path
    observations: int
    """Observations of the recovered agent, with those it began with."""
    sequence: int
    """Its last record."""
    snapshot: int
    """The record that the snapshot it starts from covers."""
    gaps: list[list[int]]
    """First and last record of every stretch that its table lacks; its statistics have them (of the snapshot)."""
    lost: list[list[int]]
    """First and last record of every stretch that is lost altogether."""
    salvaged: int
    """Intact records behind the loss, not applied; in the file `salvaged.csv` of the new folder."""
    problems: list[str]
    """What was found damaged."""
    in_use: bool = False
    """Whether a process had the agent open for writing meanwhile: what it wrote last may be missing."""


def recover(path: str | Path, out: str | Path) -> Recovered:
    """Save what is intact of the durable agent in `path` into the new folder `out`, which `open_agent` then opens.

    The recovered agent has the state of the newest snapshot that can be read and of every record that follows without
    a gap. Records behind a gap cannot be applied: they are written as a table to `out/salvaged.csv`, for
    `observe_many` if you decide so. `path` is not changed.

    Raises JournalError where nothing can be saved, or `out` is there already.
    """
    folder, target = Folder(path), Folder(out).path
    if not os.path.isdir(folder.path):
        raise JournalError(f"{path}: no such folder; check the path")
    in_use = writer_of(folder.path) is not None
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidArgumentError(f"{out}: is there already; give the name of a new folder")
    if target.resolve() == folder.path.resolve():
        raise InvalidArgumentError(f"{out}: is the damaged folder itself; give the name of a new one")
    problems: list[str] = []
    description = _description(folder, problems)
    layout = RecordLayout(description.salt, description.dim)
    records = _intact(folder, layout, problems)
    numbers = sorted(records)
    usable = _snapshots(folder, description, problems)
    if not usable:
        raise JournalError(
            f"{path}: no snapshot can be read ({'; '.join(problems)}), so the agent cannot be made again; "
            f"{len(numbers)} records are intact: restore a copy of the snapshot, or of the folder"
        )
    start, last = max(((q, _run(records, q)) for q in usable), key=lambda found: (found[1], found[0]))
    old_gaps = [list(gap) for gap in description.gaps]
    gaps = _missing(records, 1, start) if description.options.get("keep_history", True) else old_gaps
    beyond = [n for n in numbers if n > last]
    lost = _missing(records, last + 1, beyond[-1]) if beyond else []
    made = replace(description, gaps=gaps)
    try:
        target.mkdir(parents=True, exist_ok=True)
        new = Folder(target)
        write_file(new.snapshot(start), folder.snapshot(start).read_bytes())
        for first, end in _stretches(records, 1, start):
            data = b"".join(_raw(layout, records[n]) for n in range(first, end + 1))
            write_file(new.history(first, end), gzip.compress(data, 6, mtime=0))
        tail = b"".join(_raw(layout, records[n]) for n in range(start + 1, last + 1))
        write_file(new.segment(1), segment_header(made.identity) + tail)
        write_file(new.description_file, json.dumps(made.to_json(), indent=2).encode())
        if beyond:
            write_table(records_table(layout, (records[n] for n in beyond), None), target / SALVAGED_FILE)
    except OSError as error:
        raise JournalError(
            f"{out}: cannot be written: {error.strerror or error}; check space and permissions, and try again"
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent = DurableAgent(new, lock_folder(target), sync_seconds=0.0, planning="inline", snapshot_every=None)
        agent.close()
    return Recovered(target, agent.t, agent.sequence, start, gaps, lost, len(beyond), problems, in_use)


def _description(folder: Folder, problems: list[str]) -> AgentDescription:
    """agent.json, or the copy in a snapshot."""
    try:
        return folder.read_description()
    except JournalError as error:
        problems.append(str(error).partition(";")[0])
    for _, path in folder.snapshots():
        with contextlib.suppress(GainfulError, KeyError):
            return AgentDescription.from_json(path, read_archive(SNAPSHOT_FORMAT, path)[0]["description"])
    raise JournalError(f"{folder.path}: neither agent.json nor a snapshot can be read; restore a copy of one of them")


def _snapshots(folder: Folder, description: AgentDescription, problems: list[str]) -> list[int]:
    """The records that readable snapshots cover."""
    found = []
    for sequence, path in folder.snapshots():
        try:
            header, arrays = read_archive(SNAPSHOT_FORMAT, path)
            if header["description"]["identity"] != description.identity or header["sequence"] != sequence:
                raise ValueError("it belongs to another agent")
            rebuild_agent(header["agent"]["agent"], header["agent"]["settings"], arrays["agent_allowed"])
            found.append(sequence)
        except (GainfulError, KeyError, TypeError, ValueError) as error:
            problems.append(f"{path.name}: {error}")
    return found


def _intact(folder: Folder, layout: RecordLayout, problems: list[str]) -> dict[int, Record]:
    """Every whole record of every file, by its number."""
    records: dict[int, Record] = {}
    for _, _, path in folder.histories():
        try:
            data = _inflated(path.read_bytes())
        except OSError as error:
            problems.append(f"{path.name}: cannot be read: {error.strerror or error}")
            continue
        _gather(layout, data, 0, path.name, records, problems)
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
            problems.append(f"{name}: {end - at} bytes from byte {at} on are no whole record")
            at = end
            continue
        records.setdefault(record.sequence, record)
        at += layout.size(record)


def _inflated(data: bytes) -> bytes:
    """What can be decompressed, member by member, up to the first damage."""
    out = b""
    while data:
        stream = zlib.decompressobj(wbits=31)
        try:
            for at in range(0, len(data), 1 << 12):
                out += stream.decompress(data[at : at + (1 << 12)])
                if stream.eof:
                    data = stream.unused_data + data[at + (1 << 12) :]
                    break
            else:
                return out
        except zlib.error:
            return out
    return out


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
    """The stretches of first … last that are not there."""
    found, at = [], first
    for begin, end in _stretches(records, first, last):
        if begin > at:
            found.append([at, begin - 1])
        at = end + 1
    if at <= last:
        found.append([at, last])
    return found
