"""Adaptive cells against uniform grids: LQG, continuous RiverSwim, and ship steering.

    python benchmarks/adaptive_cells.py [regret] [balanced] [--quick | --record] [--seeds N]

regret    C-KL-SCAL+ on uniform grids, and adaptive cells with both rules
balanced  balanced grids, which are not told L, in LQG and RiverSwim

In LQG and RiverSwim the number is the regret against the oracle's gain, c the oracle's span and L the environment's. In
ship steering no L exists and no gain is known: agents are told L = 2 and c = 1, and the number is the average reward.
The table goes to stdout, and with --record to benchmarks/measured; progress goes to stderr.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gainful as gf

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.records import add_record_options, printed

say = partial(print, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Case:
    """An environment, what agents are told about it, and how long they learn."""

    title: str
    env: Any
    gain: float
    told: dict[str, Any]
    horizon: int
    grids: tuple[int, ...]
    finest: int

    @property
    def measure(self) -> str:
        return "average reward" if np.isnan(self.gain) else "regret"


def cases(quick: bool) -> list[Case]:
    """The three problems."""
    short = 100 if quick else 1
    found = []
    for title, env, finest in (
        ("LQG", gf.environments.lqg(), 32),
        ("RiverSwim, step 1", gf.environments.continuous_riverswim(step=1.0, noise=0.5), 32),
    ):
        oracle = gf.environments.oracle_gain(env)
        assert env.lipschitz is not None
        told = {"span": 1.001 * oracle.span, "lipschitz": env.lipschitz, "holder": 1.0}
        found.append(Case(title, env, oracle.gain, told, 10**6 // short, (2, 4, 8, 16, 32), finest))
    told = {"span": 1.0, "lipschitz": 2.0, "holder": 1.0}
    ship = gf.environments.ship_steering()
    return [*found, Case("Ship steering (d = 3)", ship, float("nan"), told, 10**5 // short, (2, 4, 8), 8)]


def balanced(case: Case) -> dict[str, Callable[[], Any]]:
    """Balanced grids, with two scales of what grids claim and both tests by which they are given up."""
    env = case.env
    common: dict[str, Any] = {"n_actions": env.n_actions, "reward_min": env.reward_min, "reward_max": env.reward_max}
    finest = gf.Partition.uniform(bins=case.finest, dim=env.dim)
    made = partial(gf.BalancedGrids, finest, span=case.told["span"], **common)
    tests = {"": "proven", ", plain test": "plain"}
    return {
        f"κ = {scale:g}{words}": partial(made, regret_scale=scale, elimination=test)
        for scale in (1.0, 0.3)
        for words, test in tests.items()
    }


def agents(case: Case) -> dict[str, Callable[[], Any]]:
    """What is compared, by its name in the table."""
    env = case.env
    common: dict[str, Any] = {"n_actions": env.n_actions, "reward_min": env.reward_min, "reward_max": env.reward_max}

    def grid(bins: int) -> gf.Partition:
        return gf.Partition.uniform(bins=bins, dim=env.dim)

    found: dict[str, Callable[[], Any]] = {
        f"uniform, {bins} per axis": partial(gf.CKLSCALPlus, grid(bins), **case.told, **common) for bins in case.grids
    }
    adaptive = partial(gf.AdaptiveKLSCALPlus, grid(case.finest), **case.told, **common)
    found |= {
        "adaptive": adaptive,
        "adaptive, b left out": partial(adaptive, bias_scale=0.0),
        "adaptive, ZoRL's rule": partial(adaptive, rule="zorl"),
        "adaptive, ZoRL's rule, b left out": partial(adaptive, rule="zorl", bias_scale=0.0),
    }
    return found


def measured(case: Case, make: Callable[[], Any], seeds: int) -> tuple[list[float], int, int, float]:
    """The number of every seed, the pairs planned with and the episodes of the last run, and the seconds of a run."""
    began, found = time.process_time(), []
    for seed in range(seeds):
        agent = make()
        run = gf.simulate(agent, case.env, case.horizon, seed=seed, gain=0.0 if np.isnan(case.gain) else case.gain)
        last = float(run.rewards[-1]) / case.horizon if np.isnan(case.gain) else float(run.regret[-1])
        found.append(last)
    pairs = np.unique(agent.current.groups).size if agent.current.groups is not None else agent.allowed.size
    return found, pairs, len(agent.episodes), (time.process_time() - began) / seeds


def table(case: Case, compared: dict[str, Callable[[], Any]], seeds: int) -> None:
    """Print the table of one problem."""
    told = ", ".join(f"{name} {value:.4g}" for name, value in case.told.items() if name != "holder")
    print(f"\n### {case.title}\n\n{case.horizon:,} steps, {seeds} seeds; agents are told {told}\n")
    print(f"| cells | {case.measure} | cells and actions | episodes |\n|---|---|---|---|")
    for name, make in compared.items():
        numbers, pairs, episodes, seconds = measured(case, make, seeds)
        mean, error = np.mean(numbers), 1.96 * np.std(numbers, ddof=1) / np.sqrt(seeds)
        shown = f"{mean:,.0f} ± {error:,.0f}" if case.measure == "regret" else f"{mean:.5f} ± {error:.5f}"
        print(f"| {name} | {shown} | {pairs:,} | {episodes:,} |", flush=True)
        say(f"{case.title}, {name}: {shown}, {seconds:.1f} s of CPU per run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], "regret", "balanced"], metavar="PART")
    parser.add_argument("--quick", action="store_true", help="a hundredth of the steps, two seeds")
    parser.add_argument("--seeds", type=int, default=10)
    add_record_options(parser)
    asked = parser.parse_args()
    seeds = 2 if asked.quick else asked.seeds
    if not asked.parts or "regret" in asked.parts:
        with printed("adaptive_cells", "regret", keep=asked.record, timed=False):
            for case in cases(asked.quick):
                table(case, agents(case), seeds)
    if not asked.parts or "balanced" in asked.parts:
        with printed("adaptive_cells", "balanced", keep=asked.record, timed=False):
            for case in cases(asked.quick)[:2]:
                table(case, balanced(case), seeds)


if __name__ == "__main__":
    main()
