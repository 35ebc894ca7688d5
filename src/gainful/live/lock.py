"""One writer at a time: a lock of the operating system on a file, which a dead process cannot hold."""

from __future__ import annotations

import os
import sys
import weakref
from pathlib import Path
from typing import Any

from gainful.errors import AgentInUseError, JournalError

LOCK_FILE = "lock"
_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


class FolderLock:
    """The right to write in a folder, from its making until `release` or the end of the process.

    The lock file holds the number of the process, for the message to whoever comes second. A forked child gives up its
    copy at once: the lock is gone when the process that took it is. A lock counts only if its file is still the one
    that the folder names: whoever withdraws a folder unlinks the file, holding it, and others may have it open by then.
    """

    def __init__(self, folder: Path) -> None:
        self.pid, self._fd = os.getpid(), -1
        path = folder / LOCK_FILE
        while True:
            try:
                self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise JournalError(
                    f"{folder}: cannot be written: {error.strerror or error}; check permissions, or choose another "
                    "folder"
                ) from error
            try:
                _lock(self._fd)
            except OSError as error:
                pid = _holder(self._fd)
                self.release()
                raise AgentInUseError(
                    f"{folder}: is open for writing in {_name(pid)}; close it there first (reading, "
                    "gf.live.read_journal, works meanwhile)",
                    pid,
                ) from error
            if _is_at(self._fd, path):
                break
            self.release()
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, b"%d\n" % self.pid, 0)
        except OSError:  # a full disk: the lock holds all the same, only nameless
            pass
        _held.add(self)

    def release(self) -> None:
        """Let others write."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __del__(self) -> None:
        self.release()


def writer_of(folder: Path) -> int | None:
    """The process that has the folder open for writing, 0 where its number is unknown; None where there is none."""
    try:
        fd = os.open(folder / LOCK_FILE, os.O_RDWR)
    except OSError:
        return None
    try:
        _lock(fd)
    except OSError:
        return _holder(fd)
    finally:
        os.close(fd)
    return None


def _holder(fd: int) -> int:
    text = os.read(fd, 32).strip()
    return int(text) if text.isdigit() else 0


def _name(pid: int) -> str:
    if pid == 0:  # it has locked the file, and not yet written its number
        return "another process"
    return f"process {pid}" if pid != os.getpid() else "this process, by another object"


def _is_at(fd: int, path: Path) -> bool:
    mine = os.fstat(fd)
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return (mine.st_ino, mine.st_dev) == (there.st_ino, there.st_dev)


def _in_child() -> None:
    for lock in list(_held):
        lock.release()


if sys.platform == "win32":  # pragma: no cover

    def _lock(fd: int) -> None:
        import msvcrt

        locking: Any = msvcrt.locking
        locking(fd, msvcrt.LK_NBLCK, 1)

else:

    def _lock(fd: int) -> None:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    os.register_at_fork(after_in_child=_in_child)
