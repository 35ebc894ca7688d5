"""Make the studies: the runs by `gainful run`, then tables, verdicts and pictures into docs/claims.

    python -m studies [NAME ...] [--jobs N] [--device cuda] [--stored] [--small DIR]

Runs that are stored are not made again, so that an interrupted study goes on where it stopped. `--stored` writes the
pages from the runs there are. `--small DIR` tries the whole way with a few thousand steps and two seeds, and writes
runs and pages into DIR.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pandas as pd

import gainful as gf
from benchmarks.markdown import parsed
from benchmarks.records import record
from benchmarks.tables import filled
from studies import STUDIES
from studies.study import Findings, StudyRuns, number, steps_text, table

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGES = ROOT / "docs" / "claims"
RESULTS = ROOT / "results" / "studies"
MARKS = ("verdict", "measured", "runs")
"""What every page has between marks."""
INDEX_MARK = "claims"
SMALL_STEPS, SMALL_SEEDS = 3000, 2


@dataclass(frozen=True)
class Study:
    """The files of a study."""

    name: str

    @property
    def title(self) -> str:
        """The first line of the module's docstring, without its full stop."""
        tree = ast.parse((HERE / f"{self.name}.py").read_text("utf-8"))
        return (ast.get_docstring(tree) or self.name).splitlines()[0].rstrip(".")

    @property
    def specs(self) -> list[Path]:
        return sorted((HERE / "specs" / self.name).glob("*.toml"))

    def findings(self, runs: StudyRuns) -> Findings:
        found: Findings = import_module(f"studies.{self.name}").findings(runs)
        return found


# ---------------------------------------------------------------------- runs


def run(spec: Path, folder: Path, options: Sequence[str]) -> None:
    """`gainful run` of one spec; what is stored is not made again."""
    command = [sys.executable, "-m", "gainful", "run", str(spec), "--out", str(folder), *options]
    looked_in = [str(HERE / "specs" / spec.parent.name), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, looked_in))}
    done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[2:])} ended with {done.returncode}; the same command resumes")


def smaller(spec: str) -> str:
    """The spec with a few thousand steps and two seeds; different horizons stay different."""
    steps = re.compile(r"^(horizon\s*=\s*)([\d.e_]+)", flags=re.MULTILINE)
    long = sorted({float(found) for _, found in steps.findall(spec) if float(found) > SMALL_STEPS})

    def fewer(found: re.Match[str]) -> str:
        asked = float(found[2])
        return f"{found[1]}{SMALL_STEPS * (1 + long.index(asked)) if asked in long else asked:.0f}"

    return re.sub(r"^(seeds\s*=\s*).*$", rf"\g<1>{SMALL_SEEDS}", steps.sub(fewer, spec), flags=re.MULTILINE)


def make_runs(study: Study, folder: Path, options: Sequence[str], small: bool) -> None:
    for spec in study.specs:
        if small:
            shorter = folder / "specs" / study.name / spec.name
            shorter.parent.mkdir(parents=True, exist_ok=True)
            shorter.write_text(smaller(spec.read_text("utf-8")), encoding="utf-8")
            spec = shorter
        run(spec, folder / study.name / spec.stem, options)


# ---------------------------------------------------------------------- pages


def put(page: Path, name: str, text: str) -> None:
    """Replace what stands between two marks of a page."""
    old = page.read_text(encoding="utf-8")
    marks = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    inside = re.compile(re.escape(marks[0]) + ".*?" + re.escape(marks[1]), flags=re.DOTALL)
    if not inside.search(old):
        sys.exit(f"{page} has no marks {marks[0]} … {marks[1]}")
    body = "\n\n".join([marks[0], text, marks[1]])
    page.write_text(inside.sub(lambda _: body, old, count=1), encoding="utf-8")


def between(page: Path, name: str) -> str:
    """What stands between two marks of a page."""
    found = re.search(rf"<!-- {name}: begin -->(.*?)<!-- {name}: end -->", page.read_text("utf-8"), flags=re.DOTALL)
    return found[1].strip() if found else ""


