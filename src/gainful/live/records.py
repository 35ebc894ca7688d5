"""The records of a journal: how each is laid out in bytes, packed, and found again.

A record is, little-endian and without gaps:

    crc32 u32 | length of payload u32 | sequence u64 | time u64 (ns since 1970) | kind u8 | flags u8 | request u16
    payload | request id (UTF-8, `request` bytes, not counted in `length`)

The checksum covers everything behind it and starts from the journal's own number, so a record of another journal is
not taken for one of this. Sequence numbers run 1, 2, 3, …: a record that is missing or there twice is noticed. A state
is a u32, or d float64 if states are points. The id of a decision is the sequence number of its record.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError

RECORD_HEAD = struct.Struct("<IIQQBBH")
CHECKSUM = struct.Struct("<I")
MAX_PAYLOAD = 1 << 30
"""The largest payload of a record, in bytes."""


class RecordKind(IntEnum):
    """What a record is about."""

    DECISION = 1
    OBSERVATION = 2
    BATCH = 3
    PLAN = 4
    PLAN_BEGUN = 5
    CHANGE = 6
    ABANDONED = 7


RECORD_KINDS = frozenset(int(kind) for kind in RecordKind)
FROM_HISTORY = 1
"""Flag of a batch: rows of a log from before the agent was live."""
BY_REPORT = 2
"""Flag of an observation: it was made by `report`, so its state and action are those of the decision."""
WITH_PREVIOUS = 4
"""Flag of a record that was written in one piece with the one before it: neither is there without the other."""
TWO_NUMBERS = struct.Struct("<QQ")


class Record(NamedTuple):
    """One record as read."""

    kind: int
    flags: int
    sequence: int
    time: int
    payload: bytes
    request: bytes


class TransitionColumns(NamedTuple):
    """Transitions side by side: states (n,) uint32 or (n, d) float64, actions uint32, rewards float64."""

    states: NDArray[Any]
    actions: NDArray[np.uint32]
    rewards: NDArray[np.float64]
    next_states: NDArray[Any]


class RecordLayout:
    """How the payloads of one agent are packed: `dim` is 0 for numbered states, d for points."""

    def __init__(self, salt: int, dim: int = 0) -> None:
        state = "I" if dim == 0 else "d" * dim
        self.salt, self.dim = salt, dim
        self.decision = struct.Struct(f"<{state}I")
        self.observation = struct.Struct(f"<{state}Id{state}Q")
        self.outcome = struct.Struct(f"<d{state}")
        self.state = struct.Struct(f"<{state}")
        self._body = struct.Struct("<IQQBBH")

    def pack(self, kind: int, flags: int, sequence: int, time: int, payload: bytes, request: bytes = b"") -> bytes:
        """A whole record; an InvalidArgumentError if reading would not take it for one."""
        if len(payload) > MAX_PAYLOAD:
            raise InvalidArgumentError(
                "payload",
                len(payload),
                f"at most {MAX_PAYLOAD} bytes",
                "send less at once",
                problem=f"a record would have {len(payload)} bytes",
            )
        body = self._body.pack(len(payload), sequence, time, kind, flags, len(request)) + payload + request
        return CHECKSUM.pack(crc32(body, self.salt)) + body

    def record_at(self, data: bytes | memoryview, at: int) -> Record | None:
        """The record that begins at byte `at`, if a whole one does."""
        end = len(data)
        if at + RECORD_HEAD.size > end:
            return None
        crc, length, sequence, time, kind, flags, request = RECORD_HEAD.unpack_from(data, at)
        begin = at + RECORD_HEAD.size
        stop = begin + length + request
        if kind not in RECORD_KINDS or length > MAX_PAYLOAD or stop > end:
            return None
        if crc32(data[at + 4 : stop], self.salt) != crc:
            return None
        middle = begin + length
        return Record(kind, flags, sequence, time, bytes(data[begin:middle]), bytes(data[middle:stop]))

    @staticmethod
    def size(record: Record) -> int:
        """Its length in bytes."""
        return RECORD_HEAD.size + len(record.payload) + len(record.request)

    def find(self, data: bytes | memoryview, at: int, after: int) -> int:
        """The first byte from `at` on where a whole record with a sequence number above `after` begins, or -1."""
        n = len(data) - at - RECORD_HEAD.size + 1
        if n <= 0:
            return -1
        view = np.frombuffer(data, dtype=np.uint8)[at:]
        kinds = view[24 : 24 + n]
        likely = (
            (kinds >= min(RECORD_KINDS)) & (kinds <= max(RECORD_KINDS)) & (view[15 : 15 + n] == 0)
        )  # no journal reaches 2⁵⁶ records
        for begin in np.flatnonzero(likely).tolist():
            found = self.record_at(data, at + begin)
            if found is not None and found.sequence > after:
                return int(at + begin)
        return -1

    # ------------------------------------------------------------------ payloads

    def pack_rows(self, rows: TransitionColumns) -> bytes:
        """The payload of a batch."""
        state = "<u4" if self.dim == 0 else "<f8"
        return b"".join(
            (
                struct.pack("<Q", len(rows.actions)),
                rows.states.astype(state).tobytes(),
                rows.actions.astype("<u4").tobytes(),
                rows.rewards.astype("<f8").tobytes(),
                rows.next_states.astype(state).tobytes(),
            )
        )

    @property
    def most_rows(self) -> int:
        """The number of transitions that one record has room for."""
        return (MAX_PAYLOAD - 8) // (20 if self.dim == 0 else 16 * self.dim + 12)

    def unpack_rows(self, payload: bytes) -> TransitionColumns:
        """The transitions of a batch's payload."""
        (n,) = struct.unpack_from("<Q", payload)
        shape: tuple[int, ...] = (n,) if self.dim == 0 else (n, self.dim)
        state, width = ("<u4", 4) if self.dim == 0 else ("<f8", 8 * self.dim)
        at = 8
        columns = []
        for dtype, size, shaped in ((state, width, shape), ("<u4", 4, (n,)), ("<f8", 8, (n,)), (state, width, shape)):
            columns.append(np.frombuffer(payload, dtype=dtype, count=size * n // int(dtype[2]), offset=at))
            columns[-1] = columns[-1].reshape(shaped)
            at += size * n
        return TransitionColumns(*columns)

    def one_row(self, payload: bytes) -> tuple[Any, int, float, Any, int]:
        """State, action, reward, next state and decision id of an observation."""
        values = self.observation.unpack(payload)
        if self.dim == 0:
            return values
        d = self.dim
        return np.array(values[:d]), values[d], values[d + 1], np.array(values[d + 2 : 2 * d + 2]), values[-1]

    def one_decision(self, payload: bytes) -> tuple[Any, int]:
        """State and action of a decision."""
        values = self.decision.unpack(payload)
        return (values[0] if self.dim == 0 else np.array(values[: self.dim])), values[-1]


def pack_change(change: dict[str, Any]) -> bytes:
    """The payload of a change of settings."""
    return json.dumps(change, ensure_ascii=False, allow_nan=False).encode()


@dataclass(frozen=True)
class ReadRecords:
    """What was read of one file: whole records, and where and why reading stopped before the end."""

    records: list[Record]
    end: int
    """The byte behind the last whole record."""
    problem: str = ""
    """Empty if the file ends with a whole record."""


def read_records(layout: RecordLayout, data: bytes | memoryview, at: int, expected: int) -> ReadRecords:
    """The records from byte `at` on, numbered from `expected`, up to the first that is not as it should be."""
    found: list[Record] = []
    n = len(data)
    while at < n:
        record = layout.record_at(data, at)
        if record is None:
            left = n - at
            return ReadRecords(found, at, f"{left} bytes that are not a whole record, or whose checksum is wrong")
        if record.sequence != expected:
            return ReadRecords(found, at, f"record {record.sequence} where {expected} was expected")
        found.append(record)
        at += layout.size(record)
        expected += 1
    return ReadRecords(found, at)


def request_checksum(layout: RecordLayout, kind: int, flags: int, payload: bytes) -> int:
    """A checksum of what the caller asked: the same for a repeated request, whatever the journal added itself."""
    if kind == RecordKind.DECISION:
        return crc32(payload[:-4])
    if kind == RecordKind.OBSERVATION:
        return crc32(payload[layout.state.size + 4 :] if flags & BY_REPORT else payload[:-8])
    return crc32(payload)
