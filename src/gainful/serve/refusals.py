"""Every error as an HTTP answer: a status, and JSON that says what, where, found, expected and what to do next.

The form is that of RFC 9457 (application/problem+json) with those five as its own members.
"""

from __future__ import annotations

import errno
import json
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

from gainful.errors import (
    AgentInUseError,
    ConflictError,
    DamagedJournalError,
    GainfulError,
    InvalidArgumentError,
    JournalError,
    PlanningError,
    UnknownDecisionError,
    UnknownNameError,
)

MEDIA_TYPE = "application/problem+json"
SHOWN = 120
"""Characters of what was found that are told back."""


class RefusedError(Exception):
    """A request that is not granted; nothing has happened."""

    def __init__(
        self, status: int, what: str, *, where: str = "", found: str = "", expected: str = "", then: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(what)
        self.status, self.what, self.where, self.found, self.expected, self.then = (
            status, what, where, found, expected, then,
        )  # fmt: skip
        self.headers = headers or {}

    def body(self) -> bytes:
        """The JSON."""
        return json.dumps(
            {
                "type": "about:blank", "title": HTTPStatus(self.status).phrase, "status": self.status,
                "what": self.what, "where": self.where, "found": self.found, "expected": self.expected,
                "next": self.then,
            }
        ).encode()  # fmt: skip


def shown(value: Any) -> str:
    """What was found, short."""
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + " …"


def of_validation(error: ValidationError) -> RefusedError:
    """400 for what is no JSON, 422 for JSON that is not what was asked for."""
    first = error.errors(include_url=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return RefusedError(
            400, "the body is no JSON", where="body", found=first["msg"], expected="JSON in UTF-8",
            then="send one JSON object",
        )  # fmt: skip
    n = error.error_count()
    where = ".".join(["body", *(str(part) for part in first["loc"])])
    return RefusedError(
        422, first["msg"] + (f"; {n} things are wrong, this is the first" if n > 1 else ""), where=where,
        found=shown(first["input"]), expected="what /docs says", then="send it as /docs says",
    )  # fmt: skip


def of_error(error: GainfulError, agent_id: str, folder: str) -> RefusedError:
    """The status that fits an error of the library; paths of the server are not told."""
    text = str(error).replace(folder, f"agent {agent_id}") if folder else str(error)
    if isinstance(error, ConflictError):
        return RefusedError(409, text, where="body", then="give every request an id of its own, tell an outcome once")
    if isinstance(error, UnknownDecisionError):
        return RefusedError(
            404, text, where="body.decision_id", then="GET /agents/{id}/pending lists the decisions waiting"
        )
    if isinstance(error, (InvalidArgumentError, UnknownNameError)):
        then = (
            "GET /agents/{id} has the settings of the agent" if agent_id else "gainful list agents has names, arguments"
        )
        return RefusedError(422, text, where="body" if agent_id else "body.config", then=then)
    if isinstance(error, PlanningError):
        return RefusedError(409, text, where="agent", then="change its settings: POST /agents/{id}/change")
    if isinstance(error, (DamagedJournalError, AgentInUseError)):
        return RefusedError(
            503, text, where="agent", then="this is for who runs the service", headers={"Retry-After": "60"}
        )
    if isinstance(error, JournalError):
        full = isinstance(error.__cause__, OSError) and error.__cause__.errno in (errno.ENOSPC, errno.EDQUOT)
        return RefusedError(
            507 if full else 503, text, where="agent", then="send the same request again, with the same request_id",
            headers={"Retry-After": "5"},
        )  # fmt: skip
    return RefusedError(422, text, where="body")
