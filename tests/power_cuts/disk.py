"""A disk that keeps what was synced, and of the rest whatever chance leaves: what a power cut may leave behind.

What is modelled:

- a write or a change of length that was not followed by a sync of its file may be there, be missing, or be there in
  part: any set of its sectors, or its first bytes. Later ones may be there without earlier ones. Where a file became
  longer and its data is missing, it holds zeros or anything else;
- a new, renamed or deleted name that was not followed by a sync of its folder may be there or not. Either the changes
  of a folder are there up to some moment, as journalling file systems have it, or each name is as it was at some
  moment since the last sync, which is all that POSIX promises;
- what a program writes through a memory map (SQLite's -shm file, which SQLite makes anew) is anything.

What is not: sectors of 512 bytes are written whole, and what was synced stays. A disk that lies about a sync loses it.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

SECTOR = 512
MAPPED_SUFFIX = "-shm"
_HEADER = struct.Struct("<IiiiqIIII")


class FileEvent(NamedTuple):
    """One change of a file or a folder, as recorder.c tells it."""

    kind: str
    process: int
    fd: int
    flags: int
    offset: int
    path: str
    second: str
    data: bytes


def read_events(recording: Path) -> Iterator[FileEvent]:
    """The events of a recording, in order."""
    raw, at = recording.read_bytes(), 0
    while at < len(raw):
        kind, process, fd, flags, offset, path, second, data, _ = _HEADER.unpack_from(raw, at)
        at += _HEADER.size
        parts = []
        for length in (path, second, data):
            parts.append(raw[at : at + length])
            at += length
        yield FileEvent(chr(kind), process, fd, flags, offset, os.fsdecode(parts[0]), os.fsdecode(parts[1]), parts[2])


@dataclass
class StoredFile:
    """Bytes that are durable, and the changes since: (offset, data), or (length, None) for a change of length."""

    durable: bytes = b""
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        """Everything written so far is durable."""
        content = bytearray(self.durable)
        for change in self.pending:
            _apply(content, *change)
        self.durable, self.pending = bytes(content), []

    def after_cut(self, chance: random.Random) -> bytes:
        """What a cut now may leave."""
        how = chance.choice(("nothing", "everything", "beginning", "sectors", "sectors")) if self.pending else "nothing"
        content = bytearray(self.durable)
        if how == "everything":
            kept = self.pending
        elif how == "beginning":
            kept = _beginning(self.pending, chance)
        elif how == "sectors":
            kept = _sectors(self.pending, chance)
        else:
            kept = []
        fill = chance if chance.random() < 0.3 else None
        for change in kept:
            _apply(content, *change, fill)
        if how == "sectors" and chance.random() < 0.3:  # its length is there, its data is not
            length = max([len(content), *(at + len(data or b"") for at, data in self.pending)])
            _apply(content, length, None, fill)
        return bytes(content)


def _apply(content: bytearray, at: int, data: bytes | None, fill: random.Random | None = None) -> None:
    """Write data, or set the length; what lies between the old end and the new is zeros, or anything with `fill`."""
    if data is None and at < len(content):
        del content[at:]
    if (gap := at - len(content)) > 0:
        content += fill.randbytes(gap) if fill else bytes(gap)
    if data is not None:
        content[at : at + len(data)] = data


def _beginning(pending: list[tuple[int, bytes | None]], chance: random.Random) -> list[tuple[int, bytes | None]]:
    """The first changes, and the first bytes of the next one."""
    n = chance.randrange(len(pending))
    at, data = pending[n]
    if data is None:
        return pending[:n]
    return [*pending[:n], (at, data[: chance.randrange(len(data) + 1)])]


def _sectors(pending: list[tuple[int, bytes | None]], chance: random.Random) -> list[tuple[int, bytes | None]]:
    """Any of the changes, and any of the sectors of each."""
    share = chance.random()
    found: list[tuple[int, bytes | None]] = []
    for at, data in pending:
        if data is None:
            if chance.random() < share:
                found.append((at, data))
            continue
        start = at
        while start < at + len(data):
            end = min(at + len(data), (start // SECTOR + 1) * SECTOR)
            if chance.random() < share:
                found.append((start, data[start - at : end - at]))
            start = end
    return found


@dataclass
class StoredFolder:
    """Names that are durable, and the changes since, each a set of names with what they stand for (None: nothing)."""

    durable: dict[str, Any] = field(default_factory=dict)
    pending: list[dict[str, Any]] = field(default_factory=list)
    present: dict[str, Any] = field(default_factory=dict)

    def change(self, names: dict[str, Any]) -> None:
        """Change names together: a rename changes two."""
        self.pending.append(names)
        for name, node in names.items():
            if node is None:
                self.present.pop(name, None)
            else:
                self.present[name] = node

    def sync(self) -> None:
        """All names are durable."""
        self.durable, self.pending = dict(self.present), []

    def after_cut(self, chance: random.Random) -> dict[str, Any]:
        """What a cut now may leave."""
        found = dict(self.durable)
        if chance.random() < 0.5:
            for names in self.pending[: chance.randrange(len(self.pending) + 1)]:
                found.update(names)
        else:
            values: dict[str, list[Any]] = {}
            for names in self.pending:
                for name, node in names.items():
                    values.setdefault(name, [self.durable.get(name)]).append(node)
            found.update({name: chance.choice(options) for name, options in values.items()})
        return {name: node for name, node in found.items() if node is not None}


class Disk:
    """The files below `root`, brought up to date event by event; those of the folder `start` are durable at first."""

    def __init__(self, root: Path, start: Path) -> None:
        self._root = str(root)
        self.top = _stored(start)
        self._open: dict[tuple[int, int], Any] = {}

    def apply(self, event: FileEvent) -> None:
        """Bring the disk up to date."""
        node: Any = self._open.get((event.process, event.fd))
        if event.kind == "o":
            self._open[event.process, event.fd] = self._opened(event)
        elif event.kind == "c":
            self._open.pop((event.process, event.fd), None)
        elif event.kind == "w":
            node.pending.append((event.offset, event.data))
        elif event.kind == "t":
            node.pending.append((event.offset, None))
        elif event.kind == "s":
            node.sync()
        elif event.kind == "r":
            self._rename(event)
        else:
            folder, name = self._place(event.path)
            folder.change({name: StoredFolder() if event.kind == "m" else None})

    def _opened(self, event: FileEvent) -> Any:
        if event.path == self._root:
            return self.top
        folder, name = self._place(event.path)
        if not event.offset:  # it did not exist
            folder.change({name: StoredFile()})
        node = folder.present[name]
        if event.offset and event.flags & os.O_TRUNC:
            node.pending.append((0, None))
        return node

    def _rename(self, event: FileEvent) -> None:
        (source, old), (target, new) = self._place(event.path), self._place(event.second)
        node = source.present[old]
        if source is target:
            source.change({old: None, new: node})
        else:
            target.change({new: node})
            source.change({old: None})

    def _place(self, path: str) -> tuple[StoredFolder, str]:
        *folders, name = os.path.relpath(path, self._root).split(os.sep)
        at = self.top
        for part in folders:
            at = at.present[part]
        return at, name

    def cut(self, target: Path, chance: random.Random) -> None:
        """Write what a power cut now may leave into a new folder."""
        _write(self.top, target, chance)


def _stored(path: Path) -> Any:
    if not path.is_dir():
        return StoredFile(path.read_bytes())
    inside = {entry.name: _stored(entry) for entry in path.iterdir()}
    return StoredFolder(inside, [], dict(inside))


def _write(folder: StoredFolder, target: Path, chance: random.Random) -> None:
    target.mkdir()
    for name, node in sorted(folder.after_cut(chance).items()):
        if isinstance(node, StoredFolder):
            _write(node, target / name, chance)
        elif name.endswith(MAPPED_SUFFIX):
            (target / name).write_bytes(chance.randbytes(chance.choice((0, 100, 32768))))
        else:
            (target / name).write_bytes(node.after_cut(chance))
