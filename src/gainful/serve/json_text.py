"""JSON in both directions, in small steps.

Both the standard library and pydantic hold Python's interpreter lock while they parse or write a value, however large
it is, and every other request waits meanwhile, in whatever thread that happens. So large values are handled in a thread
and in pieces of about a millisecond. What cannot be a valid body is rejected by counting characters, before it is
parsed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from gainful.serve.problem_details import ProblemError

MAX_MEMBERS = 100
"""Members of one object."""
MAX_MEMBER_NAME = 200
"""Characters of the name of a member."""
WRITTEN_AT_ONCE = 1000
"""Numbers or rows that are written in one step."""


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without repeated names: parsers disagree which of two values counts."""
    if len(members) > MAX_MEMBERS:
        raise _malformed("an object has too many members", found=str(len(members)), expected=f"at most {MAX_MEMBERS}")
    found = dict(members)
    if len(found) < len(members):
        names = [name for name, _ in members]
        twice = next(name for i, name in enumerate(names) if name in names[:i])[:MAX_MEMBER_NAME]
        raise _malformed(f"the member {twice!r} appears twice in one object", found=twice, expected="each member once")
    for name in found:
        if len(name) > MAX_MEMBER_NAME:
            raise _malformed("the name of a member is too long", found=name[:50], expected="a member of this request")
    return found


def _malformed(what: str, found: str, expected: str) -> ProblemError:
    return ProblemError(422, what, where="body", found=found, expected=expected, hint="see /docs for the expected body")


_decode = json.JSONDecoder(object_pairs_hook=_object).decode


def decode(body: bytes) -> Any:
    """Parse a body; ValueError or RecursionError if it is not JSON.

    Raises
    ------
    ProblemError
        422 if an object has a member twice, or more and longer ones than any request has.
    """
    return _decode(body.decode())


def encode(value: Any) -> bytes:
    """Write a value, which may hold NumPy arrays, as JSON."""
    return "".join(_pieces(value)).encode()


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        before = "{"
        for name, member in value.items():
            yield f"{before}{json.dumps(name)}:"
            yield from _pieces(member)
            before = ","
        yield "}" if value else "{}"
    elif isinstance(value, list | np.ndarray):
        yield from _list_pieces(value)
    else:
        yield _plain(value)


def _list_pieces(value: Any) -> Iterator[str]:
    width = value.shape[1] if isinstance(value, np.ndarray) and value.ndim > 1 else 1
    step = max(1, WRITTEN_AT_ONCE // max(1, width))
    before = "["
    for start in range(0, len(value), step):
        yield before
        part = value[start : start + step]
        if width > WRITTEN_AT_ONCE:
            yield from _list_pieces(part[0])
        else:
            yield _plain(part.tolist() if isinstance(part, np.ndarray) else part)[1:-1]
        before = ","
    yield "]" if len(value) else "[]"


def _plain(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))
