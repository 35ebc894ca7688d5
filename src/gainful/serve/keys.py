"""API keys: random, and stored only as hashes.

A key holds 256 random bits. A slow hash (scrypt, argon2) makes it expensive to guess passwords that people chose; but
256 random bits cannot be guessed, however fast the hash is. SHA-256 keeps them just as safe and every request fast. The
lookup uses hashes, not keys: its timing reveals at most something about hashes, from which no key can be derived. The
final comparison takes constant time.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from pathlib import Path
from zlib import crc32

from gainful.atomic_files import write_file
from gainful.errors import InvalidArgumentError, JournalError

KEY_PREFIX = "gf_"
MIN_KEY_LENGTH, MAX_KEY_LENGTH = 32, 200
"""Characters of an admin key that the operator chose."""
ADMIN = ""
"""Stands for the holder of the admin key, where other holders are the ids of agents."""
ADMIN_KEY_VARIABLE = "GAINFUL_ADMIN_KEY"
CHECK_SUFFIX = ".check"


def new_key() -> str:
    """256 random bits, in characters that need no quoting."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def hashed(key: str) -> str:
    """What is stored of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def derived_key(admin_key: str, nonce: bytes) -> str:
    """The key of an agent that was created by a request with an id, so that repeating the request returns it again.

    The nonce is 256 random bits, stored next to the hash. It gives the key only together with the admin key, which is
    not stored there.
    """
    code = hmac.new(nonce, admin_key.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    return KEY_PREFIX + base64.urlsafe_b64encode(code).rstrip(b"=").decode()


class Keyring:
    """Who holds which key: the id of an agent, or ADMIN."""

    def __init__(self, admin_key: str) -> None:
        self.admin_key = admin_key
        self._holders: dict[str, str] = {hashed(admin_key): ADMIN}
        self._hashes: dict[str, str] = {}

    def put(self, agent_id: str, key_hash: str) -> None:
        """Give an agent the key with this hash; its previous key no longer works."""
        self.drop(agent_id)
        if key_hash:
            self._holders[key_hash], self._hashes[agent_id] = agent_id, key_hash

    def drop(self, agent_id: str) -> None:
        """Forget the key of an agent."""
        self._holders.pop(self._hashes.pop(agent_id, ""), None)

    def holder(self, key: str) -> str | None:
        """The holder of this key; None if it is unknown."""
        found = hashed(key)
        holder = self._holders.get(found)
        if holder is None:
            return None
        kept = hashed(self.admin_key) if holder == ADMIN else self._hashes[holder]
        return holder if hmac.compare_digest(found, kept) else None


# ---------------------------------------------------------------------- the admin key


def admin_key(file: Path) -> tuple[str, str, str]:
    """The admin key, where it comes from, and a warning (or an empty string).

    It is taken from the environment, or from `file`; if there is neither, a new key is written to `file`, readable by
    its owner only. The caller holds the lock of the folder.
    """
    given = os.environ.get(ADMIN_KEY_VARIABLE)
    if given is not None:
        source = f"the environment variable {ADMIN_KEY_VARIABLE}"
        return _checked(given, source), source, ""
    try:
        if file.exists() and file.stat().st_size:  # an empty file is what a service killed while writing it left
            return _read(file)
        key = new_key()
        content = f"{key}\n".encode()
        write_file(file, content, mode=0o600)
        _write_check(file, content)
    except OSError as error:
        raise JournalError(
            f"{file}: the admin key cannot be written: {error.strerror or error}",
            name=str(file),
            hint=f"check the permissions, or set {ADMIN_KEY_VARIABLE}",
        ) from error
    return key, str(file), ""


def _read(file: Path) -> tuple[str, str, str]:
    try:
        content = file.read_bytes()
        text = content.decode().strip()
        mode = stat.S_IMODE(file.stat().st_mode)
    except (OSError, UnicodeDecodeError) as error:
        raise JournalError(
            f"{file}: the admin key cannot be read: {error}", name=str(file), hint="check the file, or restore a copy"
        ) from error
    warnings = [_check(file, content)]
    if os.name == "posix" and mode & 0o077:
        warnings.append(f"{file} can be read by others (mode {mode:o}); run chmod 600 {file}")
    return _checked(text, str(file)), str(file), "; ".join(filter(None, warnings))


# A flipped bit in the file makes another key, which looks as good: `admin.key.check` has the file's SHA-256, and a
# CRC-32 of these digits, by which damage to itself is known.


def _check_file(file: Path) -> Path:
    return file.with_name(f"{file.name}{CHECK_SUFFIX}")


def _check_text(content: bytes) -> bytes:
    digest = hashlib.sha256(content).hexdigest().encode()
    return digest + b" %08x\n" % crc32(digest)


def _write_check(file: Path, content: bytes) -> None:
    with contextlib.suppress(OSError):  # without it, damage to the key is not noticed; the next start tries again
        write_file(_check_file(file), _check_text(content), mode=0o600)


def _check(file: Path, content: bytes) -> str:
    """A warning if the file of the admin key is not as it was; a check that is missing or damaged is written anew."""
    check = _check_file(file)
    try:
        found = check.read_bytes()
    except FileNotFoundError:
        _write_check(file, content)
        return ""
    except OSError as error:
        return f"{check} cannot be read: {error.strerror or error}"
    if found == _check_text(content):
        return ""
    digest, *_ = found.rstrip(b"\n").partition(b" ")
    if found != digest + b" %08x\n" % crc32(digest):
        _write_check(file, content)
        return f"{check} was damaged and has been written anew"
    return (
        f"{file} is not as it was: it is damaged, or was replaced; restore a copy, or delete {check.name} if you "
        "replaced it"
    )


def _checked(key: str, source: str) -> str:
    if not (MIN_KEY_LENGTH <= len(key) <= MAX_KEY_LENGTH and key.isascii() and key.isprintable() and " " not in key):
        raise InvalidArgumentError(
            source,
            expected=f"{MIN_KEY_LENGTH} to {MAX_KEY_LENGTH} printable ASCII characters without spaces",
            hint="python -c 'import secrets; print(secrets.token_urlsafe(32))' makes a good key",
            problem=f"{source} has {len(key)} characters",
        )
    return key
