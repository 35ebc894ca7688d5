"""What a durable agent remembers beside the agent's own state: decisions waiting, outcomes told, requests answered."""

from __future__ import annotations

import struct
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.live.records import Layout

_WAITING = struct.Struct("<QQI")
_TOLD = struct.Struct("<QQH")
_ANSWER = struct.Struct("<QIiBH")
LONGEST_REQUEST = 200


class Waiting(NamedTuple):
    """A decision whose outcome is not known: what it was, and the number of observations when it was made."""

    state: Any
    action: int
    t: int


class Answer(NamedTuple):
    """What was answered to a request: the record, a checksum of what was asked, the action (-1: none), the kind."""

    sequence: int
    asked: int
    action: int
    kind: int


class Memory:
    """All of it; the oldest is forgotten, by number alone, so that a replay forgets the same."""

    def __init__(self, layout: Layout, remember: int, max_pending: int) -> None:
        self._layout, self.remember, self.max_pending = layout, remember, max_pending
        self.pending: OrderedDict[int, Waiting] = OrderedDict()
        self.reported: OrderedDict[int, tuple[int, bytes]] = OrderedDict()
        """Decision id -> the record that told its outcome, and the outcome; empty for one that was abandoned."""
        self.requests: OrderedDict[bytes, Answer] = OrderedDict()

    def decided(self, decision_id: int, state: Any, action: int, t: int) -> None:
        """A decision was made; beyond `max_pending` the oldest is abandoned."""
        self.pending[decision_id] = Waiting(state, action, t)
        if len(self.pending) > self.max_pending:
            self.closed(next(iter(self.pending)), 0, b"")

    def closed(self, decision_id: int, sequence: int, outcome: bytes) -> None:
        """Record `sequence` told its outcome, or that it will never be known (empty)."""
        del self.pending[decision_id]
        self.reported[decision_id] = sequence, outcome
        if len(self.reported) > self.remember:
            self.reported.popitem(last=False)

    def answered(self, request: bytes, answer: Answer) -> None:
        """A request was answered."""
        self.requests[request] = answer
        if len(self.requests) > self.remember:
            self.requests.popitem(last=False)

    # ------------------------------------------------------------------ snapshots

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For a file: three arrays of bytes."""
        state = self._layout.state
        points = self._layout.dim > 0
        pending = b"".join(
            _WAITING.pack(i, w.t, w.action) + (state.pack(*w.state) if points else state.pack(w.state))
            for i, w in self.pending.items()
        )
        reported = b"".join(_TOLD.pack(i, n, len(told)) + told for i, (n, told) in self.reported.items())
        requests = b"".join(
            _ANSWER.pack(a.sequence, a.asked, a.action, a.kind, len(request)) + request
            for request, a in self.requests.items()
        )
        named = {"pending": pending, "reported": reported, "requests": requests}
        return {name: np.frombuffer(data, dtype=np.uint8) for name, data in named.items()}

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Back; ValueError or struct.error where they are not such."""
        state, points = self._layout.state, self._layout.dim > 0
        data, at = arrays["pending"].tobytes(), 0
        while at < len(data):
            i, t, action = _WAITING.unpack_from(data, at)
            where = state.unpack_from(data, at + _WAITING.size)
            self.pending[i] = Waiting(np.array(where) if points else where[0], action, t)
            at += _WAITING.size + state.size
        data, at = arrays["reported"].tobytes(), 0
        while at < len(data):
            i, sequence, length = _TOLD.unpack_from(data, at)
            at += _TOLD.size
            self.reported[i] = sequence, data[at : at + length]
            at += length
        data, at = arrays["requests"].tobytes(), 0
        while at < len(data):
            sequence, asked, action, kind, length = _ANSWER.unpack_from(data, at)
            at += _ANSWER.size
            self.requests[data[at : at + length]] = Answer(sequence, asked, action, kind)
            at += length
