"""A flipped bit is made good with a notice, or refused with one clear error; it is never silent and never raw.

`GAINFUL_FLIPS` is the number of flips of each kind of folder, or "all" for every bit of every file (`make soak`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gainful as gf
from gainful.agents.files import agent_state
from gainful.experiments.configuration import Configuration
from gainful.experiments.execution import Task, execute
from gainful.experiments.folder_token import token_of
from gainful.experiments.store import STORE_FILE, Store
from gainful.experiments.store_checksum import drop_checksum
from gainful.experiments.wire_format import RunResult, unpack
from gainful.live import open_agent
from gainful.live.folder import Folder
from gainful.live.journal import read_all
from gainful.live.loading import load
from gainful.live.records import RecordLayout
from gainful.locks import FolderLock
from gainful.serve.agent_registry import open_registry
from gainful.serve.agent_slot import OpenOptions
from gainful.serve.keys import admin_key
from gainful.serve.limits import Limits
from gainful.serve.models import NewAgent
from gainful.simulation.checkpoint import Checkpoint
from gainful.simulation.simulate import new_simulation
from tests.flipped_bits import FolderKind, flip_bits
from tests.live.lives import QUICK

SMALL: dict[str, Any] = {"agent": "scal-plus", "n_states": 2, "n_actions": 2, "span": 1.0}


def bits(agent: Any) -> Any:
    header, arrays = agent_state(agent)
    return repr(header), {name: array.tobytes() for name, array in arrays.items()}


# ---------------------------------------------------------------------- single files


def make_agent(path: Path) -> None:
    path.mkdir()
    agent = gf.SCALPlus(n_states=2, n_actions=2, span=1.0)
    for t in range(20):
        agent.observe(t % 2, agent.act(t % 2), 0.5, (t + 1) % 2)
    agent.save(path / "my.agent")


def look_at_agent(path: Path, _: str) -> tuple[Any, list[str]]:
    return bits(gf.load_agent(path / "my.agent")), []


def make_mdp(path: Path) -> None:
    path.mkdir()
    gf.MDP([[[0.9, 0.1]], [[0.5, 0.5]]], [[1.0], [0.0]], state_labels=["up", "down"]).save(path / "my.mdp")


def look_at_mdp(path: Path, _: str) -> tuple[Any, list[str]]:
    mdp = gf.MDP.load(path / "my.mdp")
    return (mdp.state_labels, mdp.units, *(a.tobytes() for a in (mdp.probabilities, mdp.pair_rewards, mdp.start))), []


def make_plan(path: Path) -> None:
    path.mkdir()
    gf.solve(gf.MDP([[[0.9, 0.1]], [[0.5, 0.5]]], [[1.0], [0.0]])).save(path / "my.plan")


def look_at_plan(path: Path, _: str) -> tuple[Any, list[str]]:
    return gf.Plan.load(path / "my.plan").to_json(), []


@cache
def river() -> gf.MDP:
    return gf.environments.riverswim(3)


def small_simulation() -> Any:
    agent = gf.SCALPlus(n_states=3, n_actions=2, span=1.0)
    return new_simulation(agent, river(), 200, 1, checkpoints=[10, 200], gain=0.1)


def make_checkpoint(path: Path) -> None:
    path.mkdir()
    simulation = small_simulation()
    simulation.finish()
    Checkpoint(simulation, path / "run.npz", 0.0).write()


def look_at_checkpoint(path: Path, _: str) -> tuple[Any, list[str]]:
    simulation = small_simulation()
    assert Checkpoint(simulation, path / "run.npz", 0.0).resume()
    return (simulation.t, *bits(simulation.agent)), []


# ---------------------------------------------------------------------- durable agents and the service


def make_live(path: Path) -> None:
    with open_agent(path, SMALL, snapshot_every=10**6, **QUICK) as agent:
        for until in (3, 6, 9):
            for t in range(agent.t, until):
                agent.observe(t % 2, agent.act(t % 2), 0.5, (t + 1) % 2)
            agent.snapshot()
        agent.observe(0, 1, 0.25, 1)


def look_at_live(path: Path, name: str) -> tuple[Any, list[str]]:
    folder = Folder(path)
    if name.endswith(".npz"):  # nothing but loading reads them, and there are many bits in them
        loaded = load(folder, folder.read_description(), "inline")
        return (loaded.sequence, bits(loaded.machine.copy())), loaded.notices
    with open_agent(path, **QUICK) as agent:
        state, notices = bits(agent.copy()), list(agent.notices)
    description = folder.read_description()
    records = list(read_all(folder, description, RecordLayout(description.salt, description.dim)))
    return (state, records), notices


def not_served(name: str) -> bool:
    """Whether the service never reads a file: the journals of archived agents, and locks."""
    return name.endswith("lock") or (name.startswith("archive") and "journal" in name)


async def _created(path: Path) -> None:
    path.mkdir()
    key, _, _ = admin_key(path / "admin.key")
    registry = open_registry(path, key, OpenOptions("off", "inline"), Limits(), FolderLock(path))
    for name in ("pump", "old"):
        wanted = NewAgent.model_validate({"id": name, "config": SMALL, "request_id": f"make-{name}"})
        await registry.make(wanted)
    await registry.archive("old")
    await registry.close()


def make_service(path: Path) -> None:
    asyncio.run(_created(path))


async def _served(path: Path, name: str) -> tuple[Any, list[str]]:
    key, _, warning = admin_key(path / "admin.key")
    registry = open_registry(path, key, OpenOptions("off", "inline"), Limits(), FolderLock(path))
    try:
        found = [key, *(repr(record) for record in registry.records.values())]
        notices = [*filter(None, [warning]), *registry.warnings]
        if "journal" in name and name.startswith("agents"):
            state, more = await registry.slot("pump").call(lambda agent: (bits(agent.copy()), list(agent.notices)))
            return (*found, state), notices + more
        return found, notices
    finally:
        await registry.close()


def look_at_service(path: Path, name: str) -> tuple[Any, list[str]]:
    return asyncio.run(_served(path, name))


# ---------------------------------------------------------------------- experiments


def configuration(seed: int) -> Configuration:
    return Configuration("toy3d", {}, "fixed", {}, 50, (10, 50), seed)


def task(c: Configuration, path: Path | None = None, every: float = 1e6) -> Task:
    file, token = (None, None) if path is None else (str(path / "checkpoints" / c.run_id), token_of(path)[0])
    return Task(c.run_id, c.canonical(), 0.5, "given", 1.0, file, every, token)


def small_pages(path: Path) -> None:
    """Make a store with pages of 512 bytes, so that it is small."""
    Store.open(path).close()
    connection = sqlite3.connect(path / STORE_FILE, isolation_level=None)
    for statement in ("PRAGMA journal_mode = DELETE", "PRAGMA page_size = 512", "VACUUM", "PRAGMA journal_mode = WAL"):
        connection.execute(statement)
    connection.close()
    drop_checksum(path / STORE_FILE)


def fill(store: Store) -> None:
    """Two of three runs, a failure and all else that a store has."""
    runs = [configuration(seed) for seed in range(3)]
    store.plan("horizon = 50", "three runs", [(c, "toy", "fixed") for c in runs])
    store.keep_facts("toy3d", {"gain": 0.5})
    for c in runs[:2]:
        store.keep(c, RunResult.from_bytes(execute(task(c))), tries=1)
    store.keep_failure(runs[2].run_id, runs[2].key, 1, "MemoryError", "no memory", "Traceback")


def make_experiment(path: Path) -> None:
    """A closed store, and a run with a checkpoint."""
    path.mkdir()
    small_pages(path)
    with Store.open(path) as store:
        fill(store)
    assert not list(path.glob("*-wal"))
    execute(task(configuration(2), path, every=0.0))
    assert (path / "checkpoints" / configuration(2).run_id).exists()


def make_killed_experiment(path: Path) -> None:
    """What a killed sweep leaves: everything is in SQLite's log still."""
    made = path.with_name("made")
    made.mkdir()
    small_pages(made)
    with Store.open(made) as store:
        fill(store)
        path.mkdir()
        for name in (STORE_FILE, f"{STORE_FILE}-wal"):
            shutil.copy(made / name, path / name)
    shutil.rmtree(made)


