"""The folder of a durable agent: its files and its description.

agent.json           what the agent is; written last when a folder is made: without it there is no agent
journal-000001.log   segments of the journal, in order; a header of 32 bytes, then records (`gainful.live.records`)
history-1-900.gz     records 1 … 900, compressed: what compaction makes of segments that a snapshot covers
snapshot-900.npz     the whole state after record 900 (`gainful.archive`); the last two are kept
end                  how far the journal reached when it was last synced (`gainful.live.end_marker`)
lock                 held by the one writer
unsynced             there after a failed sync, until the segments have been rewritten
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from gainful.agents.labels import AgentLabels
from gainful.checked_json import from_checked_json, to_checked_json
from gainful.errors import AgentInUseError, InvalidArgumentError, JournalError
from gainful.live.end_marker import END_FILE
from gainful.locks import LOCK_FILE, NOT_THROUGH_LINKS, FolderLock, FolderLockedError

DESCRIPTION_FILE = "agent.json"
DESCRIPTION_FORMAT, DESCRIPTION_VERSION = "gainful-live", 2
"""Version 1 had no checksum, no `module` and no `labels`, and its folders no end marker."""
SEGMENT_MAGIC = b"GFLIVE1\n"
SEGMENT_HEADER_SIZE = 32
SALVAGED_FILE = "salvaged.csv"
UNSYNCED_FILE = "unsynced"
unsynced_folders: set[Path] = set()
"""Folders with a failed sync in this process: the file `unsynced` may not have been written."""
_SEGMENT = re.compile(r"journal-(\d{6,})\.log")
_HISTORY = re.compile(r"history-(\d+)-(\d+)\.gz")
_SNAPSHOT = re.compile(r"snapshot-(\d+)\.npz")


@dataclass(frozen=True)
class AgentDescription:
    """What never changes about a durable agent: the contents of `agent.json`."""

    identity: str
    """32 hexadecimal digits, drawn when the folder is made."""
    agent: str
    """The class, such as 'SCALPlus'."""
    settings: dict[str, Any]
    """The arguments that made it."""
    dim: int
    """0 if states are numbered, d if they are points."""
    initial: dict[str, Any] = field(default_factory=dict)
    """What it knew at the beginning: `t`, the number of observations, and `digest`, of its statistics."""
    prior: dict[str, Any] | None = None
    """Name and weight of the prior model if there was one."""
    options: dict[str, Any] = field(default_factory=dict)
    """remember, max_pending, keep_history."""
    history: str = ""
    """The digest of the table given as `history`."""
    gaps: list[list[int]] = field(default_factory=list)
    """First and last record of every stretch lost to damage (of a recovered folder)."""
    module: str = ""
    """Where a class outside of gainful is defined, as "my_module:MyAgent"; empty for a class of gainful."""
    labels: dict[str, Any] | None = None
    """The user's words for states and actions, as `AgentLabels.to_json` has them."""
    version: int = DESCRIPTION_VERSION
    """The version of the format it was read from."""

    @property
    def salt(self) -> int:
        """The number that the checksums of its records start from."""
        return crc32(bytes.fromhex(self.identity))

    def to_bytes(self) -> bytes:
        """The contents of agent.json."""
        return to_checked_json(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """The description as the file, and every snapshot, has it."""
        return {"format": DESCRIPTION_FORMAT, **self.__dict__, "version": DESCRIPTION_VERSION}

    @classmethod
    def from_json(cls, where: str | Path, kept: Any) -> AgentDescription:
        """Read what `to_json` returned; a JournalError if it is something else."""
        if not isinstance(kept, dict) or kept.get("format") != DESCRIPTION_FORMAT:
            raise JournalError(
                f"{where}: is not the description of a durable agent", name=str(where), hint="restore a copy"
            )
        version = kept.get("version")
        if type(version) is not int or not 1 <= version <= DESCRIPTION_VERSION:
            raise JournalError(
                f"{where}: written in version {version!r} of the format",
                expected=f"1 to {DESCRIPTION_VERSION}",
                name=str(where),
                found=version,
                hint="upgrade gainful",
            )
        rest = {name: value for name, value in kept.items() if name != "format"}
        try:
            made = cls(**rest)
            if len(bytes.fromhex(made.identity)) != 16:
                raise ValueError("its identity is not 32 digits")
            AgentLabels.from_json(made.labels)
        except (TypeError, ValueError) as error:
            raise JournalError(f"{where}: damaged: {error}", name=str(where), hint="run gainful recover") from error
        return made


class Folder:
    """The names and lists of the files in a folder."""

    def __init__(self, path: str | Path) -> None:
        if "\0" in str(path):
            raise InvalidArgumentError("path", str(path), "the name of a folder, without a zero byte")
        self.path = Path(path)

    @property
    def description_file(self) -> Path:
        """The path of agent.json."""
        return self.path / DESCRIPTION_FILE

    def read_description(self) -> AgentDescription:
        """Read agent.json."""
        path = self.description_file
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise JournalError(
                f"{self.path}: there is no durable agent (no {DESCRIPTION_FILE})",
                name="path",
                found=str(self.path),
                hint="gf.open_agent(path, config) creates one",
            ) from error
        except OSError as error:
            raise JournalError(
                f"{path}: cannot be read: {error.strerror or error}",
                name=str(path),
                hint="check the path and its permissions",
            ) from error
        try:
            kept, checked = from_checked_json(data)
            if not checked and kept.get("format") == DESCRIPTION_FORMAT and kept.get("version") != 1:
                raise ValueError("its checksum is missing")
        except ValueError as error:
            raise JournalError(
                f"{path}: damaged: {error}", name=str(path), hint=f"run gainful recover {self.path} OUT"
            ) from error
        return AgentDescription.from_json(path, kept)

    def segments(self) -> list[tuple[int, Path]]:
        """The segments of the journal, (number, path), in order."""
        return sorted((int(m[1]), p) for p, m in self._matching(_SEGMENT))

    def segment(self, number: int) -> Path:
        """The path of segment `number`."""
        return self.path / f"journal-{number:06d}.log"

    def histories(self) -> list[tuple[int, int, Path]]:
        """The history files, (first record, last record, path), in order, without those that a larger one contains."""
        found = sorted((int(m[1]), -int(m[2]), p) for p, m in self._matching(_HISTORY))
        kept: list[tuple[int, int, Path]] = []
        for first, last, path in found:
            if not kept or -last > kept[-1][1]:
                kept.append((first, -last, path))
        return kept

    def unfinished_files(self) -> list[Path]:
        """Files that were never finished, and history files that a larger one contains."""
        kept = {path for *_, path in self.histories()}
        inside = [p for p, _ in self._matching(_HISTORY) if p not in kept]
        return inside + [p for p in self.path.iterdir() if p.name.startswith(".") and p.name.endswith(".tmp")]

    def history(self, first: int, last: int) -> Path:
        """The path of the records first … last, compressed."""
        return self.path / f"history-{first}-{last}.gz"

    def snapshots(self) -> list[tuple[int, Path]]:
        """The snapshots, (record covered, path), the newest first."""
        return sorted(((int(m[1]), p) for p, m in self._matching(_SNAPSHOT)), reverse=True)

    def snapshot(self, sequence: int) -> Path:
        """The path of the state after record `sequence`."""
        return self.path / f"snapshot-{sequence}.npz"

    def _matching(self, pattern: re.Pattern[str]) -> list[tuple[Path, re.Match[str]]]:
        return [(p, m) for p in self.path.iterdir() if (m := pattern.fullmatch(p.name))]

    # ------------------------------------------------------------------ failed syncs

    def mark_unsynced(self) -> None:
        """Note a failed sync: what the files seem to hold may not be on the disk, even if a later sync succeeds."""
        unsynced_folders.add(self.path.resolve())
        with contextlib.suppress(OSError):
            os.close(os.open(self.path / UNSYNCED_FILE, os.O_WRONLY | os.O_CREAT | NOT_THROUGH_LINKS, 0o666))

    @property
    def unsynced(self) -> bool:
        """Whether a sync has failed, so that the segments must be rewritten before anything is acknowledged."""
        return self.path.resolve() in unsynced_folders or (self.path / UNSYNCED_FILE).exists()

    def mark_synced(self) -> None:
        """Note that the segments have been rewritten."""
        with contextlib.suppress(OSError):  # if the mark stays, they are written once more
            (self.path / UNSYNCED_FILE).unlink(missing_ok=True)
        unsynced_folders.discard(self.path.resolve())

    def foreign_files(self) -> list[str]:
        """The names of files that do not belong to a durable agent."""
        return sorted(path.name for path in self.path.iterdir() if not _belongs(path.name))


def _belongs(name: str) -> bool:
    temporary = name.startswith(".") and name.endswith(".tmp")
    known = {DESCRIPTION_FILE, END_FILE, LOCK_FILE, SALVAGED_FILE, UNSYNCED_FILE}
    return temporary or name in known or any(p.fullmatch(name) for p in (_SEGMENT, _HISTORY, _SNAPSHOT))


def segment_header(identity: str) -> bytes:
    """The first bytes of a segment: magic word, identity of the agent, checksum, padding."""
    text = SEGMENT_MAGIC + bytes.fromhex(identity)
    return (text + crc32(text).to_bytes(4, "little")).ljust(SEGMENT_HEADER_SIZE, b"\0")


def lock_folder(folder: Path) -> FolderLock:
    """Take the lock of a folder, or raise AgentInUseError or JournalError."""
    try:
        return FolderLock(folder)
    except FolderLockedError as error:
        raise AgentInUseError(
            f"{folder}: is open for writing in {error.holder}",
            error.pid,
            name="path",
            found=str(folder),
            hint="close it there first (reading, gf.live.read_journal, works meanwhile)",
        ) from error
    except OSError as error:
        raise JournalError(
            f"{folder}: cannot be written: {error.strerror or error}",
            name="path",
            found=str(folder),
            hint="check permissions, or choose another folder",
        ) from error
