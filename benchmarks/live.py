"""The cost of durability: median CPU time of one call, how long a call can block, and recovery; measured in this run.

    python benchmarks/live.py [calls] [blocking] [fsync] [recovery] [--quick]

calls     `act` and `observe` of SCAL+ with S = 1000, no fsync, beside the plain agent (claims: 20 µs and 30 µs)
blocking  the longest `act` while plans are made inline, in the background, and by default (claim: 10 ms)
fsync     microseconds of wall time per observation for every policy
recovery  opening after a kill, and the size of the folder, against the number of records; what a snapshot's copy blocks
"""

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_variable] = "1"

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gainful as gf
from gainful.live import open_agent, read_journal
from gainful.live.folder import Folder
from gainful.live.loading import load

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.parts import run_parts

S, A, SUCCESSORS = 1000, 4, 8
REMEMBER = 10_000
CONFIG: dict[str, Any] = {"agent": "scal-plus", "n_states": S, "n_actions": A, "span": 2.0, "bonus_scale": 0.05}


class World:
    """A Garnet process stepped cheaply, so that the calls are what is measured."""

    def __init__(self, n_states: int = S, seed: int = 1) -> None:
        mdp = gf.environments.garnet(n_states, A, SUCCESSORS)
        rng = np.random.default_rng(seed)
        self.choices: list[list[int]] = []
        for k in range(n_states * A):
            row = slice(int(mdp.indptr[k]), int(mdp.indptr[k + 1]))
            self.choices.append(rng.choice(mdp.indices[row], size=64, p=mdp.probabilities[row]).tolist())
        self.rewards = np.clip(mdp.pair_rewards, 0.0, 1.0).tolist()
        self.n = 0

    def step(self, s: int, a: int) -> tuple[float, int]:
        k = s * A + a
        self.n += 1
        return self.rewards[k], self.choices[k][self.n & 63]


