"""The audit's tables of the docs: every statement over many runs, for the theorem's constants and for smaller bonuses.

    python benchmarks/audit_study.py [bonuses] [sets] [--runs N] [--record]

Prints Markdown; with 100 runs, the default, it takes about ten minutes on two cores. --record keeps the tables in
benchmarks/measured, from where `make tables` writes them into docs/audit.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from gainful.audit.audit import Audit
from gainful.experiments.auditing import AuditRequest, audit_all
from gainful.experiments.configuration import Configuration, checkpoint_steps

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, printed

SCALES = (1.0, 0.3, 0.1, 0.01)
FINITE: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("riverswim", {}, 1e6),
    ("riverswim-maillard", {}, 1e6),
    ("toy3d", {"delta": 0.1}, 1e6),
    ("machine-replacement", {}, 1e6),
    ("admission-control", {"capacity": 8}, 1e6),
    ("garnet", {"n_states": 10, "n_actions": 3, "branching": 4}, 1e6),
    ("six-arms", {}, 1e6),
    ("weakly-communicating-toy", {}, 1e6),
)
CONTINUOUS: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("lqg", {"bins": 12}, 1e5),
    ("replacement", {"bins": 12}, 1e5),
    ("continuous-inventory", {"bins": 12}, 1e5),
    ("rough-mixture", {"bins": 12}, 1e5),
    ("planar-mixture", {"bins": 6}, 1e5),
)
SETS = ("ucrl2", "ucrl2b", "scal", "tucrl", "kl-ucrl")
SET_ENVIRONMENTS = (
    FINITE[0],
    FINITE[2],
    FINITE[3],
    ("garnet", {"n_states": 8, "n_actions": 2, "branching": 3, "reward_law": "bernoulli"}, 0.0),
)
SET_HORIZON = 1e5


def asked(
    environment: str, given: dict[str, Any], agent: str, settings: dict[str, Any], horizon: float
) -> AuditRequest:
    T = int(horizon)
    return AuditRequest(
        environment, agent, Configuration(environment, given, agent, settings, T, checkpoint_steps(10, T), 0)
    )


def broken(audit: Audit) -> str:
    """What is violated, with the runs it failed in; what is only inconclusive with a question mark."""
    words = []
    for v in audit.verdicts.values():
        if v.verdict in ("violated", "inconclusive") and v.failed_runs:
            words.append(f"{v.statement} ({v.failed_runs}{'?' if v.verdict == 'inconclusive' else ''})")
    return ", ".join(words) or "none"


def line(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def title(name: str, given: dict[str, Any]) -> str:
    """The environment with what differs from its defaults."""
    sizes = [str(given[size]) for size in ("n_states", "n_actions", "branching") if size in given]
    text = f"{name} ({', '.join(sizes)})" if sizes else name
    text = {"rough-mixture": "rough-mixture (α = ½)", "planar-mixture": "planar-mixture (d = 2)"}.get(text, text)
    text += f", δ = {given['delta']:g}" if "delta" in given else ""
    text += f", capacity {given['capacity']}" if "capacity" in given else ""
    text += ", Bernoulli rewards" if given.get("reward_law") == "bernoulli" else ""
    if "bins" in given:
        text += f", {given['bins']} × {given['bins']} cells" if "planar" in name else f", {given['bins']} cells"
    return text


def closest(audit: Audit, name: str) -> str:
    """How near the worst case of all runs came: found/allowed."""
    worst = audit[name].worst
    return "" if worst is None else f"{worst.found / worst.allowed:.3g}"


def bonuses(runs: int) -> None:
    line("environment", "bonus_scale", "statements that failed (number of runs)", "worst (a)", "regret", "bound")
    line("---", "---:", "---", "---:", "---:", "---:")
    for name, given, T in (*FINITE, *CONTINUOUS):
        points = (name, given, T) in CONTINUOUS
        for scale in SCALES:
            settings: dict[str, Any] = {"span": "auto", "bonus_scale": scale}
            agent = "scal-plus"
            if points:
                agent, settings["bins"] = "c-scal-plus", given["bins"]
            one = audit_all([asked(name, {} if points else given, agent, settings, T)], runs=runs).audits[0]
            curves = one.regret_curves()
            line(
                title(name, given) if scale == SCALES[0] else "",
                f"{scale:g}",
                broken(one),
                closest(one, "bonus-bias"),
                f"{curves['mean'][-1]:,.0f}",
                f"{curves['bound'][-1]:,.0f}" if curves["bound"] else "",
            )


def sets(runs: int) -> None:
    line("environment", "agent", "failed statements", "worst row", "worst reward", "regret")
    line("---", "---", "---", "---:", "---:", "---:")
    for name, given, _ in SET_ENVIRONMENTS:
        for agent in SETS:
            settings = {"span": "auto"} if agent == "scal" else {}
            one = audit_all([asked(name, given, agent, settings, SET_HORIZON)], runs=runs).audits[0]
            regret = f"{one.regret_curves()['mean'][-1]:,.0f}"
            line(
                title(name, given) if agent == SETS[0] else "",
                agent,
                broken(one),
                closest(one, "rows-in-set"),
                closest(one, "rewards-in-set") or "sure",
                regret,
            )


PARTS = {"bonuses": bonuses, "sets": sets}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; default all")
    parser.add_argument("--runs", type=int, default=100, help="runs of each row (default 100)")
    add_record_options(parser)
    given = parser.parse_args()
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; choose from {', '.join(PARTS)}")
    began = time.monotonic()
    for part in given.parts or PARTS:
        print(f"## {part}, {given.runs} runs each\n")
        with printed("audit_study", part, keep=given.record, timed=False):
            PARTS[part](given.runs)
        print()
    print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
