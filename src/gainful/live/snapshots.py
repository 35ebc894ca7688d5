"""When snapshots are due, and how they are written in the background: once one is durable, the journal is compacted."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gainful.archive import Format, write_archive
from gainful.errors import DamagedJournalError, GainfulError, JournalError
from gainful.live.folder import SEGMENT_HEADER_SIZE, AgentDescription, Folder
from gainful.live.journal import Journal, compact
from gainful.live.records import RecordLayout
from gainful.live.state_machine import AgentStateMachine

SNAPSHOT_FORMAT = Format(
    "gainful-live-snapshot",
    2,
    "state of a durable agent",
    "gf.open_agent",
    JournalError,
    checked_since=2,
    damage=DamagedJournalError,
)
"""Since version 2 it has a checksum, and says in "journal" which segment was the newest, and its length."""
MIN_JOURNAL_BYTES = 1 << 20
"""By default a snapshot is due when the journal since the last has outgrown it, and this."""


class SnapshotWriter:
    """Writes the snapshots of one agent, each in a thread of its own.

    `every` is the number of records between two snapshots, None to go by size; `last` is the record that the newest one
    covers, and `size` its length in bytes. `unusable` are damaged ones, which the next one replaces. A snapshot that
    fails is reported once, in `notices`, and tried again when
    the next is due: the journal has everything.
    """

    def __init__(
        self,
        folder: Folder,
        description: AgentDescription,
        layout: RecordLayout,
        journal: Journal,
        notices: list[str],
        *,
        every: int | None,
        last: int,
        size: int,
        unusable: list[Path],
    ) -> None:
        self._folder, self._description, self._layout, self._journal = folder, description, layout, journal
        self._notices, self.every = notices, every
        self.last, self._size, self._unusable = last, size, unusable
        self._bytes_then = -(journal.size - SEGMENT_HEADER_SIZE)
        self._thread: threading.Thread | None = None
        self.problem = ""
        """Why the last snapshot failed; empty if it did not."""

    def due(self, sequence: int) -> bool:
        """Whether it is time for one, `sequence` being the last record."""
        if self.every is not None:
            return sequence - self.last >= self.every
        written = self._journal.bytes_written - self._bytes_then
        return written > MIN_JOURNAL_BYTES and written > self._size

    @property
    def busy(self) -> bool:
        """Whether one is being written."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, sequence: int, machine: AgentStateMachine) -> None:
        """Copy the state after record `sequence`, and begin to write it.

        Nothing is raised: the call that made a snapshot due has been recorded, and must not fail.
        """
        self.last, self._bytes_then = sequence, self._journal.bytes_written
        try:
            header, arrays = machine.state()
            header |= {
                "sequence": sequence,
                "description": self._description.to_json(),
                "journal": list(self._journal.end),
            }
            thread = threading.Thread(
                target=self._write, args=(sequence, header, arrays), name="gainful-snapshot", daemon=True
            )
            thread.start()
            self._thread = thread
        except Exception as error:  # no memory, no thread
            self._failed(sequence, error)

    def _write(self, sequence: int, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Make a snapshot durable; only then compact what it covers."""
        path = self._folder.snapshot(sequence)
        try:
            self._journal.sync()
            write_archive(SNAPSHOT_FORMAT, path, header, arrays)
            self._size = path.stat().st_size
            self._remove_old(path)
            self._journal.prepare()
            compact(self._folder, self._description, self._layout, self._compactable(), self._journal.number)
            self.problem = ""
        except (OSError, GainfulError, MemoryError) as error:
            self._failed(sequence, error)

    def _remove_old(self, newest: Path) -> None:
        """Keep the two newest snapshots that can be read."""
        while self._unusable:
            damaged = self._unusable.pop()
            if damaged != newest:
                damaged.unlink(missing_ok=True)
        for _, old in self._folder.snapshots()[2:]:
            old.unlink(missing_ok=True)

    def _compactable(self) -> int:
        """The last record that the journal need not have outside of history files.

        History files keep what they take. Without them, what follows the older snapshot stays in the journal, in case
        that the newer one is damaged.
        """
        covered = [sequence for sequence, _ in self._folder.snapshots()]
        return covered[0] if self._description.options.get("keep_history", True) else covered[-1]

    def _failed(self, sequence: int, error: BaseException) -> None:
        if not self.problem:  # once, not at every try
            self._notices.append(
                f"{self._folder.snapshot(sequence)}: the snapshot or the compaction after it failed ({error}); the "
                "journal has everything, and the next snapshot tries again"
            )
        self.problem = str(error) or type(error).__name__

    def wait(self) -> None:
        """Wait until no snapshot is being written."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
