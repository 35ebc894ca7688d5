"""JSON files that end with a checksum of their own bytes, so that a changed bit is noticed.

The last member of the object is "sha256": 64 hexadecimal digits. It is the SHA-256 of the whole file with zeros in the
place of these digits.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

CHECKSUM_MEMBER = "sha256"
_LAST_MEMBER = re.compile(rb'"sha256": "([0-9a-f]{64})"\n\}$')
_ZEROS = "0" * 64


def to_checked_json(members: dict[str, Any]) -> bytes:
    """An object as JSON, one member per line, with its checksum as the last.

    >>> print(to_checked_json({"name": "pump"}).decode())
    {
      "name": "pump",
      "sha256": "6486b6941139aa6bf2159c1c357aaa3dab9495f1634df112d4c83baa29f20676"
    }
    """
    text = json.dumps({**members, CHECKSUM_MEMBER: _ZEROS}, indent=2, allow_nan=False).encode()
    digest = hashlib.sha256(text).hexdigest().encode()
    return text[: -len(_ZEROS) - 3] + digest + text[-3:]


def from_checked_json(data: bytes) -> tuple[dict[str, Any], bool]:
    """The members without the checksum, and whether there was one; files of earlier versions have none.

    Raises
    ------
    ValueError
        If the checksum is wrong, or this is not an object in JSON.
    """
    found = _LAST_MEMBER.search(data)
    if found is not None:
        begin, end = found.span(1)
        if hashlib.sha256(data[:begin] + _ZEROS.encode() + data[end:]).hexdigest().encode() != found[1]:
            raise ValueError("its checksum is wrong")
    try:
        members = json.loads(data.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"not text in UTF-8 (byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error})") from error
    if not isinstance(members, dict):
        raise ValueError("not an object in JSON")
    if (CHECKSUM_MEMBER in members) != (found is not None):
        raise ValueError("its checksum is damaged")
    members.pop(CHECKSUM_MEMBER, None)
    return members, found is not None
