"""Many runs and large models on one GPU: steps per second, traces and regret against the CPU's, and times of `solve`.

`python benchmarks/gpu.py [SECTION ...] [--folder FOLDER]` needs an NVIDIA GPU and `gainful[cuda]`. The sections are
`speed`, `traces`, `solve` (the first three by default) and `million`, which makes the million runs of the picture in
docs/gpu.md and writes their histograms to `regret_of_a_million_runs.csv` in the folder.
"""

from __future__ import annotations

import csv
import hashlib
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gainful as gf
from gainful.simulation.summary import RunSummary, bin_edges

RIVER, BERNOULLI = gf.environments.riverswim(6), gf.environments.riverswim(6, reward_law="bernoulli")
GARNET, LQG = gf.environments.garnet(200, 4, 8), gf.environments.lqg()
PLAN_FIELDS = ("gain_low", "gain_high", "span", "sweeps")


class Subject(NamedTuple):
    """An agent in an environment: runs and steps to time, and runs and steps to compare with the CPU."""

    title: str
    environment: Any
    agent: Callable[[int], Any]
    timed: tuple[int, int]
    compared: tuple[int, int]


def scal_plus(seed: int) -> gf.SCALPlus:
    """SCAL+ in RiverSwim."""
    return gf.SCALPlus(6, 2, span=7.0, seed=seed)


def kl_scal_plus(seed: int) -> gf.KLSCALPlus:
    """KL-SCAL+ in RiverSwim."""
    return gf.KLSCALPlus(6, 2, span=7.0, seed=seed)


def ucrl2(seed: int) -> gf.UCRL2:
    """UCRL2 in RiverSwim."""
    return gf.UCRL2(6, 2, seed=seed)


def ucrl2b(seed: int) -> gf.UCRL2B:
    """UCRL2B in RiverSwim."""
    return gf.UCRL2B(6, 2, seed=seed)


def fixed(seed: int) -> gf.Fixed:
    """All actions with the same probability, in RiverSwim."""
    return gf.Fixed(6, 2, seed=seed)


def in_garnet(seed: int) -> gf.SCALPlus:
    """SCAL+ in Garnet(200, 4, 8)."""
    low, high = GARNET.reward_min, GARNET.reward_max
    return gf.SCALPlus(200, 4, span=1.0, reward_min=low, reward_max=high, seed=seed)


def in_lqg(seed: int) -> gf.CSCALPlus:
    """C-SCAL+ in LQG, 20 cells."""
    cells = gf.Partition.uniform(bins=20)
    return gf.CSCALPlus(partition=cells, n_actions=5, span=2.0, lipschitz=LQG.lipschitz, holder=1.0, seed=seed)


SUBJECTS = [
    Subject("SCAL+, RiverSwim-6", BERNOULLI, scal_plus, (473_088, 10**7), (10_000, 10**6)),
    Subject("UCRL2B, RiverSwim-6", BERNOULLI, ucrl2b, (400_000, 10**7), (1000, 10**5)),
    Subject("UCRL2, RiverSwim-6", BERNOULLI, ucrl2, (400_000, 10**7), (1000, 10**5)),
    Subject("KL-SCAL+, RiverSwim-6", BERNOULLI, kl_scal_plus, (400_000, 10**7), (1000, 10**5)),
    Subject("random actions, RiverSwim-6", BERNOULLI, fixed, (400_000, 10**5), (1000, 10**5)),
    Subject("C-SCAL+, LQG, 20 cells", LQG, in_lqg, (200_000, 10**6), (1000, 10**5)),
    Subject("SCAL+, Garnet(200, 4, 8)", GARNET, in_garnet, (100_000, 10**6), (200, 10**5)),
]


def speed(title: str, environment: Any, make: Callable[[int], Any], runs: int, horizon: int) -> RunSummary:
    """Print the steps per second, without compilation."""
    points = [10**k for k in range(3, 8) if 10**k <= horizon]
    gf.simulate_many(make, environment, 100, range(1000), checkpoints=[100], device="cuda", keep="summary")
    found: RunSummary = gf.simulate_many(
        make, environment, horizon, range(runs), checkpoints=points, device="cuda", keep="summary"
    )
    rate = runs * horizon / found.seconds / 1e9
    print(f"{title}: {runs:,} runs of {horizon:.0e} steps in {found.seconds:.1f} s, {rate:.1f} G steps/s", flush=True)
    return found


class Trace(NamedTuple):
    """One run: a digest of its rewards and episodes, one of its plans, and its regret."""

    steps: str
    plans: str
    regret: float


def trace_of(run: gf.Run) -> Trace:
    """What is compared of a run."""
    steps = hashlib.sha256(run.rewards.tobytes() + run.episodes["step"].tobytes())
    plans = hashlib.sha256(b"".join(run.episodes[name].tobytes() for name in PLAN_FIELDS))
    return Trace(steps.hexdigest(), plans.hexdigest(), float(run.regret[-1]))


def on_cpu(job: tuple[int, int, int, int]) -> list[Trace]:
    """The runs of one process: of subject i, seeds `first` … `last` - 1, `horizon` steps."""
    i, first, last, horizon = job
    subject = SUBJECTS[i]
    runs = gf.simulate_many(subject.agent, subject.environment, horizon, range(first, last), threads=1)
    return [trace_of(run) for run in runs]


