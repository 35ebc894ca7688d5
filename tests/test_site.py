"""The documentation builds as a site, without a warning."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), str(tmp_path / "site")]
    done = subprocess.run([*command, "-d", str(tmp_path / "doctrees")], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    for page in ("index", "tutorial", "setting", "howto/choosing_c", "reference/theory_map", "reference/api"):
        assert (tmp_path / "site" / f"{page}.html").stat().st_size > 5000
