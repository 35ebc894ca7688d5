"""The state of a durable agent as its folder holds it: the newest snapshot, and every record since."""

from __future__ import annotations

from typing import NamedTuple

from gainful.archive import read_archive
from gainful.errors import DamagedJournalError, UnknownAgentError
from gainful.live.folder import SEGMENT_HEADER_SIZE, AgentDescription, Folder
from gainful.live.journal import Segment, TornRecord, check_covered, damaged, make_durable, read_segments
from gainful.live.records import RecordLayout
from gainful.live.snapshots import SNAPSHOT_FORMAT
from gainful.live.state_machine import AgentStateMachine, Planning


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


def load(folder: Folder, description: AgentDescription, planning: Planning) -> Loaded:
    """Read the newest snapshot, apply every record since, and make all of them durable.

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
    segments, torn = read_segments(folder, description, layout)
    if not segments:
        raise damaged(folder, folder.segment(1), 0, 0, "the journal has no segment", "a folder always has at least one")
    machine, covered = _newest_snapshot(folder, description, planning)
    check_covered(folder, segments, torn, covered)
    sequence = _replay(folder, segments, machine, covered)
    make_durable(folder, segments, torn)
    return Loaded(machine, sequence, covered, segments[-1].number, _notices(folder, torn, machine.differing_decisions))


def _newest_snapshot(
    folder: Folder, description: AgentDescription, planning: Planning
) -> tuple[AgentStateMachine, int]:
    found = folder.snapshots()
    if not found:
        raise DamagedJournalError(
            f"{folder.path}: there is no snapshot",
            str(folder.path),
            hint=f"run gainful recover {folder.path} OUT, or restore a copy",
        )
    sequence, path = found[0]
    header, arrays = read_archive(SNAPSHOT_FORMAT, path)
    try:
        if int(header["sequence"]) != sequence:
            raise ValueError(f"it covers record {header['sequence']}, not {sequence}")
        machine = AgentStateMachine(description, planning, header, arrays)
    except UnknownAgentError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
        raise SNAPSHOT_FORMAT.damaged(path, f"{type(error).__name__}: {error}; or run gainful recover") from error
    return machine, sequence


def _replay(folder: Folder, segments: list[Segment], machine: AgentStateMachine, sequence: int) -> int:
    """Apply every record after `sequence`; the number of the last one."""
    for segment in segments:
        for record in segment.records:
            if record.sequence <= sequence:
                continue
            if record.sequence != sequence + 1:
                raise damaged(
                    folder,
                    segment.path,
                    SEGMENT_HEADER_SIZE,
                    sequence,
                    f"it continues with record {record.sequence}, not {sequence + 1}",
                    "records are missing",
                )
            try:
                machine.replay(record)
            except DamagedJournalError as error:
                raise DamagedJournalError(
                    f"{segment.path}: {error.problem}", str(segment.path), 0, error.intact, hint=error.hint
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
