"""Files that only their owner can read, whole or not there."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from gainful.live.folder import sync_folder


def write_privately(path: Path, data: bytes) -> None:
    """The file is there as a whole, also after a kill or a power cut, or as it was before; mode 0600."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
