"""What the audit finds for deliberate mistakes, over enough runs for the statements that may fail; prints Markdown.

`python benchmarks/mutants.py [runs] [steps]`; 60 runs of 10⁵ steps take about five minutes on two cores.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.audit.mutants import LQG, MUTANTS, RIVER, UCRL2, Mutant, audited, noticed_by_its_test


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    horizon = sys.argv[2] if len(sys.argv) > 2 else "1e5"
    print("| mistake | violated | failed in some runs, not more than allowed | regret | the test beside it |")
    print("|---|---|---|---:|---|")
    clean: list[tuple[Mutant | None, tuple[str, ...]]] = [(None, RIVER), (None, (*RIVER, *UCRL2)), (None, LQG)]
    for mutant, what in (*clean, *((mutant, mutant.audited) for mutant in MUTANTS)):
        with tempfile.TemporaryDirectory() as folder:
            found = audited(mutant, Path(folder), runs=runs, horizon=horizon, what=what)
        violated = [v["statement"] for v in found["verdicts"] if v["verdict"] == "violated"]
        some = [
            f"{v['statement']} ({v['failed_runs']})"
            for v in found["verdicts"]
            if v["verdict"] == "inconclusive" and v["failed_runs"]
        ]
        name = f"none ({found['agent']} in {found['environment']})" if mutant is None else mutant.name
        regret = f"{found['regret']['mean'][-1]:,.0f}"
        own_test = ""
        if mutant is not None:
            with tempfile.TemporaryDirectory() as folder:
                own_test = "fails" if noticed_by_its_test(mutant, Path(folder)) else "does not notice"
        print(
            f"| {name} | {', '.join(violated) or 'nothing'} | {', '.join(some)} | {regret} | {own_test} |", flush=True
        )


if __name__ == "__main__":
    main()
