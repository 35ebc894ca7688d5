"""The parts of a benchmark, chosen on its command line: none is all; --quick makes them short, --record keeps them.

A record is not replaced by one of a busier machine, unless the command says --even-if-busy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.records import check_quiet, record


def run_parts(parts: Mapping[str, Callable[[bool], Any]]) -> None:
    """Run those named in sys.argv, in that order; with --record, what they return goes to benchmarks/measured."""
    quick, keep = "--quick" in sys.argv, "--record" in sys.argv
    if quick and keep:
        sys.exit("--record needs the whole measurement, not --quick")
    for part in [a for a in sys.argv[1:] if not a.startswith("-")] or list(parts):
        if part not in parts:
            sys.exit(f"unknown part {part!r}; choose from {', '.join(parts)}")
        if keep:
            check_quiet(Path(sys.argv[0]).stem, part)
        values = parts[part](quick)
        if keep and values is not None:
            print(f"  recorded in {record(Path(sys.argv[0]).stem, part, values)}")
