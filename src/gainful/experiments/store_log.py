"""Whether SQLite's log of a store, which a killed sweep leaves behind, is whole.

SQLite reads its log (`runs.sqlite-wal`) up to the first frame with a wrong checksum and silently drops the rest: what
was stored last is then missing. The format is SQLite's (https://www.sqlite.org/fileformat2.html#the_write_ahead_log): a
header of 32 bytes, then frames of 24 bytes and a page, with two salts that tell the present log from remains of an
earlier one, and a checksum that continues from frame to frame.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

_HEADER, _FRAME = struct.Struct(">8I"), struct.Struct(">6I")
_MAGIC = 0x377F0682
"""The first word; one more if checksums are of big-endian words."""


def log_of(store: Path) -> Path:
    """The log of a store."""
    return store.with_name(f"{store.name}-wal")


def notice_of_lost_end(store: Path) -> str:
    """A notice if the log of a store that nobody is writing is damaged; empty if it is whole, or there is none."""
    try:
        data = log_of(store).read_bytes()
    except OSError:
        return ""
    if len(data) <= _HEADER.size or is_whole(data):
        return ""
    return f"{log_of(store)}: damaged; the runs stored last are missing, and gainful run makes them again"


def is_whole(data: bytes) -> bool:
    """Whether SQLite reads every frame of the present log."""
    magic, _, page, _, salt, other_salt, *kept = _HEADER.unpack_from(data)
    if magic & ~1 != _MAGIC:
        return False
    words = np.dtype(">u4" if magic & 1 else "<u4")
    checksum = _continued((0, 0), data[:24], words)
    if list(checksum) != kept or not 512 <= page <= 65536:
        return False
    for at in range(_HEADER.size, len(data) - _FRAME.size - page + 1, _FRAME.size + page):
        _, _, salt_here, other_here, *kept = _FRAME.unpack_from(data, at)
        if salt_here != salt and other_here != other_salt:
            return True  # the remains of an earlier log begin
        if salt_here != salt or other_here != other_salt:
            return False
        begin = at + _FRAME.size
        checksum = _continued(checksum, data[at : at + 8] + data[begin : begin + page], words)
        if list(checksum) != kept:
            return False
    return True


def _continued(checksum: tuple[int, int], data: bytes, words: np.dtype[np.uint32]) -> tuple[int, int]:
    """SQLite's checksum of more bytes, two words at a time."""
    first, second = checksum
    numbers = np.frombuffer(data, dtype=words).tolist()
    for x, y in zip(numbers[::2], numbers[1::2], strict=True):
        first = (first + x + second) & 0xFFFFFFFF
        second = (second + y + first) & 0xFFFFFFFF
    return first, second
