"""Test set-up: compiled code is cached inside the checkout, away from the caches of installed copies."""

from __future__ import annotations

import gc
import os
from importlib.metadata import version
from pathlib import Path

import pytest

os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).parent / ".cache" / f"numba-{version('numba')}")


LONG_EXAMPLES = {"gainful.experiments.tune.tune"}
"""Examples in docstrings that take more than 5 s of CPU."""


@pytest.hookimpl(tryfirst=True)  # before markers choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` looks at one page in a browser and leaves out long examples; `make test-all` looks at all."""
    for item in items:
        if item.name in LONG_EXAMPLES:
            item.add_marker(pytest.mark.slow)
        if {"look", "browser"} & set(getattr(item, "fixturenames", ())) and item.name != "test_every_chart_is_drawn":
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Keep the thousands of collected tests out of every later garbage collection, which takes a sixth of the time."""
    gc.collect()
    gc.freeze()
