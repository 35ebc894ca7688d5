"""The measured tables of the docs, made from what benchmarks recorded in benchmarks/measured.

    python benchmarks/tables.py [--check]

A page has pairs of marks, `<!-- NAME: begin -->` and `<!-- NAME: end -->`; what is between them is replaced. NAME is
the name of a record that holds a document, with /2 behind it for its second table alone; or a function makes the text
(`benchmarks/makers.py`). Each block ends with its command, date, machine and load. `--check` changes nothing and
fails if a page differs from the records.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks import field_tables, gpu_tables, makers, mutant_tables
from benchmarks.markdown import written
from benchmarks.records import RESULTS, recorded

DOCS = Path(__file__).parent.parent / "docs"

PAGES: dict[str, dict[str, Callable[[], str]]] = {
    "speed.md": {
        "peers": makers.peers,
        "memory": makers.memory,
        "sweep": makers.sweep,
        "learning": makers.learning,
        "continuous": makers.continuous,
    },
    "field.md": {"winners": field_tables.winners, field_tables.RECORD: field_tables.every_table},
    "mutants.md": {mutant_tables.RECORD: mutant_tables.mutants},
    "which_agent.md": {"answers": makers.which_agent},
    "learning.md": {"replanning_scaling": makers.scaling},
    "experiments.md": {"experiments_overhead": makers.overhead, "experiments_store": makers.store},
    "report.md": {"report_page": makers.report},
    "gpu.md": {
        "gpu_million": gpu_tables.million,
        "gpu_speed": gpu_tables.speed,
        "gpu_profile": gpu_tables.profile,
        "gpu_instructions_counts": gpu_tables.instructions,
        "gpu_solve": gpu_tables.solve,
        "gpu_one_thread": gpu_tables.one_thread,
        "gpu_sweeps": gpu_tables.sweeps,
        "gpu_traces": gpu_tables.traces,
    },
    "reference/agents.md": {"priors": makers.priors},
    "reference/performance.md": {"claims": makers.claims, "others": makers.other_figures},
}
"""Blocks whose text a function makes; all others are documents of records."""
NOT_MEASURED = {("index.md", "doors"), ("claims/index.md", "claims")}
"""Marks of the site and of `make studies`."""
MADE_BY_THE_BUILD = ("_", "jupyter_execute/", "reference/api/")
BEGIN = re.compile(r"^<!-- (\S+): begin -->\n", flags=re.MULTILINE)


def pages() -> list[str]:
    """Every page of the docs, relative to their folder."""
    files = (file.relative_to(DOCS) for file in DOCS.rglob("*.md"))
    return sorted(name for file in files if not (name := file.as_posix()).startswith(MADE_BY_THE_BUILD))


def blocks(page: str, text: str) -> list[str]:
    """The names of the measured blocks of a page."""
    return [name for name in BEGIN.findall(text) if (page, name) not in NOT_MEASURED]


def made(page: str, name: str) -> str:
    """The text of a block."""
    if name in PAGES.get(page, {}):
        return PAGES[page][name]()
    if page.startswith("claims/"):
        study = f"studies_{Path(page).stem}"
        text = written(recorded(study)["values"][name])
        return f"{text}\n\n{makers.origin(study)}" if name == "runs" else text
    if not (RESULTS / f"{name.partition('/')[0]}.json").exists():
        raise ValueError(f"{page}: there is no record for the marks of {name!r}")
    return makers.document(name)


def filled(page: str, text: str) -> str:
    """The text of a page with its measured blocks made anew."""
    names = blocks(page, text)
    missing = set(PAGES.get(page, {})) - set(names)
    if missing:
        raise ValueError(f"{page}: the marks of {', '.join(sorted(missing))} are missing")
    for name in names:
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"{page}: the marks of {name!r} are missing or appear twice")
        before, rest = text.split(begin)
        text = f"{before}{begin}\n{made(page, name)}\n\n{end}{rest.split(end)[1]}"
    return text


# ---------------------------------------------------------------------- tables that were typed

EXEMPT: set[str] = set()
"""Pages that do not take their tables from records yet."""
NUMBER = re.compile(
    r"[\d,]*\d[.]\d"  # a decimal
    r"|\d[, ]\d\d\d(?!\d)"  # thousands
    r"|±"
    r"|\d[ ]?(?:%|s|ms|µs|ns|min|h|kB|MB|GB)(?![\w])"  # a unit
)
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")


def typed_tables(page: str, text: str) -> list[tuple[int, str]]:
    """Tables that look measured and are in no block: the line where each begins, and its first row.

    `<!-- not measured: WHY -->` above a table says that its numbers are no measurements.
    """
    if page in EXEMPT:
        return []
    found, inside, above = [], False, ""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("<!-- ") and line.endswith((": begin -->", ": end -->")):
            inside = line.endswith(": begin -->")
        begins = line.startswith("|") and not (i and lines[i - 1].startswith("|"))
        if begins and not inside and not above.startswith("<!-- not measured: "):
            rows = lines[i + 2 : next_text(lines, i)]
            if any(NUMBER.search(CODE.sub("", row)) for row in rows):
                found.append((i + 1, line))
        above = line if line.strip() else above
    return found


def next_text(lines: list[str], i: int) -> int:
    """The line after the table that begins at line i."""
    return next((j for j in range(i, len(lines)) if not lines[j].startswith("|")), len(lines))


# ---------------------------------------------------------------------- the command


def main() -> None:
    differ = []
    for page in pages():
        file = DOCS / page
        old = file.read_text("utf-8")
        new = filled(page, old)
        if new != old:
            differ.append(page)
            if "--check" not in sys.argv:
                file.write_text(new, encoding="utf-8")
    print("\n".join(differ) or "every page has what was measured")
    if differ and "--check" in sys.argv:
        sys.exit("these pages differ from the records; run: make tables")


if __name__ == "__main__":
    main()
