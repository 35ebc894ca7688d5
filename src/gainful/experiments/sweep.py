"""Run an experiment: missing runs are made, each is stored as soon as it finishes, and the same call again resumes."""

from __future__ import annotations

import contextlib
import json
import time
import warnings
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from gainful.atomic_files import make_folder
from gainful.cards import card
from gainful.errors import DeviceError, ExperimentError, GainfulError, InvalidArgumentError, StoreError
from gainful.experiments.configuration import RESULTS_VERSION, Configuration
from gainful.experiments.differences import differences
from gainful.experiments.environment_facts import environment_key, facts_of
from gainful.experiments.estimate import Estimate, Workload, probe
from gainful.experiments.execution import Task, environment_of
from gainful.experiments.folder_token import token_of
from gainful.experiments.pool import Event, Executor, LocalPool, RunFailed, RunFinished, RunProgress, RunStopped
from gainful.experiments.spec import Spec, read_spec
from gainful.experiments.store import Store, without_seed
from gainful.experiments.wire_format import RunResult
from gainful.experiments.worker import described
from gainful.locks import FolderLock, FolderLockedError
from gainful.machine import default_jobs, free_disk
from gainful.stop_request import StopRequest

CHECKPOINT_EVERY = 15.0
"""The most seconds of work that a killed run loses."""
CLEAN_STOP_SECONDS = 20.0
"""Seconds that active runs get to write their checkpoints after a request to stop."""


class SweepWatcher(Protocol):
    """Receives the progress of a sweep."""

    def preparing(self, words: str) -> None:
        """Called before the first run, with what is being prepared."""

    def started(self, sweep: SweepProgress) -> None:
        """Called when the runs start."""

    def progressed(self, sweep: SweepProgress) -> None:
        """Called several times a second."""

    def failed(self, sweep: SweepProgress, failure: RunFailed, attempt: int, again: bool) -> None:
        """Called when a run failed; `again` says whether it will be tried again."""

    def noticed(self, words: str) -> None:
        """Called when something was damaged and made good, or runs cannot be continued after a kill."""


class ExperimentWarning(UserWarning):
    """Something was damaged and made good, or runs cannot be continued after a kill."""


class SilentWatcher:
    """A watcher that does nothing, except that notices become warnings."""

    def preparing(self, words: str) -> None:
        """Do nothing."""

    def started(self, sweep: SweepProgress) -> None:
        """Do nothing."""

    def progressed(self, sweep: SweepProgress) -> None:
        """Do nothing."""

    def failed(self, sweep: SweepProgress, failure: RunFailed, attempt: int, again: bool) -> None:
        """Do nothing."""

    def noticed(self, words: str) -> None:
        """Issue a warning."""
        warnings.warn(words, ExperimentWarning, stacklevel=5)


@dataclass
class SweepProgress:
    """The state of a sweep in progress."""

    folder: Path
    title: str
    planned: int
    stored: int
    """Runs that were already stored when this call started."""
    jobs: int
    estimate: Estimate
    planned_by_agent: Counter[str]
    finished_by_agent: Counter[str]
    labels: dict[str, tuple[str, str]]
    """Environment and agent of each run, by its id."""
    workload: Workload
    finished: int = 0
    failed: int = 0
    device: str = "cpu"
    """Where the runs are made, as asked for; estimates are those of a processor."""
    began: float = field(default_factory=time.monotonic)
    stopping: bool = False

    @property
    def seconds(self) -> float:
        """Seconds since the sweep started."""
        return time.monotonic() - self.began

    @property
    def left(self) -> int:
        """The number of runs that have neither finished nor failed."""
        return self.planned - self.stored - self.finished - self.failed

    @property
    def under_way(self) -> float:
        """The completed fractions of all active runs, summed."""
        return self.workload.under_way

    @property
    def seconds_left(self) -> float:
        """The estimated time until the sweep is complete, in seconds."""
        return self.workload.seconds / max(1, min(self.jobs, self.left))


