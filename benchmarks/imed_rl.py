"""IMED-RL: what it loses in four rivers of six states, one of them ergodic, and how fast it is.

    python benchmarks/imed_rl.py [regret] [speed] [--seeds N] [--record] [--even-if-busy]

regret: expected regret after 10⁵ and 10⁶ steps, mean, median and 90 % quantile over seeds, and how many runs lost more
than a tenth of all there was to earn. speed: steps per second of CPU on RiverSwim-6, against the equations in NumPy.
"""

from __future__ import annotations

import os

# small linear systems: the helper threads of BLAS cost more than they give
for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import gainful as gf
from gainful.simulation.transition_table import TabularStepper

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, printed

RIVERS: dict[str, Callable[[], gf.MDP]] = {
    "`riverswim(6)`": lambda: gf.environments.riverswim(6),
    "`riverswim_maillard(6)`": lambda: gf.environments.riverswim_maillard(6),
    "`riverswim_bourel(6)`": lambda: gf.environments.riverswim_bourel(6),
    "`riverswim_ergodic(6)`": lambda: gf.environments.riverswim_ergodic(6),
}
STEPS = (10**5, 10**6)
PLANS = {"every step": 0.0, "lazy=0.002": 0.002}
LOST = 0.1
"""A run is lost if it earned so much less of all there was."""


def lost_in(mdp: gf.MDP, lazy: float, seeds: int) -> np.ndarray:
    """(seeds, 2) expected regret after 10⁵ and 10⁶ steps."""
    runs = [
        gf.simulate(gf.IMEDRL.for_mdp(mdp, seed=seed, lazy=lazy), mdp, STEPS[-1], seed=seed, checkpoints=STEPS)
        for seed in range(seeds)
    ]
    return np.array([run.expected_regret for run in runs])


def regret(seeds: int) -> None:
    print(f"| {seeds} runs | ergodic | plans | steps | mean | median | 90 % quantile | largest | runs lost |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|")
    for name, make in RIVERS.items():
        mdp = make()
        gain, ergodic = gf.solve(mdp).gain, "yes" if gf.is_ergodic(mdp) else "no"
        for plans, lazy in PLANS.items():
            found = lost_in(mdp, lazy, seeds)
            for steps, lost in zip(STEPS, found.T, strict=True):
                error = lost.std(ddof=1) / np.sqrt(lost.size)
                numbers = [np.median(lost), np.quantile(lost, 0.9), lost.max()]
                cells = [f"{lost.mean():,.0f} ± {error:,.0f}", *(f"{x:,.0f}" for x in numbers)]
                gone = np.count_nonzero(lost > LOST * gain * steps)
                print(f"| {name} | {ergodic} | {plans} | {steps:,} | {' | '.join(cells)} | {gone} |", flush=True)


def plain_steps(mdp: gf.MDP, steps: int) -> None:
    """The equations in NumPy, step by step."""
    from gainful.theory import (
        imed_rl_divergence,
        imed_rl_estimates,
        imed_rl_index,
        imed_rl_optimum,
        imed_rl_skeleton,
    )

    counts, sums = np.zeros((mdp.n_states, mdp.n_actions, mdp.n_states)), np.zeros((mdp.n_states, mdp.n_actions))
    laws = {(s, a): {0.5: 1} for s in range(mdp.n_states) for a in range(mdp.n_actions)}
    environment = TabularStepper(mdp, 0)
    s = environment.first_state
    for t in range(steps):
        visits = counts[s].sum(axis=1)
        a = int(visits.argmin())
        if visits[a] > 0:
            r, p = imed_rl_estimates(counts, sums, 1.0)
            _, h = imed_rl_optimum(r, p, imed_rl_skeleton(counts.sum(axis=2)))
            values = r[s] + p[s] @ h
            index = []
            for b in range(mdp.n_actions):
                rewards, times = np.array(list(laws[s, b])), np.array(list(laws[s, b].values()))
                law = rewards, times / times.sum()
                K = 0.0 if values[b] == values.max() else imed_rl_divergence(law, p[s, b], h, values.max(), 1.0)
                index.append(imed_rl_index(int(visits[b]), K))
            a = int(np.argmin(index))
        reward, to = environment.step(t, s, a)
        counts[s, a, to] += 1
        sums[s, a] += reward
        laws[s, a][reward] = laws[s, a].get(reward, 0) + 1
        s = to


def rate_of(act: Callable[[], None], steps: int) -> float:
    """Steps per second of CPU, the best of three."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        act()
        spent.append(time.process_time() - began)
    return steps / min(spent)


def speed() -> None:
    mdp = gf.environments.riverswim(6)
    plain = rate_of(lambda: plain_steps(mdp, 2000), 2000)
    print("| RiverSwim-6 | steps per second | against NumPy |\n|---|---:|---:|")
    print(f"| the equations in NumPy | {plain:,.0f} | 1 |", flush=True)
    for plans, lazy in PLANS.items():

        def run(lazy: float = lazy) -> None:
            gf.simulate(gf.IMEDRL.for_mdp(mdp, lazy=lazy), mdp, 300_000, seed=1)

        run()  # compiles, or loads
        rate = rate_of(run, 300_000)
        print(f"| `IMEDRL`, {plans} | {rate:,.0f} | {rate / plain:,.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="IMED-RL: regret in four rivers, and speed.")
    parser.add_argument("parts", nargs="*", metavar="PART", help="regret, speed; default both")
    parser.add_argument("--seeds", type=int, default=40, help="runs per number, at least 2 (default 40)")
    add_record_options(parser)
    given = parser.parse_args()
    parts = given.parts or ["regret", "speed"]
    if set(parts) - {"regret", "speed"} or given.seeds < 2:
        parser.error("the parts are regret and speed, and there are at least 2 seeds")
    if "regret" in parts:
        with printed("imed_rl", "regret", keep=given.record, timed=False):
            regret(given.seeds)
    if "speed" in parts:
        with printed("imed_rl", "speed", keep=given.record):
            speed()


if __name__ == "__main__":
    main()
