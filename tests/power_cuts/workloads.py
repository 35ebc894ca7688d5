"""What the recorded processes do: they write to their disk, and mark what they were promised.

Run as `python -m tests.power_cuts.workloads NAME DISK OPTIONS`, with tests/power_cuts/recorder.c preloaded.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gainful.atomic_files import make_folder, write_file
from gainful.experiments.execution import Task, execute
from gainful.experiments.spec import read_spec
from gainful.experiments.store import Store
from gainful.experiments.sweep import SilentWatcher, SweepProgress, run_experiment
from gainful.experiments.wire_format import RunResult
from gainful.live import DurableAgent, open_agent
from tests.live.lives import CONFIG, bits, reward_at, state_at
from tests.power_cuts.recording import MARKS
from tests.power_cuts.service import served

AGENT = Path("folder/of its own/agent")
"""The folder of the agent on its disk; the folders above it are made with it."""


class Marks:
    """Writes lines into the recording."""

    def __init__(self, disk: Path) -> None:
        self._fd = os.open(disk / MARKS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def __call__(self, **mark: Any) -> None:
        os.write(self._fd, json.dumps(mark).encode() + b"\n")


def digest(agent: DurableAgent) -> str:
    """The whole state of a durable agent, to the bit."""
    found = hashlib.blake2b(digest_size=16)
    for name, content in sorted(bits(agent).items()):
        found.update(name.encode() + content)
    found.update(repr((agent.sequence, agent.pending, agent.changes)).encode())
    return found.hexdigest()


def live(disk: Path, *, steps: int, seed: int, fsync: Any, sessions: int = 2, **options: Any) -> None:
    """An agent that decides, learns, takes batches, is changed, closed and opened again."""
    warnings.simplefilter("ignore")
    chance, mark = random.Random(seed), Marks(disk)
    for _ in range(sessions):
        agent = open_agent(disk / AGENT, CONFIG, fsync=fsync, planning="inline", **options)
        mark(sequence=agent.sequence, request="")
        mark(state=digest(agent), after=agent.sequence)
        until = agent.t + steps
        while agent.t < until:
            _call(agent, chance, mark)
        agent.close()
        mark(sequence=agent.sequence, request="")


def _call(agent: DurableAgent, chance: random.Random, mark: Marks) -> None:
    """One call with a request id, and the mark of what it promised."""
    t, waiting = agent.t, agent.pending
    request = f"{chance.randrange(10**12)}".rjust(chance.choice((12, 200)), "_")
    kind = chance.random()
    if kind < 0.05:
        many = chance.choice((3, 40))
        rows = [range(t, t + many), range(t + 1, t + many + 1)]
        states, nexts = [state_at(i) for i in rows[0]], [state_at(i) for i in rows[1]]
        agent.observe_many(states, [0] * many, [reward_at(i, 0) for i in rows[0]], nexts, request_id=request)
    elif kind < 0.1:
        agent.set_bonus_scale(chance.choice((0.1, 0.2, 0.3)), reason="a try " * 10, request_id=request)
    elif waiting and kind < 0.5:
        agent.report(waiting[0].decision_id, reward_at(t, waiting[0].action), state_at(t + 1), request_id=request)
    elif waiting and kind < 0.55:
        agent.abandon(waiting[0].decision_id, request_id=request)
    elif len(waiting) > 3 or kind < 0.7:
        agent.observe(state_at(t), 1, reward_at(t, 1), state_at(t + 1), request_id=request)
    else:
        agent.act(state_at(t), request_id=request)
    mark(sequence=agent.sequence, request=request)
    mark(state=digest(agent), after=agent.sequence)


# ---------------------------------------------------------------------- a sweep

RESULTS = Path("results/of a sweep")
SPEC = """
horizon = 2000
checkpoints = 5
[[environments]]
name = "riverswim"
[[agents]]
name = "scal-plus"
parameters = { span = 5.0 }
bonus_scales = [0.1]
"""


def finish_sweep(folder: Path, seeds: int, mark: Callable[..., None]) -> None:
    """Make the runs that are missing in a folder, each from its checkpoint, in this process."""
    spec = read_spec(f"seeds = {seeds}" + SPEC)
    with contextlib.suppress(FileExistsError):
        make_folder(folder)
    with Store.open(folder) as store:
        configurations = store.as_asked_before(spec.configurations())
        store.plan(spec.text, "cut", [(c, "riverswim", "scal-plus") for c in configurations])
        mark(planned=len(configurations))
        with contextlib.suppress(FileExistsError):
            make_folder(folder / "checkpoints")
        write_file(folder / "checkpoints" / "token", b"token")
        for c in configurations:
            if c.run_id in store.finished():
                continue
            file = folder / "checkpoints" / c.run_id
            task = Task(c.run_id, json.loads(c.to_json()), 0.5, "given", None, str(file), 0.0, "token")
            store.keep(c, RunResult.from_bytes(execute(task)), 1)
            mark(stored=c.run_id)
            file.unlink(missing_ok=True)


def sweep(disk: Path, *, seeds: list[int]) -> None:
    """A sweep that is made longer and resumed."""
    for number in seeds:
        finish_sweep(disk / RESULTS, number, Marks(disk))


def experiment(disk: Path, *, spec: str) -> None:
    """`gf.run_experiment` with a worker process of its own."""
    mark = Marks(disk)

    class Watcher(SilentWatcher):
        def progressed(self, sweep: SweepProgress) -> None:
            mark(finished=sweep.stored + sweep.finished)

    run_experiment(spec, disk / RESULTS, jobs=1, checkpoint_every=0.001, watcher=Watcher())


def service(disk: Path, *, seed: int, steps: int) -> None:
    """A service whose agents are created, given new keys and archived."""
    served(disk, Marks(disk), seed, steps)


WORKLOADS: dict[str, Callable[..., None]] = {
    "live": live,
    "sweep": sweep,
    "experiment": experiment,
    "service": service,
}

if __name__ == "__main__":
    name, disk, options = sys.argv[1:]
    WORKLOADS[name](Path(disk), **json.loads(options))
