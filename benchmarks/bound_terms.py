"""The terms of the regret bound of SCAL+, measured and allowed, on RiverSwim-6: a table of docs/audit.md.

    python benchmarks/bound_terms.py [--record]

One audited run of 10⁶ steps with c = 7, as by `gainful audit riverswim --agent scal-plus --span 7 --horizon 1e6
--runs 1 --first-seed 2`. --record keeps the table in benchmarks/measured.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import gainful as gf
from gainful.audit.audit import audit

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, record_document

NAMES = {
    "bonus": "Σ ν·b",
    "deviation": "Σ ν·d",
    "precision": "Σ ν·ε",
    "martingale": "luck",
    "telescoping": "telescoping",
}
SEED = 2


def number(x: float) -> str:
    return f"{x:,.0f}".replace("-", "−")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record_options(parser)
    given = parser.parse_args()
    mdp = gf.environments.riverswim(6)
    found = audit(lambda seed: gf.SCALPlus(6, 2, span=7.0, seed=seed), mdp, 10**6, runs=1, first_seed=SEED)
    terms = found.terms()
    rows = [(name, terms[key]["measured"], terms[key]["allowed"]) for key, name in NAMES.items()]
    rows.append(("sum", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    lines = ["| term | measured | allowed by its term | share |", "|---|---:|---:|---:|"]
    for name, measured, allowed in rows:
        share = "" if measured < 0 else f"{measured / allowed:.0%}".replace("%", " %")
        lines.append(f"| {name} | {number(measured)} | {number(allowed)} | {share} |")
    text = "\n".join([*lines, "", f"The regret itself was {number(found.regret_curves()['mean'][-1])}."])
    print(text)
    if given.record:
        record_document(
            "bound_terms", "riverswim", text, timed=False, command="python benchmarks/bound_terms.py --record"
        )


if __name__ == "__main__":
    main()
