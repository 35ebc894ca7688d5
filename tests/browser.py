"""A real browser for tests that look at pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Any]:
    """A real Chromium without a window; the test is skipped, and says so, where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: no browser to look with"
    )
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip(f"no Chromium was found ({', '.join(NAMES)}): the page was not looked at in a browser")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=found,
            args=["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()
