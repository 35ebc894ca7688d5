"""One writer per folder: a lock of the operating system on a file, which a dead process cannot hold."""

from __future__ import annotations

import errno
import os
import stat
import sys
import weakref
from pathlib import Path
from typing import Any

from gainful.errors import GainfulError

LOCK_FILE = "lock"
NOT_THROUGH_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
"""Flags of every file in a user's folder that is opened for writing: a symbolic link there is refused, not followed."""
_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()


class FolderLockedError(GainfulError):
    """Another process, or another object of this one, holds the lock; `pid` is its number, 0 if unknown."""

    def __init__(self, folder: Path, pid: int) -> None:
        self.pid = pid
        self.holder = "another process"  # has locked the file, and not yet written its number
        if pid:
            self.holder = f"process {pid}" if pid != os.getpid() else "this process, by another object"
        super().__init__(f"{folder} is open for writing in {self.holder}", hint="close it there first")


class FolderLock:
    """The right to write in a folder, held from construction until `release` or the end of the process.

    The lock file contains the number of the process, for the error message that others get. A forked child gives up its
    copy at once: the lock is free as soon as the process that took it is gone. A lock counts only if its file is still
    the one in the folder: whoever deletes a folder unlinks the file while holding it, and others may have it open.

    Raises
    ------
    FolderLockedError
        If the folder is locked already.
    OSError
        If the lock file cannot be opened or locked, or is not a plain file: a link could lead anywhere.
    """

    def __init__(self, folder: Path) -> None:
        self.pid, self._fd = os.getpid(), -1
        path = folder / LOCK_FILE
        while True:
            self._fd = _opened(path, os.O_RDWR | os.O_CREAT)
            try:
                _refuse_other_names(self._fd)
                try_to_lock(self._fd)
            except (BlockingIOError, PermissionError) as error:
                pid = _holder(self._fd)
                self.release()
                raise FolderLockedError(folder, pid) from error
            except OSError:
                self.release()
                raise
            if _is_at(self._fd, path):
                break
            self.release()
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, b"%d\n" % self.pid, 0)
        except OSError:  # a full disk: the lock holds all the same, without a number
            pass
        _held.add(self)

    def release(self) -> None:
        """Let others write; harmless if it was released before."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __del__(self) -> None:
        self.release()


def writer_of(folder: Path) -> int | None:
    """The number of the process that holds the lock of `folder`, 0 if it is unknown; None if no process holds it."""
    try:
        fd = _opened(folder / LOCK_FILE, os.O_RDWR)
    except OSError:
        return None
    try:
        try_to_lock(fd)
    except OSError:
        return _holder(fd)
    finally:
        os.close(fd)
    return None


def _opened(path: Path, flags: int) -> int:
    """Open a lock file; an OSError that says so if it is a symbolic link."""
    try:
        return os.open(path, flags | NOT_THROUGH_LINKS | getattr(os, "O_NONBLOCK", 0), 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, f"{LOCK_FILE} is a symbolic link, and is not followed; remove it") from error
        raise


def _refuse_other_names(fd: int) -> None:
    """An OSError unless an open file is plain and has this one name."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise OSError(errno.EINVAL, f"{LOCK_FILE} is not a plain file of its own; remove it")


def _holder(fd: int) -> int:
    text = os.read(fd, 32).strip()
    return int(text) if text.isascii() and text.isdigit() else 0


def _is_at(fd: int, path: Path) -> bool:
    mine = os.fstat(fd)
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    return (mine.st_ino, mine.st_dev) == (there.st_ino, there.st_dev)


def _release_in_child() -> None:
    for lock in list(_held):
        lock.release()


if sys.platform == "win32":  # pragma: no cover

    def try_to_lock(fd: int) -> None:
        """Lock an open file without waiting; PermissionError if another handle holds it."""
        import msvcrt

        locking: Any = msvcrt.locking
        locking(fd, msvcrt.LK_NBLCK, 1)

else:

    def try_to_lock(fd: int) -> None:
        """Lock an open file without waiting; BlockingIOError if another handle holds it."""
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    os.register_at_fork(after_in_child=_release_in_child)
