"""Many runs and large models on one GPU: steps per second, traces and regret against the CPU's, and times of `solve`.

    python benchmarks/gpu.py [PART ...] [--quick | --record]

needs an NVIDIA GPU and `gainful[cuda]`.

speed        steps per second of every agent, without compilation
profile      where the time goes: listing the runs whose episode is over, planning for them, and steps
traces       how many runs have the rewards, the episodes and the plans of the CPU
solve        `solve` against the CPU as a user gets it, 0.32 and 3.2·10⁸ transitions
sweeps       the same for `relative_value_iteration`, 3.2·10⁸ transitions
one_thread   `solve` against one thread of the CPU
billion      `solve` with 10⁹ transitions: 12 GB on the GPU, and 33 GB on the CPU while the model is built
experiment   `run_experiment` with 1,000 seeds on the GPU, by this process and by Dask, against the local pool
million      the million runs of the picture in docs/gpu.md; it writes docs/images/regret_of_a_million_runs.csv
"""

from __future__ import annotations

import csv
import hashlib
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gainful as gf
from gainful.experiments.spec import read_spec
from gainful.experiments.store import Store
from gainful.experiments.wire_format import unpack
from gainful.simulation.summary import RunSummary, bin_edges

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.parts import run_parts

RIVER, BERNOULLI = gf.environments.riverswim(6), gf.environments.riverswim(6, reward_law="bernoulli")
GARNET, LQG = gf.environments.garnet(200, 4, 8), gf.environments.lqg()
PLAN_FIELDS = ("gain_low", "gain_high", "span", "sweeps")
HISTOGRAMS = Path(__file__).parent.parent / "docs" / "images" / "regret_of_a_million_runs.csv"
QUICK = (2, 20)
"""Runs and steps of --quick, which numba-cuda's simulator can make."""
Row = dict[str, Any]


def on_card(rows: list[Row]) -> Row:
    """What is recorded: the name of the GPU and the rows."""
    from gainful.cuda_device import device_name

    return {"card": device_name(), "rows": rows}


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
PROFILED = ("SCAL+, RiverSwim-6", "UCRL2B, RiverSwim-6", "C-SCAL+, LQG, 20 cells", "SCAL+, Garnet(200, 4, 8)")
"""Subjects whose kernels are timed one by one."""


# ---------------------------------------------------------------------- speed


def summarised(title: str, environment: Any, make: Callable[[int], Any], runs: int, horizon: int) -> RunSummary:
    """Make runs without keeping them, and print the steps per second; compiling was before."""
    points = [10**k for k in range(3, 8) if 10**k <= horizon] or [horizon]
    warm_up = min(100, horizon)
    gf.simulate_many(
        make, environment, warm_up, range(min(runs, 1000)), checkpoints=[warm_up], device="cuda", keep="summary"
    )
    found: RunSummary = gf.simulate_many(
        make, environment, horizon, range(runs), checkpoints=points, device="cuda", keep="summary"
    )
    rate = runs * horizon / found.seconds / 1e9
    print(f"{title}: {runs:,} runs of {horizon:.0e} steps in {found.seconds:.1f} s, {rate:.1f} G steps/s", flush=True)
    return found


def speed(quick: bool) -> Row:
    """Steps per second of every agent."""
    rows = []
    for subject in SUBJECTS:
        runs, horizon = QUICK if quick else subject.timed
        found = summarised(subject.title, subject.environment, subject.agent, runs, horizon)
        rows.append({"what": subject.title, "runs": runs, "steps": horizon, "seconds": round(found.seconds, 2)})
    return on_card(rows)


def profile(quick: bool) -> Row:
    """Seconds of each kind of kernel; waiting for each makes all of it slower than `speed`, by little."""
    subjects = [subject for subject in SUBJECTS if subject.title in PROFILED]
    return on_card([profile_of(subject, *(QUICK if quick else subject.timed)) for subject in subjects])


