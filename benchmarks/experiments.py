"""The overhead of an experiment beyond its runs, and the cost of reading many runs (CPU time, best of several).

    python benchmarks/experiments.py [overhead] [store] [--quick | --record]

overhead  tiny runs through `run_experiment` with one worker, against `simulate` called in a loop in this process
store     10,000 stored runs of about 140 checkpoints: writing, reading and aggregating them, size and memory
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gainful as gf
from gainful.experiments.environment_facts import facts_of
from gainful.experiments.execution import Task, agent_factory_of, environment_of, execute
from gainful.experiments.spec import read_spec
from gainful.experiments.store import STORE_FILE, Store
from gainful.experiments.wire_format import RunResult, pack, unpack

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.parts import run_parts

AGENTS = ("scal-plus", "psrl")
TINY = 1_000
LIMIT = 10.0
"""Milliseconds of CPU time that an experiment may add to a run."""


def spec_of(agents: tuple[str, ...], horizon: float, seeds: int, **more: Any) -> Any:
    return read_spec(
        {
            "horizon": horizon,
            "seeds": seeds,
            "environments": [{"name": "riverswim"}],
            "agents": [{"name": name} for name in agents],
            **more,
        }
    )


# ---------------------------------------------------------------------- overhead


def cpu_times() -> tuple[float, float]:
    """CPU seconds of this process, and of its children that have ended."""
    found = []
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        found.append(used.ru_utime + used.ru_stime)
    return found[0], found[1]


def sweep_times(spec: Any, rounds: int) -> tuple[float, float]:
    """CPU seconds of the driver and of its worker, of the cheapest of several sweeps into empty folders."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            before = cpu_times()
            outcome = gf.run_experiment(spec, folder, jobs=1)
            after = cpu_times()
        assert outcome.complete
        found.append((after[0] - before[0], after[1] - before[1]))
    return min(found, key=sum)


def bare_time(spec: Any, rounds: int) -> float:
    """CPU seconds of the same agents, made and run in a loop."""
    runs = spec.configurations()
    facts = facts_of(environment_of(runs[0]))

    def loop() -> None:
        for c in runs:
            env = environment_of(c)
            agent = agent_factory_of(c, env, facts["span"]).make()
            gf.simulate(agent, env, c.horizon, c.seed, checkpoints=c.checkpoints, gain=facts["gain"])

    return best(loop, rounds)


