"""PMEVI-DT beside its bases: what it loses, how often anything it knows about the bias matters, and coverage.

    python benchmarks/pmevi.py [regret] [coverage] [--seeds N] [--record]

regret: expected regret on RiverSwim-6 (10⁵ steps), Garnet(20, 3, 5) (10⁵) and riverswim_bourel(25) (10⁶), and the share
of plans in which the span c, a difference of the bias found along the path, or β was in the way of the values.
coverage: runs of small random MDPs in which some difference of the true bias left its interval, or a plan was not
optimistic, and how wide the intervals were.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gainful as gf

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, printed
from gainful.theory import klmax

BASES = {"kl-scal-plus": "KLSCALPlus", "ucrl2": "UCRL2", "ucrl2b": "UCRL2B", "kl-ucrl": "KLUCRL"}
PROBLEMS: dict[str, tuple[Callable[[], gf.MDP], int]] = {
    "RiverSwim-6": (lambda: gf.environments.riverswim(6), 100_000),
    "Garnet(20, 3, 5)": (lambda: gf.environments.garnet(20, 3, 5, reward_law="bernoulli"), 100_000),
    "riverswim_bourel(25)": (lambda: gf.environments.riverswim_bourel(25), 1_000_000),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "Γ by the span alone": {"bias": "none", "mitigation": False},
    "Γ": {"mitigation": False},
    "Γ and β": {},
    "Γ and β, Azuma": {"bias": "azuma"},
    "Γ and β, told sp(h*)": {"span": -1.0},
}

IN_SHORT = ("Γ and β", "Γ and β, told sp(h*)")
"""What is measured on the larger problems."""
LOOKED_AT = 3
"""Runs whose plans are looked at."""


def told(mdp: gf.MDP) -> dict[str, Any]:
    return {"reward_min": mdp.reward_min, "reward_max": mdp.reward_max, "allowed": mdp.allowed}


def in_the_way(agent: gf.PMEVIDT, view: Any) -> tuple[bool, bool, bool]:
    """Whether the plan's values touch the span c, touch a smaller difference, and whether β cut a greedy pair."""
    plan, within = view.plan, view.plan.details["within"]
    v, d = plan.values, within.differences
    touching = (v[:, None] - v[None, :] >= d - 1e-9 * agent.span) & ~np.eye(v.size, dtype=bool)
    of_span = d >= agent.span * (1.0 - 1e-12)
    k = np.arange(v.size) * agent.n_actions + plan.actions
    cut = False
    for s, pair in enumerate(k):
        row = slice(within.indptr[pair], within.indptr[pair + 1])
        p, to = within.probabilities[row], within.indices[row]
        if not np.isfinite(within.mitigation[pair]):
            continue
        limit = p @ v[to] + within.mitigation[pair]
        if "optimistic_rows" in plan.details:
            rows = plan.details["optimistic_rows"]
            own = slice(rows.indptr[s], rows.indptr[s + 1])
            best = rows.probabilities[own] @ v[rows.indices[own]]
        else:
            whole = np.zeros(v.size)
            whole[to] = p
            best = klmax(whole, v, plan.details["radius"][pair])
        cut = cut or bool(best > limit + 1e-9 * agent.span)
    return bool((touching & of_span).any()), bool((touching & ~of_span).any()), cut


def pmevi_run(mdp: gf.MDP, base: str, horizon: int, seed: int, options: dict[str, Any]) -> tuple[float, Any]:
    """Expected regret, and in what share of the plans what was in the way, in the runs that are looked at."""
    own = dict(options)
    if own.get("span") == -1.0:
        own["span"] = float(np.ptp(gf.solve(mdp).bias)) * (1.0 + 1e-6)
    agent = gf.PMEVIDT(mdp.n_states, mdp.n_actions, horizon=horizon, base=base, seed=seed, **told(mdp), **own)  # type: ignore[arg-type]
    seen: list[tuple[bool, bool, bool]] = []
    if seed < LOOKED_AT:
        agent.on_episode = lambda view: seen.append(in_the_way(agent, view))
    run = gf.simulate(agent, mdp, horizon, seed=seed, checkpoints=[horizon])
    return float(run.expected_regret[-1]), np.array(seen).mean(axis=0) if seen else None


