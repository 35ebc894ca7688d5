"""The audit's table of the docs: every statement over many runs, for the theorem's constants and for smaller bonuses.

Prints Markdown. `python benchmarks/audit_study.py [runs]`; with 100 runs it takes about ten minutes on two cores.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from gainful.audit.audit import Audit
from gainful.experiments.auditing import AuditRequest, audit_all
from gainful.experiments.configuration import Configuration, checkpoint_steps

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
                name if scale == SCALES[0] else "",
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
                name if agent == SETS[0] else "",
                agent,
                broken(one),
                closest(one, "rows-in-set"),
                closest(one, "rewards-in-set"),
                regret,
            )


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    began = time.monotonic()
    print(f"## SCAL+ and C-SCAL+, {runs} runs each\n")
    bonuses(runs)
    print(f"\n## Confidence sets, {runs} runs of {SET_HORIZON:,.0f} steps each\n")
    sets(runs)
    print(f"\n{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