def profile_of(subject: Subject, runs: int, horizon: int) -> Row:
    """Launch list, plan and steps in turn, and wait for each."""
    from gainful.cuda_device import cuda
    from gainful.simulation.device.batch import Batch
    from gainful.simulation.device.many import DeviceSweep
    from gainful.simulation.device.runs import FINISHED

    seeds = np.arange(runs, dtype=np.uint64)
    sweep = DeviceSweep(subject.agent, subject.environment, np.array([horizon]), seeds, False)
    Batch(sweep.many, seeds[: min(runs, 1000)]).launches()  # compiles
    batch, rounds = Batch(sweep.many, seeds), 0
    launches = batch.launches()
    times = dict.fromkeys((kind for _, kind in KERNELS), 0.0)
    cuda.synchronize()
    while rounds % 16 or not np.all(batch.runs.status.copy_to_host() == FINISHED):
        for launch in launches:
            began = time.perf_counter()
            launch()
            cuda.synchronize()
            times[kind_of(launch.name)] += time.perf_counter() - began
        rounds += 1
    print(
        f"{subject.title}: {', '.join(f'{name} {spent:.2f} s' for name, spent in times.items())}, {rounds} rounds",
        flush=True,
    )
    row: Row = {"what": subject.title, "runs": runs, "steps": horizon, "rounds": rounds}
    return row | {name: round(spent, 2) for name, spent in times.items()}


KERNELS = (("list", "listing"), ("plan", "planning"), ("step", "stepping"), ("load", "loading"), ("count", "counting"))
"""How the names of kernels begin, and what these do."""


def kind_of(kernel: str) -> str:
    """What a kernel does."""
    return next(kind for name, kind in KERNELS if kernel.startswith(name))


# ---------------------------------------------------------------------- traces


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


def traces(quick: bool) -> Row:
    """Every agent on the GPU and on the CPU."""
    with multiprocessing.get_context("spawn").Pool() as pool:
        return on_card([compare(i, pool, *(QUICK if quick else SUBJECTS[i].compared)) for i in range(len(SUBJECTS))])


