"""API keys: made at random, kept only as hashes.

A key holds 256 random bits. A slow hash (scrypt, argon2) makes guessing dear where people choose passwords; nobody
guesses 256 random bits, whatever the hash costs, so SHA-256 keeps them as safe and every request quick. A hash is
looked up, not a key: how long that takes tells at most something about hashes, from which no key follows. The last
comparison takes the same time for all.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from gainful.errors import InvalidArgumentError, JournalError
from gainful.files import write_file

PREFIX = "gf_"
SHORTEST, LONGEST = 32, 200
"""Characters of an admin key that somebody else made."""
ADMIN = ""
"""Who holds the admin key, where agents are named by their ids."""
ENVIRONMENT = "GAINFUL_ADMIN_KEY"


def new_key() -> str:
    """256 random bits, in characters that need no quoting."""
    return PREFIX + secrets.token_urlsafe(32)


def hashed(key: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def derived_key(admin_key: str, nonce: bytes) -> str:
    """The key of an agent made by a request with an id, so that the request repeated has the same answer.

    The nonce is 256 random bits kept beside the hash; only together with the admin key, which is not, does it give
    the key.
    """
    code = hmac.new(nonce, admin_key.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return PREFIX + base64.urlsafe_b64encode(code).rstrip(b"=").decode()


class Keyring:
    """Who holds which key: the id of an agent, or ADMIN."""

    def __init__(self, admin_key: str) -> None:
        self.admin_key = admin_key
        self._holders: dict[str, str] = {hashed(admin_key): ADMIN}
        self._hashes: dict[str, str] = {}

    def put(self, agent_id: str, key_hash: str) -> None:
        """The key of this hash opens this agent; one it had before opens nothing any more."""
        self.drop(agent_id)
        if key_hash:
            self._holders[key_hash], self._hashes[agent_id] = agent_id, key_hash

    def drop(self, agent_id: str) -> None:
        """No key opens this agent."""
        self._holders.pop(self._hashes.pop(agent_id, ""), None)

    def holder(self, key: str) -> str | None:
        """Whose key this is; None: nobody's."""
        found = hashed(key)
        holder = self._holders.get(found)
        if holder is None:
            return None
        kept = hashed(self.admin_key) if holder == ADMIN else self._hashes[holder]
        return holder if hmac.compare_digest(found, kept) else None


# ---------------------------------------------------------------------- the admin key


def admin_key(file: Path) -> tuple[str, str, str]:
    """The admin key, where it is from, and a warning; a new one is written to `file`, readable by its owner only.

    One service at a time: its folder's lock is held.
    """
    given = os.environ.get(ENVIRONMENT)
    if given is not None:
        return _checked(given, f"the environment's {ENVIRONMENT}"), f"the environment's {ENVIRONMENT}", ""
    try:
        if file.exists() and file.stat().st_size:  # an empty one opens nothing: somebody was killed making it
            return _read(file)
        key = new_key()
        write_file(file, f"{key}\n".encode(), mode=0o600)
    except OSError as error:
        raise JournalError(
            f"{file}: the admin key cannot be written: {error.strerror or error}; check permissions, or set "
            f"{ENVIRONMENT}"
        ) from error
    return key, str(file), ""


def _read(file: Path) -> tuple[str, str, str]:
    try:
        text = file.read_text(encoding="utf-8").strip()
        mode = stat.S_IMODE(file.stat().st_mode)
    except (OSError, UnicodeDecodeError) as error:
        raise JournalError(f"{file}: the admin key cannot be read: {error}; check the file") from error
    warning = ""
    if os.name == "posix" and mode & 0o077:
        warning = f"{file} can be read by others (mode {mode:o}); chmod 600 {file}"
    return _checked(text, str(file)), str(file), warning


def _checked(key: str, where: str) -> str:
    if not (SHORTEST <= len(key) <= LONGEST and key.isascii() and key.isprintable() and " " not in key):
        raise InvalidArgumentError(
            f"{where} has {len(key)} characters, expected {SHORTEST} to {LONGEST} of printable ASCII without spaces; "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes a good one"
        )
    return key