@dataclass(frozen=True)
class ExperimentOutcome:
    """What `run_experiment` did.

    Attributes
    ----------
    folder : Path
        Where the runs are stored.
    planned : int
        The runs that the spec asks for.
    finished : int
        How many of them are stored.
    ran : int
        How many of those were made by this call.
    failures : tuple of dict
        The last failure of every run that failed: environment, agent, seed, kind, message, traceback, and more.
    stopped : bool
        Whether the call was interrupted before the end.
    seconds : float
        How long the call took.
    """

    folder: Path
    planned: int
    finished: int
    ran: int
    failures: tuple[dict[str, Any], ...]
    stopped: bool
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether every run that the spec asks for is stored."""
        return self.finished == self.planned

    def _repr_html_(self) -> str:
        """For notebooks: how many runs are stored, where, and what to do next."""
        folder = str(self.folder)
        if self.complete:
            do = f"gf.plot.regret({folder!r}), gf.results({folder!r})"
        elif self.failures:
            do = f"fix what failed (gainful status {folder} --json shows the tracebacks), then repeat the call"
        else:
            do = "repeat the call to make the missing runs"
        facts = {
            "planned": f"{self.planned:,} runs",
            "finished": f"{self.finished:,}, {self.ran:,} of them by this call, in {self.seconds:,.1f} s",
            "failed": f"{len(self.failures):,}",
            "folder": folder,
            "next": do,
        }
        said = "stopped early" if self.stopped else "complete" if self.complete else "incomplete"
        return card(f"Experiment, {said}", facts)


def run_experiment(
    spec: Spec | str | Path,
    out: str | Path | None = None,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    timeout: float | None = None,
    tries: int = 3,
    fail_fast: bool = False,
    checkpoint_every: float = CHECKPOINT_EVERY,
    watcher: SweepWatcher | None = None,
    device: Literal["cpu", "cuda", "auto"] = "cpu",
) -> ExperimentOutcome:
    """Run an experiment: every run that `spec` asks for and the folder `out` does not hold yet.

    Each finished run is stored in one transaction. Whatever dies, calling again completes the experiment, and long runs
    resume from their last checkpoint. A folder that already holds runs accepts a changed spec only if it still asks for
    all runs it asked for before. Ctrl-C lets active runs write their checkpoints; a second Ctrl-C stops at once.

    Parameters
    ----------
    spec : Spec, str or Path
        A TOML file, the name of a spec that comes with gainful, a TOML text, or a spec that was read.
    out : str or Path, optional
        The folder of results; by default `results/NAME`.
    jobs : int, optional
        Runs at a time; by default as many as cores and memory allow. Results do not depend on it.
    dask : str, optional
        The address of a running Dask scheduler, or "local"; by default the runs are made by processes on this machine.
    timeout : float, optional
        Seconds that one run may take. A run that takes longer fails.
    tries : int
        How often a run is tried whose worker was lost.
    fail_fast : bool
        Whether the first failed run stops the experiment. Otherwise failed runs are reported and left out until the
        next call.
    checkpoint_every : float
        Seconds between checkpoints of a run: the work that a killed run may lose.
    watcher : SweepWatcher, optional
        Receives the progress.
    device : {"cpu", "cuda", "auto"}
        "cuda" makes all runs on the GPU of this machine, with `dask` on those of the workers: all seeds at once, with
        the ids and the traces of the CPU (docs/gpu.md). One error names the agents and environments that cannot run
        there; "auto" makes these on the CPU, and all of them if there is no GPU.

    Returns
    -------
    ExperimentOutcome
        How many runs are stored and how many failed.

    Raises
    ------
    InvalidSpecError
        If the spec has problems; the error lists all of them.
    ExperimentError
        If the folder holds runs that the spec does not ask for, or another process is running the experiment.
    StoreError
        If the folder cannot be read or written.
    DeviceError
        If `device` is "cuda", and there is no GPU, or some of the runs cannot be made on one.

    Examples
    --------
    >>> import tempfile
    >>> import gainful as gf
    >>> from gainful.experiments.spec import read_spec
    >>> entries = {"environments": [{"name": "toy3d"}], "agents": [{"name": "fixed"}]}
    >>> spec = read_spec({"horizon": 100, "seeds": 2, **entries})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = gf.run_experiment(spec, folder, jobs=1)
    >>> outcome.finished, outcome.complete
    (2, True)
    """
    given = {"tries": tries, "jobs": jobs, "timeout": timeout, "checkpoint_every": checkpoint_every}
    for name, value in given.items():
        if value is not None and not value > 0:
            raise InvalidArgumentError(name, value, "a number above 0")
    if device not in ("cpu", "cuda", "auto"):
        raise InvalidArgumentError("device", device, '"cpu", "cuda" or "auto"')
    asked = spec if isinstance(spec, Spec) else read_spec(spec)
    folder = Path(out) if out is not None else Path("results") / asked.name
    with locked_folder(folder), Store.open(folder) as store:
        sweep = _SweepRunner(asked, folder, store, watcher or SilentWatcher(), tries, fail_fast, checkpoint_every)
        sweep.device = device
        return sweep.run(jobs, dask, timeout)


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Only one process writes at a time; the lock of a process that died is free."""
    try:
        with contextlib.suppress(FileExistsError):
            make_folder(folder)
        lock = FolderLock(folder)
    except FolderLockedError as error:
        raise ExperimentError(
            f"{folder}: another gainful is running this experiment",
            name=str(folder),
            hint="wait for it or stop it, then run again",
        ) from error
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror or error}",
            name=str(folder),
            hint="check permissions, or choose another folder with --out",
        ) from error
    try:
        yield
    finally:
        lock.release()


