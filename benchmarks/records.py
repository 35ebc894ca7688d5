"""What benchmarks measured: one JSON file per part in benchmarks/measured, with machine, load and date.

`benchmarks/tables.py` makes the tables of the docs from these files. A record holds numbers, from which a function of
`tables.py` makes a table, or a document: the Markdown that the benchmark printed, as data (`benchmarks/markdown.py`).
Figures that were measured before there were records have "taken_over" in place of the machine: the commit and the date
with which they came to the page, and what was known about the machine.

A record of times is not replaced by one of a busier machine, unless the command says --even-if-busy.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import io
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.markdown import Document, merged, parsed, tables_of

RESULTS = Path(__file__).parent / "measured"
EVEN_IF_BUSY = "--even-if-busy"
_LOAD_AT_START = os.getloadavg()[0]


# ---------------------------------------------------------------------- the machine


def machine() -> dict[str, Any]:
    """The kind of processor, its cores, and how many processes wanted one: the larger load of start and end."""
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
        "load": round(max(_LOAD_AT_START, os.getloadavg()[0]), 1),
        "python": platform.python_version(),
    }


def commit() -> str | None:
    """The commit that was measured, with a plus if files had been changed; nothing without git."""
    here = Path(__file__).parent
    try:
        ask = ["git", "-C", str(here), "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+"]
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def busier(new: dict[str, Any], old: dict[str, Any]) -> bool:
    """Whether times of the new machine deserve less trust: more load than the old one had, and than it has cores."""
    return bool(new["load"] > max(old["load"], new["cores"]))


def check_quiet(benchmark: str, part: str) -> None:
    """End, with what to do, if a record made now would be of a busier machine than the record there is."""
    file = RESULTS / f"{benchmark}_{part}.json"
    if EVEN_IF_BUSY in sys.argv or not file.exists():
        return
    before, now = json.loads(file.read_text("utf-8")).get("machine"), machine()
    if before is not None and busier(now, before):
        sys.exit(
            f"not recorded: the machine has a load of {now['load']:g}, and {file.name} was measured at "
            f"{before['load']:g}; wait until less is running, or say {EVEN_IF_BUSY}"
        )


# ---------------------------------------------------------------------- writing records


def facts_of_this_measurement() -> dict[str, Any]:
    import gainful as gf

    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"date": today, "gainful": gf.__version__, "commit": commit(), "machine": machine()}


def record(benchmark: str, part: str, values: Any, *, timed: bool = True, command: str | None = None) -> Path:
    """Write what a part of a benchmark returned; the file replaces the one of an earlier measurement.

    `timed` says that the values depend on how busy the machine is.
    """
    if timed:
        check_quiet(benchmark, part)
    facts: dict[str, Any] = {"benchmark": benchmark, "part": part}
    facts |= {} if command is None else {"command": command}
    return write(facts | facts_of_this_measurement() | {"values": values})


def record_document(benchmark: str, part: str, text: str, *, timed: bool = True, command: str | None = None) -> Path:
    """Write the Markdown that a benchmark printed."""
    return record(benchmark, part, parsed(text), timed=timed, command=command)


def record_rows(benchmark: str, part: str, text: str) -> Path:
    """Put the rows of a measurement of a few agents into the recorded tables; each such row keeps its own facts."""
    facts, new = recorded(f"{benchmark}_{part}"), parsed(text)
    facts["values"] = merged(facts["values"], new)
    facts.setdefault("rows", {})
    for table in tables_of(new):
        facts["rows"] |= {row[0]: facts_of_this_measurement() for row in table["rows"]}
    return write(facts)


def write(facts: dict[str, Any]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"{facts['benchmark']}_{facts['part']}.json"
    file.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return file.relative_to(RESULTS.parent.parent)


# ---------------------------------------------------------------------- commands of benchmarks


def add_record_options(parser: argparse.ArgumentParser) -> None:
    """--record and --even-if-busy."""
    parser.add_argument("--record", action="store_true", help="keep what is found in benchmarks/measured")
    parser.add_argument(EVEN_IF_BUSY, action="store_true", help="also over a record of a quieter machine")


class _Both(io.StringIO):
    """Keeps what is printed, and prints it."""

    def __init__(self, shown: Any) -> None:
        super().__init__()
        self._shown = shown

    def write(self, text: str) -> int:
        self._shown.write(text)
        self._shown.flush()
        return super().write(text)


@contextlib.contextmanager
def printed(benchmark: str, part: str, *, keep: bool, timed: bool = True) -> Iterator[None]:
    """Record the tables that are printed to stdout inside, if `keep`; the text around them is left out."""
    if not keep:
        yield
        return
    if timed:
        check_quiet(benchmark, part)
    both = _Both(sys.stdout)
    with contextlib.redirect_stdout(both):
        yield
    tables: Document = [*tables_of(parsed(both.getvalue()))]
    print(f"\nrecorded in {record(benchmark, part, tables, timed=timed)}", file=sys.stderr)


# ---------------------------------------------------------------------- reading records


def recorded(name: str) -> dict[str, Any]:
    """A record: benchmark, part, date, gainful (the version), machine (or taken_over) and values."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return found
