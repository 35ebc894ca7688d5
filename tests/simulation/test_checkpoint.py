"""Runs that are killed and continue from their file, to the same bits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents import registry
from gainful.errors import InvalidArgumentError, InvalidRunError
from tests.every_agent import TABULAR_AGENTS

MDP = gf.environments.riverswim(6)
OPTIONS: dict[str, dict[str, Any]] = {
    "fixed": {"policy": np.full((6, 2), 0.5)},
    "ucbvi": {"episode_length": 30},
    "mbie-eb": {"discount": 0.95, "m": 100},
}
NEEDED = {"span": 7.0, "horizon": 4_000}


def made(name: str) -> Any:
    import inspect

    known = inspect.signature(registry.agent_class(name)).parameters
    settings = {key: value for key, value in NEEDED.items() if key in known} | OPTIONS.get(name, {})
    return registry.agent_class(name)(6, 2, **settings)


class KilledError(Exception):
    pass


def killed_at(step: int) -> Any:
    def progress(t: int, horizon: int) -> None:
        if t >= step:
            raise KilledError

    return progress


def assert_same(one: gf.Run, other: gf.Run) -> None:
    for name in ("steps", "rewards", "regret", "pseudo_regret", "final_state"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    timeless = [name for name in one.episodes.dtype.names or () if name != "planning_seconds"]
    assert np.array_equal(one.episodes[timeless], other.episodes[timeless])


@pytest.mark.parametrize("name", TABULAR_AGENTS)
def test_every_agent_continues_to_the_same_bits(name: str, tmp_path: Path) -> None:
    whole = gf.simulate(made(name), MDP, 4_000, seed=5)
    file = tmp_path / "run"
    for step in (1, 300, 2_500):
        with pytest.raises(KilledError):
            gf.simulate(made(name), MDP, 4_000, 5, progress=killed_at(step), checkpoint_file=file, checkpoint_every=0)
    agent = made(name)
    continued = gf.simulate(agent, MDP, 4_000, seed=5, checkpoint_file=file, checkpoint_every=0)
    assert_same(whole, continued)
    assert agent.t == 4_000


@pytest.mark.slow
@pytest.mark.parametrize("wanted_kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_a_process_killed_again_and_again_finishes_with_the_bits_of_an_undisturbed_one(
    wanted_kills: int, tmp_path: Path
) -> None:
    script = """
