"""What the audit finds for deliberate mistakes; prints Markdown.

`python benchmarks/mutants.py` makes one run of each, in plain Python, and prints what docs/mutants.md says: which
statements noticed which mistake. --record keeps it in benchmarks/measured, from where `make tables` writes it. It takes
about five minutes of CPU time; `--jobs 2` audits two mistakes at a time.

`python benchmarks/mutants.py --runs 60 --steps 1e5` makes more and longer runs of compiled copies, enough for the
statements that may fail in some runs, and tells whether the test named beside each mistake fails too.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.records import add_record_options, printed, record_document
from tests.audit.all_mutants import ALL_MUTANTS as ALL
from tests.audit.mutants import LQG, RIVER, UCRL2, Mutant, audited, noticed_by_its_test

KINDS = {
    "scal-plus": "SCAL+",
    "c-scal-plus": "C-SCAL+",
    "kl-scal-plus": "KL-SCAL+",
    "c-kl-scal-plus": "C-KL-SCAL+",
    "ucrl2": "UCRL2",
    "ucrl2b": "UCRL2B",
    "scal": "SCAL",
    "tucrl": "TUCRL",
    "kl-ucrl": "KL-UCRL",
    "psrl": "PSRL",
    "opt-psrl": "Opt-PSRL",
    "mbie-eb": "MBIE-EB",
    "count-bonus": "Count-based bonus",
    "ucbvi": "UCBVI",
    "optimistic-q": "Optimistic Q-learning",
    "epsilon-greedy-q": "Differential Q-learning",
    "fixed": "Fixed policies",
    "uccrl": "UCCRL",
}
"""The agents in the order of the page."""
HEAD = """Each row introduces one deliberate mistake into a copy of the library, which then audits itself: one run, of
{steps} steps unless another number is given, in plain Python. A cross says that the [audit](audit.md) found
the statement violated. Made by `python benchmarks/mutants.py` from {number} mistakes; {caught} of them were
noticed by the statement that names what is wrong, in bold (`tests/audit/test_mutations.py` asserts it).
Runs without a mistake violate nothing.
"""
NOTHING_CAUGHT = """A statement that has caught nothing follows from others, cannot fail where it was asked, or is
a bound in which these mistakes leave room.
"""


def violated(found: dict[str, Any]) -> list[str]:
    """The statements that should hold and do not."""
    return [v["statement"] for v in found["verdicts"] if v["verdict"] == "violated" and v["promised"]]


def one_run(mutant: Mutant) -> tuple[Mutant, dict[str, Any]]:
    """A short audit of a mistake."""
    with tempfile.TemporaryDirectory() as folder:
        return mutant, audited(mutant, Path(folder), runs=1, horizon=mutant.horizon, compiled=mutant.compiled)


def page(jobs: int) -> None:
    """Print what docs/mutants.md says."""
    answers = []
    with ThreadPoolExecutor(jobs) as pool:
        for mutant, found in pool.map(one_run, ALL):
            answers.append((mutant, found))
            print(f"{len(answers)} of {len(ALL)}: {mutant.name}: {', '.join(violated(found))}", file=sys.stderr)
    caught = sum(set(mutant.noticed) <= set(violated(found)) for mutant, found in answers)
    print(HEAD.format(steps=Mutant.horizon, number=len(ALL), caught=caught))
    by_agent: dict[str, list[tuple[Mutant, dict[str, Any]]]] = defaultdict(list)
    for mutant, found in answers:
        by_agent[found["agent"]].append((mutant, found))
    for agent, title in KINDS.items():
        if by_agent[agent]:
            print_matrix(title, by_agent[agent])
    print_statements(answers)


def print_matrix(title: str, answers: list[tuple[Mutant, dict[str, Any]]]) -> None:
    """Mistakes by statements, for one agent; a column for each statement that noticed any."""
    shown = {v["statement"]: None for _, found in answers for v in found["verdicts"]}
    columns = [name for name in shown if any(name in violated(found) for _, found in answers)]
    print(f"## {title}\n")
    print("| mistake | in | " + " | ".join(f"`{name}`" for name in columns) + " |")
    print("|---|---|" + ":-:|" * len(columns))
    for mutant, found in answers:
        where = " ".join(
            option for option in mutant.audited if option not in ("--agent", "--agent-set", found["agent"])
        )
        if mutant.horizon != Mutant.horizon:
            where += f", {mutant.horizon} steps"
        marks = ["" if name not in violated(found) else "**✗**" if name in mutant.noticed else "✗" for name in columns]
        print(f"| {mutant.name} | {where} | " + " | ".join(marks) + " |", flush=True)
    print()


def print_statements(answers: list[tuple[Mutant, dict[str, Any]]]) -> None:
    """Statements by mistakes: what each has been seen to catch, and which have caught nothing yet."""
    shown = {v["statement"]: None for _, found in answers for v in found["verdicts"]}
    print("## What each statement has been seen to catch\n")
    print(NOTHING_CAUGHT)
    print("| statement | mistakes noticed | such as |")
    print("|---|---:|---|")
    for name in shown:
        noticed = [mutant for mutant, found in answers if name in violated(found)]
        named = sorted(noticed, key=lambda mutant: name not in mutant.noticed)
        print(f"| `{name}` | {len(noticed)} | {'; '.join(mutant.name for mutant in named[:3])} |")


def long_runs(runs: int, steps: str) -> None:
    """Print what more and longer runs find, and whether the test beside each mistake notices it."""
    print("| mistake | violated | failed in some runs, not more than allowed | regret | the test beside it |")
    print("|---|---|---|---:|---|")
    clean: list[tuple[Mutant | None, tuple[str, ...]]] = [(None, RIVER), (None, (*RIVER, *UCRL2)), (None, LQG)]
    for mutant, what in (*clean, *((mutant, mutant.audited) for mutant in ALL)):
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
    add_record_options(asked)
    given = asked.parse_args()
    if given.runs is None:
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            page(given.jobs)
        print(shown.getvalue())
        if given.record:
            command = "python benchmarks/mutants.py --record"
            record_document("mutants", "page", shown.getvalue(), timed=False, command=command)
    else:
        with printed("mutants", "long_runs", keep=given.record, timed=False):
            long_runs(given.runs, given.steps)


if __name__ == "__main__":
    main()
