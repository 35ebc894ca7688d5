"""Test set-up: compiled code cached per version of the sources, and the examples of README and docs executed."""

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

from sybil import Sybil  # noqa: E402
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser  # noqa: E402

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/**/*.md", "docs/*.md"],
).pytest()
