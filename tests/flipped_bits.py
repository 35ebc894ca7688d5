"""Flip bits of files, one at a time, and see what becomes of each: every kind of file and folder that is read back."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gainful.errors import GainfulError

Look = Callable[[Path, str], tuple[Any, list[str]]]
"""Reads a folder after a bit of the named file was flipped; returns what was read, and the notices."""


@dataclass(frozen=True)
class FolderKind:
    """A kind of folder: how to make one, and how to read all of it back."""

    make: Callable[[Path], None]
    look: Look
    left_out: Callable[[str], bool] = lambda name: name.endswith("lock")
    """Which files are never read back; a lock is written at every opening."""
    writes: bool = True
    """Whether reading it changes files, so that all of them must be restored."""


@dataclass
class Outcomes:
    """What became of the flips of one kind of folder."""

    counts: Counter[str] = field(default_factory=Counter)
    by_file: dict[str, Counter[str]] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    """The first flip of each outcome, in words."""

    def add(self, outcome: str, file: str, words: str) -> None:
        """Count one flip."""
        self.counts[outcome] += 1
        self.by_file.setdefault(file, Counter())[outcome] += 1
        self.examples.setdefault(outcome, words)


class FlippedFolder:
    """A folder whose files are known, to be damaged and restored again and again."""

    def __init__(self, kind: FolderKind, path: Path) -> None:
        self.kind, self.path = kind, path
        kind.make(path)
        found = {str(p.relative_to(path)): p for p in sorted(path.rglob("*")) if p.is_file()}
        self._all = {name: p.read_bytes() for name, p in found.items()}
        self.files = {name: data for name, data in self._all.items() if not kind.left_out(name)}
        self.expected: dict[str, Any] = {}
        for name in self.files:
            self.restore("")
            self.expected[name], notices = self._looked(name)
            assert notices == [], notices
        self.restore("")
        sizes = np.array([8 * len(data) for data in self.files.values()])
        self._names, self._ends = list(self.files), np.cumsum(sizes)

    @property
    def bits(self) -> int:
        """The number of bits of all files."""
        return int(self._ends[-1])

    def restore(self, name: str) -> None:
        """Write every file as it was, or only one if reading changes none."""
        if name and not self.kind.writes:
            (self.path / name).write_bytes(self.files[name])
            return
        shutil.rmtree(self.path)
        for file, data in self._all.items():
            target = self.path / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o600)

    def place(self, bit: int) -> tuple[str, int]:
        """The file that has bit number `bit` of the folder, and the number of the bit in it."""
        i = int(np.searchsorted(self._ends, bit, side="right"))
        return self._names[i], bit - (int(self._ends[i - 1]) if i else 0)

    def flip(self, bit: int, outcomes: Outcomes) -> None:
        """Flip one bit, read the folder, and restore it."""
        name, at = self.place(bit)
        data = bytearray(self.files[name])
        data[at // 8] ^= 1 << at % 8
        (self.path / name).write_bytes(data)
        words = f"{name}, byte {at // 8}, bit {at % 8}"
        try:
            found, notices = self._looked(name)
        except GainfulError as error:
            outcomes.add("refused" if str(error) else "raw", name, f"{words}: {error}")
        except Exception as error:
            outcomes.add("raw", name, f"{words}: {error!r}")
        else:
            same = found == self.expected[name]
            outcome = "recovered" if notices else "nothing changed" if same else "silent"
            outcomes.add(outcome, name, f"{words}: {notices}")
        self.restore(name)

    def _looked(self, name: str) -> tuple[Any, list[str]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)  # of what is collected meanwhile; it tells a user nothing
            found, notices = self.kind.look(self.path, name)
        return found, notices + [str(one.message) for one in caught]


@contextmanager
def flippable(kind: FolderKind) -> Iterator[FlippedFolder]:
    """A folder of this kind, in memory where the system has such a place."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as place:
        yield FlippedFolder(kind, Path(place) / "folder")


def chosen_bits(total: int, wanted: int | None) -> Iterator[int]:
    """All bits, or about `wanted` of them, spread evenly and over all eight bits of a byte."""
    if wanted is None or wanted >= total:
        yield from range(total)
        return
    for i in range(wanted):
        yield int((i + 0.618034 * (i % 8) / 8) * total / wanted) % total


def flip_bits(kind: FolderKind, wanted: int | None) -> Outcomes:
    """Flip so many bits, or all (None), of a folder of this kind, one at a time."""
    outcomes = Outcomes()
    with flippable(kind) as folder:
        for bit in chosen_bits(folder.bits, wanted):
            folder.flip(bit, outcomes)
    return outcomes
