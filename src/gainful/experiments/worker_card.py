"""The GPU of a worker: each process on a machine takes one that no other has, and keeps it as long as it lives.

A process holds a card by a lock on a file in the folder for temporary files. A dead process holds nothing, so that the
worker that replaces it finds the card free. Only processes of one user see each other's locks.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gainful.errors import DeviceError
from gainful.locks import FolderLock, FolderLockedError


@dataclass(frozen=True)
class WorkerCard:
    """A GPU that this process holds: its place among those that CUDA shows, and its name."""

    index: int
    name: str
    lock: FolderLock

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Let this thread work on the card; other threads of the process wait."""
        from gainful.cuda_device import cuda

        with _one_thread, cuda.gpus[self.index]:
            yield


_one_thread, _claiming = threading.Lock(), threading.Lock()
_mine: list[WorkerCard] = []


def cards_here() -> list[tuple[str, str]]:
    """The identity and the name of every GPU that CUDA shows to this process; an error if there is none.

    In the simulator each process has a card of its own.
    """
    from gainful.cuda_device import SIMULATED, device_name, gpus

    if SIMULATED:
        return [(f"simulated-{os.getpid()}", device_name())]
    return [(str(card.uuid), _text(card.name)) for card in gpus()]


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def locks_folder() -> Path:
    """The folder of the locks of this user; an error if it belongs to somebody else."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"gainful-gpus-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if folder.is_symlink() or (hasattr(os, "getuid") and found.st_uid != user):
        raise DeviceError(
            f"{folder} is not a folder of this user",
            name="device",
            found=str(folder),
            expected="a folder in which processes note which GPU they use",
            hint="remove it, or set TMPDIR",
        )
    return folder


def take_free_card(cards: list[tuple[str, str]]) -> WorkerCard:
    """Hold the first of these cards that no other process holds."""
    folder = locks_folder()
    for index, (identity, name) in enumerate(cards):
        place = folder / identity
        place.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FolderLockedError):
            return WorkerCard(index, name, FolderLock(place))
    n = len(cards)
    raise DeviceError(
        f"the GPU of this machine belongs to another worker ({cards[0][1]})"
        if n == 1
        else f"all {n} GPUs of this machine belong to other workers",
        name="device",
        found=n,
        hint=f"start {n} worker{'s' if n > 1 else ''} on this machine",
    )


def own_card() -> WorkerCard:
    """The card of this process: taken at the first call, and then kept."""
    with _claiming:
        if not _mine:
            _mine.append(take_free_card(cards_here()))
        return _mine[0]


def card_or_problem() -> tuple[str, str]:
    """The name of this process's card, or why it has none: one of the two is empty."""
    try:
        return own_card().name, ""
    except DeviceError as error:
        return "", error.problem
    except OSError as error:
        return "", f"the lock of a GPU cannot be written: {error}"
