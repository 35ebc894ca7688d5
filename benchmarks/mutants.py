"""What the audit says of deliberate mistakes, over enough runs for the statements that may fail: prints Markdown.

`python benchmarks/mutants.py [runs] [steps]`; 60 runs of 10⁵ steps take about five minutes on two cores.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.audit.mutants import MUTANTS, audited


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    horizon = sys.argv[2] if len(sys.argv) > 2 else "1e5"
    print("| mistake | violated | failed in some runs, not more than allowed | regret |\n|---|---|---|---:|")
    for mutant in (None, *MUTANTS):
        with tempfile.TemporaryDirectory() as folder:
            found = audited(mutant, Path(folder), runs=runs, horizon=horizon)
        violated = [v["statement"] for v in found["verdicts"] if v["verdict"] == "violated"]
        some = [
            f"{v['statement']} ({v['failed_runs']})"
            for v in found["verdicts"]
            if v["verdict"] == "inconclusive" and v["failed_runs"]
        ]
        name = "none" if mutant is None else mutant.name
        regret = f"{found['regret']['mean'][-1]:,.0f}"
        print(f"| {name} | {', '.join(violated) or 'nothing'} | {', '.join(some)} | {regret} |", flush=True)


if __name__ == "__main__":
    main()
