"""Decompression that stops at the memory limit: a few kilobytes may inflate to gigabytes."""

from __future__ import annotations

import zlib
from typing import Literal

from gainful.machine import check_memory

WINDOW_BITS = {"zlib": 15, "gzip": 31}
INPUT_STEP, OUTPUT_STEP = 1 << 12, 1 << 24
"""Bytes given to zlib and taken from it at a time; what was inflated of a step with damage in it is lost."""
COPIES = 2
"""How often the contents are in memory while they are put together."""


def inflated(data: bytes, kind: Literal["zlib", "gzip"], name: str) -> bytes:
    """The contents of compressed data: one stream of zlib, or any number of gzip members.

    Parameters
    ----------
    data : bytes
        What was compressed.
    kind : {"zlib", "gzip"}
        Its format.
    name : str
        What it is, for the error.

    Raises
    ------
    MemoryLimitError
        As soon as the contents would take more memory than the limit.
    EOFError, zlib.error
        If the data is damaged or ends early.

    Examples
    --------
    >>> inflated(zlib.compress(b"some text"), "zlib", "a text")
    b'some text'
    """
    inflating = Inflating(kind, name)
    inflating.feed(data)
    if not inflating.at_end:
        raise EOFError("the compressed data ends early")
    return inflating.contents()


class Inflating:
    """Compressed data that is inflated piece by piece, so that what was inflated before damage is known."""

    def __init__(self, kind: Literal["zlib", "gzip"], name: str) -> None:
        self._kind, self._name = kind, name
        self._pieces: list[bytes] = []
        self._size = 0
        self.at_end = False
        """Whether the last stream that was begun has ended."""

    def contents(self) -> bytes:
        """Everything inflated so far."""
        return b"".join(self._pieces)

    def feed(self, data: bytes) -> None:
        """Inflate one stream, or one gzip member after the other."""
        rest = self._one_stream(memoryview(data))
        while rest and self.at_end and self._kind == "gzip":
            rest = self._one_stream(rest)

    def _one_stream(self, data: memoryview) -> memoryview:
        """Inflate one stream; what follows it."""
        stream = zlib.decompressobj(wbits=WINDOW_BITS[self._kind])
        self.at_end = False
        for at in range(0, len(data), INPUT_STEP):
            piece = bytes(data[at : at + INPUT_STEP])
            while piece and not stream.eof:
                self._take(stream.decompress(piece, OUTPUT_STEP))
                piece = stream.unconsumed_tail
            while not stream.eof and (more := stream.decompress(b"", OUTPUT_STEP)):
                self._take(more)
            if stream.eof:
                self.at_end = True
                return data[min(at + INPUT_STEP, len(data)) - len(stream.unused_data) :]
        return data[:0]

    def _take(self, piece: bytes) -> None:
        self._size += len(piece)
        check_memory(self._name, self._size, COPIES * self._size, f"{self._name}: what is in it, so far,")
        self._pieces.append(piece)
