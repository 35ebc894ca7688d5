"""Runs of an experiment on a GPU: all seeds of an agent in an environment at once, stored like those of the CPU."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from typing import Any

from gainful.errors import DeviceError, GainfulError
from gainful.experiments.configuration import Configuration
from gainful.experiments.execution import RunStoppedError, Task, agent_factory_of, environment_of, packed
from gainful.experiments.pool import Event, Executor, RunFailed, RunFinished, RunProgress, RunStopped
from gainful.experiments.worker import described
from gainful.simulation.many import checked_seeds
from gainful.simulation.run import checked_checkpoints
from gainful.user_modules import look_in

MOST_AT_ONCE = 1 << 20
"""Runs that may wait for the GPU together."""


def kind_of(task: Task) -> str:
    """What all runs have in common that the GPU makes together: everything but the seed."""
    return json.dumps({name: value for name, value in task.configuration.items() if name != "seed"}, sort_keys=True)


def why_not_on_device(task: Task) -> str:
    """Why a run cannot be made on a GPU; empty if it can."""
    from gainful.simulation.device.many import check_agent
    from gainful.simulation.device.planners import device_planner
    from gainful.simulation.device.worlds import check_environment

    try:
        configuration = Configuration.from_json(task.configuration)
        environment = environment_of(configuration)
        agent = agent_factory_of(configuration, environment, task.span).make()
        check_environment(environment)
        check_agent(agent)
        device_planner(agent.core)
    except DeviceError as error:
        return error.problem
    return ""


def check_all_on_device(tasks: Iterable[tuple[str, Task]], here: bool) -> None:
    """Raise one error for all kinds of runs that cannot be made on a GPU.

    Runs that are made `here` need the GPU of this machine.
    """
    from gainful.cuda_device import require_device
    from gainful.simulation.device.planners import ON_DEVICE

    problems = []
    for _, task in tasks:
        why = why_not_on_device(task)
        if why:
            problems.append(f"{task.configuration['agent']} in {task.configuration['environment']}: {why}")
    if problems:
        raise DeviceError(
            "some runs of this spec cannot be made on a GPU:\n  " + "\n  ".join(problems),
            name="device",
            found="cuda",
            expected=ON_DEVICE,
            hint='device "auto" makes these on the CPU and the others on the GPU',
        )
    if here:
        require_device()


class DeviceExecutor:
    """Makes runs on the GPU of this process, by a thread: one kind of runs after the other."""

    slots = MOST_AT_ONCE

    def __init__(self) -> None:
        from gainful.cuda_device import require_device

        require_device()
        self._waiting: dict[str, list[Task]] = {}
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def submit(self, task: Task) -> None:
        """Let one more task wait."""
        self._waiting.setdefault(kind_of(task), []).append(task)

    def wait(self, seconds: float) -> list[Event]:
        """The events since the last call; begins with the next kind of runs if the GPU is idle."""
        idle = self._thread is None or not self._thread.is_alive()
        if idle and self._waiting and self._events.empty():
            tasks = self._waiting.pop(next(iter(self._waiting)))
            self._thread = threading.Thread(target=self._make, args=(tasks,), daemon=True)
            self._thread.start()
        found: list[Event] = []
        try:
            found.append(self._events.get(timeout=seconds))
            while True:
                found.append(self._events.get_nowait())
        except Empty:
            return found

    def stop(self) -> None:
        """Ask the runs to stop: they have no checkpoints, and are made again by the next call."""
        self._stopping.set()

    def close(self) -> None:
        """End everything."""
        self._stopping.set()

    def _make(self, tasks: list[Task]) -> None:
        """Make all runs of one kind; whatever happens, each of them has an event in the end."""
        left = {task.run_id: task for task in tasks}
        try:
            for task, data in device_results(tasks, self._tell(tasks)):
                del left[task.run_id]
                self._events.put(RunFinished(task, data))
        except RunStoppedError:
            for task in left.values():
                self._events.put(RunStopped(task))
        except Exception as error:  # a run that fails to plan, memory, a damaged driver
            for task in left.values():
                self._events.put(RunFailed(task, **described(error), lost=False))

    def _tell(self, tasks: list[Task]) -> Any:
        """Receives the progress of all runs together, and stops them if that was asked for."""

        def progress(steps: int, total: int) -> None:  # noqa: ARG001
            if self._stopping.is_set():
                raise RunStoppedError
            for task in tasks:
                self._events.put(RunProgress(task, steps // len(tasks)))

        return progress


def device_results(tasks: list[Task], progress: Any = None) -> Iterable[tuple[Task, bytes]]:
    """Make runs that differ in their seed alone: what the store keeps of each."""
    from gainful.cuda_device import device_name
    from gainful.simulation.device.agents import fill_agent
    from gainful.simulation.device.many import DeviceSweep

    look_in(tasks[0].folders)
    configurations = {task.configuration["seed"]: Configuration.from_json(task.configuration) for task in tasks}
    first = configurations[tasks[0].configuration["seed"]]
    environment, span = environment_of(first), tasks[0].span

    def agent(seed: int) -> Any:
        return agent_factory_of(configurations[seed], environment, span).make()

    by_seed = {task.configuration["seed"]: task for task in tasks}
    grid = checked_checkpoints(first.checkpoints, first.horizon)
    sweep = DeviceSweep(agent, environment, grid, checked_seeds(list(by_seed)), True)
    sweep.world.gain = math.nan if tasks[0].gain is None else tasks[0].gain
    lists = sweep.next_states()
    for part, batch, found in sweep.batches(progress):
        learned = batch.learned()
        for i, seed in enumerate(part.tolist()):
            factory = agent_factory_of(configurations[seed], environment, span)
            made = factory.make()
            fill_agent(made, lists, learned, found, i)
            simulation = FinishedOnDevice(sweep.run(found, i, seed), made)
            seconds = found.seconds / part.size
            yield by_seed[seed], packed(simulation, factory, by_seed[seed], seconds, device=device_name())


class FinishedOnDevice:
    """A finished run and its agent, as `execution.packed` takes them."""

    def __init__(self, run: Any, agent: Any) -> None:
        self._run, self.agent = run, agent

    def run(self) -> Any:
        """The result."""
        return self._run


def executor_on_device(dask: str | None, jobs: int, tell: Callable[[str], None]) -> Executor:
    """The executor for the GPU of this machine, or for those of a Dask cluster; `tell` hears who has none."""
    if dask is None:
        return DeviceExecutor()
    from gainful.experiments.dask_device_executor import DaskDeviceExecutor

    found = DaskDeviceExecutor(dask, jobs)
    for words in found.notices:
        tell(words)
    return found


def split(tasks: Iterable[tuple[str, Task]]) -> set[str]:
    """The kinds that can be made on a GPU, by the names under which they are given."""
    found = set()
    for name, task in tasks:
        try:
            if not why_not_on_device(task):
                found.add(name)
        except GainfulError:  # the CPU says what is wrong
            continue
    return found
