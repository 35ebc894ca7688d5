"""Re-planning by local repairs compared with full sweeps; every ratio is measured in this one run.

    python benchmarks/replanning.py [large] [scaling] [memory] [--quick | --record] [--plot=FILE]

large    Garnet(10^4, 4, 8), 10^6 steps of SCAL+, CPU seconds with local and with full re-planning (claim: at most 40 s)
scaling  CPU time of planning per episode against S, on Garnets and on four rooms; `--plot=FILE` draws it (matplotlib)
memory   peak memory of a process that runs SCAL+ for 10^7 steps in Garnet(10^5, 4, 8) (claim: under 1 GB)

Full re-planning is warm-started too: it differs only in sweeping the whole model.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gainful as gf

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.parts import run_parts

MODES = ("full", "local")


def scal_plus(mdp: gf.MDP, span: float, replanning: Any) -> gf.SCALPlus:
    return gf.SCALPlus(
        mdp.n_states, mdp.n_actions, span=span, reward_min=mdp.reward_min, reward_max=mdp.reward_max,
        allowed=mdp.allowed, seed=1, replanning=replanning,
    )  # fmt: skip


def timed_run(mdp: gf.MDP, span: float, replanning: str, horizon: float) -> tuple[float, gf.Run]:
    """CPU seconds of the life of a new agent, and the run."""
    agent = scal_plus(mdp, span, replanning)
    begin = time.process_time()
    run = gf.simulate(agent, mdp, horizon, seed=1, gain=0.0)
    return time.process_time() - begin, run


def warm_up() -> None:
    for mode in MODES:
        timed_run(gf.environments.four_rooms(11), 2.0, mode, 3_000)


def large(quick: bool) -> dict[str, Any]:
    S, horizon = (1_000, 10**5) if quick else (10_000, 10**6)
    mdp = gf.environments.garnet(S, 4, 8)
    print(f"\nSCAL+ on Garnet({S:,}, 4, 8), {horizon:,} steps, c = 2  (claim: at most 40 s of CPU on one core)")
    found = {}
    for mode in MODES:
        seconds, run = timed_run(mdp, 2.0, mode, horizon)
        print(
            f"  {mode:>5}: {seconds:6.2f} s, planning {run.planning_seconds:.2f} s, {len(run.episodes):,} episodes, "
            f"{run.episodes['sweeps'].sum():,} sweeps"
        )
        found[mode] = seconds
    return {"S": S, "steps": horizon, "seconds": found}


def scaling(quick: bool) -> dict[str, list[tuple[int, float, float]]]:
    print("\nCPU time of planning per episode, 30 steps per state, theorem's constants")
    sizes = (300, 1_000, 3_000) if quick else (300, 1_000, 3_000, 10_000, 30_000, 100_000)
    found: dict[str, list[tuple[int, float, float]]] = {}
    for name, span in (("Garnet", 2.0), ("four rooms", 5.0)):
        for S in sizes:
            side = 2 * round((S**0.5 - 1) / 2) + 1
            mdp = gf.environments.garnet(S, 4, 8) if name == "Garnet" else gf.environments.four_rooms(side)
            cost = {}
            for mode in MODES:
                horizon = min(30 * S, 300_000) if mode == "local" or S <= 10_000 else min(3 * S, 30_000)
                _, run = timed_run(mdp, span, mode, horizon)
                cost[mode] = 1e6 * run.planning_seconds / len(run.episodes)
                length = horizon / len(run.episodes)
            found.setdefault(name, []).append((mdp.n_states, cost["full"], cost["local"]))
            print(
                f"  {name:>10}, S = {mdp.n_states:>7,}: full {cost['full']:>9,.0f} µs, local {cost['local']:>9,.0f} µs "
                f"per episode of {length:,.0f} steps; ratio {cost['full'] / cost['local']:.1f}"
            )
    for option in sys.argv:
        if option.startswith("--plot="):
            draw(found, option.removeprefix("--plot="))
    return found


def draw(found: dict[str, list[tuple[int, float, float]]], path: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for (name, points), colour in zip(found.items(), ("#0072B2", "#D55E00"), strict=True):
        S, full, local = (np.array(column) for column in zip(*points, strict=True))
        axes.loglog(S, full, "--s", color=colour, mfc="white", label=f"{name}, full sweeps")
        axes.loglog(S, local, "-o", color=colour, label=f"{name}, local repairs")
    axes.set(xlabel="number of states S (4 actions)", ylabel="planning, µs of CPU per episode")
    axes.grid(True, which="major", color="#dddddd")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    print(f"  drawn to {path}")


_CHILD = """
import json, sys
import gainful as gf
S, horizon = int(sys.argv[1]), int(sys.argv[2])
mdp = gf.environments.garnet(S, 4, 8)
agent = gf.SCALPlus(S, 4, span=2.0, reward_min=mdp.reward_min, reward_max=mdp.reward_max)
run = gf.simulate(agent, mdp, horizon, seed=1)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "peak": int(status["VmHWM"].split()[0]) * 1024, "episodes": len(run.episodes),
    "seen": int(agent.statistics.length.sum()), "planning": agent.replanning,
    "seconds": run.planning_seconds + run.acting_seconds,
}))
"""


def memory(quick: bool) -> dict[str, Any]:
    S, horizon = (10_000, 10**5) if quick else (100_000, 10**7)
    print(f"\npeak memory, SCAL+ on Garnet({S:,}, 4, 8), {horizon:,} steps, everything included  (claim: under 1 GB)")
    done = subprocess.run([sys.executable, "-c", _CHILD, str(S), str(horizon)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    print(
        f"  {found['peak'] / 1e6:.0f} MB; {found['seen']:,} distinct transitions, {found['episodes']:,} episodes, "
        f"{found['planning']} re-planning, {found['seconds']:.0f} s of CPU"
    )
    return {"S": S, "steps": horizon, "peak_bytes": found["peak"]}


PARTS: dict[str, Callable[[bool], Any]] = {"large": large, "scaling": scaling, "memory": memory}

if __name__ == "__main__":
    warm_up()
    run_parts(PARTS)
