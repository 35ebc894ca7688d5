"""Many runs on one GPU: steps per second, and how many runs have the traces of the CPU.

`python benchmarks/gpu.py [FOLDER]` needs an NVIDIA GPU and `gainful[cuda]`. With a folder it also makes the million
runs of the picture in docs/gpu.md, and writes their histograms to `regret_of_a_million_runs.csv` there.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gainful as gf
from gainful.simulation.summary import RunSummary, bin_edges

RUNS = 473_088
RIVER, BERNOULLI = gf.environments.riverswim(6), gf.environments.riverswim(6, reward_law="bernoulli")
GARNET = gf.environments.garnet(200, 4, 8)


def scal_plus(seed: int) -> gf.SCALPlus:
    """SCAL+ in RiverSwim."""
    return gf.SCALPlus(6, 2, span=7.0, seed=seed)


def in_garnet(seed: int) -> gf.SCALPlus:
    """SCAL+ in Garnet(200, 4, 8)."""
    low, high = GARNET.reward_min, GARNET.reward_max
    return gf.SCALPlus(200, 4, span=1.0, reward_min=low, reward_max=high, seed=seed)


def same_traces(make: Callable[[int], Any], mdp: gf.MDP, horizon: int, n: int) -> None:
    """Compare runs of the GPU with those of the CPU."""
    began = time.perf_counter()
    there = gf.simulate_many(make, mdp, horizon, range(n), device="cuda")
    middle = time.perf_counter()
    here = gf.simulate_many(make, mdp, horizon, range(n))
    seconds = middle - began, time.perf_counter() - middle
    traces = bits = 0
    for a, b in zip(there, here, strict=True):
        same = np.array_equal(a.rewards, b.rewards) and np.array_equal(a.episodes["step"], b.episodes["step"])
        traces += same
        fields = ("gain_low", "gain_high", "span", "sweeps")
        bits += same and all(np.array_equal(a.episodes[f], b.episodes[f]) for f in fields)
    mean = [np.mean([r.regret[-1] for r in runs]) for runs in (there, here)]
    print(
        f"{n} runs of {horizon:.0e} steps: {traces} with the rewards and episodes of the CPU, {bits} with all bits "
        f"of its plans; mean regret {mean[0]:.2f} and {mean[1]:.2f}; {seconds[0]:.1f} s and {seconds[1]:.1f} s",
        flush=True,
    )


def speed(name: str, make: Callable[[int], Any], mdp: gf.MDP, horizon: int, runs: int) -> RunSummary:
    """Print the steps per second, without compilation."""
    points = [10**k for k in range(3, 8) if 10**k <= horizon]
    gf.simulate_many(make, mdp, 100, range(1000), checkpoints=[100], device="cuda", keep="summary")
    found = gf.simulate_many(make, mdp, horizon, range(runs), checkpoints=points, device="cuda", keep="summary")
    regret = found.regret
    print(
        f"{name}: {runs} runs of {horizon:.0e} steps in {found.seconds:.1f} s, "
        f"{runs * horizon / found.seconds / 1e9:.1f} G steps/s; "
        f"regret {regret.mean[-1]:.2f} with standard error {regret.standard_error[-1]:.2f}",
        flush=True,
    )
    return found


def write_histograms(found: RunSummary, file: Path) -> None:
    """One row for each bin that has runs: the step, the edges of the bin, the number of runs."""
    edges = bin_edges()
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(["steps", "from", "to", "runs"])
        for step, row in zip(found.steps, found.expected_regret.counts, strict=True):
            for i in np.flatnonzero(row):
                table.writerow([int(step), f"{edges[i]:.6g}", f"{edges[i + 1]:.6g}", int(row[i])])


def main() -> None:
    """Print everything."""
    from gainful.cuda_device import require_device

    warnings.simplefilter("ignore")  # small grids
    print(require_device().name, flush=True)
    speed("SCAL+ in RiverSwim-6, Bernoulli rewards", scal_plus, BERNOULLI, 10**7, RUNS)
    same_traces(in_garnet, GARNET, 10**5, 32)
    speed("SCAL+ in Garnet(200,4,8)", in_garnet, GARNET, 10**5, 100_000)
    same_traces(scal_plus, RIVER, 10**6, 1000)
    if len(sys.argv) > 1:
        found = speed("SCAL+ in RiverSwim-6, a million runs", scal_plus, RIVER, 10**7, 1_000_000)
        measure = found.expected_regret
        for i, step in enumerate(found.steps):
            tail = [measure.quantile(q)[i] for q in (0.001, 0.05, 0.5, 0.95, 0.999)]
            print(step, measure.mean[i], measure.standard_error[i], measure.minimum[i], *tail, measure.maximum[i])
        write_histograms(found, Path(sys.argv[1]) / "regret_of_a_million_runs.csv")


if __name__ == "__main__":
    main()