def runs_table(study: Study, folder: Path) -> str:
    """What was run: command, steps, seeds and the CPU time."""
    rows, total = [], 0.0
    for spec in study.specs:
        frame = gf.results(folder / study.name / spec.stem)
        runs = frame.drop_duplicates("run_id")
        spent = float((runs["planning_seconds"] + runs["acting_seconds"]).sum())
        total += spent
        link = f"[`{spec.stem}.toml`](../../studies/specs/{study.name}/{spec.name})"
        rows.append([link, len(runs), horizons(runs), runs["seed"].nunique(), duration(spent)])
    heads = ["spec", "runs", "steps of each", "seeds", "CPU time of the runs"]
    return (
        f"`make studies STUDY={study.name}` makes the runs, the tables and the picture; one spec alone is run by "
        f"`gainful run studies/specs/{study.name}/{study.specs[0].name}`.\n\n{table(heads, rows)}\n\n"
        f"All runs took {duration(total)} of one core."
    )


def horizons(runs: pd.DataFrame) -> str:
    found = sorted(set(runs["horizon"]))
    return steps_text(found[0]) if len(found) == 1 else f"{steps_text(found[0])} to {steps_text(found[-1])}"


def duration(seconds: float) -> str:
    return f"{number(seconds)} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def write_page(study: Study, results: Path, pages: Path) -> None:
    """The picture, and what stands between the marks; for the pages of the docs also in benchmarks/measured."""
    page = pages / f"{study.name}.md"
    found = study.findings(StudyRuns(results / study.name))
    found.figure.savefig(pages / f"{study.name}.png", dpi=120, facecolor="white")
    verdicts = "\n".join(str(verdict) for verdict in found.verdicts)
    texts = dict(zip(MARKS, (verdicts, found.tables, runs_table(study, results)), strict=True))
    for mark, text in texts.items():
        put(page, mark, text)
    if pages == PAGES:
        values = {mark: parsed(text) for mark, text in texts.items()}
        record("studies", study.name, values, timed=False, command=f"make studies STUDY={study.name}")
        page.write_text(filled(f"claims/{page.name}", page.read_text("utf-8")), encoding="utf-8")


def write_index(pages: Path) -> None:
    """The gallery: one section per study, with its verdicts, what its runs took, and its picture."""
    sections = []
    for i, study in enumerate(map(Study, STUDIES), start=1):
        verdicts = between(pages / f"{study.name}.md", "verdict")
        short = re.sub(r"^(- .*?\*\*.*?\*\*).*$", r"\1", verdicts, flags=re.MULTILINE)
        took = re.findall(r"^All runs took .*$", between(pages / f"{study.name}.md", "runs"), flags=re.MULTILINE)
        link, picture = f"{study.name}.md", f"{study.name}.png"
        sections.append(
            f"### {i}. [{study.title}]({link})\n\n{short}\n\n{''.join(took)}\n\n[![{study.title}]({picture})]({link})"
        )
    put(pages / "index.md", INDEX_MARK, "\n\n".join(sections))


# ---------------------------------------------------------------------- the command


def make(
    names: Sequence[str], results: Path, pages: Path, options: Sequence[str], *, stored: bool, small: bool
) -> None:
    """Make studies and write their pages and the index, saying what each took."""
    for study in map(Study, names):
        began = time.perf_counter()
        print(f"== {study.name}: {study.title}", flush=True)
        if not stored:
            make_runs(study, results, options, small)
        write_page(study, results, pages)
        write_index(pages)
        print(f"{pages / study.name}.md, {duration(time.perf_counter() - began)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies", description="The claims of the paper as studies.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(STUDIES)}; all by default")
    parser.add_argument("--jobs", type=int, help="runs at a time (default: as many as processors)")
    parser.add_argument("--device", help="where the runs are made, for example cuda")
    parser.add_argument("--stored", action="store_true", help="make no runs: pages from those there are")
    parser.add_argument("--small", type=Path, metavar="DIR", help="a short trial, with runs and pages in DIR")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in STUDIES]
    if unknown:
        parser.error(f"no study is called {', '.join(unknown)}; there are {', '.join(STUDIES)}")
    options = [] if given.jobs is None else ["--jobs", str(given.jobs)]
    options += [] if given.device is None else ["--device", given.device]
    results, pages = RESULTS, PAGES
    if given.small is not None:
        results, pages = given.small / "results", given.small / "claims"
        shutil.copytree(PAGES, pages, dirs_exist_ok=True)
    make(given.names or STUDIES, results, pages, options, stored=given.stored, small=given.small is not None)
