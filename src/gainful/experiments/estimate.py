"""The estimated cost of a sweep: at first from short trial runs, then from the runs that have finished.

The trial runs also compile everything once, before any worker starts.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from gainful.experiments.configuration import Configuration, checkpoint_steps
from gainful.experiments.execution import Task, agent_factory_of, environment_of, packed
from gainful.experiments.foreign_names import on_points
from gainful.machine import peak_memory

COMPILING_STEPS = 64
PROBE_STEPS = 20_000
PROBE_SECONDS = 6.0
"""The seconds of trial runs after which no further one starts."""


@dataclass(frozen=True)
class Estimate:
    """CPU seconds of each configuration (by its key without the seed), and bytes of disk and of memory per run."""

    seconds: dict[str, float]
    disk_per_run: int
    memory_per_run: int
    notices: tuple[str, ...] = ()
    """What the user should know about the runs, a line each."""


def probe(tasks: Iterable[tuple[str, Task]], say: Callable[[str], None]) -> Estimate:
    """Make a short trial run of each configuration; `tasks` has one task per configuration, with its key.

    Acting is assumed to continue at the speed of the second half of the trial. Planning is assumed to grow with a power
    of the number of steps, fitted to the two halves and at most 1; with doubling episodes it grows by at most
    S·A·log₂(T/T₀) plans. A configuration that is not tried costs what its agent costs elsewhere. Errors are left to the
    runs themselves.
    """
    listed = list(tasks)
    seconds: dict[str, float] = {}
    rates: dict[str, list[float]] = {}
    sizes = [4096]
    compiled: set[tuple[str, bool]] = set()
    spent = 0.0
    notices: dict[str, None] = {}
    for key, task in listed:
        configuration = Configuration.from_json(task.configuration)
        kind = configuration.agent, on_points(configuration.environment, configuration.environment_parameters)
        try:
            if kind not in compiled or spent <= PROBE_SECONDS:
                if kind not in compiled:
                    say(f"compiling and trying {configuration.agent} in {configuration.environment}")
                trial = _trial(replace(configuration, horizon=COMPILING_STEPS), task)
                notices |= dict.fromkeys(_notes_on(configuration, task))
                if trial.restarts_because:
                    of_the_environment = hasattr(trial, "restarts")
                    what = configuration.environment if of_the_environment else configuration.agent
                    notices[f"{what}: a run that is killed begins again: {trial.restarts_because}"] = None
                trial.finish()  # compiles, and is not timed
                compiled.add(kind)
            if spent > PROBE_SECONDS:
                continue
            began = time.perf_counter()
            seconds[key], size = _cost(configuration, task)
            spent += time.perf_counter() - began
        except Exception:
            continue
        sizes.append(size)
        rates.setdefault(configuration.agent, []).append(seconds[key] / configuration.horizon)
    every = [rate for found in rates.values() for rate in found] or [1e-7]
    for key, task in listed:
        configuration = Configuration.from_json(task.configuration)
        known = rates.get(configuration.agent, every)
        seconds.setdefault(key, sum(known) / len(known) * configuration.horizon)
    return Estimate(seconds, max(sizes), peak_memory(), tuple(notices))


def _notes_on(configuration: Configuration, task: Task) -> list[str]:
    """What the user should know about the agent there; only what concerns cells depends on the seed."""
    factory = agent_factory_of(configuration, environment_of(configuration), task.span)
    if not factory.note:
        return []
    seed = f", seed {configuration.seed}" if factory.among_points else ""
    return [f"{configuration.environment}{seed}: {factory.note}"]


def _trial(configuration: Configuration, task: Task) -> Any:
    from gainful.simulation.simulate import new_simulation

    environment = environment_of(configuration)
    factory = agent_factory_of(configuration, environment, task.span)
    return new_simulation(
        factory.make(),
        environment,
        configuration.horizon,
        configuration.seed,
        gain=task.gain or 0.0,
        checkpoints=checkpoint_steps(20, configuration.horizon),
    )


def _cost(configuration: Configuration, task: Task) -> tuple[float, int]:
    """CPU seconds and stored bytes of a whole run."""
    T = min(configuration.horizon, PROBE_STEPS)
    simulation = _trial(replace(configuration, horizon=T), task)
    half: list[tuple[int, float, float]] = []

    def note(step: int, _: int) -> None:
        if not half and step >= T // 2:
            half.append((step, simulation.planning_seconds, simulation.acting_seconds))

    simulation.finish(note)
    planning, acting = simulation.planning_seconds, simulation.acting_seconds
    step, planned, acted = half[0] if half and half[0][0] < T else (0, 0.0, 0.0)
    factory = agent_factory_of(configuration, environment_of(configuration), task.span)
    size = len(packed(simulation, factory, task, 0.0)) * len(configuration.checkpoints) // len(checkpoint_steps(20, T))
    more = configuration.horizon / T
    if more > 1.0:
        power = math.log(planning / planned) / math.log(T / step) if 0.0 < planned < planning else 0.0
        growth = more ** min(1.0, power)
        agent = simulation.agent
        if agent.current is not None and agent.current.doubling:
            plans = agent.n_states * agent.n_actions * math.log2(more)
            growth = min(growth, 1.0 + plans / max(1, len(agent.episodes)))
        planning *= growth
        acting += (acting - acted) / (T - step) * (configuration.horizon - T)
    return acting + planning, size + 600


class Workload:
    """The work that is left: runs by their kind (a configuration without its seed), and the steps of active runs."""

    def __init__(self, runs: Iterable[tuple[str, str, int]], seconds: dict[str, float]) -> None:
        """`runs` are (run id, kind, horizon), `seconds` the estimate for one run of each kind."""
        self._run = {i: (kind, horizon) for i, kind, horizon in runs}
        self._left = Counter(kind for kind, _ in self._run.values())
        self._estimate = dict(seconds)
        self._measured: dict[str, tuple[int, float]] = {}
        self._started: dict[str, int] = {}
        self._step: dict[str, int] = {}
        self.steps = 0
        """Steps made by this sweep, without those of earlier calls that checkpoints contain."""

    def stepped(self, run_id: str, step: int) -> None:
        """A run is at `step`; the first report of a run says where it starts, or resumes."""
        if run_id not in self._step:
            self._started[run_id] = self._step[run_id] = step
        self.steps += step - self._step[run_id]
        self._step[run_id] = step

    def finished(self, run_id: str, seconds: float) -> None:
        """A run finished, `seconds` after it started or resumed."""
        kind, horizon = self._run[run_id]
        if run_id not in self._step:
            self._started[run_id] = self._step[run_id] = 0
        self.steps += horizon - self._step[run_id]
        made = horizon - self._started[run_id]
        if made > 0:
            n, mean = self._measured.get(kind, (0, 0.0))
            self._measured[kind] = n + 1, mean + (seconds * horizon / made - mean) / (n + 1)
        self.dropped(run_id)

    def lost(self, run_id: str) -> None:
        """A run will be tried again from its start or checkpoint."""
        self._step.pop(run_id, None)
        self._started.pop(run_id, None)

    def dropped(self, run_id: str) -> None:
        """A run is finished or given up: it no longer counts."""
        self.lost(run_id)
        self._left[self._run[run_id][0]] -= 1

    def seconds_of(self, kind: str) -> float:
        """The measured, else the estimated time of one run of a kind."""
        return self._measured[kind][1] if kind in self._measured else self._estimate[kind]

    @property
    def under_way(self) -> float:
        """The completed fractions of all active runs, summed."""
        return sum(step / self._run[run_id][1] for run_id, step in self._step.items())

    @property
    def seconds(self) -> float:
        """The time that the remaining runs take one after the other."""
        whole = sum(n * self.seconds_of(kind) for kind, n in self._left.items())
        made = 0.0
        for run_id, step in self._step.items():
            kind, horizon = self._run[run_id]
            made += self.seconds_of(kind) * step / horizon
        return max(0.0, whole - made)