def base_run(mdp: gf.MDP, base: str, horizon: int, seed: int) -> float:
    own = {"horizon": horizon} if base == "kl-ucrl" else {}
    agent = getattr(gf, BASES[base])(mdp.n_states, mdp.n_actions, seed=seed, **told(mdp), **own)
    return float(gf.simulate(agent, mdp, horizon, seed=seed, checkpoints=[horizon]).expected_regret[-1])


def shown(lost: list[float]) -> str:
    error = np.std(lost, ddof=1) / math.sqrt(len(lost))
    return f"{np.mean(lost):,.0f} ± {error:,.0f}"


def regret(seeds: int) -> Iterator[str]:
    """Rows of the table of regrets."""
    yield "| problem | base | what is added | expected regret | c touched | path touched | β touched |"
    yield "|---|---|---|---:|---:|---:|---:|"
    for title, (make, horizon) in PROBLEMS.items():
        mdp = make()
        for base in BASES:
            alone = [base_run(mdp, base, horizon, seed) for seed in range(seeds)]
            yield f"| {title} | {base} | nothing | {shown(alone)} | | | |"
            for words in OPTIONS if title == "RiverSwim-6" else IN_SHORT:
                options = OPTIONS[words]
                runs = [pmevi_run(mdp, base, horizon, seed, options) for seed in range(seeds)]
                shares = np.mean([run[1] for run in runs[:LOOKED_AT]], axis=0)
                marks = " | ".join(f"{share:.0%}".replace("%", " %") for share in shares)
                yield f"| {title} | {base} | {words} | {shown([run[0] for run in runs])} | {marks} |"


def coverage(runs: int) -> Iterator[str]:
    """Rows of the table of coverage."""
    yield "| base | bias | runs | difference outside | plan not optimistic | median width at the end, in sp(h*) |"
    yield "|---|---|---:|---:|---:|---:|"
    for base in BASES:
        for bias in ("freedman", "azuma"):
            missed, pessimistic, widths = 0, 0, []
            for seed in range(runs):
                mdp = gf.environments.garnet(4, 2, 2, instance=seed, reward_law="bernoulli")
                plan = gf.solve(mdp, precision=1e-10)
                h, span = plan.bias, max(float(np.ptp(plan.bias)), 0.05)
                agent = gf.PMEVIDT(4, 2, horizon=20_000, base=base, bias=bias, span=span, seed=seed, **told(mdp))  # type: ignore[arg-type]
                found = gf.simulate(agent, mdp, 20_000, seed=seed, checkpoints=[20_000])
                d = agent.differences()
                missed += bool(np.any(h[:, None] - h[None, :] > d + 1e-9))
                pessimistic += bool(np.any(found.episodes["gain_high"] < plan.gain_bounds[0] - 1e-9))
                widths.append(np.median((d + d.T)[~np.eye(4, dtype=bool)]) / span)
            yield f"| {base} | {bias} | {runs:,} | {missed} | {pessimistic} | {np.median(widths):.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Regret and coverage of PMEVI-DT.")
    parser.add_argument("parts", nargs="*", help="some of regret, coverage; default both")
    parser.add_argument("--seeds", type=int, default=10, help="runs per number of the table of regrets (default 10)")
    parser.add_argument("--runs", type=int, default=200, help="runs per row of the table of coverage (default 200)")
    add_record_options(parser)
    given = parser.parse_args()
    if set(given.parts) - {"regret", "coverage"} or given.seeds < 2 or given.runs < 1:
        parser.error("choose parts from regret and coverage, and at least 2 seeds")
    for part in given.parts or ("regret", "coverage"):
        with printed("pmevi", part, keep=given.record, timed=False):
            for line in regret(given.seeds) if part == "regret" else coverage(given.runs):
                print(line, flush=True)


if __name__ == "__main__":
    main()