def live(
    agent: Any, world: World, steps: int, clock: Callable[[], int] = time.thread_time_ns, requests: bool = False
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Nanoseconds of every act and observe; with ids of requests, if wanted."""
    acting, observing = np.empty(steps, dtype=np.int64), np.empty(steps, dtype=np.int64)
    s = 0
    for i in range(steps):
        first, second = ({"request_id": f"a{i}"}, {"request_id": f"o{i}"}) if requests else ({}, {})
        began = clock()
        a = agent.act(s, **first)
        acting[i] = clock() - began
        r, to = world.step(s, int(a))
        began = clock()
        agent.observe(s, a, r, to, **second)
        observing[i] = clock() - began
        s = to
    return acting, observing


def show(name: str, nanoseconds: np.ndarray[Any, Any], claim: float | None = None) -> None:
    median, p99 = np.median(nanoseconds) / 1e3, np.quantile(nanoseconds, 0.99) / 1e3
    missed = "" if claim is None else f"   claim: under {claim:g}{'' if median < claim else '   MISSED'}"
    print(f"  {name:<34} {median:8.1f} µs median {p99:10.1f} µs 99 %{missed}")


def calls(quick: bool) -> None:
    steps = 20_000 if quick else 200_000
    print(f"\nSCAL+, S = {S}, A = {A}, {steps:,} steps, CPU of the calling thread per call, fsync off")
    empty = np.array([-time.thread_time_ns() + time.thread_time_ns() for _ in range(10_000)])
    show("the clock itself", empty)
    acting, observing = live(gf.SCALPlus(S, A, span=2.0, bonus_scale=0.05), World(), steps)
    show("plain agent, act", acting)
    show("plain agent, observe", observing)
    for folder in {tempfile.gettempdir(), "/dev/shm"} if Path("/dev/shm").is_dir() else {tempfile.gettempdir()}:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            with open_agent(Path(place) / "agent", CONFIG, fsync="off") as agent:
                acting, observing = live(agent, World(), steps)
            print(f"  in {'memory' if folder == '/dev/shm' else 'a file system on disk'}:")
            show("durable, act", acting, 20)
            show("durable, observe", observing, 30)
    with tempfile.TemporaryDirectory() as place, open_agent(Path(place) / "agent", CONFIG, fsync="off") as agent:
        began, rows, rng = time.process_time(), 100_000, np.random.default_rng(0)
        s, a, to = (rng.integers(0, n, rows) for n in (S, A, S))
        agent.observe_many(s, a, rng.random(rows), to)
        print(f"  {'durable, observe_many':<34} {(time.process_time() - began) / rows * 1e6:8.2f} µs per row")


def blocking(quick: bool) -> None:
    problems: list[tuple[dict[str, Any], int]] = [({**CONFIG, "replanning": "full"}, 20_000)]
    problems += [({"agent": "psrl", "n_states": 600, "n_actions": A}, 3_000)]  # draws and solves 1.4 M probabilities
    problems += [] if quick else [({**CONFIG, "n_states": 10_000, "replanning": "full"}, 40_000)]
    gaps = np.diff([time.perf_counter_ns() for _ in range(3_000_000)])
    print(
        f"\nlongest pause of a loop that only reads the clock, 1 s: {gaps.max() / 1e6:.2f} ms (what this machine adds)"
    )
    for config, steps in problems:
        n = config["n_states"]
        print(f"\nlongest calls, wall time, {config['agent']}, S = {n}, {steps:,} steps, fsync off")
        modes: tuple[Any, ...] = ("inline", "background", "auto")
        for planning in modes:
            with tempfile.TemporaryDirectory() as place:
                with open_agent(Path(place) / "agent", config, fsync="off", planning=planning) as agent:
                    live(agent, World(n), 50)  # the first plan, and compilation
                    acting, observing = live(agent, World(n), steps, time.perf_counter_ns)
                    planned = agent.episodes["planning_seconds"]
                    late = np.count_nonzero(np.diff(agent.episodes["step"]) > 0)
                over = int(np.sum(acting > 10e6))
                print(
                    f"  {planning:<11} longest act {acting.max() / 1e6:8.2f} ms, {over} over 10 ms, longest observe "
                    f"{observing.max() / 1e6:7.2f} ms; {late} episodes, longest plan {planned.max() * 1e3:7.1f} ms"
                )


def fsync(quick: bool) -> None:
    steps = 300 if quick else 2_000
    print(f"\nwall time per call, S = {S}, temporary folder of this machine")
    policies: tuple[Any, ...] = ("record", 10, "off")
    for policy in policies:
        with tempfile.TemporaryDirectory() as place:
            with open_agent(Path(place) / "agent", CONFIG, fsync=policy) as agent:
                live(agent, World(), 50)
                _, observing = live(agent, World(), steps, time.perf_counter_ns)
            show(f"observe, fsync={policy!r}", observing)


def recovery(quick: bool) -> None:
    print(f"\nopening after a kill, S = {S}, {REMEMBER:,} requests remembered; the folder and its table")
    for steps in (10_000,) if quick else (10_000, 100_000, 500_000):
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "killed"
            agent = open_agent(Path(place) / "agent", CONFIG, fsync="off", planning="inline", remember=REMEMBER)
            live(agent, World(), steps, requests=True)
            for thread in threading.enumerate():
                if thread.name == "gainful-snapshot":
                    thread.join()
            shutil.copytree(agent.path, path)  # what a kill leaves
            agent.close()
            state = load(Folder(agent.path), Folder(agent.path).read_description(), "inline").machine
            copied = []
            for _ in range(9):
                began = time.perf_counter()
                state.state()
                copied.append(time.perf_counter() - began)
            began = time.perf_counter()
            again = open_agent(path, fsync="off", planning="inline")
            opened = time.perf_counter() - began
            assert again.t == steps
            size = sum(p.stat().st_size for p in path.iterdir())
            began = time.perf_counter()
            rows = len(read_journal(path))
            read = time.perf_counter() - began
            again.close()
            print(
                f"  {steps:>9,} steps: opened in {opened:6.2f} s, folder {size / 1e6:6.1f} MB, {rows:,} rows in "
                f"{read:5.1f} s; copying the state for a snapshot blocks {np.median(copied) * 1e3:.2f} ms"
            )


if __name__ == "__main__":
    run_parts({"calls": calls, "blocking": blocking, "fsync": fsync, "recovery": recovery})