class _SweepRunner:
    """One call of `run_experiment`."""

    def __init__(
        self,
        spec: Spec,
        folder: Path,
        store: Store,
        watcher: SweepWatcher,
        tries: int,
        fail_fast: bool,
        checkpoint_every: float,
    ) -> None:
        self.spec, self.folder, self.store, self.watcher = spec, folder, store, watcher
        self.tries, self.fail_fast, self.checkpoint_every = tries, fail_fast, checkpoint_every
        self.attempts: Counter[str] = Counter()
        self.stop, self.device = StopRequest(), "cpu"
        self._environment_keys: dict[tuple[str, str], str] = {}
        self.unsolvable: list[tuple[Configuration, GainfulError]] = []
        """Environments that cannot be solved: the first run of each, and the error."""

    # ------------------------------------------------------------------ before

    def run(self, jobs: int | None, dask: str | None, timeout: float | None) -> ExperimentOutcome:
        began = time.monotonic()
        title = self.spec.title or self.spec.name
        configurations = self.store.as_asked_before(self.spec.configurations())
        runs = [(c, one.environment, one.agent) for c, one in zip(configurations, self.spec.labels, strict=True)]
        self._check_that_nothing_is_gone(configurations)
        self.store.plan(self.spec.text, title, runs)
        finished = self.store.finished()
        missing = [c for c in configurations if c.run_id not in finished]
        self._token, notice = token_of(self.folder)
        for words in [*self.store.notices, *filter(None, [notice])]:
            self._noticed(words)
        waiting = self._solvable(missing)
        self.kinds = {c.run_id: without_seed(c) for c in waiting}
        if self.device == "cuda" and waiting:
            from gainful.experiments.device_executor import check_all_on_device

            check_all_on_device(self._one_task_per_kind(waiting), here=dask is None)
        self.watcher.preparing("trying it out")
        estimate = probe(self._one_task_per_kind(waiting), self.watcher.preparing) if waiting else Estimate({}, 0, 0)
        for text in estimate.notices:
            self._noticed(text)
        self._check_free_disk(estimate, len(waiting))
        labels = {c.run_id: (environment, agent) for c, environment, agent in runs}
        self.state = SweepProgress(
            folder=self.folder,
            title=title,
            planned=len(runs),
            stored=len(runs) - len(missing),
            jobs=jobs or min(default_jobs(estimate.memory_per_run), max(1, len(waiting))),
            estimate=estimate,
            planned_by_agent=Counter(agent for _, _, agent in runs),
            finished_by_agent=Counter(labels[i][1] for i in finished if i in labels),
            labels=labels,
            workload=Workload(((c.run_id, self.kinds[c.run_id], c.horizon) for c in waiting), estimate.seconds),
            failed=len(missing) - len(waiting),
            device=self.device,
        )
        self._report_unsolvable()
        if waiting:
            self._run_all(waiting, dask, timeout)
        self._remove_stale_checkpoints()
        wanted = set(labels)
        return ExperimentOutcome(
            folder=self.folder,
            planned=len(runs),
            finished=len(self.store.finished() & wanted),
            ran=self.state.finished,
            failures=tuple(f for f in self.store.failures() if f["run_id"] in wanted),
            stopped=self.state.stopping,
            seconds=time.monotonic() - began,
        )

    def _check_that_nothing_is_gone(self, asked: list[Configuration]) -> None:
        """A changed spec may only ask for more."""
        changed = differences((one.canonical() for one in self.store.planned()), asked)
        if not changed.is_superset:
            listed = "\n".join(f"  {line}" for line in changed.lines)
            more = " --until-decided added seeds: give that option again." if self.store.fact("comparison") else ""
            raise ExperimentError(
                f"{self.folder} holds runs that this spec does not ask for:\n{listed}\n"
                f"Keep what the spec asked for and add to it, or choose another folder (--out).{more}",
                name=str(self.folder),
            )

    def _report_unsolvable(self) -> None:
        for c, error in self.unsolvable:
            task = Task(c.run_id, json.loads(c.to_json()), None, "", None)
            self.watcher.failed(self.state, RunFailed(task, **described(error), lost=False), 1, again=False)

    def _run_all(self, waiting: list[Configuration], dask: str | None, timeout: float | None) -> None:
        if self.device != "cpu":
            waiting = self._run_on_device(waiting, dask)
            if not waiting or self.state.stopping:
                return
        executor = self._executor(self.state.jobs, dask, timeout)
        self.state.jobs = executor.slots
        self.watcher.started(self.state)
        try:
            with self.stop.on_signals():
                self._execute(executor, deque(waiting))
        finally:
            executor.close()

    def _run_on_device(self, waiting: list[Configuration], dask: str | None) -> list[Configuration]:
        """Make the runs that a GPU can make, of this machine or of a cluster; returns the others."""
        from gainful.experiments.device_executor import executor_on_device, split

        jobs, kinds = self.state.jobs, split(self._one_task_per_kind(waiting))
        there = [c for c in waiting if self.kinds[c.run_id] in kinds]
        if not there:
            self.state.device = "cpu"
            return waiting
        try:
            executor = executor_on_device(dask, jobs, self._noticed)
        except DeviceError as error:
            if self.device == "cuda":
                raise
            self._noticed(f"{error.problem}: all runs are made on the CPU")
            self.state.device = "cpu"
            return waiting
        self.state.jobs = min(executor.slots, len(there))
        self.watcher.started(self.state)
        try:
            with self.stop.on_signals():
                self._execute(executor, deque(there))
        finally:
            executor.close()
            self.state.jobs, self.state.device = jobs, "cpu"
        return [c for c in waiting if self.kinds[c.run_id] not in kinds]

    def _solvable(self, missing: list[Configuration]) -> list[Configuration]:
        """The runs whose environment can be solved; the others have failed already."""
        self.facts, broken, found = self.store.facts(), {}, []
        for c in missing:
            key = self._environment_key(c)
            if key not in self.facts and key not in broken:
                self.watcher.preparing(f"solving {c.environment}")
                try:
                    self.facts[key] = facts_of(environment_of(c))
                    self.store.keep_facts(key, self.facts[key])
                except GainfulError as error:
                    broken[key] = error
                    self.unsolvable.append((c, error))
            if key in broken:
                self.store.keep_failure(c.run_id, c.key, 1, **described(broken[key]))
            else:
                found.append(c)
        return found

    def _environment_key(self, c: Configuration) -> str:
        """Cached by value, because a sweep asks for the same few environments very often."""
        written = c.environment, json.dumps(c.environment_parameters, sort_keys=True)
        if written not in self._environment_keys:
            self._environment_keys[written] = environment_key(c)
        return self._environment_keys[written]

    def _task(self, c: Configuration) -> Task:
        """What a worker needs to know to make the run."""
        facts = self.facts[self._environment_key(c)]
        file = (self.folder / "checkpoints" / c.run_id).absolute()
        return Task(
            c.run_id,
            json.loads(c.to_json()),
            facts["gain"],
            facts["gain_source"],
            facts["span"],
            str(file),
            self.checkpoint_every,
            self._token,
            self.spec.folders,
        )

    def _noticed(self, words: str) -> None:
        """Tell the watcher; one that was written before there were notices issues warnings."""
        getattr(self.watcher, "noticed", SilentWatcher().noticed)(words)

    def _one_task_per_kind(self, runs: list[Configuration]) -> list[tuple[str, Task]]:
        """One task for every configuration, whatever its seed."""
        first = {self.kinds[c.run_id]: c for c in reversed(runs)}
        return [(kind, self._task(c)) for kind, c in first.items()]

    def _check_free_disk(self, estimate: Estimate, runs: int) -> None:
        needed, free = int(1.2 * estimate.disk_per_run * runs), free_disk(self.folder)
        if needed > free:
            raise StoreError(
                f"{self.folder}: {runs:,} runs need about {needed / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free",
                name=str(self.folder),
                found=free,
                hint="make room, or choose another folder (--out)",
            )

    def _executor(self, jobs: int, dask: str | None, timeout: float | None) -> Executor:
        if dask is None:
            return LocalPool(jobs, timeout)
        from gainful.experiments.dask_executor import DaskExecutor

        return DaskExecutor(dask, jobs, timeout)

    # ------------------------------------------------------------------ the loop

    def _execute(self, executor: Executor, waiting: deque[Configuration]) -> None:
        state, running = self.state, 0
        under_way: dict[str, Configuration] = {}
        give_up_at = float("inf")
        while running or (waiting and not state.stopping):
            state.jobs = executor.slots  # a cluster may grow and shrink
            while waiting and running < executor.slots and not state.stopping:
                c = waiting.popleft()
                self.attempts[c.run_id] += 1
                under_way[c.run_id] = c
                executor.submit(self._task(c))
                running += 1
            for event in executor.wait(0.2):
                if isinstance(event, RunProgress):
                    state.workload.stepped(event.task.run_id, event.step)
                    continue
                running -= 1
                c = under_way.pop(event.task.run_id)
                if self._ended(event, c):
                    waiting.appendleft(c)
            if self.stop.made and not state.stopping:
                state.stopping = True
                executor.stop()
                give_up_at = time.monotonic() + CLEAN_STOP_SECONDS
            if time.monotonic() > give_up_at:
                return
            self.watcher.progressed(state)

    def _ended(self, event: Event, configuration: Configuration) -> bool:
        """Store the result or the failure of a run; return whether to try it again."""
        task, state = event.task, self.state
        if isinstance(event, RunFinished):
            try:
                result = RunResult.from_bytes(event.data)
            except ValueError as error:  # damaged on its way
                event = RunFailed(task, "DamagedResultError", str(error), "", lost=True)
            else:
                problem = _made_by_other_code(task, result)
                if problem:
                    event = RunFailed(task, "ResultsVersionError", problem, "", lost=False)
        if isinstance(event, RunFinished):
            if notice := result.values.get("notice"):
                self._noticed(f"run {task.run_id}: {notice}")
            self.store.keep(configuration, result, self.attempts[task.run_id])
            with contextlib.suppress(OSError):
                Path(task.checkpoint_file or "").unlink(missing_ok=True)
            state.finished += 1
            state.finished_by_agent[state.labels[task.run_id][1]] += 1
            state.workload.finished(task.run_id, result.values["call_seconds"])
            return False
        if isinstance(event, RunStopped):
            return False
        assert isinstance(event, RunFailed)
        attempt = self.attempts[task.run_id]
        again = event.lost and attempt < self.tries and not state.stopping
        self.store.keep_failure(task.run_id, configuration.key, attempt, event.kind, event.message, event.traceback)
        self.watcher.failed(state, event, attempt, again)
        if again:
            state.workload.lost(task.run_id)
        else:
            state.workload.dropped(task.run_id)
            state.failed += 1
            if self.fail_fast:
                self.stop.made = True
        return again

    def _remove_stale_checkpoints(self) -> None:
        """Delete the checkpoints of stored runs, and files that a kill left incomplete."""
        finished = self.store.finished()
        for path in (self.folder / "checkpoints").iterdir():
            if path.name in finished or path.name.endswith(".tmp"):
                path.unlink(missing_ok=True)


def _made_by_other_code(task: Task, result: RunResult) -> str:
    """What is wrong with a result that a worker with another gainful made; "" for a good one."""
    values = result.values
    if (values["run_id"], values["results_version"]) == (task.run_id, RESULTS_VERSION):
        return ""
    return (
        f"made by gainful {values['version']} with results version {values['results_version']}, expected "
        f"{RESULTS_VERSION}; install the same gainful on every worker"
    )
