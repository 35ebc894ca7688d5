"""PSRL with four Dirichlet priors on five problems: which default loses least.

    python benchmarks/psrl_priors.py [PROBLEM ...] [--seeds N] [--horizon T] [--record]

Prints, as Markdown, the expected regret after T steps, the mean over seeds with its standard error, and below it the
largest of all seeds; and seconds of CPU per run for each prior.
"""

from __future__ import annotations

import os

# many small products: the helper threads of BLAS cost more than they give
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import gainful as gf

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import record

PROBLEMS: dict[str, tuple[str, Callable[[], gf.MDP]]] = {
    "riverswim": ("RiverSwim-6", lambda: gf.environments.riverswim(6)),
    "toy3d": ("Toy3D(0.1)", lambda: gf.environments.toy3d(0.1)),
    "garnet": ("Garnet(20, 3, 5)", lambda: gf.environments.garnet(20, 3, 5)),
    "bourel": ("riverswim_bourel(25)", lambda: gf.environments.riverswim_bourel(25)),
    "four-rooms": ("four rooms", gf.environments.four_rooms),
}
PRIORS: dict[str, float | None] = {"1/S": None, "0.1": 0.1, "0.5": 0.5, "1": 1.0}


def run(mdp: gf.MDP, prior: float | None, horizon: int, seed: int) -> tuple[float, float]:
    """Expected regret, and seconds of CPU."""
    agent = gf.PSRL(
        mdp.n_states,
        mdp.n_actions,
        reward_min=mdp.reward_min,
        reward_max=mdp.reward_max,
        allowed=mdp.allowed,
        seed=seed,
        transition_prior=prior,
    )
    began = time.process_time()
    found = gf.simulate(agent, mdp, horizon, seed=seed, checkpoints=[horizon])
    return float(found.expected_regret[-1]), time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description="Expected regret of PSRL with four priors.")
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help=f"some of {', '.join(PROBLEMS)}; default all")
    parser.add_argument("--seeds", type=int, default=8, help="runs per number, at least 2 (default 8)")
    parser.add_argument("--horizon", type=float, default=1e6, help="steps of each run (default 1e6)")
    parser.add_argument("--record", action="store_true", help="keep what is found in benchmarks/measured")
    given = parser.parse_args()
    unknown = [name for name in given.problems if name not in PROBLEMS]
    if unknown or given.seeds < 2:
        parser.error(f"choose problems from {', '.join(PROBLEMS)}, and at least 2 seeds")
    T = int(given.horizon)
    kept: dict[str, dict[str, list[float]]] = {}
    print("| problem | " + " | ".join(PRIORS) + " |\n|---|" + "---:|" * len(PRIORS), flush=True)
    spent: dict[str, list[float]] = {prior: [] for prior in PRIORS}
    for name in given.problems or PROBLEMS:
        title, make = PROBLEMS[name]
        mdp, cells = make(), []
        for label, prior in PRIORS.items():
            run(mdp, prior, 1000, 0)  # compiles, or loads
            lost, seconds = np.array([run(mdp, prior, T, seed) for seed in range(given.seeds)]).T
            error = lost.std(ddof=1) / math.sqrt(lost.size)
            cells.append(f"{lost.mean():,.{0 if lost.mean() >= 10 else 1}f} ± {error:,.{0 if error >= 1 else 1}f}")
            cells[-1] += f" ({lost.max():,.{0 if lost.max() >= 10 else 1}f})"
            spent[label].append(float(seconds.mean()))
            kept.setdefault(title, {})[label] = lost.tolist()
        print(f"| {title} | " + " | ".join(cells) + " |", flush=True)
    print("| seconds per run | " + " | ".join(", ".join(f"{s:.2f}" for s in row) for row in spent.values()) + " |")
    if given.record:
        print(f"recorded in {record('psrl_priors', 'regret', kept)}")


if __name__ == "__main__":
    main()