import json, sys
import gainful as gf
mdp = gf.environments.garnet(30, 3, 4, reward_law="bernoulli")
agent = gf.SCALPlus(30, 3, span=2.0, bonus_scale=0.1, seed=3)
print("ready", flush=True)
run = gf.simulate(agent, mdp, 6_000_000, seed=3, checkpoint_file=sys.argv[1], checkpoint_every=0.01)
print(json.dumps([run.regret.tolist(), run.pseudo_regret.tolist(), run.final_state, agent.statistics.visits.tolist()]))
"""

    def start(file: Path) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", script, str(file)], stdout=subprocess.PIPE, text=True)

    undisturbed = start(tmp_path / "undisturbed").communicate()[0].splitlines()[1]
    kills = 0
    while kills < wanted_kills:
        process = start(tmp_path / "killed")
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 60
        before = (tmp_path / "killed").stat().st_mtime_ns if (tmp_path / "killed").exists() else 0
        while time.monotonic() < deadline and process.poll() is None:  # kill once it has written anew
            if (tmp_path / "killed").exists() and (tmp_path / "killed").stat().st_mtime_ns != before:
                break
            time.sleep(0.002)
        if process.poll() is not None:
            break  # finished before it could be killed again
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        kills += 1
    assert kills >= 3
    last = start(tmp_path / "killed").communicate()[0].splitlines()[1]
    assert json.loads(last) == json.loads(undisturbed)


def test_a_finished_file_gives_the_run_again(tmp_path: Path) -> None:
    first = gf.simulate(made("scal-plus"), MDP, 1_000, seed=1, checkpoint_file=tmp_path / "run")
    written = (tmp_path / "run").stat().st_mtime_ns
    agent = made("scal-plus")
    again = gf.simulate(agent, MDP, 1_000, seed=1, checkpoint_file=tmp_path / "run")
    assert_same(first, again)
    assert (tmp_path / "run").stat().st_mtime_ns == written
    assert agent.t == 1_000
    agent.act(0)


@pytest.mark.parametrize(
    "change", [{"seed": 2}, {"horizon": 2_000}, {"checkpoints": [7]}, {"mdp": 1}, {"agent": 1}, {"lived": 1}]
)
def test_the_file_of_another_run_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    gf.simulate(made("scal-plus"), MDP, 1_000, seed=1, checkpoint_file=tmp_path / "run")
    kept = (tmp_path / "run").read_bytes()
    mdp = gf.environments.riverswim_maillard(6) if "mdp" in change else MDP
    agent = gf.SCALPlus(6, 2, span=7.0, bonus_scale=0.5) if "agent" in change else made("scal-plus")
    if "lived" in change:
        agent.observe(0, 0, 0.0, 0)
    with pytest.raises(InvalidRunError, match=r"belongs to another run: its .* is .*, here it is .*; give another"):
        gf.simulate(
            agent, mdp, change.get("horizon", 1_000), seed=change.get("seed", 1),
            checkpoints=change.get("checkpoints"), checkpoint_file=tmp_path / "run",
        )  # fmt: skip
    assert (tmp_path / "run").read_bytes() == kept


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "foreign"])
def test_a_damaged_file_is_an_error_and_is_left_alone(damage: str, tmp_path: Path) -> None:
    file = tmp_path / "run"
    gf.simulate(made("scal-plus"), MDP, 1_000, seed=1, checkpoint_file=file)
    data = bytearray(file.read_bytes())
    if damage == "truncated":
        data = data[: len(data) // 2]
    elif damage == "flipped":
        data[len(data) // 2] ^= 0xFF
    elif damage == "empty":
        data = bytearray()
    file.write_bytes(data)
    if damage == "foreign":
        made("scal-plus").save(file)
    with pytest.raises(InvalidRunError):
        gf.simulate(made("scal-plus"), MDP, 1_000, seed=1, checkpoint_file=file)
    assert file.exists()


def test_a_folder_that_does_not_exist_is_said_before_hours_are_lost(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"the folder .* does not exist; create it first"):
        gf.simulate(made("scal-plus"), MDP, 10**9, checkpoint_file=tmp_path / "no" / "run")


@pytest.mark.parametrize("kind", ["fixed cells", "doubling", "discretized"])
def test_runs_among_points_continue_too(kind: str, tmp_path: Path) -> None:
    env = gf.environments.replacement()

    def agent() -> Any:
        if kind == "discretized":
            return gf.Discretized(gf.UCRL2B, gf.Partition.uniform(bins=6), n_actions=2, reward_min=-1.0)
        cells: dict[str, Any] = {"partition": gf.Partition.uniform(bins=6)} if kind == "fixed cells" else {}
        return gf.CSCALPlus(
            n_actions=2, span=2.0, lipschitz=env.lipschitz, holder=env.holder, reward_min=-1.0,
            bonus_scale=0.1, **cells,
        )  # fmt: skip

    whole = gf.simulate(agent(), env, 6_000, seed=5, gain=0.5)
    file = tmp_path / "run"
    for step in (1, 1_500, 5_000):
        with pytest.raises(KilledError):
            gf.simulate(
                agent(), env, 6_000, 5, gain=0.5, progress=killed_at(step), checkpoint_file=file, checkpoint_every=0
            )
    last = agent()
    continued = gf.simulate(last, env, 6_000, seed=5, gain=0.5, checkpoint_file=file, checkpoint_every=0)
    assert_same(whole, continued)
    assert np.array_equal(whole.final_point, continued.final_point)
    if kind == "doubling":
        assert last.stage > 1
    with pytest.raises(InvalidRunError, match="its environment is"):
        gf.simulate(
            agent(), gf.environments.replacement(replacement_cost=0.9), 6_000, seed=5, gain=0.5, checkpoint_file=file
        )


def test_a_gymnasium_environment_cannot_be_kept() -> None:
    env = gf.environments.riverswim(6).to_gymnasium()
    with pytest.raises(InvalidArgumentError, match="does not tell its state"):
        gf.simulate(made("scal-plus"), env, 100, checkpoint_file="anywhere")
