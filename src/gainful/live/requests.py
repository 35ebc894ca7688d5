"""Request ids: the same request made again, also after a crash, gets its first answer and does nothing twice."""

from __future__ import annotations

from typing import NamedTuple

from gainful.errors import ConflictError, InvalidArgumentError
from gainful.live.decision_ledger import MAX_REQUEST_ID_BYTES, DecisionLedger, RecordedAnswer
from gainful.live.records import RecordLayout, request_checksum


class Request(NamedTuple):
    """A request that its caller gave an id: the id, the kind of record it asks for, and a checksum of its contents."""

    id: bytes
    kind: int
    checksum: int


NO_REQUEST = Request(b"", 0, 0)
_NOTHING = (NO_REQUEST, None)


def receive(
    ledger: DecisionLedger, layout: RecordLayout, request_id: str | None, kind: int, payload: bytes, flags: int = 0
) -> tuple[Request, RecordedAnswer | None]:
    """The request with this id, NO_REQUEST without one, and what was answered to it before, if it was.

    Raises
    ------
    InvalidArgumentError
        If the id is not a string of a permitted length.
    ConflictError
        If the id was used before with other contents.
    """
    if request_id is None:
        return _NOTHING
    request = Request(_encoded(request_id), kind, request_checksum(layout, kind, flags, payload))
    known = ledger.requests.get(request.id)
    if known is not None and (known.kind != request.kind or known.request_checksum != request.checksum):
        raise ConflictError(
            f"request_id {request_id!r} was used before, for record {known.sequence}, with other contents",
            name="request_id",
            found=request_id,
            hint="give every request an id of its own",
        )
    return request, known


def remember_answer(ledger: DecisionLedger, request: Request, sequence: int, action: int = -1) -> None:
    """Keep the answer to a request, whose record has number `sequence`, for the next time it is made."""
    ledger.answered(request.id, RecordedAnswer(sequence, request.checksum, action, request.kind))


def _encoded(request_id: str) -> bytes:
    if not (isinstance(request_id, str) and request_id):  # type: ignore[redundant-expr]
        raise InvalidArgumentError("request_id", request_id, "a string that is not empty")
    encoded = request_id.encode("utf-8", "surrogatepass")
    if len(encoded) > MAX_REQUEST_ID_BYTES:
        raise InvalidArgumentError(
            "request_id",
            request_id,
            f"at most {MAX_REQUEST_ID_BYTES} bytes",
            problem=f"request_id has {len(encoded)} bytes",
        )
    return encoded
