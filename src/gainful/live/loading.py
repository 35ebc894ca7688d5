"""The state of a durable agent as its folder holds it: the newest snapshot, and every record since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from gainful.archive import check_archive, read_archive
from gainful.errors import DamagedJournalError, JournalError, MemoryLimitError, UnknownAgentError
from gainful.live.end_marker import END_FILE, JournalEnd, read_end
from gainful.live.folder import SEGMENT_HEADER_SIZE, AgentDescription, Folder
from gainful.live.journal import (
    Segment,
    TornRecord,
    check_covered,
    check_end,
    damaged,
    history_records,
    make_durable,
    read_segments,
)
from gainful.live.records import Record, RecordLayout
from gainful.live.snapshots import SNAPSHOT_FORMAT
from gainful.live.state_machine import AgentStateMachine, Planning

END_MARKER_SINCE = 2
"""The first version of a durable agent whose folder has an end marker."""


class Loaded(NamedTuple):
    """A state that was read, what it was read from, and the notices for its owner."""

    machine: AgentStateMachine
    sequence: int
    """The last record applied."""
    covered: int
    """The last record that the snapshot covers."""
    segment: int
    """The number of the segment to append to."""
    notices: list[str]
    unusable: list[Path]
    """Snapshots that are damaged."""


class _Restored(NamedTuple):
    """The state in a snapshot."""

    machine: AgentStateMachine
    covered: int
    end: JournalEnd | None
    """How far the journal reached when it was written; not in the first snapshots."""


def load(folder: Folder, description: AgentDescription, planning: Planning) -> Loaded:
    """Read the newest snapshot, apply every record since, and make all of them durable.

    If the newest snapshot is damaged, the one before it and a longer stretch of the journal give the same state.

    Raises
    ------
    DamagedJournalError
        If the journal is damaged before its end; an unfinished last record is dropped instead.
    JournalError
        If a file cannot be read or made durable.
    """
    layout = RecordLayout(description.salt, description.dim)
    for path in folder.unfinished_files():
        path.unlink(missing_ok=True)
    notices = _marker_notices(folder, description)
    segments, torn = read_segments(folder, description, layout)
    if not segments:
        raise damaged(folder, folder.segment(1), 0, 0, "the journal has no segment", "a folder always has at least one")
    unusable: list[Path] = []
    machine, covered, end = _newest_snapshot(folder, description, planning, notices, unusable)
    newest = folder.snapshots()[0][0]
    check_covered(folder, segments, torn, newest)
    if end is not None:
        check_end(folder, segments, end, f"when snapshot {covered} was made")
    sequence = _replay(folder, _after(folder, layout, segments, covered), machine, covered)
    make_durable(folder, segments, torn)
    notices += _notices(folder, torn, machine.differing_decisions)
    return Loaded(machine, sequence, covered, segments[-1].number, notices, unusable)


def _marker_notices(folder: Folder, description: AgentDescription) -> list[str]:
    _, problem = read_end(folder.path, description.salt)
    if not problem or (problem == "is missing" and description.version < END_MARKER_SINCE):
        return []
    return [
        f"{folder.path / END_FILE}: {problem}, so that a journal which lost its last records would not be noticed this "
        "time; it was written anew"
    ]


def _newest_snapshot(
    folder: Folder, description: AgentDescription, planning: Planning, notices: list[str], unusable: list[Path]
) -> _Restored:
    """The state in the newest snapshot that is whole; damaged ones go to `unusable`, with a notice."""
    found = folder.snapshots()
    if not found:
        raise DamagedJournalError(
            f"{folder.path}: there is no snapshot",
            str(folder.path),
            hint=f"run gainful recover {folder.path} OUT, or restore a copy",
        )
    first: DamagedJournalError | None = None
    for i, (sequence, path) in enumerate(found):
        try:
            restored = _restored(description, planning, sequence, path)
        except DamagedJournalError as error:
            first = first or error
            unusable.append(path)
            continue
        notices += [
            f"{broken}: damaged; the snapshot before it and the journal gave the same state, and nothing is lost"
            for broken in unusable
        ]
        notices += _check_spares([path for _, path in found[i + 1 :]], unusable)
        return restored
    assert first is not None
    raise first


def _restored(description: AgentDescription, planning: Planning, sequence: int, path: Path) -> _Restored:
    header, arrays = read_archive(SNAPSHOT_FORMAT, path)
    try:
        if int(header["sequence"]) != sequence:
            raise ValueError(f"it covers record {header['sequence']}, not {sequence}")
        end = JournalEnd(*(int(number) for number in header["journal"])) if "journal" in header else None
        return _Restored(AgentStateMachine(description, planning, header, arrays), sequence, end)
    except (UnknownAgentError, MemoryLimitError):
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
        raise SNAPSHOT_FORMAT.damaged(path, f"{type(error).__name__}: {error}; or run gainful recover") from error


def _check_spares(paths: list[Path], unusable: list[Path]) -> list[str]:
    """Notices of damage to older snapshots, while the newest is still whole."""
    notices = []
    for path in paths:
        try:
            check_archive(SNAPSHOT_FORMAT, path)
        except DamagedJournalError as error:
            unusable.append(path)
            notices.append(f"{error.problem}; the newest snapshot is whole, and the next one replaces this one")
        except JournalError as error:
            notices.append(error.problem)
    return notices


def _after(
    folder: Folder, layout: RecordLayout, segments: list[Segment], covered: int
) -> Iterator[tuple[Path, list[Record]]]:
    """The files with records after `covered`, in order; history files only if the newest snapshot was damaged."""
    for first, last, path in folder.histories():
        if last > covered:
            yield path, history_records(folder, layout, first, last)
    for segment in segments:
        yield segment.path, segment.records


def _replay(
    folder: Folder, files: Iterable[tuple[Path, list[Record]]], machine: AgentStateMachine, sequence: int
) -> int:
    """Apply every record after `sequence`; the number of the last one."""
    for path, records in files:
        for record in records:
            if record.sequence <= sequence:
                continue
            if record.sequence != sequence + 1:
                raise damaged(
                    folder,
                    path,
                    SEGMENT_HEADER_SIZE,
                    sequence,
                    f"it continues with record {record.sequence}, not {sequence + 1}",
                    "records are missing",
                )
            try:
                machine.replay(record)
            except DamagedJournalError as error:
                raise DamagedJournalError(
                    f"{path}: {error.problem}", str(path), 0, error.intact, hint=error.hint
                ) from error
            sequence = record.sequence
    return sequence


def _notices(folder: Folder, torn: TornRecord | None, differing: int) -> list[str]:
    notices = []
    if torn is not None:
        notices.append(
            f"{torn.path}: the last {torn.length} bytes were an unfinished record, number {torn.record}; they were "
            "dropped"
        )
    if differing:
        notices.append(
            f"{folder.path}: this version would have made {differing} decisions differently: the journal was written "
            "by another version of gainful or on another machine. The recorded decisions stand; plans made from now on "
            "are this version's"
        )
    return notices