def compare(i: int, pool: Any, n: int, horizon: int) -> Row:
    """How many runs of the GPU have the trace of the CPU, and both means of regret."""
    subject, part = SUBJECTS[i], max(1, n // 64)
    jobs = [(i, k, min(k + part, n), horizon) for k in range(0, n, part)]
    here = [trace for found in pool.map(on_cpu, jobs, chunksize=1) for trace in found]
    runs = gf.simulate_many(subject.agent, subject.environment, horizon, range(n), device="cuda")
    there = [trace_of(run) for run in runs]
    equal = [a.steps == b.steps for a, b in zip(there, here, strict=True)]
    bits = [same and a.plans == b.plans for same, a, b in zip(equal, there, here, strict=True)]
    row: Row = {"what": subject.title, "runs": n, "steps": horizon, "equal": sum(equal), "bits": sum(bits)}
    for name, found in (("gpu", there), ("cpu", here)):
        regret = np.array([trace.regret for trace in found])
        row[name] = [round(float(regret.mean()), 2), round(float(regret.std(ddof=1) / np.sqrt(n)), 2)]
    print(row, flush=True)
    return row


# ---------------------------------------------------------------------- planners


def large_model(n_states: int, window: int) -> gf.MDP:
    """Four actions, eight next states each: anywhere, or among the next `window` states."""
    rng, n, width = np.random.default_rng(0), 4 * n_states, (window or n_states) // 8
    to = rng.integers(0, width, size=(n, 8), dtype=np.uint32)
    to += np.arange(8, dtype=np.uint32) * np.uint32(width)
    if window:
        to = np.sort((to + np.repeat(np.arange(n_states), 4)[:, None]) % n_states, axis=1)
    p = rng.random((n, 8))
    p /= p.sum(axis=1, keepdims=True)
    return gf.MDP.from_rows(np.arange(0, 8 * n + 1, 8), to.reshape(-1), p.reshape(-1), rng.random((n_states, 4)))


def timed(function: Callable[..., gf.Plan], mdp: gf.MDP, **options: Any) -> tuple[gf.Plan, float]:
    """A plan, and the wall time that it took."""
    began = time.perf_counter()
    return function(mdp, **options), time.perf_counter() - began


def against_cpu(name: str, mdp: gf.MDP, window: int, precision: float, threads: int | None = None) -> Row:
    """A planner on the GPU, the best of five times, and on the CPU, with its own number of threads or this one."""
    from gainful.machine import available_cores

    function, chosen = getattr(gf, name), {} if threads is None else {"threads": threads}
    plans = [timed(function, mdp, precision=precision, device="cuda") for _ in range(5)]
    there, seconds = min(plans, key=lambda found: found[1])
    here, on_the_cpu = timed(function, mdp, precision=precision, **chosen)
    row: Row = {
        "planner": name,
        "states": mdp.n_states,
        "window": window,
        "transitions": mdp.n_transitions,
        "gpu": round(seconds, 3),
        "gpu_sweeps": there.sweeps,
        "cpu": round(on_the_cpu, 2),
        "cpu_sweeps": here.sweeps,
        "threads": threads or (available_cores() if name == "solve" else 1),
        "same_bits": bool(np.array_equal(there.bias, here.bias) and there.gain_bounds == here.gain_bounds),
    }
    print(row, there.gain_bounds, here.gain_bounds, flush=True)
    return row


def solve(quick: bool) -> Row:
    """A model that mixes slowly, and a large one."""
    window, precision = (16, 1e-3) if quick else (10_000, 1e-6)
    rows = [against_cpu("solve", large_model(50 if quick else 10**6, window), window, precision)]
    rows.append(against_cpu("solve", large_model(80 if quick else 10**7, 0), 0, 1e-3 if quick else 1e-8))
    return on_card(rows)


def sweeps(quick: bool) -> Row:
    """`relative_value_iteration`, which sweeps with one thread on the CPU."""
    mdp = large_model(80 if quick else 10**7, 0)
    return on_card([against_cpu("relative_value_iteration", mdp, 0, 1e-3 if quick else 1e-8)])


def one_thread(quick: bool) -> Row:
    """`solve` against one thread of the CPU."""
    return on_card([against_cpu("solve", large_model(80 if quick else 10**7, 0), 0, 1e-3 if quick else 1e-8, 1)])


def billion(quick: bool) -> Row:
    """`solve` with 10⁹ transitions."""
    return on_card([against_cpu("solve", large_model(80 if quick else 31_250_000, 0), 0, 1e-3 if quick else 1e-8)])


# ---------------------------------------------------------------------- experiments


def experiment(quick: bool) -> Row:
    """The same experiment in the local pool, on the GPU, and by a Dask worker with the GPU: what each stored."""
    spec = read_spec(
        {
            "horizon": 30 if quick else 10**5,
            "seeds": 2 if quick else 1000,
            "environments": [{"name": "riverswim"}],
            "agents": [{"name": "scal-plus", "parameters": {"span": 7.0}}, {"name": "ucrl2b"}],
        }
    )
    ways: dict[str, Row] = {"cpu": {}, "gpu": {"device": "cuda"}, "dask": {"device": "cuda", "dask": "local"}}
    rows, stored = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for name, options in ways.items():
            outcome = gf.run_experiment(spec, Path(folder) / name, **options)
            with Store.read(Path(folder) / name) as store:
                stored[name] = {run["run_id"]: unpack(run["data"])[1]["rewards"] for run in store.runs()}
            equal = sum(np.array_equal(curve, stored["cpu"][i]) for i, curve in stored[name].items())
            rows.append({"where": name, "runs": outcome.finished, "seconds": round(outcome.seconds, 1), "equal": equal})
            print(rows[-1], flush=True)
    return on_card(rows)


# ---------------------------------------------------------------------- the picture


def write_histograms(found: RunSummary, file: Path) -> None:
    """One row for each bin that has runs: the step, the edges of the bin, the number of runs."""
    edges = bin_edges()
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(["steps", "from", "to", "runs"])
        for step, row in zip(found.steps, found.expected_regret.counts, strict=True):
            for i in np.flatnonzero(row):
                table.writerow([int(step), f"{edges[i]:.6g}", f"{edges[i + 1]:.6g}", int(row[i])])


def million(quick: bool) -> Row:
    """The million runs of the picture."""
    runs, horizon = QUICK if quick else (1_000_000, 10**7)
    found = summarised("SCAL+, RiverSwim-6, deterministic rewards", RIVER, scal_plus, runs, horizon)
    measure, rows = found.expected_regret, []
    for i, step in enumerate(found.steps):
        row = {"steps": int(step), "mean": measure.mean[i], "error": measure.standard_error[i]}
        row |= {"least": measure.minimum[i], "largest": measure.maximum[i]}
        row["quantiles"] = [float(measure.quantile(q)[i]) for q in (0.001, 0.05, 0.5, 0.95, 0.999)]
        rows.append({name: x if isinstance(x, list | int) else float(x) for name, x in row.items()})
    if not quick:
        write_histograms(found, HISTOGRAMS)
    return on_card(rows)


def main() -> None:
    """Run the parts that were asked for."""
    from gainful.cuda_device import device_name, require_device

    warnings.simplefilter("ignore")
    require_device()
    print(device_name(), flush=True)
    parts = (speed, profile, traces, solve, sweeps, one_thread, billion, experiment, million)
    run_parts({part.__name__: part for part in parts})


if __name__ == "__main__":
    main()