def look_at_experiment(path: Path, name: str) -> tuple[Any, list[str]]:
    if name.endswith("token"):
        return None, [notice for notice in token_of(path)[1:] if notice]
    if name.startswith("checkpoints"):
        values, arrays = unpack(execute(task(configuration(2), path)))
        return {k: a.tobytes() for k, a in arrays.items()}, [values["notice"]] if "notice" in values else []
    with Store.read(path) as store:
        return (
            [list(row.values()) for row in store.runs()],
            [c.to_json() for c in store.planned()],
            (store.progress(), store.failures(), store.facts(), store.extras()),
            (store.title, store.spec_text, store.finished()),
        ), store.notices


# ---------------------------------------------------------------------- all kinds

KINDS = {
    "saved agent": FolderKind(make_agent, look_at_agent, writes=False),
    "saved MDP": FolderKind(make_mdp, look_at_mdp, writes=False),
    "saved plan": FolderKind(make_plan, look_at_plan, writes=False),
    "checkpoint of a run": FolderKind(make_checkpoint, look_at_checkpoint, writes=False),
    "durable agent": FolderKind(make_live, look_at_live),
    "service": FolderKind(make_service, look_at_service, not_served),
    "experiment": FolderKind(make_experiment, look_at_experiment),
    "killed experiment": FolderKind(make_killed_experiment, look_at_experiment, lambda name: not name.endswith("-wal")),
}


def check(name: str, wanted: int | None) -> None:
    found = flip_bits(KINDS[name], wanted)
    if wanted is None:  # shown by pytest -rP
        print(f"{name}: {dict(found.counts)}")
        for file, counts in sorted(found.by_file.items()):
            print(f"    {file}: {dict(counts)}")
    assert "raw" not in found.counts, found.examples["raw"]
    assert "silent" not in found.counts, found.examples["silent"]
    assert "nothing changed" not in found.counts, found.examples["nothing changed"]
    assert found.counts["refused"] + found.counts["recovered"] > 0


@pytest.mark.parametrize("name", KINDS)
def test_a_flipped_bit_is_never_silent_and_never_raw(name: str) -> None:
    wanted = os.environ.get("GAINFUL_FLIPS", "40")
    check(name, None if wanted == "all" else int(wanted))


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_many_flipped_bits_are_never_silent_and_never_raw(name: str) -> None:
    check(name, 1000)
