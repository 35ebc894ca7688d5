"""Every error as an HTTP answer: a status, and JSON that says what, where, found, expected and what to do next.

The form is that of RFC 9457 (application/problem+json) with those five as its own members.
"""

from __future__ import annotations

import errno
import json
import re
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
    """What was found, as JSON has it, short."""
    text = json.dumps(value, default=repr, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[:SHOWN] + " …"


def of_validation(error: ValidationError, states: str = "") -> RefusedError:
    """400 for what is no JSON, 422 for JSON that is not what was asked for; `states` says which ones the agent has."""
    first = error.errors(include_url=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        return RefusedError(
            400, "the body is no JSON", where="body", found=first["msg"], expected="JSON in UTF-8",
            then="send one JSON object",
        )  # fmt: skip
    things: dict[tuple[Any, ...], Any] = {}  # a state that is none is one thing, whatever it could have been
    for wrong in error.errors(include_url=False, include_context=False):
        things.setdefault(_place(wrong["loc"]), wrong)
    loc, first = next(iter(things.items()))
    name = ".".join(map(str, loc)) or "the body"
    found, expected = shown(first["input"]), first["msg"].replace("Input should be ", "", 1)
    if loc and loc[-1] in _STATES and first["type"] != "missing":
        expected = states or "the number of a state, or a list of coordinates"
    if first["type"] == "missing":
        what, found, expected = f"{name} is missing", "nothing", name
    elif first["type"] == "extra_forbidden":
        what, expected = f"{name} is nothing that is asked for", "no such member"
    else:
        what = f"{name} is {found}, expected {expected}"
    if len(things) > 1:
        what += f"; {len(things)} things are wrong, this is the first"
    return RefusedError(
        422, what, where=".".join(["body", *map(str, loc)]), found=found, expected=expected,
        then="send it as /docs says",
    )  # fmt: skip


_STATES, _KINDS = ("state", "next_state"), ("Transition", "Outcome", "Transitions")


def _place(loc: tuple[Any, ...]) -> tuple[Any, ...]:
    """Where it is wrong, without which of several forms was tried."""
    if loc and loc[0] in _KINDS:
        loc = loc[1:]
    for i, part in enumerate(loc):
        if part in _STATES:
            return loc[: i + 1]
    return loc


# ---------------------------------------------------------------------- errors of the library

_FOUND = (
    re.compile(r"^(?P<name>[\w ]+(?:\[\d+\])?) is (?P<found>.+?), expected (?P<expected>.+?)(?:; |$)", re.DOTALL),
    re.compile(r"^(?P<name>reward|action) (?P<found>.+?) at step \d+, expected (?P<expected>.+?)(?:; |$)", re.DOTALL),
    re.compile(r"\b(?P<name>)is (?P<found>\S+), expected (?P<expected>.+?)(?:; |$)", re.DOTALL),
)
_MEMBERS = {"state": "state", "next state": "next_state", "action": "action", "reward": "reward"}


def told(text: str) -> dict[str, str]:
    """What an error of the library says was found and expected, and the member of the body it names."""
    for pattern in _FOUND:
        if match := pattern.search(text):
            return {"name": _MEMBERS.get(match["name"], ""), "found": match["found"], "expected": match["expected"]}
    return {"name": "", "found": "", "expected": ""}


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
        known = told(text)
        where = f"body.{known['name']}".rstrip(".") if agent_id else "body.config"
        return RefusedError(422, text, where=where, found=known["found"], expected=known["expected"], then=then)
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
    known = told(text)
    return RefusedError(422, text, where="body", found=known["found"], expected=known["expected"])
