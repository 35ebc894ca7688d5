"""The checksum of a closed store, in a file beside it that `sha256sum -c` understands.

Rows have checksums of their own, and SQLite checks its structure; but its pages have bytes that hold nothing, in which
damage would go unnoticed until more of it follows. The file is there while the store is closed: whoever opens a store
for writing deletes it first.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from gainful.atomic_files import sync_folder, write_file

SUFFIX = ".sha256"


class StoreWarning(UserWarning):
    """A store is not as it was when it was closed; every row in it is intact."""


def checksum_file(store: Path) -> Path:
    """The file with the checksum of a store."""
    return store.with_name(f"{store.name}{SUFFIX}")


def keep_checksum(store: Path) -> None:
    """Write the checksum of a closed store; if that fails, the store has none."""
    with contextlib.suppress(OSError):
        if not _being_written(store):
            write_file(checksum_file(store), _text(store))


def drop_checksum(store: Path) -> None:
    """Delete the checksum before the store changes."""
    with contextlib.suppress(OSError):
        checksum_file(store).unlink()
        sync_folder(store.parent)


def notice_of_change(store: Path) -> str:
    """A notice if a store has changed since it was closed; empty if it has not, or that is unknown."""
    try:
        kept = checksum_file(store).read_bytes()
        if _being_written(store) or kept == _text(store):
            return ""
    except OSError:
        return ""
    return (
        f"{store}: it, or {checksum_file(store).name}, has changed since it was closed; every row was checked and is "
        "intact, but the disk may be failing: make a copy"
    )


def _being_written(store: Path) -> bool:
    return store.with_name(f"{store.name}-wal").exists()


def _text(store: Path) -> bytes:
    with open(store, "rb") as file:
        return f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {store.name}\n".encode()
