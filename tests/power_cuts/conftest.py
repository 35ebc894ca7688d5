"""What the tests of power cuts share: a folder in memory, and no syncs of their own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def no_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders that the tests look at need not survive anything."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory where there is one: SQLite syncs by itself."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="gainful-cuts-", dir=memory) as folder:
        yield Path(folder)
