"""The end marker of a journal: how far it reached when it was last made durable.

A journal whose newest file was deleted, or cut off exactly between two records, looks whole. The file `end` says what
must be there: the number of the newest segment and its length in bytes, both as u64, after a magic word and before a
CRC-32 that starts from the journal's own number. It is written in place after every sync and is not synced itself, so
that it may be old, which loses a little of the protection, but never ahead of the journal.
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from gainful.locks import NOT_THROUGH_LINKS

END_FILE = "end"
_LAYOUT = struct.Struct("<8sQQ")
_MAGIC = b"GFLEND1\n"
_CHECKSUM = struct.Struct("<I")
READ_ATTEMPTS = 3
"""How often a marker is read that its writer may be changing."""


class JournalEnd(NamedTuple):
    """The newest segment of a journal, and its length in bytes."""

    segment: int
    length: int


def pack_end(salt: int, end: JournalEnd) -> bytes:
    """The contents of an end marker."""
    body = _LAYOUT.pack(_MAGIC, *end)
    return body + _CHECKSUM.pack(crc32(body, salt))


def unpack_end(salt: int, data: bytes) -> JournalEnd | None:
    """The end that `pack_end` was given; None if this is something else."""
    body = data[: _LAYOUT.size]
    if len(data) != _LAYOUT.size + _CHECKSUM.size or data != body + _CHECKSUM.pack(crc32(body, salt)):
        return None
    magic, segment, length = _LAYOUT.unpack(body)
    return JournalEnd(segment, length) if magic == _MAGIC else None


def read_end(folder: Path, salt: int) -> tuple[JournalEnd | None, str]:
    """The end marker of a journal, or None and why it cannot be used."""
    for _ in range(READ_ATTEMPTS):
        try:
            found = unpack_end(salt, (folder / END_FILE).read_bytes())
        except FileNotFoundError:
            return None, "is missing"
        except OSError as error:
            return None, f"cannot be read ({error.strerror or error})"
        if found is not None:
            return found, ""
    return None, "is damaged"


class EndMarker:
    """The end marker, open for writing."""

    def __init__(self, folder: Path, salt: int) -> None:
        self._salt = salt
        self._fd = os.open(folder / END_FILE, os.O_WRONLY | os.O_CREAT | NOT_THROUGH_LINKS, 0o666)

    def write(self, end: JournalEnd) -> None:
        """Replace the marker; whatever fails, the journal is more important."""
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, pack_end(self._salt, end), 0)

    def close(self) -> None:
        """Close the file; harmless if it was closed before."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)
