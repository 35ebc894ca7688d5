"""History files: records that a snapshot covers, compressed, with a checksum over the whole file.

The file is any number of gzip members with records, and a last one without content, whose extra field "GF" holds the
SHA-256 of everything before it. `gunzip` reads it like any other file. Files of earlier versions lack the last member.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import zlib

from gainful.inflating import Inflating, inflated

_FIELD = b"\x24\x00GF\x20\x00"  # length of the extra field, its name, length of its contents
_HEAD = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff" + _FIELD
_TAIL = b"\x03\x00" + bytes(8)  # nothing, compressed; its CRC-32 and length
_SEAL_SIZE = len(_HEAD) + 32 + len(_TAIL)


def pack_history(records: bytes) -> bytes:
    """A history file of these records."""
    return sealed(gzip.compress(records, 6, mtime=0))


def sealed(members: bytes) -> bytes:
    """A history file of these gzip members."""
    return members + _HEAD + hashlib.sha256(members).digest() + _TAIL


def members_of(data: bytes) -> bytes:
    """The gzip members of a history file without the last one; a ValueError if the checksum is wrong."""
    members, seal = data[:-_SEAL_SIZE], data[-_SEAL_SIZE:]
    digest = hashlib.sha256(members).digest()
    if seal == _HEAD + digest + _TAIL:
        return members
    begin = len(_HEAD)
    if seal[begin - len(_FIELD) : begin] == _FIELD or seal[begin : begin + len(digest)] == digest:
        raise ValueError("its checksum is wrong")
    return data


def unpack_history(data: bytes, name: str = "a history file") -> bytes:
    """The records of a history file; a ValueError if it is not as it was written.

    Raises
    ------
    MemoryLimitError
        If it inflates to more than the memory limit.
    """
    try:
        return inflated(members_of(data), "gzip", name)
    except (EOFError, zlib.error) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def salvage(data: bytes, name: str = "a history file") -> bytes:
    """The bytes that can be decompressed, member by member, up to the first damage."""
    found = Inflating("gzip", name)
    with contextlib.suppress(zlib.error):
        found.feed(data)
    return found.contents()