def compare(i: int, pool: Any) -> None:
    """How many runs of the GPU have the trace of the CPU, and both means of regret."""
    subject, (n, horizon) = SUBJECTS[i], SUBJECTS[i].compared
    part = max(1, n // 64)
    began = time.perf_counter()
    here = [
        trace
        for part_of in pool.map(on_cpu, [(i, k, min(k + part, n), horizon) for k in range(0, n, part)], chunksize=1)
        for trace in part_of
    ]
    middle = time.perf_counter()
    there = [
        trace_of(run) for run in gf.simulate_many(subject.agent, subject.environment, horizon, range(n), device="cuda")
    ]
    seconds = middle - began, time.perf_counter() - middle
    traces = sum(a.steps == b.steps for a, b in zip(there, here, strict=True))
    bits = sum(a.steps == b.steps and a.plans == b.plans for a, b in zip(there, here, strict=True))
    regrets = [np.array([trace.regret for trace in runs]) for runs in (there, here)]
    means = " and ".join(f"{r.mean():.2f} ± {r.std(ddof=1) / np.sqrt(n):.2f}" for r in regrets)
    print(
        f"{subject.title}: of {n:,} runs of {horizon:.0e} steps {traces:,} have the CPU's rewards and episodes, "
        f"{bits:,} all bits of its plans; regret {means}; CPU {seconds[0]:.1f} s, GPU {seconds[1]:.1f} s",
        flush=True,
    )


def large_model(n_states: int, window: int) -> gf.MDP:
    """Four actions, eight next states each: anywhere, or among the next `window` states."""
    rng, n, width = np.random.default_rng(0), 4 * n_states, (window or n_states) // 8
    to = np.arange(8) * width + rng.integers(0, width, size=(n, 8))
    if window:
        to = np.sort((to + np.repeat(np.arange(n_states), 4)[:, None]) % n_states, axis=1)
    p = rng.random((n, 8))
    p /= p.sum(axis=1, keepdims=True)
    return gf.MDP.from_rows(np.arange(0, 8 * n + 1, 8), to.reshape(-1), p.reshape(-1), rng.random((n_states, 4)))


def timed(function: Callable[..., gf.Plan], mdp: gf.MDP, **options: Any) -> tuple[gf.Plan, float]:
    """A plan, and the wall time that it took."""
    began = time.perf_counter()
    return function(mdp, **options), time.perf_counter() - began


def planners(n_states: int, window: int, precision: float) -> None:
    """`solve` and `relative_value_iteration` on the GPU, against the CPU of the same machine."""
    mdp = large_model(n_states, window)
    for function in (gf.solve, gf.relative_value_iteration):
        if window and function is gf.relative_value_iteration:
            continue  # thousands of sweeps
        there, seconds = min(
            (timed(function, mdp, precision=precision, device="cuda") for _ in range(2)), key=lambda x: x[1]
        )
        here, on_the_cpu = timed(function, mdp, precision=precision)
        same = np.array_equal(there.bias, here.bias) and there.gain_bounds == here.gain_bounds
        print(
            f"{function.__name__}, {n_states:.0e} states, {mdp.n_transitions:.1e} transitions"
            f"{f' in windows of {window}' if window else ''}: GPU {seconds:.2f} s ({there.sweeps} sweeps), CPU "
            f"{on_the_cpu:.2f} s ({here.sweeps} sweeps), {on_the_cpu / seconds:.1f} times; gain "
            f"{there.gain_bounds} and {here.gain_bounds}, {'the same bits' if same else 'other bits'}",
            flush=True,
        )


def write_histograms(found: RunSummary, file: Path) -> None:
    """One row for each bin that has runs: the step, the edges of the bin, the number of runs."""
    edges = bin_edges()
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(["steps", "from", "to", "runs"])
        for step, row in zip(found.steps, found.expected_regret.counts, strict=True):
            for i in np.flatnonzero(row):
                table.writerow([int(step), f"{edges[i]:.6g}", f"{edges[i + 1]:.6g}", int(row[i])])


def million(folder: Path) -> None:
    """The million runs of the picture."""
    found = speed("SCAL+, RiverSwim-6, deterministic rewards", RIVER, scal_plus, 1_000_000, 10**7)
    measure = found.expected_regret
    for i, step in enumerate(found.steps):
        tail = [measure.quantile(q)[i] for q in (0.001, 0.05, 0.5, 0.95, 0.999)]
        print(step, measure.mean[i], measure.standard_error[i], measure.minimum[i], *tail, measure.maximum[i])
    write_histograms(found, folder / "regret_of_a_million_runs.csv")


def main() -> None:
    """Print the sections that were asked for."""
    from gainful.cuda_device import device_name, require_device

    asked = sys.argv[1:]
    folder = Path(asked[asked.index("--folder") + 1]) if "--folder" in asked else Path()
    sections = [word for word in asked if word in ("speed", "traces", "solve", "million")] or [
        "speed",
        "traces",
        "solve",
    ]
    warnings.simplefilter("ignore")
    require_device()
    print(device_name(), flush=True)
    if "speed" in sections:
        for subject in SUBJECTS:
            speed(subject.title, subject.environment, subject.agent, *subject.timed)
    if "traces" in sections:
        with multiprocessing.get_context("spawn").Pool() as pool:
            for i in range(len(SUBJECTS)):
                compare(i, pool)
    if "solve" in sections:
        planners(10**6, 10_000, 1e-6)
        planners(10**7, 0, 1e-8)
    if "million" in sections:
        million(folder)


if __name__ == "__main__":
    main()
