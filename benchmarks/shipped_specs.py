"""How long the shipped specs take with two workers, and what span-matters finds: docs/experiments.md and choosing_c.md.

    python benchmarks/shipped_specs.py [NAME ...] [--record]

Wall time of `run_experiment` in a new folder, compiling included where nothing was cached, and the CPU time of the
runs, which carries over to other machines. --record keeps the table in benchmarks/measured; with names it replaces
their rows. The expected regret of span-matters is kept apart, as a table for the page about c.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

import gainful as gf
from gainful.experiments.aggregates import summary

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.makers import power
from benchmarks.records import add_record_options, check_quiet, record_document, record_rows

QUESTIONS = {
    "quickstart": "What does a guarantee cost, with which constants, and what does PSRL lose without one?",
    "span-matters": "How large a span should SCAL+ be given, and how small may its bonus be?",
    "tight-optimism": "What do more next states cost SCAL+, SCAL and UCRL2?",
    "theorem-constants": "How long until SCAL+ with the theorem's constants has learned?",
    "continuous": "C-SCAL+ and C-KL-SCAL+ against UCCRL and tabular agents on cells",
    "horizon-matters": "How much depends on the discount of MBIE-EB and the episode length of UCBVI?",
}
HEAD = "| name | question | runs × steps | measured | CPU time of the runs |\n|---|---|---|---|---|"
PROBLEMS = ("RiverSwim", "hard family", "access control")
FACTORS = {"0.1": "c = 0.1*auto", "0.5": "c = 0.5*auto", "1": "c = auto", "2": "c = 2*auto", "4": "c = 4*auto"}


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def run(name: str) -> tuple[pd.DataFrame, float]:
    """All checkpoints of all runs, and the wall time."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        gf.run_experiment(name, Path(folder) / name, jobs=2)
        return gf.results(Path(folder) / name), time.perf_counter() - began


def row(name: str, frame: pd.DataFrame, wall: float) -> str:
    runs = frame.drop_duplicates("run_id")
    spent = float((runs["planning_seconds"] + runs["acting_seconds"]).sum())
    size = f"{len(runs)} × {power(int(runs['horizon'].max()))}"
    return f"| `{name}` | {QUESTIONS[name]} | {size} | {duration(wall)} | {duration(spent)} |"


def spans(frame: pd.DataFrame) -> str:
    """What SCAL+ lost with c from a tenth of the span to four times it."""
    found = summary(frame).set_index(["environment", "agent"])
    lines = [f"| c / sp(h*) | {' | '.join(PROBLEMS)} | growth there |", "|---|" + 4 * "---|"]
    for factor, label in FACTORS.items():
        lost = [f"{float(found['expected_regret_mean'][problem, label]):,.0f}" for problem in PROBLEMS]
        growth = float(found["growth_exponent"][PROBLEMS[-1], label])
        lines.append(f"| {factor} | {' | '.join(lost)} | {growth:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(QUESTIONS)}; default all")
    add_record_options(parser)
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in QUESTIONS]
    if unknown:
        parser.error(f"no shipped spec is called {unknown[0]!r}; there are {', '.join(QUESTIONS)}")
    if given.record:
        check_quiet("shipped_specs", "times")
    lines = [HEAD]
    print(HEAD)
    for name in given.names or QUESTIONS:
        frame, wall = run(name)
        lines.append(row(name, frame, wall))
        print(lines[-1], flush=True)
        if name == "span-matters":
            print(f"\n{spans(frame)}\n", file=sys.stderr)
            if given.record:
                command = "python benchmarks/shipped_specs.py span-matters --record"
                record_document("shipped_specs", "span_matters", spans(frame), timed=False, command=command)
    if given.record and given.names:
        record_rows("shipped_specs", "times", "\n".join(lines))
    elif given.record:
        command = "python benchmarks/shipped_specs.py --record"
        record_document("shipped_specs", "times", "\n".join(lines), command=command)


if __name__ == "__main__":
    main()
