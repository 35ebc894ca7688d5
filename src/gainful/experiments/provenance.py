"""Where and by what a run was made."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any


@cache
def provenance() -> dict[str, Any]:
    """Version of gainful with its commit where it runs from a clone, of Python and of the packages that make bits."""
    import numba
    import numpy as np
    import scipy

    from gainful.experiments.configuration import RESULTS_VERSION

    return {
        "results_version": RESULTS_VERSION, "version": _version(), "commit": _commit(),
        "python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}",
        "packages": f"numpy {np.__version__}, scipy {scipy.__version__}, numba {numba.__version__}",
    }  # fmt: skip


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("gainful")
    except PackageNotFoundError:
        return "unknown"


def _commit() -> str | None:
    """The commit of the clone that this file is in, "+" after it if files differ from it; None outside of one."""
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(here), *words], capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()

    try:
        if git("ls-files", "--error-unmatch", Path(__file__).name) == "":
            return None
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None
