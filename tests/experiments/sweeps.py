"""Small sweeps in real processes, and how to compare what they stored."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil

from gainful.experiments.store import STORE_FILE, Store
from gainful.experiments.store_checksum import drop_checksum
from gainful.experiments.store_schema import seal
from gainful.experiments.wire_format import unpack

SPEC = """
title = "a small sweep"
horizon = 3e4
seeds = 3
checkpoints = 10
[[environments]]
name = "riverswim"
[[environments]]
name = "lqg"
horizon = 1e4
[[agents]]
name = "scal-plus"
bonus_scales = [1.0, 0.1]
[[agents]]
name = "psrl"
[[agents]]
name = "c-scal-plus"
only = ["lqg"]
"""
TIMES = ("commit", "seconds", "call_seconds", "planning_seconds", "acting_seconds")
"""What two runs of the same bits may differ in."""


def written(folder: Path, text: str = SPEC) -> Path:
    """The spec as a file."""
    path = folder / "spec.toml"
    path.write_text(text, encoding="utf-8")
    return path


def bits(folder: Path) -> dict[str, Any]:
    """Everything that a folder's runs promise to the bit, by their ids."""
    found: dict[str, Any] = {}
    with Store.read(folder) as store:
        for row in store.runs():
            assert row["run_id"] not in found
            values, arrays = unpack(row["data"])
            kept = {name: value for name, value in values.items() if name not in TIMES}
            found[row["run_id"]] = kept, {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}
    return found


def command(spec: Path | str, out: Path, *options: str) -> list[str]:
    """`gainful run` as a person types it."""
    return [sys.executable, "-m", "gainful", "run", str(spec), "--out", str(out), *options]


def started(spec: Path | str, out: Path, *options: str) -> subprocess.Popen[str]:
    """The driver in a process of its own."""
    return subprocess.Popen(
        command(spec, out, *options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ)
    )


def finished(spec: Path | str, out: Path, *options: str, code: int = 0, timeout: float = 300.0) -> str:
    """Run to the end, and what it said."""
    done = subprocess.run(command(spec, out, *options), capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def workers_of(driver: subprocess.Popen[str]) -> list[psutil.Process]:
    """Its worker processes that live."""
    try:
        return [
            child
            for child in psutil.Process(driver.pid).children()
            if child.status() != psutil.STATUS_ZOMBIE and "gainful.experiments.worker" in child.cmdline()
        ]
    except psutil.NoSuchProcess:
        return []


@contextmanager
def edited(folder: Path) -> Iterator[sqlite3.Connection]:
    """Change a store by hand; its checksums are those of the changed rows afterwards, and the whole file has none."""
    drop_checksum(folder / STORE_FILE)
    with closing(sqlite3.connect(folder / STORE_FILE)) as connection, connection:
        yield connection
        seal(connection)
