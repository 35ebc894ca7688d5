"""Speed with continuous states; every claim is a ratio measured in this one run (CPU time, best of several).

    python benchmarks/continuous.py [riverswim] [gymnasium] [--quick]

riverswim  C-SCAL+ in the whole compiled run against a bare loop that steps the environment and counts nothing
gymnasium  the Gymnasium loop with C-SCAL+ against `env.step` alone
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import gainful as gf
from gainful._compiled import kernel
from gainful.environments.continuous.dispatch import continuous_step
from gainful.partition import cell_of
from gainful.rng import Role, stream_key
from gainful.simulation.simulate import simulate

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.parts import run_parts

STEPS = 10**7


@kernel
def bare(
    kind: int, parameters: Any, x: Any, actions: Any, bins: Any, low: Any, high: Any, key: Any, steps: int
) -> float:
    """The environment under a fixed policy per cell."""
    total = 0.0
    for t in range(steps):
        total += continuous_step(kind, parameters, x, actions[cell_of(x, 0, bins, low, high)], key, t, x)
    return total


def best_times(loops: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """CPU seconds of each loop, the best of several rounds in which all are run: a busy moment hurts all."""
    for run in loops.values():
        run()  # compile
    times = dict.fromkeys(loops, np.inf)
    for _ in range(rounds):
        for name, run in loops.items():
            began = time.process_time()
            run()
            times[name] = min(times[name], time.process_time() - began)
    return times


def riverswim(quick: bool) -> list[dict[str, Any]]:
    rows = []
    env = gf.environments.continuous_riverswim()
    key = stream_key(1, Role.ENVIRONMENT)
    best = gf.environments.oracle_gain(env, bins=100)  # the bare loop swims as one should
    for bins, scale in ((20, 1.0), (100, 1.0), (100, 0.05), (300, 1.0)):
        part = gf.Partition.uniform(bins=bins)

        def agent(part: gf.Partition = part, scale: float = scale) -> gf.CSCALPlus:
            return gf.CSCALPlus(
                partition=part, n_actions=2, span=80.0, lipschitz=env.lipschitz, holder=env.holder, bonus_scale=scale
            )

        runs: list[gf.Run] = []
        actions = np.array([best.action(x) for x in part.centers])

        def alone(part: gf.Partition = part, actions: Any = actions) -> None:
            bare(env.kind, env.parameters, env.start.copy(), actions, *part.arrays, key, STEPS)

        def learning(agent: Callable[[], gf.CSCALPlus] = agent, runs: list[gf.Run] = runs) -> None:
            runs.append(simulate(agent(), env, STEPS, seed=1, gain=0.41))

        times = best_times({"bare": alone, "C-SCAL+, the whole call": learning}, 3 if quick else 8)
        print(f"\ncontinuous RiverSwim, {bins} cells, bonus_scale {scale:g}, {len(runs[0].episodes)} episodes")
        for name, took in times.items():
            print(f"  {name:<28} {STEPS / took / 1e6:8.2f} M steps/s   {1e9 * took / STEPS:6.1f} ns each")
        plans, acts = (min(getattr(r, f"{what}_seconds") for r in runs) / STEPS for what in ("planning", "acting"))
        print(f"  of it planning {1e9 * plans:.1f} ns, steps {1e9 * acts:.1f} ns: {times['bare'] / STEPS / acts:.2f}")
        found = times["bare"] / times["C-SCAL+, the whole call"]
        print(f"  {'claim: at least':<28} {0.5:8.2f}, found {found:.2f}{'' if found >= 0.5 else '   MISSED'}")
        rows.append(
            {
                "cells": bins,
                "bonus_scale": scale,
                "wanted": 0.5,
                "ratio": found,
                "ns_per_step": 1e9 * times["bare"] / STEPS / found,
            }
        )
    return rows


BOXES: dict[str, dict[str, Any]] = {
    "CartPole-v1": {"low": [-2.4, -3.0, -0.21, -3.0], "high": [2.4, 3.0, 0.21, 3.0]},
    "MountainCar-v0": {},
}


def through_gymnasium(quick: bool) -> list[dict[str, Any]]:
    rows = []
    n = 20_000 if quick else 50_000
    for name, box in BOXES.items():
        for wrapped in (True, False):
            env: Any = gymnasium.make(name) if wrapped else gymnasium.make(name).unwrapped
            part = gf.Partition.from_box(env.observation_space, bins=8, **box)
            count = int(env.action_space.n)
            actions = np.random.default_rng(0).integers(count, size=n).tolist()

            def alone(env: Any = env, actions: list[int] = actions) -> None:
                env.reset(seed=1)
                step = env.step
                for action in actions:
                    _, _, terminated, truncated, _ = step(action)
                    if terminated or truncated:
                        env.reset()

            def learning(env: Any = env, part: gf.Partition = part, count: int = count) -> None:
                agent = gf.CSCALPlus(partition=part, n_actions=count, span=10.0, reward_min=-1.0, bonus_scale=0.05)
                simulate(agent, env, n, seed=1)

            times = best_times({"env.step": alone, "simulate_gymnasium": learning}, 3 if quick else 6)
            print(f"\n{name}{'' if wrapped else ', without its wrappers'}, {part.n_cells} cells, {n:,} steps")
            for what, took in times.items():
                print(f"  {what:<28} {1e6 * took / n:8.2f} µs per step")
            found = times["simulate_gymnasium"] / times["env.step"]
            print(f"  {'claim: less than':<28} {3.0:8.2f}, found {found:.2f}{'' if found < 3.0 else '   MISSED'}")
            rows.append({"environment": name, "wrapped": wrapped, "wanted": 3.0, "ratio": found})
    return rows


PARTS: dict[str, Callable[[bool], Any]] = {"riverswim": riverswim, "gymnasium": through_gymnasium}

if __name__ == "__main__":
    run_parts(PARTS)