def best(action: Callable[[], Any], rounds: int) -> float:
    """CPU seconds, the best of several."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        action()
        times.append(time.process_time() - began)
    return min(times)


def overhead(quick: bool) -> dict[str, dict[str, float]]:
    n, rounds = (100, 2) if quick else (300, 4)
    kept = {}
    for name in AGENTS:
        few, many = (spec_of((name,), TINY, seeds) for seeds in (1, n))
        sweep_times(few, 1)  # compile, here and in the worker
        bare = bare_time(many, rounds) / n
        one, all_of_them = sweep_times(few, rounds), sweep_times(many, rounds)
        driver, worker = ((a - o) / (n - 1) for a, o in zip(all_of_them, one, strict=True))
        print(f"\n{name} in riverswim, {n} runs of {TINY:,} steps, one worker; ms of CPU time")
        print(f"  {'a sweep of one run':<28} {1e3 * one[0]:8.1f} driver, {1e3 * one[1]:.1f} its worker (start-up)")
        print(f"  {'each run more':<28} {1e3 * driver:8.2f} driver, {1e3 * worker:.2f} its worker")
        print(f"  {'simulate in a loop':<28} {1e3 * bare:8.2f}")
        found = 1e3 * (driver + worker - bare)
        print(f"  {'claim: adds less than':<28} {LIMIT:8.2f}, found {found:.2f}{'' if found < LIMIT else '   MISSED'}")
        kept[name] = {"driver_ms": 1e3 * driver, "worker_ms": 1e3 * worker, "loop_ms": 1e3 * bare, "added_ms": found}
        kept[name]["start_ms"] = 1e3 * one[1]
    return kept


# ---------------------------------------------------------------------- store

READING = """
import json, sys, time
import pandas
from gainful.experiments.aggregates import curves, summary
from gainful.experiments.results import results
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
start, done = peak(), []
began = time.process_time(); frame = results(sys.argv[1]); done.append(time.process_time() - began)
read = peak()
began = time.process_time(); summary(frame); done.append(time.process_time() - began)
began = time.process_time(); curves(frame); done.append(time.process_time() - began)
print(json.dumps([done, [start, read, peak()], len(frame), int(frame.memory_usage(deep=True).sum())]))
"""
"""A process of its own; ru_maxrss would count the peak of the one that started it."""


def filled(folder: Path, seeds: int) -> dict[str, Any]:
    """A store in which every run has the result of one that was made."""
    spec = spec_of(AGENTS, 3e7, seeds, title="many runs")
    runs = spec.configurations()
    facts = facts_of(environment_of(runs[0]))
    made = {}
    for c in {c.agent: c for c in reversed(runs)}.values():
        task = Task(c.run_id, json.loads(c.to_json()), facts["gain"], facts["gain_source"], facts["span"])
        made[c.agent] = unpack(execute(task))
    labelled = [(c, labels.environment, labels.agent) for c, labels in zip(runs, spec.labels, strict=True)]
    packed = []
    for c in runs:
        values, arrays = made[c.agent]
        changed = {**arrays, "pseudo_regret": arrays["pseudo_regret"] * (1.0 + c.seed / seeds)}  # no two alike
        packed.append(pack({**values, "run_id": c.run_id}, changed))
    with Store.open(folder) as store:
        began = time.process_time()
        store.plan(spec.text, spec.title, labelled)
        planned = time.process_time()
        for c, data in zip(runs, packed, strict=True):
            store.keep(c, RunResult.from_bytes(data), 1)
        ended = time.process_time()
    per_run, size = 1e3 * (ended - planned) / len(runs), sum(map(len, packed)) // len(runs)
    sizes = {name: [len(data) for c, data in zip(runs, packed, strict=True) if c.agent == name] for name in AGENTS}
    print(f"\n{len(runs):,} runs of {len(runs[0].checkpoints)} checkpoints, {size:,} bytes each when packed")
    print(f"  {'planned in':<28} {planned - began:8.2f} s")
    print(f"  {'stored in':<28} {ended - planned:8.2f} s, {per_run:.2f} ms each, a transaction each")
    return {"store_ms": per_run, "run_bytes": {name: sum(found) / len(found) for name, found in sizes.items()}}


def store(quick: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = filled(folder, 500 if quick else 5_000)
        size = (folder / STORE_FILE).stat().st_size
        print(f"  {'file':<28} {size / 1e6:8.1f} MB")
        found = []
        for _ in range(2 if quick else 3):
            command = [sys.executable, "-c", READING, name]
            found.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        times = [min(times) for times in zip(*(one[0] for one in found), strict=True)]
        (start, read, peak), rows, table = found[0][1], found[0][2], found[0][3]
        print(f"  {'results()':<28} {times[0]:8.2f} s, {rows:,} rows, {table / 1e6:.0f} MB of table")
        print(f"  {'summary()':<28} {times[1]:8.2f} s")
        print(f"  {'curves()':<28} {times[2]:8.2f} s")
        megabytes = [1024 * n / 1e6 for n in (start, read, peak)]
        print(
            f"  {'peak memory':<28} {megabytes[2]:8.0f} MB, {megabytes[1]:.0f} of it reached in results(), "
            f"{megabytes[0]:.0f} before anything"
        )
    seconds = dict(zip(("results", "summary", "curves"), times, strict=True))
    return kept | {
        "file_megabytes": size / 1e6, "seconds": seconds, "rows": rows,
        "table_megabytes": table / 1e6, "peak_megabytes": megabytes[2],
    }  # fmt: skip


PARTS: dict[str, Callable[[bool], Any]] = {"overhead": overhead, "store": store}

if __name__ == "__main__":
    run_parts(PARTS)
