"""Test set-up: compiled code is cached per version of the sources."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parent


def _sources_hash() -> str:
    """Numba does not notice an edit in a callee in another file, so the cache folder is named by all sources."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".cache" / f"numba-{_sources_hash()}")
