"""What benchmarks measured: one JSON file per part in benchmarks/measured, with the machine and the date.

`benchmarks/tables.py` makes the tables of the docs from these files.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "measured"


def machine() -> dict[str, Any]:
    """The kind of processor, its cores, and how many processes wanted one when the measurement ended; no names."""
    from gainful.machine import available_cores

    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {
        "cpu": f"{cpu} ({platform.machine()})",
        "cores": available_cores(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
    }


def record(benchmark: str, part: str, values: Any) -> Path:
    """Write what a part of a benchmark returned; the file replaces the one of an earlier measurement."""
    import gainful as gf

    facts = {
        "benchmark": benchmark,
        "part": part,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "gainful": gf.__version__,
        "machine": machine(),
        "values": values,
    }
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{benchmark}_{part}.json"
    file.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return file.relative_to(RESULTS.parent.parent)


def recorded(name: str) -> dict[str, Any]:
    """A record: benchmark, part, date, gainful (the version), machine and values."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return found
