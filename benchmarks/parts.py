"""The parts of a benchmark, chosen on its command line: none is all; --quick makes them short."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping


def run_parts(parts: Mapping[str, Callable[[bool], None]]) -> None:
    """Run those named in sys.argv, in that order."""
    for part in [a for a in sys.argv[1:] if not a.startswith("-")] or list(parts):
        if part not in parts:
            sys.exit(f"unknown part {part!r}; choose from {', '.join(parts)}")
        parts[part]("--quick" in sys.argv)
