"""UCRL3 beside UCRL2B and KL-SCAL+: expected regret; and the time of its plans.

    python benchmarks/ucrl3.py [regret] [plans] [episodes] [--seeds N] [--record] [--even-if-busy]

regret: the mean over seeds with its standard error, for UCRL3 with the tails that are proven, those that are printed,
and the lower bound of the public code. plans: seconds of CPU of all plans of a run, with about a hundred states.
episodes: UCRL3 with each rule that ends episodes on RiverSwim-6, 30 runs each.
"""

from __future__ import annotations

import os

# many small products: the helper threads of BLAS cost more than they give
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gainful as gf

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, printed

PROBLEMS: dict[str, tuple[Callable[[], gf.MDP], int]] = {
    "RiverSwim-6": (lambda: gf.environments.riverswim(6), 10**5),
    "Garnet(20, 3, 5), Bernoulli": (lambda: gf.environments.garnet(20, 3, 5, reward_law="bernoulli"), 10**5),
    "riverswim_bourel(25)": (lambda: gf.environments.riverswim_bourel(25), 10**6),
    "four rooms": (gf.environments.four_rooms, 10**6),
}
AGENTS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "UCRL2B": (gf.UCRL2B, {}),
    "UCRL3": (gf.UCRL3, {}),
    "UCRL3, tails as printed": (gf.UCRL3, {"tails": "printed"}),
    "UCRL3, tails as printed, lower bound of the code": (gf.UCRL3, {"tails": "printed", "published_code": True}),
    "KL-SCAL+": (gf.KLSCALPlus, {}),
    "KL-SCAL+, vanishing episodes": (gf.KLSCALPlus, {"episodes": "vanishing"}),
}
LARGE: dict[str, Callable[[], gf.MDP]] = {
    "RiverSwim-100": lambda: gf.environments.riverswim(100),
    "four rooms, 104 states": gf.environments.four_rooms,
    "Garnet(100, 3, 5)": lambda: gf.environments.garnet(100, 3, 5),
}
STEPS_OF_PLANS = 10**5
EPISODE_RULES = ("doubling", "vanishing", "vanishing-sqrt")
SEEDS_OF_EPISODES, STEPS_OF_EPISODES = 30, 10**5


def regret(kind: str, mdp: gf.MDP, horizon: int, seed: int) -> float:
    """Expected regret of one run."""
    made, options = AGENTS[kind]
    found = gf.simulate(made.for_mdp(mdp, seed=seed, **options), mdp, horizon, seed=seed, checkpoints=[horizon])
    return float(found.expected_regret[-1])


def regret_table(seeds: int) -> None:
    names = [f"{name}, T = 10{'⁵' if horizon == 10**5 else '⁶'}" for name, (_, horizon) in PROBLEMS.items()]
    print("| agent | guarantee | " + " | ".join(names) + " |\n|---|---|" + "---:|" * len(names), flush=True)
    made = [(make(), horizon) for make, horizon in PROBLEMS.values()]
    for kind, (agent, options) in AGENTS.items():
        cells = []
        for mdp, horizon in made:
            lost = np.array([regret(kind, mdp, horizon, seed) for seed in range(seeds)])
            error = lost.std(ddof=1) / math.sqrt(lost.size)
            cells.append(f"{lost.mean():,.0f} ± {error:,.{0 if error >= 10 else 1}f}")
        holds = "yes" if agent(2, 2, **options).guarantee.holds else "no"
        print(f"| {kind} | {holds} | " + " | ".join(cells) + " |", flush=True)


def plans_table() -> None:
    columns = ("plans", "sweeps per plan", "mean", "90 % quantile", "longest")
    print("| problem | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns), flush=True)
    for name, make in LARGE.items():
        mdp = make()
        gf.simulate(gf.UCRL3.for_mdp(mdp), mdp, 100, seed=0)  # compiles, or loads
        found = gf.simulate(gf.UCRL3.for_mdp(mdp), mdp, STEPS_OF_PLANS, seed=1).episodes
        ms = 1e3 * found["planning_seconds"]
        times = " | ".join(f"{x:.2f} ms" for x in (ms.mean(), np.quantile(ms, 0.9), ms.max()))
        print(f"| {name} | {len(found):,} | {found['sweeps'].mean():.1f} | {times} |", flush=True)


def episodes_table() -> None:
    """Expected regret, plans and CPU time of planning of UCRL3 for every rule."""
    columns = ("expected regret", "median", "90 % quantile", "plans", "planning, s")
    print("| episodes | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns), flush=True)
    mdp = gf.environments.riverswim(6)
    gf.simulate(gf.UCRL3.for_mdp(mdp), mdp, 100, seed=0)  # compiles, or loads
    for rule in EPISODE_RULES:
        runs = []
        for seed in range(SEEDS_OF_EPISODES):
            agent = gf.UCRL3.for_mdp(mdp, seed=seed, episodes=rule)
            runs.append(gf.simulate(agent, mdp, STEPS_OF_EPISODES, seed=seed, checkpoints=[STEPS_OF_EPISODES]))
        lost = np.array([float(run.expected_regret[-1]) for run in runs])
        error = lost.std(ddof=1) / math.sqrt(lost.size)
        plans, seconds = (np.mean([f(run) for run in runs]) for f in (lambda r: len(r.episodes), _planning))
        middle, high = np.quantile(lost, [0.5, 0.9])
        cells = f"{lost.mean():,.0f} ± {error:,.0f} | {middle:,.0f} | {high:,.0f} | {plans:,.0f} | {seconds:.3f}"
        print(f"| {rule} | {cells} |", flush=True)


def _planning(run: gf.Run) -> float:
    return run.planning_seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="UCRL3: regret beside other agents, and the time of its plans.")
    parser.add_argument("parts", nargs="*", metavar="PART", help="regret, plans, episodes; default all")
    parser.add_argument("--seeds", type=int, default=10, help="runs per number, at least 2 (default 10)")
    add_record_options(parser)
    given = parser.parse_args()
    if set(given.parts) - {"regret", "plans", "episodes"} or given.seeds < 2:
        parser.error("the parts are regret, plans and episodes, and there are at least 2 seeds")
    parts = given.parts or ["regret", "plans", "episodes"]
    if "plans" in parts:
        with printed("ucrl3", "plans", keep=given.record):
            plans_table()
    if "regret" in parts:
        with printed("ucrl3", "regret", keep=given.record, timed=False):
            regret_table(given.seeds)
    if "episodes" in parts:
        with printed("ucrl3", "episodes", keep=given.record, timed=False):
            episodes_table()


if __name__ == "__main__":
    main()
