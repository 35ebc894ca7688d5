"""The open folder of a durable agent: its state in memory, its journal and its snapshots, kept in step."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace

from gainful.agents.labels import AgentLabels
from gainful.atomic_files import write_file
from gainful.errors import JournalError, PlanningError
from gainful.live.folder import DESCRIPTION_VERSION, AgentDescription, Folder
from gainful.live.journal import Journal
from gainful.live.loading import load
from gainful.live.receipts import JournalWarning
from gainful.live.records import WITH_PREVIOUS, RecordLayout
from gainful.live.snapshots import SnapshotWriter
from gainful.live.state_machine import AgentStateMachine, Planning
from gainful.locks import FolderLock


class JournalSession:
    """One opening of a folder, from its loading to its closing; callers take turns.

    A call changes the state in three steps: it checks its arguments, appends a record, and applies the record to the
    state. If anything interrupts the last two, the session is `stale`: memory and journal may disagree, and the next
    call reads the folder again.
    """

    machine: AgentStateMachine
    journal: Journal
    snapshots: SnapshotWriter

    def __init__(
        self,
        folder: Folder,
        lock: FolderLock,
        *,
        sync_seconds: float | None,
        planning: Planning,
        snapshot_every: int | None,
    ) -> None:
        self.folder, self._lock = folder, lock
        self.description: AgentDescription = folder.read_description()
        self.layout = RecordLayout(self.description.salt, self.description.dim)
        self._sync_seconds, self._planning, self._every = sync_seconds, planning, snapshot_every
        self.closed = self.stale = False
        self.sequence = self.written_at = 0
        """The number of the last record, and when it was written, in nanoseconds since 1970."""
        self.notices: list[str] = []
        self._load()

    def _load(self) -> None:
        loaded = load(self.folder, self.description, self._planning)
        self.machine, self.sequence = loaded.machine, loaded.sequence
        for text in loaded.notices:
            self.notices.append(text)
            warnings.warn(text, JournalWarning, stacklevel=5)  # whoever called open_agent
        self.machine.finish_replay()
        self.journal = Journal(self.folder, self.description.identity, loaded.segment, self._sync_seconds)
        self.snapshots = SnapshotWriter(
            self.folder,
            self.description,
            self.layout,
            self.journal,
            self.notices,
            every=self._every,
            last=loaded.covered,
            size=self.folder.snapshot(loaded.covered).stat().st_size,
            unusable=loaded.unusable,
        )
        self._upgrade_description()
        self.stale = False

    def _upgrade_description(self) -> None:
        """Give agent.json of an earlier version a checksum; the folder has everything else of this version now."""
        if self.description.version < DESCRIPTION_VERSION:
            self.description = replace(self.description, version=DESCRIPTION_VERSION)
            with contextlib.suppress(OSError):  # the next opening tries again
                write_file(self.folder.description_file, self.description.to_bytes())

    @property
    def labels(self) -> AgentLabels | None:
        """The labels of states and actions, and the sign; a JournalError unless they fit the agent."""
        core = self.machine.core
        n_states = None if self.description.dim else core.n_states
        try:
            return AgentLabels.from_json(self.description.labels, n_states, core.n_actions)
        except ValueError as error:
            file = self.folder.description_file
            hint = f"run gainful recover {self.folder.path} OUT"
            raise JournalError(f"{file}: damaged: {error}", name=str(file), hint=hint) from error

    def make_ready(self) -> None:
        """Read the folder again if the session is stale; a JournalError if it is closed."""
        if self.closed:
            raise JournalError(
                f"{self.folder.path}: this agent is closed",
                name="path",
                found=str(self.folder.path),
                hint="gf.open_agent(path) opens it again",
            )
        if self.stale:
            self.snapshots.wait()
            with contextlib.suppress(JournalError, OSError):
                self.journal.close()
            self._load()

    # ------------------------------------------------------------------ writing

    def append(self, kind: int, payload: bytes, request: bytes = b"", flags: int = 0) -> int:
        """Write a record, after those owed for what has happened already; its sequence number."""
        if os.getpid() != self._lock.pid:
            raise JournalError(
                f"{self.folder.path}: was opened by process {self._lock.pid}, and this one is a fork of it",
                hint="a forked process must not write: open agents after the fork",
            )
        sequence, pack = self.sequence + 1, self.layout.pack
        now = self.written_at = time.time_ns()
        if unwritten := self.machine.unwritten:
            data, together = b"", 0
            for earlier, content in unwritten:
                data += pack(earlier, together, sequence, now, content)
                sequence, together = sequence + 1, WITH_PREVIOUS
            self.journal.append(data + pack(kind, flags | together, sequence, now, payload, request))
            unwritten.clear()
        else:
            self.journal.append(pack(kind, flags, sequence, now, payload, request))
        self.sequence = sequence
        return sequence

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """A block that appends and applies; unless it ends or is refused cleanly, the session is stale."""
        try:
            yield
        except JournalError:
            raise
        except BaseException:
            self.stale = True
            raise

    def settle(self) -> None:
        """Adopt a plan under way, waiting for it, and write the records that are owed."""
        machine = self.machine
        with self.recording():
            if machine.plan_under_way:
                machine.finish_plan()
            if machine.unwritten:
                last = machine.unwritten.pop()
                try:
                    self.append(*last)
                except JournalError:
                    machine.unwritten.append(last)
                    raise

    # ------------------------------------------------------------------ snapshots

    def snapshot_if_due(self) -> None:
        """Begin a snapshot in the background if one is due and nothing is in its way."""
        if not self.snapshots.due(self.sequence) or self.snapshots.busy:
            return
        if self.machine.planner is not None and self.machine.planner.made:
            with contextlib.suppress(JournalError, PlanningError):
                self.settle()
        if self._consistent:
            self.snapshots.begin(self.sequence, self.machine)

    @property
    def _consistent(self) -> bool:
        """Whether memory and journal agree, and no plan is under way: the moment for a snapshot."""
        return not (self.machine.unwritten or self.machine.plan_under_way or self.stale or self.journal.trouble)

    def snapshot(self) -> None:
        """Write a snapshot now, and compact the journal; on return it is durable."""
        self.settle()
        self.snapshots.wait()
        if self.folder.snapshot(self.sequence).exists():
            return
        self.snapshots.begin(self.sequence, self.machine)
        self.snapshots.wait()
        if self.snapshots.problem:
            raise JournalError(
                f"{self.folder.path}: no snapshot was made, or the journal was not compacted: {self.snapshots.problem}",
                hint="the journal has everything",
            )

    def close(self) -> None:
        """Make all durable, write a last snapshot, and give up the lock."""
        if self.closed:
            return
        try:
            if not self.stale and os.getpid() == self._lock.pid:
                with contextlib.suppress(PlanningError, JournalError):
                    self.settle()
                self.snapshots.wait()
                if self._consistent and self.sequence > self.snapshots.last:
                    self.snapshots.begin(self.sequence, self.machine)
            self.snapshots.wait()
        finally:
            self.closed = True
            try:
                self.journal.close()
            finally:
                self._lock.release()
