"""Instructions of kernels for GPUs, counted without a GPU: `python benchmarks/gpu_instructions.py`.

They are those that NVIDIA's compiler makes (PTX), executed by the emulated GPU. The last stage of compilation, for one
kind of GPU, makes about as many others of them; so this does not tell how fast a kernel is, but whether a change has
made it longer or shorter, to the last instruction. It needs NVIDIA's compiler:
`pip install gainful[cuda,cuda-compiler]`.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import gainful as gf

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.gpu import SUBJECTS
from benchmarks.parts import run_parts
from tests.gpu.emulator.device import COUNTED, emulate_gpu

SIZES = {
    "SCAL+, RiverSwim-6": (64, 10**4),
    "UCRL2B, RiverSwim-6": (64, 10**4),
    "UCRL2, RiverSwim-6": (64, 10**4),
    "KL-SCAL+, RiverSwim-6": (64, 10**4),
    "random actions, RiverSwim-6": (64, 10**4),
    "C-SCAL+, LQG, 20 cells": (32, 10**4),
    "SCAL+, Garnet(200, 4, 8)": (8, 10**4),
}
"""Runs and steps of each subject."""
QUICK = (2, 20)


def total(kind: str, beginning: str) -> int:
    """Instructions of the kernels whose names begin so."""
    return sum(counts[kind] for name, counts in COUNTED.items() if name.startswith(beginning))


def counts(quick: bool) -> list[dict[str, Any]]:
    """Of each agent: instructions of a thread per step, of a warp per plan, and sweeps per plan."""
    rows = []
    for subject in SUBJECTS:
        runs, horizon = QUICK if quick else SIZES[subject.title]
        COUNTED.clear()
        made = gf.simulate_many(subject.agent, subject.environment, horizon, range(runs), device="cuda")
        n_plans = sum(len(run.episodes) for run in made)
        row: dict[str, Any] = {"what": subject.title, "runs": runs, "steps": horizon}
        row["per_step"] = round(total("executed", "step") / (runs * horizon), 1)
        row["lanes"] = round(total("executed", "step") / total("issued", "step"), 1)
        row["per_plan"] = round(total("issued", "plan") / n_plans)
        row["sweeps"] = round(sum(int(run.episodes["sweeps"].sum()) for run in made) / n_plans, 1)
        print(row, flush=True)
        rows.append(row)
    return rows


def main() -> None:
    """Count on the emulated GPU."""
    warnings.simplefilter("ignore")
    emulate_gpu()
    run_parts({"counts": counts})


if __name__ == "__main__":
    main()
