"""What the audit finds for deliberate mistakes.

`python benchmarks/mutants.py` makes one run of each, in plain Python, and records which statements noticed which
mistake: `make tables` then writes docs/mutants.md. It takes about five minutes of CPU time; `--jobs 2` audits two
mistakes at a time, and `--new` only those that the record does not have.

`python benchmarks/mutants.py --runs 60 --steps 1e5` makes more and longer runs of compiled copies, enough for the
statements that may fail in some runs, and tells whether the test named beside each mistake fails too; prints
Markdown, and keeps it with --record.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.mutant_tables import RECORD
from benchmarks.records import RESULTS, add_record_options, commit, printed, record, recorded
from tests.audit.all_mutants import ALL_MUTANTS
from tests.audit.mutants import LQG, RIVER, UCRL2, Mutant, audited, noticed_by_its_test


def violated(found: dict[str, Any]) -> list[str]:
    """The statements that should hold and do not."""
    return [v["statement"] for v in found["verdicts"] if v["verdict"] == "violated" and v["promised"]]


def one_run(mutant: Mutant) -> tuple[Mutant, dict[str, Any]]:
    """A short audit of a mistake."""
    with tempfile.TemporaryDirectory() as folder:
        return mutant, audited(mutant, Path(folder), runs=1, horizon=mutant.horizon, compiled=mutant.compiled)


def facts(mutant: Mutant) -> dict[str, Any]:
    """What the record says of a mistake, beside what was found; another mistake of that name has another digest."""
    made = (mutant.file, mutant.changes, mutant.audited, mutant.horizon, mutant.compiled)
    where = " ".join(option for option in without_agent(mutant.audited) if option != "--agent-set")
    if mutant.horizon != Mutant.horizon:
        where += f", {mutant.horizon} steps"
    return {
        "name": mutant.name,
        "mistake": hashlib.sha256(repr(made).encode()).hexdigest()[:12],
        "where": where,
        "noticed": list(mutant.noticed),
    }


def without_agent(options: tuple[str, ...]) -> list[str]:
    """The options of an audit without the name of the agent."""
    at = options.index("--agent") if "--agent" in options else len(options)
    return [*options[:at], *options[at + 2 :]]


def is_recorded(mutant: Mutant, entries: dict[str, dict[str, Any]]) -> bool:
    """Whether this very mistake has been audited."""
    return facts(mutant).items() <= entries.get(mutant.name, {}).items()


def known_entries() -> dict[str, dict[str, Any]]:
    """The entries of the record, by the names of their mistakes."""
    if not (RESULTS / f"{RECORD}.json").exists():
        return {}
    return {entry["name"]: entry for entry in recorded(RECORD)["values"]}


def audit_and_record(mutants: list[Mutant], jobs: int) -> None:
    """Audit these mistakes, and put what was found into the record; mistakes that are no longer made leave it."""
    entries = known_entries()
    file = keep(entries)
    with ThreadPoolExecutor(jobs) as pool:
        for n, (mutant, found) in enumerate(pool.map(one_run, mutants), 1):
            asked = [v["statement"] for v in found["verdicts"]]
            entries[mutant.name] = facts(mutant) | {
                "agent": found["agent"],
                "asked": asked,
                "violated": violated(found),
                "commit": commit(),
            }
            file = keep(entries)
            print(f"{n} of {len(mutants)}: {mutant.name}: {', '.join(violated(found))}", file=sys.stderr)
    print(f"recorded in {file}; now run: make tables", file=sys.stderr)


def keep(entries: dict[str, dict[str, Any]]) -> Path:
    """Write the record, in the order in which the mistakes are listed."""
    benchmark, part = RECORD.split("_")
    kept = [entries[mutant.name] for mutant in ALL_MUTANTS if mutant.name in entries]
    return record(benchmark, part, kept, timed=False, command="python benchmarks/mutants.py")


def long_runs(runs: int, steps: str) -> None:
    """Print what more and longer runs find, and whether the test beside each mistake notices it."""
    print("| mistake | violated | failed in some runs, not more than allowed | regret | the test beside it |")
    print("|---|---|---|---:|---|")
    clean: list[tuple[Mutant | None, tuple[str, ...]]] = [(None, RIVER), (None, (*RIVER, *UCRL2)), (None, LQG)]
    for mutant, what in (*clean, *((mutant, mutant.audited) for mutant in ALL_MUTANTS)):
        with tempfile.TemporaryDirectory() as folder:
            found = audited(mutant, Path(folder), runs=runs, horizon=steps, what=what)
        wrong = [v["statement"] for v in found["verdicts"] if v["verdict"] == "violated"]
        some = [
            f"{v['statement']} ({v['failed_runs']})"
            for v in found["verdicts"]
            if v["verdict"] == "inconclusive" and v["failed_runs"]
        ]
        name = f"none ({found['agent']} in {found['environment']})" if mutant is None else mutant.name
        regret = f"{found['regret']['mean'][-1]:,.0f}"
        own_test = ""
        if mutant is not None and mutant.test:
            with tempfile.TemporaryDirectory() as folder:
                own_test = "fails" if noticed_by_its_test(mutant, Path(folder)) else "does not notice"
        shown = ", ".join(f"`{statement}`" for statement in wrong) or "nothing"
        print(f"| {name} | {shown} | {', '.join(some)} | {regret} | {own_test} |", flush=True)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--runs", type=int)
    asked.add_argument("--steps", default="1e5")
    asked.add_argument("--jobs", type=int, default=1)
    asked.add_argument("--new", action="store_true")
    add_record_options(asked)
    given = asked.parse_args()
    if given.runs is None:
        known = known_entries() if given.new else {}
        audit_and_record([mutant for mutant in ALL_MUTANTS if not is_recorded(mutant, known)], given.jobs)
    else:
        with printed("mutants", "long_runs", keep=given.record, timed=False):
            long_runs(given.runs, given.steps)


if __name__ == "__main__":
    main()
