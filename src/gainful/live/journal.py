"""The journal of a durable agent: one writer appends to it, anyone may read it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from gainful.atomic_files import sync_folder, write_file
from gainful.errors import DamagedJournalError, JournalError, MemoryLimitError
from gainful.live.end_marker import EndMarker, JournalEnd, read_end
from gainful.live.folder import SEGMENT_HEADER_SIZE, AgentDescription, Folder, segment_header
from gainful.live.history_files import members_of, pack_history, sealed, unpack_history
from gainful.live.records import WITH_PREVIOUS, Record, RecordLayout, read_records
from gainful.locks import NOT_THROUGH_LINKS


class Journal:
    """The end of the journal, open for appending.

    `sync_seconds` is 0 to make every append durable before it returns, a number to do so in the background that often,
    None to leave it to the operating system. Whatever fails leaves the file as it was before; where that is not
    certain, `trouble` says why, and nothing more is written.
    """

    def __init__(self, folder: Folder, identity: str, number: int, sync_seconds: float | None) -> None:
        self.folder, self._identity, self.number = folder, identity, number
        self.trouble = ""
        self._path = folder.segment(number)
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | NOT_THROUGH_LINKS)
        self.size = os.fstat(self._fd).st_size
        self._marker = EndMarker(folder.path, crc32(bytes.fromhex(identity)))
        self._marker.write(self.end)
        self.bytes_written = 0
        """Bytes written by this object, over all segments."""
        self._prepared = 0  # the number of a segment made ready by `prepare`
        self._at_once = sync_seconds == 0
        self._synced = 0  # of bytes_written; what was there before is durable
        self._guard = threading.Lock()  # of the file descriptor, against a sync while it changes
        self._over = threading.Event()
        self._syncer: threading.Thread | None = None
        self._sync_seconds = sync_seconds
        if sync_seconds:
            self._syncer = threading.Thread(target=self._sync_now_and_then, name="gainful-journal-sync", daemon=True)
            self._syncer.start()

    @property
    def end(self) -> JournalEnd:
        """The segment that is written to, and its length."""
        return JournalEnd(self.number, self.size)

    def append(self, data: bytes) -> None:
        """Write whole records; on return they are in the file (and durable if that is the policy).

        Raises JournalError, the file being as it was, or `trouble` being set.
        """
        if self.trouble:
            raise JournalError(self.trouble)
        if self._prepared:
            self._switch()
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except BaseException as error:
            self._retreat(error)
            raise
        self.size += len(data)
        self.bytes_written += len(data)
        if self._at_once:
            self.sync()

    def _retreat(self, error: BaseException) -> None:
        """Cut off what was written of an incomplete record; raises if the system reported an error."""
        try:
            os.ftruncate(self._fd, self.size)
        except OSError as second:
            self.trouble = (
                f"{self._path}: a record was written in part and could not be cut off again ({second.strerror}); "
                "close the agent and open it again, which drops the part"
            )
        if isinstance(error, OSError):
            raise JournalError(
                f"{self._path}: cannot be written at byte {self.size}: {error.strerror or error}",
                name=str(self._path),
                hint="nothing was recorded or applied, and everything before is safe: "
                + (self.trouble or "make room (or repair the disk) and call again"),
            ) from error

    def sync(self) -> None:
        """Make everything appended so far durable; on return it is, whichever thread did it.

        After a failure the system may have forgotten what it was to write, and a second try would prove nothing:
        nothing more is written by this object, and the next one rewrites the segments.
        """
        with self._guard:
            if self.trouble:
                raise JournalError(self.trouble)
            written, end = self.bytes_written, self.end
            if written == self._synced or self._fd < 0:
                return
            try:
                os.fsync(self._fd)
            except OSError as error:
                self.folder.mark_unsynced()
                self.trouble = (
                    f"{self._path}: could not be made durable: {error.strerror or error}; the last records may or may "
                    "not be on the disk: close the agent, check the disk, and open it again (calls with a request_id "
                    "or decision_id can be repeated safely)"
                )
                raise JournalError(self.trouble) from error
            self._synced = written
            self._marker.write(end)

    def _sync_now_and_then(self) -> None:
        assert self._sync_seconds
        while not self._over.wait(self._sync_seconds):
            with contextlib.suppress(JournalError):  # `trouble` tells the next caller
                self.sync()

    # ------------------------------------------------------------------ segments

    def prepare(self) -> None:
        """Make the next segment; the next append goes there. Called by the thread that writes a snapshot."""
        if not self._prepared:
            write_file(self.folder.segment(self.number + 1), segment_header(self._identity))
            self._prepared = self.number + 1

    def _switch(self) -> None:
        path = self.folder.segment(self._prepared)
        try:
            self.sync()  # under any policy: a later `sync` reaches the new segment alone
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | NOT_THROUGH_LINKS)
        except OSError as error:
            raise JournalError(
                f"{path}: cannot be opened: {error.strerror or error}",
                name=str(path),
                hint="nothing was recorded: call again",
            ) from error
        with self._guard:
            old, self._fd = self._fd, fd
            self._path, self.number, self.size = path, self._prepared, SEGMENT_HEADER_SIZE
            self._prepared = 0
        os.close(old)

    def close(self) -> None:
        """Make everything durable, and close the file."""
        if self._fd < 0:
            return
        self._over.set()
        if self._syncer is not None:
            self._syncer.join()
        try:
            if not self.trouble:
                self.sync()
        finally:
            with self._guard:
                fd, self._fd = self._fd, -1
                os.close(fd)
                self._marker.close()


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True)
class TornRecord:
    """The end of a segment that is not a whole record: what a kill or power cut leaves of an unfinished write."""

    path: Path
    offset: int
    length: int
    record: int
    """The number of the record that it would be."""


@dataclass(frozen=True)
class Segment:
    """A segment of the journal as it was read."""

    number: int
    path: Path
    records: list[Record]
    data: bytes
    """Its header and records, without a torn end."""


def damaged(
    folder: Folder, path: Path, offset: int, intact: int, problem: str, then: str = "intact records follow"
) -> DamagedJournalError:
    """The error for a journal that is not as it was written."""
    return DamagedJournalError(
        f"{path}: damaged at byte {offset}: {problem}; {then}, so this is not an unfinished last write. Records up to "
        f"number {intact} are intact. Nothing was changed",
        str(path),
        offset,
        intact,
        name=str(path),
        hint=f"gainful recover {folder.path} OUT saves what can be saved",
    )


def read_segments(
    folder: Folder, description: AgentDescription, layout: RecordLayout
) -> tuple[list[Segment], TornRecord | None]:
    """All segments, and the torn end of the last one; damage before the end is a DamagedJournalError."""
    end, _ = read_end(folder.path, description.salt)  # before the segments, which may grow meanwhile
    found: list[Segment] = []
    torn: TornRecord | None = None
    expected = 0
    header = segment_header(description.identity)
    for number, path in folder.segments():
        data = _bytes_of(path)
        if data[:SEGMENT_HEADER_SIZE] != header:
            raise damaged(folder, path, 0, expected - 1, "its header is not that of this agent", "it was written whole")
        if torn is not None and len(data) > SEGMENT_HEADER_SIZE:
            raise damaged(folder, torn.path, torn.offset, expected - 1, "not a whole record")
        if not expected:
            first = layout.record_at(data, SEGMENT_HEADER_SIZE)
            expected = first.sequence if first else _after_history(folder, description)
        stretch = read_records(layout, data, SEGMENT_HEADER_SIZE, expected)
        if stretch.problem:
            last = expected + len(stretch.records) - 1
            if layout.record_at(data, stretch.end) is not None or _written_later(layout, data, stretch.end + 1, last):
                raise damaged(folder, path, stretch.end, last, stretch.problem)
            torn = TornRecord(path, stretch.end, len(data) - stretch.end, last + 1)
        found.append(Segment(number, path, stretch.records, data[: stretch.end]))
        expected += len(stretch.records)
    if end is not None:
        check_end(folder, found, end, "when it was last synced")
    return found, torn


def check_end(folder: Folder, segments: list[Segment], end: JournalEnd, when: str) -> None:
    """Raise a DamagedJournalError if the journal is shorter than it was.

    Segments are deleted in order, and the newest never, so that a later one must be there if this one is not.
    """
    intact = next((segment.records[-1].sequence for segment in reversed(segments) if segment.records), 0)
    if not segments or segments[-1].number < end.segment:
        raise damaged(
            folder, folder.segment(end.segment), 0, intact, "it is missing", f"it had {end.length} bytes {when}"
        )
    found = next((segment for segment in segments if segment.number == end.segment), None)
    if found is not None and len(found.data) < end.length:
        raise damaged(
            folder,
            found.path,
            len(found.data),
            intact,
            "whole records end here",
            f"there were {end.length} bytes of them {when}",
        )


def _written_later(layout: RecordLayout, data: bytes, at: int, last: int) -> bool:
    """Whether an intact record behind an incomplete one was written after it, and not in one piece with it.

    A power cut may leave any part of what was written and not yet synced, so also the end without the beginning.
    """
    while (at := layout.find(data, at, last)) >= 0:
        record = layout.record_at(data, at)
        assert record is not None
        if not record.flags & WITH_PREVIOUS:
            return True
        at += layout.size(record)
    return False


def _after_history(folder: Folder, description: AgentDescription) -> int:
    """The number of the first record of the segments, if it cannot be read from them."""
    if not description.options.get("keep_history", True):  # what a snapshot covers goes
        return max((sequence for sequence, _ in folder.snapshots()), default=0) + 1
    last = max((last for _, last, _ in folder.histories()), default=0)
    gaps = {begin: end for begin, end in description.gaps}  # noqa: C416
    return gaps.get(last + 1, last) + 1


def check_covered(folder: Folder, segments: list[Segment], torn: TornRecord | None, covered: int) -> None:
    """Raise a DamagedJournalError if the journal ends before record `covered`, which a snapshot covers.

    The journal is synced before a snapshot is written, so this is not an unfinished write; cutting it off and going on
    would leave a gap.
    """
    written = [segment for segment in segments if segment.records]
    if torn is not None and torn.record <= covered:
        raise damaged(
            folder,
            torn.path,
            torn.offset,
            torn.record - 1,
            f"record {torn.record} is not whole",
            f"a snapshot covers records up to {covered}",
        )
    if written and (last := written[-1].records[-1].sequence) < covered:
        raise damaged(
            folder,
            written[-1].path,
            len(written[-1].data),
            last,
            f"it ends with record {last}",
            f"a snapshot covers records up to {covered}",
        )


def make_durable(folder: Folder, segments: list[Segment], torn: TornRecord | None) -> None:
    """Make what was read durable, and cut off the torn end, before anything relies on it.

    A killed process may have written records that it never synced. After a failed sync the system counts pages as
    written that are not, so another sync proves nothing: the segments are written into new files. Raises JournalError.
    """
    unsynced = folder.unsynced
    for segment in segments:
        path = segment.path
        try:
            if unsynced:
                write_file(path, segment.data)  # as replayed; read again, it might be something else
                continue
            fd = os.open(path, os.O_RDWR | NOT_THROUGH_LINKS)
            try:
                if torn is not None and torn.path == path:
                    os.ftruncate(fd, torn.offset)
                os.fsync(fd)
            except OSError:
                folder.mark_unsynced()
                raise
            finally:
                os.close(fd)
        except OSError as error:
            raise JournalError(
                f"{path}: the agent cannot be opened: {error.strerror or error}; its journal could not be made durable",
                name=str(path),
                hint="check the disk and open it again",
            ) from error
    if unsynced:
        folder.mark_synced()


def read_all(folder: Folder, description: AgentDescription, layout: RecordLayout) -> Iterator[Record]:
    """Every record since the beginning, history and segments, in order; a torn end is left out."""
    expected = 1
    gaps = {begin: end for begin, end in description.gaps}  # noqa: C416
    for first, last, path in folder.histories():
        expected = gaps.get(expected, expected - 1) + 1
        if first != expected:
            raise damaged(
                folder, path, 0, expected - 1, f"it begins with record {first}, not {expected}", "records are missing"
            )
        yield from history_records(folder, layout, first, last)
        expected = last + 1
    expected = gaps.get(expected, expected - 1) + 1
    for segment in read_segments(folder, description, layout)[0]:
        if segment.records and not description.options.get("keep_history", True):
            expected = max(expected, segment.records[0].sequence)
        for record in segment.records:
            if record.sequence < expected:  # compaction had not deleted it yet
                continue
            if record.sequence != expected:
                raise damaged(
                    folder,
                    segment.path,
                    SEGMENT_HEADER_SIZE,
                    expected - 1,
                    f"it begins with record {record.sequence}, not {expected}",
                    "records are missing",
                )
            yield record
            expected += 1


def history_records(folder: Folder, layout: RecordLayout, first: int, last: int) -> list[Record]:
    """The records of a history file; a DamagedJournalError if they are not all there."""
    path = folder.history(first, last)
    stretch = read_records(layout, read_history(path), 0, first)
    if stretch.problem or len(stretch.records) != last - first + 1:
        problem = stretch.problem or f"{len(stretch.records)} records, expected {last - first + 1}"
        raise damaged(folder, path, stretch.end, first + len(stretch.records) - 1, problem, "it was written whole")
    return stretch.records


def read_history(path: Path) -> bytes:
    """The records of a compacted file; a DamagedJournalError if it is not as it was written."""
    try:
        return unpack_history(_bytes_of(path), str(path))
    except MemoryLimitError:
        raise
    except ValueError as error:
        raise _damaged_history(path, error) from error


def _damaged_history(path: Path, error: ValueError) -> DamagedJournalError:
    return DamagedJournalError(
        f"{path}: damaged: {error}; the agent itself is whole (its snapshot is another file)",
        str(path),
        name=str(path),
        hint="gainful recover saves what can be saved of the table",
    )


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise JournalError(
            f"{path}: cannot be read: {error.strerror or error}", name=str(path), hint="check the path and the disk"
        ) from error


# ---------------------------------------------------------------------- compaction


def compact(folder: Folder, description: AgentDescription, layout: RecordLayout, covered: int, current: int) -> None:
    """Turn segments before `current` whose records are all covered by a durable snapshot into history.

    A history file is in place as a whole before the segment goes. History files are joined so that there are few.
    """
    keep = bool(description.options.get("keep_history", True))
    known = max((last for _, last, _ in folder.histories()), default=0)
    for number, path in folder.segments():
        if number >= current:
            break
        data = path.read_bytes()
        first = layout.record_at(data, SEGMENT_HEADER_SIZE)
        if first is None and len(data) != SEGMENT_HEADER_SIZE:
            raise damaged(
                folder, path, SEGMENT_HEADER_SIZE, known, "its first record is not whole", "the segment was finished"
            )
        if first is not None:
            stretch = read_records(layout, data, SEGMENT_HEADER_SIZE, first.sequence)
            last = first.sequence + len(stretch.records) - 1
            if stretch.problem:
                raise damaged(folder, path, stretch.end, last, stretch.problem, "the segment was finished")
            if last > covered:
                break
            if keep and last > known:
                write_file(folder.history(first.sequence, last), pack_history(data[SEGMENT_HEADER_SIZE:]))
                known = last
        path.unlink()
    if keep:
        join_histories(folder)
    sync_folder(folder.path)


def _members(path: Path) -> bytes:
    try:
        return members_of(_bytes_of(path))
    except ValueError as error:
        raise _damaged_history(path, error) from error


def join_histories(folder: Folder) -> None:
    """Join the last history files while the one before is less than twice as long: their number is logarithmic."""
    files = folder.histories()
    while len(files) >= 2:
        (first, middle, left), (begin, last, right) = files[-2:]
        if begin != middle + 1 or left.stat().st_size > 2 * right.stat().st_size:
            break
        write_file(folder.history(first, last), sealed(_members(left) + _members(right)))
        left.unlink(missing_ok=True)
        right.unlink(missing_ok=True)
        files[-2:] = [(first, last, folder.history(first, last))]
    for path in folder.unfinished_files():
        if path.suffix == ".gz":
            path.unlink(missing_ok=True)
