"""Test set-up: compiled code is cached inside the checkout, away from the caches of installed copies."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

os.environ["NUMBA_CACHE_DIR"] = str(Path(__file__).parent / ".cache" / f"numba-{version('numba')}")
