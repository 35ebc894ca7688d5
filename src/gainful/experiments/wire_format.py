"""The formats of bytes: results (a JSON header and named arrays, compressed), and frames in pipes.

A *packed* result is "GFR2", the CRC-32 of everything behind it as 4 bytes little-endian, and zlib(header length as 4
bytes little-endian, header JSON in UTF-8, arrays one after the other). Version 1 was the last part alone. The header is
{"values": {...}, "arrays": [[name, dtype, shape], ...]}, dtypes as NumPy writes them, little-endian. Nothing is ever
unpickled.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gainful.errors import MemoryLimitError
from gainful.inflating import inflated

RESULT_MAGIC = b"GFR2"
_HEADER_LENGTH = struct.Struct("<I")
_FRAME_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")


def pack(values: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """Values and arrays as bytes; equal content gives equal bytes."""
    plain = {name: np.ascontiguousarray(a, dtype=a.dtype.newbyteorder("<")) for name, a in arrays.items()}
    described = [[name, a.dtype.str, list(a.shape)] for name, a in plain.items()]
    header = json.dumps({"values": values, "arrays": described}, allow_nan=False, sort_keys=True).encode()
    body = zlib.compress(_HEADER_LENGTH.pack(len(header)) + header + b"".join(a.tobytes() for a in plain.values()), 6)
    return RESULT_MAGIC + _CHECKSUM.pack(zlib.crc32(body)) + body


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The values and arrays that `pack` was given; ValueError for anything else, MemoryLimitError beyond the limit."""
    try:
        raw = inflated(_checked_body(data), "zlib", "a packed result")
        (length,) = _HEADER_LENGTH.unpack_from(raw)
        header = json.loads(raw[4 : 4 + length].decode())
        at, arrays = 4 + length, {}
        for name, dtype, shape in header["arrays"]:
            kind = np.dtype(dtype)
            if kind.hasobject:
                raise ValueError(f"array '{name}' is of dtype {dtype}")
            size = int(np.prod(shape, dtype=np.int64))
            arrays[name] = np.frombuffer(raw, dtype=kind, count=size, offset=at).reshape(shape)
            at += size * kind.itemsize
        if at != len(raw) or not isinstance(header["values"], dict):
            raise ValueError("its header does not describe what follows")
        values: dict[str, Any] = header["values"]
    except MemoryLimitError:
        raise
    except Exception as error:  # what was damaged may make zlib, json and NumPy raise almost anything
        raise ValueError(f"not a packed result: {error}") from error
    return values, arrays


def _checked_body(data: bytes) -> bytes:
    """The compressed part of a packed result; a ValueError if its checksum is wrong."""
    if not data.startswith(RESULT_MAGIC):
        return data  # version 1, whose only checksum is zlib's
    at = len(RESULT_MAGIC)
    body = data[at + _CHECKSUM.size :]
    if zlib.crc32(body) != _CHECKSUM.unpack_from(data, at)[0]:
        raise ValueError("its checksum is wrong")
    return body


@dataclass(frozen=True)
class RunResult:
    """A finished run on its way into the store: as bytes, and what they hold."""

    data: bytes
    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]

    @classmethod
    def from_bytes(cls, data: bytes) -> RunResult:
        """Unpack what `pack` made; ValueError for anything else."""
        return cls(data, *unpack(data))


def write_frame(stream: BinaryIO, data: bytes) -> None:
    """Write one message into a pipe."""
    stream.write(_FRAME_LENGTH.pack(len(data)) + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """Wait for the next message of a pipe; None at its end, also in the middle of a message."""
    head = stream.read(_FRAME_LENGTH.size)
    if len(head) < _FRAME_LENGTH.size:
        return None
    (size,) = _FRAME_LENGTH.unpack(head)
    data = stream.read(size)
    return data if len(data) == size else None


class FrameDecoder:
    """Assembles messages from bytes that arrive in pieces."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that these bytes complete."""
        self._kept += data
        found = []
        while len(self._kept) >= _FRAME_LENGTH.size:
            (size,) = _FRAME_LENGTH.unpack_from(self._kept)
            end = _FRAME_LENGTH.size + size
            if len(self._kept) < end:
                break
            found.append(bytes(self._kept[_FRAME_LENGTH.size : end]))
            del self._kept[:end]
        return found
