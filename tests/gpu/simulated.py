"""Runs in numba-cuda's simulator, for comparison with the CPU: `python -m tests.gpu.simulated FOLDER`.

A process of its own, because the simulator is chosen when Numba is imported. Everything runs as plain Python there, the
CPU's own functions too, so that cases are small.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import gainful as gf

FIELDS = ("step", "gain", "gain_low", "gain_high", "span", "sweeps")
CURVES = ("rewards", "regret", "pseudo_regret", "expected_regret")


@cache
def made(environment: str, parameters: str) -> Any:
    """An environment: the same object for the same words, so that its gain is found once."""
    return getattr(gf.environments, environment)(**json.loads(parameters))


@dataclass(frozen=True)
class Case:
    """Some runs: an environment and an agent by name, with their arguments."""

    environment: str
    agent: str
    horizon: int
    seeds: tuple[int, ...]
    env: dict[str, Any]
    settings: dict[str, Any]
    cells: int = 0
    """Intervals per axis in a continuous environment."""

    def runs(self, **where: Any) -> list[gf.Run]:
        """The runs of this case, on the CPU or where `device` says."""
        mdp = made(self.environment, json.dumps(self.env))
        settings = {**self.settings, "reward_min": mdp.reward_min, "reward_max": mdp.reward_max}

        def agent(seed: int) -> Any:
            if not self.cells:
                return getattr(gf, self.agent)(mdp.n_states, mdp.n_actions, seed=seed, **settings)
            cells = gf.Partition.uniform(bins=self.cells, dim=mdp.dim)
            if self.agent.startswith("C"):
                return getattr(gf, self.agent)(partition=cells, n_actions=mdp.n_actions, seed=seed, **settings)
            return gf.Discretized(self.agent, cells, n_actions=mdp.n_actions, seed=seed, **settings)

        found: list[gf.Run] = gf.simulate_many(agent, mdp, self.horizon, self.seeds, **where)
        return found


def arrays_of(runs: list[gf.Run]) -> dict[str, Any]:
    """Everything in the runs but times."""
    found: dict[str, Any] = {}
    for run in runs:
        for name in CURVES:
            found[f"{run.seed} {name}"] = getattr(run, name)
        for name in FIELDS:
            found[f"{run.seed} {name}"] = run.episodes[name]
        found[f"{run.seed} end"] = np.array([run.final_state, run.vacuous])
    return found


def simulated(cases: list[Case], folder: Path) -> list[dict[str, Any]]:
    """The arrays of each case, made in the simulator by another process."""
    (folder / "cases.json").write_text(json.dumps([asdict(case) for case in cases]))
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-m", "tests.gpu.simulated", str(folder)], check=True, env=environment, cwd=root)
    return [dict(np.load(folder / f"{i}.npz")) for i in range(len(cases))]


def main(folder: Path) -> None:
    """Make the runs of `cases.json` and write their arrays beside it."""
    warnings.simplefilter("ignore")  # whole numbers that wrap around, as they are meant to
    with np.errstate(over="ignore"):
        for i, case in enumerate(json.loads((folder / "cases.json").read_text())):
            arrays: dict[str, Any] = arrays_of(Case(**case).runs(device="cuda"))
            np.savez(folder / f"{i}.npz", **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
