"""The ledger of a durable agent: decisions that wait, outcomes reported, requests answered."""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gainful.live.records import RecordLayout

_WAITING = struct.Struct("<QQI")
_TOLD = struct.Struct("<QQH")
_ANSWER = struct.Struct("<QIiBH")
MAX_REQUEST_ID_BYTES = 200
K = TypeVar("K")
V = TypeVar("V")


class WaitingDecision(NamedTuple):
    """A decision whose outcome is not known: what it was, and the number of observations when it was made."""

    state: Any
    action: int
    t: int


class RecordedAnswer(NamedTuple):
    """What was answered to a request: the record, a checksum of what was asked, the action (-1: none), the kind."""

    sequence: int
    request_checksum: int
    action: int
    kind: int


class RecentEntries(Generic[K, V]):
    """The last `limit` entries of a mapping, each with the bytes that a snapshot has of it.

    The bytes are kept in a list, so that all of them can be copied quickly while a caller waits.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._found: dict[K, V] = {}
        self._keys: list[K] = []
        self._packed: list[bytes] = []
        self._begin = 0  # entries of the lists before it are forgotten

    def get(self, key: K) -> V | None:
        """The entry, if it is known."""
        return self._found.get(key)

    def __contains__(self, key: object) -> bool:
        return key in self._found

    def __len__(self) -> int:
        return len(self._found)

    def put(self, key: K, value: V, packed: bytes) -> None:
        """Add an entry; beyond the limit, the oldest one is forgotten."""
        if key in self._found:
            at = self._keys.index(key, self._begin)
            self._found[key], self._packed[at] = value, packed
            return
        self._found[key] = value
        self._keys.append(key)
        self._packed.append(packed)
        if len(self._found) > self._limit:
            del self._found[self._keys[self._begin]]
            self._begin += 1
            if self._begin > self._limit:
                del self._keys[: self._begin], self._packed[: self._begin]
                self._begin = 0

    def packed(self) -> bytes:
        """All entries, the oldest first."""
        return b"".join(self._packed[self._begin :])


class DecisionLedger:
    """Decisions that wait, outcomes reported and requests answered, a limited number of each.

    The oldest are forgotten, by number alone, so that a replay forgets the same ones.
    """

    def __init__(self, layout: RecordLayout, remember: int, max_pending: int) -> None:
        self._layout, self.remember, self.max_pending = layout, remember, max_pending
        self.pending: OrderedDict[int, WaitingDecision] = OrderedDict()
        self._packed: dict[int, bytes] = {}  # of every decision waiting, for a snapshot
        self._alike: dict[tuple[int, Any], dict[int, None]] = {}  # action and state -> decisions waiting, in order
        self.reported: RecentEntries[int, tuple[int, bytes]] = RecentEntries(remember)
        """Decision id -> the record of its outcome, and the outcome itself; empty if the decision was abandoned."""
        self.requests: RecentEntries[bytes, RecordedAnswer] = RecentEntries(remember)

    def decision_made(self, decision_id: int, state: Any, action: int, t: int) -> None:
        """Add a decision; beyond `max_pending`, the oldest one is abandoned."""
        packed_state = self._layout.state.pack(*state) if self._layout.dim else self._layout.state.pack(state)
        self.pending[decision_id] = WaitingDecision(state, action, t)
        self._packed[decision_id] = _WAITING.pack(decision_id, t, action) + packed_state
        self._alike.setdefault(self._key(state, action), {})[decision_id] = None
        if len(self.pending) > self.max_pending:
            self.closed(next(iter(self.pending)), 0, b"")

    def closed(self, decision_id: int, sequence: int, outcome: bytes) -> None:
        """Close a decision by record `sequence`: with its outcome, or with none (empty) if that will never be known."""
        waiting = self.pending.pop(decision_id)
        del self._packed[decision_id]
        key = self._key(waiting.state, waiting.action)
        alike = self._alike[key]
        del alike[decision_id]
        if not alike:
            del self._alike[key]
        packed = _TOLD.pack(decision_id, sequence, len(outcome)) + outcome
        self.reported.put(decision_id, (sequence, outcome), packed)

    def answered(self, request: bytes, answer: RecordedAnswer) -> None:
        """Record that a request was answered."""
        packed = (
            _ANSWER.pack(answer.sequence, answer.request_checksum, answer.action, answer.kind, len(request)) + request
        )
        self.requests.put(request, answer, packed)

    # ------------------------------------------------------------------ decisions by what they were

    def _key(self, state: Any, action: int) -> tuple[int, Any]:
        return action, (state + 0.0).tobytes() if self._layout.dim else state  # -0.0 is 0.0

    def oldest(self, state: Any, action: int) -> int:
        """The oldest decision waiting that was `action` in `state`; 0 if there is none."""
        return next(iter(self._alike.get(self._key(state, action), (0,))))

    def newest_like(self, decision_id: int) -> WaitingDecision:
        """The newest decision waiting that was the same action in the same state, perhaps itself."""
        waiting = self.pending[decision_id]
        return self.pending[next(reversed(self._alike[self._key(waiting.state, waiting.action)]))]

    # ------------------------------------------------------------------ snapshots

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For a file: three arrays of bytes."""
        named = {
            "pending": b"".join(self._packed.values()),
            "reported": self.reported.packed(),
            "requests": self.requests.packed(),
        }
        return {name: np.frombuffer(data, dtype=np.uint8) for name, data in named.items()}

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Read what `to_arrays` wrote; ValueError or struct.error if it is something else."""
        state, points = self._layout.state, self._layout.dim > 0
        data, at = arrays["pending"].tobytes(), 0
        while at < len(data):
            i, t, action = _WAITING.unpack_from(data, at)
            where = state.unpack_from(data, at + _WAITING.size)
            self.decision_made(i, np.array(where) if points else where[0], action, t)
            at += _WAITING.size + state.size
        data, at = arrays["reported"].tobytes(), 0
        while at < len(data):
            i, sequence, length = _TOLD.unpack_from(data, at)
            begin = at
            at += _TOLD.size + length
            self.reported.put(i, (sequence, data[at - length : at]), data[begin:at])
        data, at = arrays["requests"].tobytes(), 0
        while at < len(data):
            sequence, request_checksum, action, kind, length = _ANSWER.unpack_from(data, at)
            begin = at
            at += _ANSWER.size + length
            self.requests.put(
                data[at - length : at], RecordedAnswer(sequence, request_checksum, action, kind), data[begin:at]
            )
