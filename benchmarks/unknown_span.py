"""What it costs not to know the span: KL-SCAL+ told c, Balanced KL-SCAL+, and TUCRL's rule.

    python benchmarks/unknown_span.py [regret] [--seeds N] [--horizon T] [--record]

Prints, as Markdown, the expected regret after T steps: mean over seeds with its standard error, and the largest.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
import gainful as gf
from benchmarks.records import add_record_options, printed


def with_unreachable(mdp: gf.MDP, extra: int) -> gf.MDP:
    """The MDP with states that lead to its start, and that no state leads to."""
    P, R = mdp.to_dense()
    S, A = R.shape
    wider, rewards = np.zeros((S + extra, A, S + extra)), np.zeros((S + extra, A))
    wider[:S, :, :S], rewards[:S] = P, R
    wider[S:, :, 0] = 1.0
    return gf.MDP(wider, rewards, reward_law="bernoulli")


PROBLEMS: dict[str, Callable[[], gf.MDP]] = {
    "RiverSwim-6": lambda: gf.environments.riverswim(6),
    "RiverSwim-6 and 4 unreachable states": lambda: with_unreachable(gf.environments.riverswim(6), 4),
    "weakly communicating toy": gf.environments.weakly_communicating_toy,
    "Garnet(20, 3, 5)": lambda: gf.environments.garnet(20, 3, 5),
}


def agents(mdp: gf.MDP) -> dict[str, Callable[[int], Any]]:
    """seed -> agent, by its name."""
    span, best = gf.solve(mdp).span, gf.KLSCALPlus.for_mdp
    return {
        "KL-SCAL+, told c": lambda seed: best(mdp, span=span, seed=seed),
        "Balanced KL-SCAL+": lambda seed: gf.BalancedKLSCALPlus.for_mdp(mdp, seed=seed),
        "KL-SCAL+, TUCRL's rule": lambda seed: best(mdp, unreachable="tucrl", seed=seed),
        "TUCRL": lambda seed: gf.TUCRL.for_mdp(mdp, seed=seed),
    }


def regret(seeds: int, T: int) -> None:
    names = list(agents(PROBLEMS["RiverSwim-6"]()))
    print(f"Expected regret after {T:,} steps, {seeds} seeds: mean ± standard error (largest)\n")
    print("| problem | sp(h*) | " + " | ".join(names) + " | c given up |")
    print("| --- | ---: |" + " ---: |" * len(names) + " --- |")
    for problem, make in PROBLEMS.items():
        mdp, cells, given_up = make(), [], set()
        for made in agents(mdp).values():
            lost = []
            for seed in range(seeds):
                agent = made(seed)
                lost.append(float(gf.simulate(agent, mdp, T, seed=seed, checkpoints=[T]).expected_regret[-1]))
                if isinstance(agent, gf.BalancedKLSCALPlus):
                    given_up |= {f"{2**i}" for i in np.flatnonzero(agent.ledger.refuted)}
            error = np.std(lost, ddof=1) / math.sqrt(seeds)
            cells.append(f"{np.mean(lost):,.0f} ± {error:,.0f} ({max(lost):,.0f})")
        listed = ", ".join(sorted(given_up, key=int)) or "none"
        print(f"| {problem} | {gf.solve(mdp).span:.2f} | " + " | ".join(cells) + f" | {listed} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["regret"], default="regret", help="what to measure")
    parser.add_argument("--seeds", type=int, default=30, help="runs per number (default 30)")
    parser.add_argument("--horizon", type=float, default=1e6, help="steps of each run (default 1e6)")
    add_record_options(parser)
    given = parser.parse_args()
    with printed("unknown_span", "regret", keep=given.record, timed=False):
        regret(given.seeds, int(given.horizon))


if __name__ == "__main__":
    main()
