"""Errors as HTTP responses: a status, and JSON that says what is wrong, where, what was found and expected, what next.

The form is that of RFC 9457 (application/problem+json), with `what`, `where`, `found`, `expected` and `next` as
extension members.
"""

from __future__ import annotations

import errno
import itertools
import json
import re
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

from gainful.errors import (
    MISSING,
    AgentInUseError,
    ConflictError,
    DamagedJournalError,
    GainfulError,
    InvalidArgumentError,
    JournalError,
    PlanningError,
    UnknownDecisionError,
    UnknownNameError,
    describe,
)

PROBLEM_MEDIA_TYPE = "application/problem+json"
MAX_FOUND_LENGTH = 120
"""Characters of a rejected value that a response repeats."""
STATE_MEMBERS = ("state", "next_state")
TRANSITION_MEMBERS = (*STATE_MEMBERS, "action", "reward", "cost")
_COLUMN_ENTRY = re.compile(r"(state|next_state|action|reward|cost)s\[(\d+)\]")
"""An entry of a column, as the library names it."""
SEE_DOCS = "see /docs for the expected body"


class ProblemError(Exception):
    """A request that is rejected without any effect.

    Parameters
    ----------
    status : int
        The HTTP status.
    what : str
        What is wrong, in one sentence.
    where : str
        The part of the request concerned, such as "body.state".
    found, expected : str
        The rejected value, and what is accepted instead.
    hint : str
        What to do next; the member `next` of the response.
    headers : dict of str to str, optional
        Additional headers of the response.
    """

    def __init__(
        self,
        status: int,
        what: str,
        *,
        where: str = "",
        found: str = "",
        expected: str = "",
        hint: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(what)
        self.status, self.what, self.where = status, what, where
        self.found, self.expected, self.hint = found, expected, hint
        self.headers = headers or {}

    def body(self) -> bytes:
        """The body of the response, as JSON."""
        members = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "what": self.what,
            "where": self.where,
            "found": self.found,
            "expected": self.expected,
            "next": self.hint,
        }
        return json.dumps(members).encode()


def as_json(value: Any) -> str:
    """A value as JSON, shortened; what JSON cannot hold is shown as in error messages."""
    text = json.dumps(_beginning(value), default=_plain, ensure_ascii=False)
    return text if len(text) <= MAX_FOUND_LENGTH else text[:MAX_FOUND_LENGTH] + " …"


def _beginning(value: Any, depth: int = 4) -> Any:
    """As much of a value as is shown, for it may be very large."""
    if isinstance(value, str):
        return value[: MAX_FOUND_LENGTH + 1]
    if isinstance(value, (list, tuple)):
        return [_beginning(each, depth - 1) for each in value[:MAX_FOUND_LENGTH]] if depth else []
    if isinstance(value, dict):
        first = itertools.islice(value.items(), MAX_FOUND_LENGTH)
        return {str(name)[:MAX_FOUND_LENGTH]: _beginning(each, depth - 1) for name, each in first} if depth else {}
    return value


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else describe(value)


# ---------------------------------------------------------------------- bodies that fail validation


def of_validation(error: ValidationError, states: str = "", inside: tuple[Any, ...] = ()) -> ProblemError:
    """400 for a body that is not JSON, 422 for JSON of the wrong form.

    `states` describes the states that the agent accepts, if they are known; `inside` is the part of the body that was
    validated, if it is not all.
    """
    found_errors = error.errors(include_url=False, include_context=False)
    first = found_errors[0]
    if first["type"] == "json_invalid":
        return ProblemError(
            400,
            "the body is not valid JSON",
            where="body",
            found=first["msg"],
            expected="JSON in UTF-8",
            hint="send one JSON object",
        )
    by_location: dict[tuple[Any, ...], Any] = {}  # a state that matches no form counts once, not once per form
    for each in found_errors:
        member = ("reward",) if each["type"] == "neither_reward_nor_cost" else ()
        by_location.setdefault((*inside, *_location(each["loc"]), *member), each)
    location, first = next(iter(by_location.items()))
    name = ".".join(map(str, location)) or "the body"
    found, expected = as_json(first["input"]), first["msg"].removeprefix("Input should be ")
    if location and location[-1] in STATE_MEMBERS and first["type"] != "missing":
        expected = states or "the index of a state, or a list of coordinates"
    if first["type"] in ("missing", "neither_reward_nor_cost"):
        what, found = f"{name} is missing", "nothing"
        expected = name if first["type"] == "missing" else "a reward, or a cost"
    elif first["type"] == "extra_forbidden":
        what, expected = f"{name} is not a member of this request", "no such member"
    else:
        what = f"{name} is {found}, expected {expected}"
    if len(by_location) > 1 and not inside:
        what += f"; this is the first of {len(by_location)} errors"
    return ProblemError(
        422, what, where=".".join(["body", *map(str, location)]), found=found, expected=expected, hint=SEE_DOCS
    )


def _location(loc: tuple[Any, ...]) -> tuple[Any, ...]:
    """Where a body is wrong, without the alternatives of a union that were tried."""
    if loc and loc[0] in ("Transition", "OutcomeBody", "Transitions"):
        loc = loc[1:]
    for i, part in enumerate(loc):
        if part in (*STATE_MEMBERS, "action"):
            return loc[: i + 1]
    return loc


# ---------------------------------------------------------------------- errors of the library


def of_error(error: GainfulError, agent_id: str, folder: str) -> ProblemError:
    """The response to an error of the library; it does not reveal where the server keeps `folder`."""

    def public(text: str) -> str:
        return text.replace(folder, f"agent {agent_id}") if folder else text

    text = public(str(error))
    if isinstance(error, ConflictError):
        hint = "give every request its own id, and report each outcome once"
        return ProblemError(409, text, where="body", hint=hint)
    if isinstance(error, UnknownDecisionError):
        hint = "GET /agents/{id}/pending lists the pending decisions"
        return ProblemError(404, text, where="body.decision_id", hint=hint)
    if isinstance(error, PlanningError):
        hint = "change the settings of the agent with POST /agents/{id}/change"
        return ProblemError(409, text, where="agent", hint=hint)
    if isinstance(error, (DamagedJournalError, AgentInUseError)):
        hint = "contact the operator of the service"
        return ProblemError(503, text, where="agent", hint=hint, headers={"Retry-After": "60"})
    if isinstance(error, JournalError):
        full = isinstance(error.__cause__, OSError) and error.__cause__.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "send the same request again, with the same request_id"
        return ProblemError(507 if full else 503, text, where="agent", hint=hint, headers={"Retry-After": "5"})
    what = error.problem + (f", expected {error.expected}" if error.expected else "")
    return ProblemError(
        422,
        public(what),
        where=_member(error.name, agent_id),
        found="" if error.found is MISSING else public(as_json(error.found)),
        expected=public(error.expected),
        hint=public(error.hint) or _default_hint(error, agent_id),
    )


def _member(name: str, agent_id: str) -> str:
    """The part of the body that an error is about, from the name of the argument."""
    if not agent_id:
        return "body.config"
    entry = _COLUMN_ENTRY.fullmatch(name)
    if entry is not None:
        return f"body.transitions.{entry[2]}.{entry[1]}"
    return f"body.{name}" if name in TRANSITION_MEMBERS else "body"


def _default_hint(error: GainfulError, agent_id: str) -> str:
    if not isinstance(error, (InvalidArgumentError, UnknownNameError)):
        return ""
    return (
        "GET /agents/{id} shows the settings of the agent"
        if agent_id
        else "gainful list agents shows all agents and their arguments"
    )
