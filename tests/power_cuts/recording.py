"""Recording what a workload does to its files, and cutting the power at moments of the recording."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.power_cuts.disk import Disk, FileEvent, read_events

MARKS = "acknowledged"
"""The file into which a workload writes what it was promised; part of the recording, not of the disk."""
CUTS = int(os.environ.get("GAINFUL_CUTS", "30"))
"""How many power cuts each test makes."""
CUTS_PER_RECORDING = 100
SOURCE = Path(__file__).with_name("recorder.c")


class Cut(NamedTuple):
    """A disk after a power cut, and what had been promised before it."""

    folder: Path
    event: int
    """How many events had happened."""
    marks: list[dict[str, Any]]
    """What was acknowledged before the cut."""


@functools.cache
def recorder() -> Path:
    """The library that records, compiled once; without a compiler, or on another system, the test is skipped."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("recording file changes needs Linux and a C compiler")
    library = Path(tempfile.mkdtemp(prefix="gainful-recorder-")) / "recorder.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


class Recording:
    """One run of a workload of `tests.power_cuts.workloads`, and the folder that it started from."""

    def __init__(self, place: Path, workload: str, *, start: Path | None = None, **options: Any) -> None:
        self.root, log = place / "disk", place / "recording"
        self.start = place / "start"
        place.mkdir(parents=True, exist_ok=True)
        if start is None:
            self.start.mkdir()
        else:
            shutil.copytree(start, self.start)
        shutil.copytree(self.start, self.root)
        environment = {
            **os.environ,
            "LD_PRELOAD": str(recorder()),
            "GAINFUL_RECORD_ROOT": str(self.root),
            "GAINFUL_RECORD_LOG": str(log),
        }
        done = subprocess.run(
            [sys.executable, "-m", "tests.power_cuts.workloads", workload, str(self.root), json.dumps(options)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.events, self.marks = self._split(log)

    def _split(self, log: Path) -> tuple[list[FileEvent], list[tuple[int, dict[str, Any]]]]:
        """The events of the disk, and the marks, each with the number of events before it."""
        events: list[FileEvent] = []
        marks: list[tuple[int, dict[str, Any]]] = []
        path, handles = str(self.root / MARKS), set()
        for event in read_events(log):
            key = (event.process, event.fd)
            if event.kind == "o" and event.path == path:
                handles.add(key)
            elif key in handles:
                marks += [(len(events), json.loads(line)) for line in event.data.splitlines()]
            else:
                events.append(event)
        return events, marks

    def _moment(self, chance: random.Random) -> int:
        """The number of events before a cut: any, or one near the moment when something was promised."""
        if chance.random() < 0.5:
            return chance.randrange(len(self.events) + 1)
        at, _ = chance.choice(self.marks)
        return min(max(0, at - chance.randrange(4)), len(self.events))

    def cuts(self, number: int, place: Path, seed: int) -> Iterator[Cut]:
        """So many cuts, at moments in order; each folder is removed when the next is made."""
        chance = random.Random(seed)
        moments = sorted(self._moment(chance) for _ in range(number))
        disk, done = Disk(self.root, self.start), 0
        for i, moment in enumerate(moments):
            for event in self.events[done:moment]:
                disk.apply(event)
            done = moment
            target = place / f"cut {i} after event {moment}"
            disk.cut(target, chance)
            yield Cut(target, moment, [mark for at, mark in self.marks if at <= moment])
            shutil.rmtree(target)
