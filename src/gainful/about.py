"""Where the project can be found, and which commit of it is running."""

from __future__ import annotations

import subprocess
from pathlib import Path

REPOSITORY = ""
"""The project's public address. While it is empty, whatever needs it is left out: links of the package and the site."""

COMMIT_FILE = Path(__file__).with_name("commit.txt")
CHECKOUT = Path(__file__).parents[2]


def commit() -> str:
    """The commit this copy of gainful was built from, or is checked out at.

    Returns
    -------
    str
        The first 12 digits, with `+changes` if files of the checkout differ from it, or an empty string if it is not
        known: a copy of the files without their history.

    Examples
    --------
    >>> from gainful.about import commit
    >>> commit().removesuffix("+changes").isalnum() or commit() == ""
    True
    """
    if COMMIT_FILE.is_file():
        return COMMIT_FILE.read_text("utf-8").strip()
    if (CHECKOUT / ".git").exists() and Path(__file__).parent == (CHECKOUT / "src" / "gainful"):
        return commit_of_checkout(CHECKOUT)
    return ""


def commit_of_checkout(folder: Path) -> str:
    """The commit of a working tree, with `+changes` if tracked files differ from it; empty where git cannot say."""
    head = _git(folder, "rev-parse", "--short=12", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{head}+changes" if head and changed else head


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
