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
from gainful.experiments.spec import read_spec
from gainful.planning.bellman import sparse_model, sweep

FIELDS = ("step", "gain", "gain_low", "gain_high", "span", "sweeps")
SWEEPS = 12
"""Sweeps that are compared one by one."""
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

    def world_and_agent(self) -> tuple[Any, Any]:
        """The environment, and a function that makes an agent for a seed."""
        mdp = made(self.environment, json.dumps(self.env))
        settings = {**self.settings, "reward_min": mdp.reward_min, "reward_max": mdp.reward_max}

        def agent(seed: int) -> Any:
            if not self.cells:
                return getattr(gf, self.agent)(mdp.n_states, mdp.n_actions, seed=seed, **settings)
            cells = gf.Partition.uniform(bins=self.cells, dim=mdp.dim)
            if self.agent.startswith("C"):
                return getattr(gf, self.agent)(partition=cells, n_actions=mdp.n_actions, seed=seed, **settings)
            return gf.Discretized(self.agent, cells, n_actions=mdp.n_actions, seed=seed, **settings)

        return mdp, agent

    def runs(self, **where: Any) -> list[gf.Run]:
        """The runs of this case, on the CPU or where `device` says."""
        mdp, agent = self.world_and_agent()
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
    return made_by("tests.gpu.simulated", cases, folder, {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"})


def made_by(module: str, cases: list[Case], folder: Path, settings: dict[str, str]) -> list[dict[str, Any]]:
    """The arrays of each case, made by a process that runs a module, with further environment variables."""
    (folder / "cases.json").write_text(json.dumps([asdict(case) for case in cases]))
    command, root = [sys.executable, "-m", module, str(folder)], Path(__file__).parents[2]
    done = subprocess.run(command, env={**os.environ, **settings}, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [dict(np.load(folder / f"{i}.npz")) for i in range(len(cases))]


def rows_of_all_lengths(n_states: int, n_actions: int, longest: int) -> gf.MDP:
    """A model whose rows have 0 to `longest` next states, state 0 first; a state may lack any action but the last."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, longest + 1, size=(n_states, n_actions))
    lengths[::3, 0], lengths[:, -1] = 0, rng.integers(1, longest + 1, size=n_states)
    n = int(lengths.sum())
    row, p = np.repeat(np.arange(lengths.size), lengths.reshape(-1)), rng.random(n) + 0.01
    place = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths.reshape(-1), lengths.reshape(-1))
    p /= np.bincount(row, p, lengths.size)[row]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    next_states = np.where(place == 0, 0, 1 + (7 * row + place) % (n_states - 1))
    return gf.MDP.from_rows(indptr, next_states, p, rng.random((n_states, n_actions)))


def models() -> list[gf.MDP]:
    """Small models for planners."""
    garnet = made("garnet", '{"n_states": 7, "n_actions": 3, "branching": 3}')
    return [garnet, made("riverswim", '{"n_states": 5}'), rows_of_all_lengths(11, 3, 11)]


def plans(**where: Any) -> dict[str, Any]:
    """The plans of both planners for the small models."""
    found: dict[str, Any] = {}
    for i, mdp in enumerate(models()):
        by_sweeps = gf.relative_value_iteration(mdp, precision=1e-3, **where)
        found[f"{i} sweeps"] = np.array([*by_sweeps.gain_bounds, by_sweeps.sweeps])
        found[f"{i} bias"], found[f"{i} actions"] = by_sweeps.bias, by_sweeps.actions
        solved = gf.solve(mdp, precision=1e-6, **where)
        found[f"{i} solved"], found[f"{i} policy"] = np.array(solved.gain_bounds), solved.actions
    return found


def sweeps_there(n: int) -> dict[str, Any]:
    """Lv, actions, ranges and contested states of the first sweeps of value iteration, on the GPU."""
    from gainful.planning.device.sweeper import DeviceSweeper  # numba-cuda is an extra

    sweeper, found = DeviceSweeper(models()[-1], None), {}
    for i in range(n):
        found[f"{i} range"] = np.array(sweeper.bellman())
        found[f"{i} w"], found[f"{i} act"] = sweeper.w.copy_to_host(), sweeper.act.copy_to_host()
        found[f"{i} contested"] = np.array(sweeper.contested)
        sweeper.advance()
    return found


def sweeps_here(n: int) -> dict[str, Any]:
    """The same on the CPU, where every row is read."""
    mdp, found = models()[-1], {}
    v, w, act = np.zeros(mdp.n_states), np.zeros(mdp.n_states), np.zeros(mdp.n_states, np.int64)
    for i in range(n):
        found[f"{i} range"] = np.array(sweep(sparse_model(mdp), v, np.uint64(0), np.uint64(v.size), w, act))
        found[f"{i} w"], found[f"{i} act"] = w.copy(), act.copy()
        v = w - w[0]
    return found


def check_plans(folder: Path) -> None:
    """Plans and sweeps of another process are those of the CPU, to the bit; `solve` may get there another way."""
    found, expected = dict(np.load(folder / "plans.npz")), plans()
    for name, array in expected.items():
        if name.endswith("solved"):  # another way to the same gain
            assert max(found[name][0], array[0]) <= min(found[name][1], array[1])
            assert np.ptp(found[name]) <= 1e-6
        else:
            np.testing.assert_array_equal(found[name], array, err_msg=name)
    found, expected = dict(np.load(folder / "sweeps.npz")), sweeps_here(SWEEPS)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    read = [int(found[f"{i} contested"]) for i in range(SWEEPS)]
    assert read[0] == max(read) > 2 * min(read)  # later sweeps pass over rows


SPEC = {
    "horizon": 30,
    "seeds": 2,
    "environments": [{"name": "riverswim", "parameters": {"n_states": 4}}],
    "agents": [
        {"name": "scal-plus", "parameters": {"span": 3.0, "bonus": "bernstein"}},
        {"name": "ucrl2b", "parameters": {"width_scale": 0.2}},
        {"name": "fixed"},
    ],
}
"""An experiment that a GPU can make."""


def main(folder: Path) -> None:
    """Make the runs of `cases.json`, write their arrays beside it, and make the plans and the experiment."""
    warnings.simplefilter("ignore")  # whole numbers that wrap around, as they are meant to
    with np.errstate(over="ignore"):
        if not json.loads((folder / "cases.json").read_text()):
            there: dict[str, Any] = plans(device="cuda")
            np.savez(folder / "plans.npz", **there)
            np.savez(folder / "sweeps.npz", **sweeps_there(SWEEPS))
            gf.run_experiment(read_spec(SPEC), folder / "experiment", jobs=1, device="cuda")
        for i, case in enumerate(json.loads((folder / "cases.json").read_text())):
            arrays: dict[str, Any] = arrays_of(Case(**case).runs(device="cuda"))
            np.savez(folder / f"{i}.npz", **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
