"""The cost of the report of a large experiment: 20 agents x 10 environments x 100 seeds, about 140 checkpoints each.

    python benchmarks/report.py [page] [--quick | --record]

The runs are copies of two real runs, with noise and other labels and seeds; writing them takes longer than the report.
Measured in a process of its own: seconds from the import to the file, peak memory, and the size of the page beyond
plotly's bundle.
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gainful.experiments.environment_facts import facts_of
from gainful.experiments.execution import Task, environment_of, execute
from gainful.experiments.spec import read_spec
from gainful.experiments.store import STORE_FILE, Store
from gainful.experiments.wire_format import RunResult, pack, unpack
from gainful.report.writing import plotly_bundle

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.parts import run_parts

LIMITS = {"seconds": 60.0, "megabytes": 1000.0}

REPORTING = """
import json, resource, sys, time
began = time.perf_counter(), time.process_time()
from gainful.report.page import write_report
file = write_report(sys.argv[1])
took = time.perf_counter() - began[0], time.process_time() - began[1]
print(json.dumps([*took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file.stat().st_size]))
"""


def spec_of(agents: int, environments: int, seeds: int) -> Any:
    return read_spec(
        {
            "title": "Many runs", "horizon": 1e7, "seeds": seeds, "checkpoints": 20,
            "environments": [
                {"name": "riverswim", "label": f"RiverSwim {6 + i}", "parameters": {"n_states": 6 + i}}
                for i in range(environments)
            ],
            "agents": [
                {
                    "name": "scal-plus", "label": f"SCAL+, bonus_scale = {1.0 / (1 + i):.3f}",
                    "parameters": {"bonus_scale": 1.0 / (1 + i)},
                }
                for i in range(agents)
            ],
        }
    )  # fmt: skip


def fill(folder: Path, agents: int, environments: int, seeds: int) -> int:
    """A store of runs that look alike but differ; their number."""
    spec = spec_of(agents, environments, seeds)
    runs = spec.configurations()
    made: dict[str, Any] = {}
    rng = np.random.default_rng(0)
    labelled = [(c, labels.environment, labels.agent) for c, labels in zip(runs, spec.labels, strict=True)]
    with Store.open(folder) as store:
        store.plan(spec.text, spec.title, labelled)
        store._connection.execute("PRAGMA synchronous = OFF")
        for c, environment, _ in labelled:
            if environment not in made:
                facts = facts_of(environment_of(c))
                task = Task(c.run_id, json.loads(c.to_json()), facts["gain"], facts["gain_source"], facts["span"])
                made[environment] = unpack(execute(task))
            values, arrays = made[environment]
            scale = c.agent_parameters["bonus_scale"] * np.exp(0.2 * rng.standard_normal())
            noise = np.cumsum(rng.standard_normal(arrays["steps"].size)) * 5.0
            changed = {
                **arrays, "rewards": arrays["rewards"] - noise,
                "pseudo_regret": arrays["pseudo_regret"] * scale + noise,
                "expected_regret": arrays["expected_regret"] * scale,
            }  # fmt: skip
            store.keep(c, RunResult.from_bytes(pack({**values, "run_id": c.run_id}, changed)), 1)
    return len(runs)


def page(quick: bool) -> dict[str, float]:
    agents, environments, seeds = (20, 2, 25) if quick else (20, 10, 100)
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        n = fill(Path(name), agents, environments, seeds)
        size = (Path(name) / STORE_FILE).stat().st_size
        print(f"{n:,} runs stored in {time.perf_counter() - began:.0f} s, {size / 1e6:.0f} MB")
        command = [sys.executable, "-c", REPORTING, name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, cpu, peak, size_of_page = json.loads(done.stdout)
    bundle = len(plotly_bundle().encode())
    megabytes = 1024 * peak / 1e6
    print(f"  {'report written in':<28} {seconds:8.1f} s, {cpu:.1f} s of CPU time (limit {LIMITS['seconds']:.0f} s)")
    print(f"  {'peak memory':<28} {megabytes:8.0f} MB (limit {LIMITS['megabytes']:.0f} MB)")
    print(f"  {'page':<28} {size_of_page / 1e6:8.1f} MB, {(size_of_page - bundle) / 1e6:.1f} MB beyond plotly's bundle")
    if seconds > LIMITS["seconds"] or megabytes > LIMITS["megabytes"]:
        print("  MISSED: too slow or too large")
    return {
        "runs": n, "cpu_seconds": cpu, "wall_seconds": seconds, "peak_megabytes": megabytes,
        "page_megabytes": size_of_page / 1e6, "bundle_megabytes": bundle / 1e6,
    }  # fmt: skip


PARTS: dict[str, Callable[[bool], Any]] = {"page": page}

if __name__ == "__main__":
    run_parts(PARTS)
