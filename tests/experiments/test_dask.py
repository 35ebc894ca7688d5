"""Sweeps on Dask clusters of real processes: the same bits as here, whatever of the cluster is killed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gainful.errors import ExperimentError, InvalidArgumentError
from gainful.experiments import dask_executor, worker
from gainful.experiments.dask_executor import DaskExecutor, execute_text
from gainful.experiments.execution import Task
from gainful.experiments.pool import RunFailed
from gainful.experiments.spec import read_spec
from gainful.experiments.store import STORE_FILE, Store
from gainful.experiments.sweep import SilentWatcher, SweepProgress, run_experiment
from gainful.experiments.wire_format import unpack
from tests.experiments.sweeps import bits, command, finished, written

pytest.importorskip("distributed")

LIMIT = 120.0
"""Seconds for anything that is waited for; on an idle machine a few are enough."""
LONG = """
title = "long runs"
horizon = 6e7
seeds = 6
[[environments]]
name = "riverswim"
[[agents]]
name = "scal-plus"
parameters = { span = 7.0 }
"""
ENDLESS = LONG.replace("6e7", "1e12").replace("seeds = 6", "seeds = 2")


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for it."""
    end = time.monotonic() + LIMIT
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {LIMIT:g} s: {what}"
        time.sleep(0.05)
    return found


class Processes:
    """Processes, each with its own group, that end with the test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._all = folder, list[subprocess.Popen[str]]()

    def start(self, words: list[str]) -> subprocess.Popen[str]:
        log = open(self.folder / f"log {len(self._all)}.txt", "w", encoding="utf-8")  # noqa: SIM115
        process = subprocess.Popen(
            words,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored if tests run in the background
        )
        log.close()
        self._all.append(process)
        return process

    def said(self, process: subprocess.Popen[str]) -> str:
        return (self.folder / f"log {self._all.index(process)}.txt").read_text(encoding="utf-8")

    def ended(self, process: subprocess.Popen[str], code: int, seconds: float = LIMIT) -> str:
        """What it said; it has to end within so many seconds."""
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"still running after {seconds:g} s:\n{self.said(process)}")
        assert process.returncode == code, self.said(process)
        return self.said(process)

    def kill(self, process: subprocess.Popen[str]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def kill_all(self) -> None:
        for process in self._all:
            self.kill(process)


class Cluster(Processes):
    """A scheduler and workers as they are started by hand."""

    def __init__(self, folder: Path, workers: int = 2, *options: str) -> None:
        super().__init__(folder)
        folder.mkdir()
        file = folder / "scheduler.json"
        self.scheduler = self.start(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-dashboard",
                "--scheduler-file",
                str(file),
            ]
        )

        def address() -> str:
            with contextlib.suppress(OSError, ValueError):
                return str(json.loads(file.read_text(encoding="utf-8"))["address"])
            return ""

        try:
            self.address = until(address, "the scheduler's address")
            self.workers = [self.worker(*options) for _ in range(workers)]
        except BaseException:
            self.kill_all()
            raise

    def worker(self, *options: str) -> subprocess.Popen[str]:
        return self.start(
            [
                sys.executable,
                "-m",
                "distributed.cli.dask_worker",
                self.address,
                "--host",
                "127.0.0.1",
                "--nthreads",
                "1",
                "--no-dashboard",
                "--memory-limit",
                "0",
                "--local-directory",
                str(self.folder),
                *options,
            ]
        )

    def busy(self, runs: int) -> None:
        """Wait until so many runs are in the middle of their steps."""
        from distributed import Client

        client: Any = Client(self.address, set_as_default=False)  # type: ignore[no-untyped-call]

        def under_way() -> bool:
            stacks = [str(stack) for keys in client.call_stack().values() for stack in keys.values()]
            return len([stack for stack in stacks if "simulation.finish(" in stack]) >= runs

        try:
            until(under_way, f"{runs} runs under way")
        finally:
            client.close()


@contextlib.contextmanager
def cluster_of(folder: Path, workers: int = 2, *options: str) -> Iterator[Cluster]:
    cluster = Cluster(folder, workers, *options)
    try:
        yield cluster
    finally:
        cluster.kill_all()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers with their nannies, for tests that kill none of them."""
    with cluster_of(tmp_path_factory.mktemp("cluster") / "dask") as found:
        yield found


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Drivers."""
    found = Processes(tmp_path)
    yield found
    found.kill_all()


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The bits of the long runs, made by the local pool."""
    folder = tmp_path_factory.mktemp("long")
    assert run_experiment(written(folder, LONG), folder / "out", jobs=2).complete
    return bits(folder / "out")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The bits of the small sweep, made by the local pool."""
    folder = tmp_path_factory.mktemp("small")
    assert run_experiment(written(folder), folder / "out", jobs=2).complete
    return bits(folder / "out")


def stored(out: Path) -> set[str]:
    if not (out / STORE_FILE).exists():
        return set()
    with contextlib.suppress(Exception), Store.read(out) as store:  # it may not be complete yet
        return store.finished()
    return set()


def descendants(process: subprocess.Popen[str]) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(process.pid).children(recursive=True)
    return []


def spawned(process: subprocess.Popen[str], word: str) -> list[psutil.Process]:
    """Those of its descendants that Python has started, with this word in their command."""
    found = []
    for child in descendants(process):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [child] if word in " ".join(child.cmdline()) else []
    return found


def gone(found: list[psutil.Process]) -> bool:
    return not [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def clean(said: str) -> None:
    """Nothing of Dask's own on the user's terminal."""
    for noise in ("Traceback", "distributed.", "Warning", "tornado", "asyncio"):
        assert noise not in said, said


# ---------------------------------------------------------------------- the same results


@pytest.mark.slow
def test_a_cluster_gives_the_bits_of_the_local_pool(small: dict[str, Any], cluster: Cluster, tmp_path: Path) -> None:
    said = finished(written(tmp_path), tmp_path / "out", "--dask", cluster.address)
    assert bits(tmp_path / "out") == small
    assert "21 of 21 runs are stored" in said
    clean(said)


@pytest.mark.slow
def test_threads_of_one_worker_give_the_same_bits(small: dict[str, Any], tmp_path: Path) -> None:
    with cluster_of(tmp_path / "dask", 1, "--no-nanny", "--nthreads", "3") as cluster:
        run_experiment(written(tmp_path), tmp_path / "out", dask=cluster.address)
    assert bits(tmp_path / "out") == small


# ---------------------------------------------------------------------- kills


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_nothing_is_lost(
    long: dict[str, Any], tmp_path: Path, processes: Processes
) -> None:
    spec, out = written(tmp_path, LONG), tmp_path / "out"
    with cluster_of(tmp_path / "dask") as cluster:
        driver = processes.start(command(spec, out, "--dask", cluster.address, "--checkpoint-every", "0.2"))
        until(lambda: stored(out), "a first run")
        (victim,) = spawned(cluster.workers[0], "spawn_main")
        victim.kill()
        said = processes.ended(driver, 0)
    assert bits(out) == long
    assert "6 of 6 runs are stored" in said
    assert [p.name for p in (out / "checkpoints").iterdir() if p.suffix != ".tmp"] == ["token"]
    clean(said)


@pytest.mark.slow
def test_the_same_command_goes_on_after_the_scheduler_was_killed(
    long: dict[str, Any], tmp_path: Path, processes: Processes
) -> None:
    spec, out = written(tmp_path, LONG), tmp_path / "out"
    with cluster_of(tmp_path / "dask", 2, "--no-nanny") as cluster:
        driver = processes.start(command(spec, out, "--dask", cluster.address, "--checkpoint-every", "0.2"))
        until(lambda: stored(out), "a first run")
        cluster.kill(cluster.workers[0])  # nobody replaces it
        until(lambda: len(stored(out)) >= 2, "a run after the worker was killed")
        cluster.kill(cluster.scheduler)
        said = processes.ended(driver, 1, 30.0)
        assert re.search(r"ExperimentError: the Dask scheduler \S+ is gone; every run stored before is safe", said)
        clean(said)
        until(lambda: cluster.workers[1].poll() is not None, "the other worker ends")
    before = {i: found for i, found in bits(out).items() if i in stored(out)}
    assert 2 <= len(before) < 6
    with cluster_of(tmp_path / "new", 2, "--no-nanny") as cluster:
        said = finished(spec, out, "--dask", cluster.address)
    assert f"6 of 6 runs are stored in {out}, {6 - len(before)} of them made by this call" in said
    assert bits(out) == long
    assert before.items() <= bits(out).items()


@pytest.mark.slow
def test_a_worker_that_leaves_writes_its_checkpoint_and_a_scheduler_that_leaves_is_gone(
    tmp_path: Path, processes: Processes
) -> None:
    """SIGTERM, as Slurm sends it at the end of a job."""
    spec, out = written(tmp_path, ENDLESS), tmp_path / "out"
    with cluster_of(tmp_path / "dask", 2, "--no-nanny") as cluster:
        driver = processes.start(command(spec, out, "--dask", cluster.address, "--checkpoint-every", "1000"))
        cluster.busy(2)
        cluster.workers[0].send_signal(signal.SIGTERM)
        until(lambda: len(list((out / "checkpoints").iterdir())) >= 2, "a checkpoint")
        cluster.scheduler.send_signal(signal.SIGTERM)
        said = processes.ended(driver, 1, 40.0)
        assert "is gone; every run stored before is safe" in said
        clean(said)


@pytest.mark.slow
def test_a_killed_driver_leaves_its_workers_free(cluster: Cluster, tmp_path: Path, processes: Processes) -> None:
    """Runs that take forever stop once nobody wants them, so that the next sweep finds the workers idle."""
    driver = processes.start(command(written(tmp_path, ENDLESS), tmp_path / "endless", "--dask", cluster.address))
    cluster.busy(2)
    processes.kill(driver)
    small = LONG.replace("6e7", "1000")
    assert run_experiment(written(tmp_path, small), tmp_path / "out", dask=cluster.address).complete


# ---------------------------------------------------------------------- stopping


@pytest.mark.slow
def test_ctrl_c_writes_checkpoints_and_leaves(cluster: Cluster, tmp_path: Path, processes: Processes) -> None:
    spec, out = written(tmp_path, ENDLESS), tmp_path / "out"
    driver = processes.start(command(spec, out, "--dask", cluster.address, "--checkpoint-every", "1000"))
    cluster.busy(2)
    driver.send_signal(signal.SIGINT)
    said = processes.ended(driver, 130, 30.0)
    assert "stopping: active runs are writing their checkpoints" in said
    assert "0 of 2 runs are stored" in said
    assert len([p for p in (out / "checkpoints").iterdir() if p.suffix != ".tmp"]) == 3
    clean(said)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["done", "ctrl-c", "ctrl-c at the start", "kill"])
def test_a_local_cluster_leaves_no_process_behind(
    ending: str, long: dict[str, Any], tmp_path: Path, processes: Processes
) -> None:
    text = LONG if ending == "done" else ENDLESS
    out = tmp_path / "out"
    driver = processes.start(command(written(tmp_path, text), out, "--dask", "local", "-j", "2"))
    if ending == "ctrl-c at the start":
        workers = until(lambda: spawned(driver, "multiprocessing"), "the first process")
    else:
        until(lambda: "at a time" in processes.said(driver), "the runs begin")
        workers = descendants(driver)
        assert len(workers) >= 2
    if ending == "done":
        said = processes.ended(driver, 0)
        assert bits(out) == long
        clean(said)
    elif "ctrl-c" in ending:
        os.killpg(driver.pid, signal.SIGINT)  # as a terminal does it
        clean(processes.ended(driver, 130, 30.0))
    else:
        driver.kill()
        driver.wait()
    until(lambda: gone(workers), "its workers end")


# ---------------------------------------------------------------------- failures


class Listener(SilentWatcher):
    """Remembers."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.jobs = 0

    def started(self, sweep: SweepProgress) -> None:
        self.jobs = sweep.jobs

    def progressed(self, sweep: SweepProgress) -> None:
        self.steps.append(sweep.workload.steps)


@pytest.mark.slow
def test_a_run_that_fails_there_does_not_sink_the_others(cluster: Cluster, tmp_path: Path) -> None:
    text = (
        LONG.replace("6e7", "1000")
        .replace("seeds = 6", "seeds = 2")
        .replace(
            "[[agents]]",
            """
[[environments]]
name = "garnet"
parameters = { n_states = 60000, n_actions = 4, branching = 4 }
[[agents]]
name = "psrl"
[[agents]]
only = ["riverswim"]""",
        )
    )
    outcome = run_experiment(written(tmp_path, text), tmp_path / "out", dask=cluster.address)
    assert (outcome.planned, outcome.finished) == (6, 4)
    assert {(f["agent"], f["environment"], f["kind"], f["try"]) for f in outcome.failures} == {
        ("psrl", "garnet", "TooLargeError", 1)
    }
    assert "Traceback" in outcome.failures[0]["traceback"]


def test_a_run_that_takes_too_long_there_is_left_out(cluster: Cluster, tmp_path: Path) -> None:
    outcome = run_experiment(written(tmp_path, ENDLESS), tmp_path / "out", dask=cluster.address, timeout=0.5)
    assert [f["kind"] for f in outcome.failures] == ["TimeoutError"] * 2
    assert "raise --timeout" in outcome.failures[0]["message"]


def test_steps_of_finished_runs_are_counted(cluster: Cluster, tmp_path: Path) -> None:
    listener = Listener()
    text = LONG.replace("6e7", "20000")
    run_experiment(written(tmp_path, text), tmp_path / "out", dask=cluster.address, watcher=listener)
    assert listener.steps[-1] == 6 * 20_000
    assert listener.jobs == 2


@pytest.mark.slow
def test_nobody_at_the_address(tmp_path: Path) -> None:
    began = time.monotonic()
    said = finished(written(tmp_path, ENDLESS), tmp_path / "out", "--dask", "tcp://127.0.0.1:1", code=1)
    assert "ExperimentError: --dask tcp://127.0.0.1:1: no Dask scheduler answered within 10 s" in said
    assert time.monotonic() - began < 60.0  # of which 10 are patience
    clean(said)


@pytest.mark.parametrize("address", ["", "8786", "tcp://", "http://head:80", "tcp://a:b:c"])
def test_an_address_that_cannot_be(address: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected an address such as"):
        DaskExecutor(address, 1)


def test_a_cluster_without_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "CONNECT_SECONDS", 1.0)
    with cluster_of(tmp_path / "dask", 0) as cluster, pytest.raises(ExperimentError, match="has no worker after 1 s"):
        DaskExecutor(cluster.address, 1)


@pytest.mark.slow
def test_a_cluster_that_loses_all_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "NO_WORKER_SECONDS", 3.0)
    with cluster_of(tmp_path / "dask", 1) as alone:

        class Killer(SilentWatcher):
            def started(self, sweep: SweepProgress) -> None:
                alone.kill(alone.workers[0])

        spec = written(tmp_path, ENDLESS)
        with pytest.raises(ExperimentError, match="has had no worker for 3 s; every run stored before is safe"):
            run_experiment(spec, tmp_path / "out", dask=alone.address, watcher=Killer())


def test_without_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidArgumentError, match=r"--dask needs Dask; pip install 'gainful\[dask\]'"):
        DaskExecutor("local", 1)


def test_a_worker_with_another_gainful_gives_failures_and_no_mixed_results(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(text: str, timeout: float | None, sweep: str) -> bytes:  # sent by value: workers have not changed
        from gainful.experiments import dask_executor
        from gainful.experiments import execution as patched

        execution: Any = patched
        seed, provenance = json.loads(text)["configuration"]["seed"], execution.provenance
        if seed == 1:
            raise ModuleNotFoundError("No module named 'gainful'")
        if seed == 2:
            execution.provenance = lambda: {**provenance(), "results_version": 0}
        try:
            return dask_executor.execute_text(text, timeout, sweep)
        finally:
            execution.provenance = provenance

    monkeypatch.setattr(dask_executor, "execute_text", other)
    spec = written(tmp_path, LONG.replace("6e7", "1000").replace("seeds = 6", "seeds = 4"))
    outcome = run_experiment(spec, tmp_path / "out", dask=cluster.address)
    assert outcome.finished == len(bits(tmp_path / "out")) == 2
    told = {f["seed"]: (f["kind"], f["try"], f["message"]) for f in outcome.failures}
    assert told[1][:2] == ("ModuleNotFoundError", 1)
    assert told[2][:2] == ("ResultsVersionError", 1)
    for seed in (1, 2):
        assert "install the same gainful on" in told[seed][2]


# ---------------------------------------------------------------------- in the books of Dask


@pytest.mark.slow
def test_the_cluster_forgets_finished_runs(cluster: Cluster, tmp_path: Path) -> None:
    from distributed import Client

    def books(dask_scheduler: Any) -> tuple[list[str], list[str]]:
        return [str(key) for key in dask_scheduler.tasks], [str(name) for name in dask_scheduler.task_prefixes]

    client: Any = Client(cluster.address, set_as_default=False)  # type: ignore[no-untyped-call]
    most = 0

    class Reader(SilentWatcher):
        def progressed(self, sweep: SweepProgress) -> None:
            nonlocal most
            most = max(most, len(client.run_on_scheduler(books)[0]))

    try:
        spec = written(tmp_path, LONG.replace("6e7", "1000").replace("seeds = 6", "seeds = 40"))
        assert run_experiment(spec, tmp_path / "out", dask=cluster.address, watcher=Reader()).complete
        assert 1 <= most <= 8
        until(lambda: not client.run_on_scheduler(books)[0], "no task is known")
        until(lambda: not any(client.has_what().values()), "no worker holds a result")
        assert len([name for name in client.run_on_scheduler(books)[1] if "gainful" in name]) == 1
    finally:
        client.close()


@pytest.mark.slow
def test_what_a_worker_does_with_a_run(tmp_path: Path) -> None:
    """Without a cluster: too long, in a checkpoint; halted; on from the checkpoint to the same bits."""
    (configuration,) = read_spec(written(tmp_path, LONG.replace("seeds = 6", "seeds = 1"))).configurations()
    (tmp_path / "token").write_text("secret")
    task = Task(
        configuration.run_id,
        json.loads(configuration.to_json()),
        0.5,
        "solved",
        7.0,
        str(tmp_path / "checkpoint"),
        1000.0,
        "secret",
    )
    whole = execute_text(task.to_json(), None, "a sweep")
    assert whole[:1] == worker.MESSAGE_RESULT
    assert struct.unpack_from("<q", whole, 1) == (0,)
    late = execute_text(task.to_json(), 0.05, "a sweep")
    assert late[:1] == worker.MESSAGE_FAILURE
    assert json.loads(late[1:])["kind"] == "TimeoutError"
    dask_executor.halt("a halted sweep")
    assert execute_text(task.to_json(), None, "a halted sweep") == worker.MESSAGE_STOPPED
    rest = execute_text(task.to_json(), None, "a sweep")
    assert 0 < struct.unpack_from("<q", rest, 1)[0] < configuration.horizon
    (_, one), (_, other) = unpack(whole[9:]), unpack(rest[9:])
    assert {name: a.tobytes() for name, a in one.items()} == {name: a.tobytes() for name, a in other.items()}


@pytest.mark.slow
def test_a_worker_that_dies_with_a_run_is_told(tmp_path: Path) -> None:
    """In a local cluster every lost worker is a try."""

    def poison(text: str, timeout: float | None, sweep: str) -> bytes:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
        return b""

    class Heard(SilentWatcher):
        def __init__(self) -> None:
            self.told: list[tuple[str, int, bool]] = []

        def failed(self, sweep: SweepProgress, failure: RunFailed, attempt: int, again: bool) -> None:
            self.told.append((failure.kind, attempt, again))
            assert "died with it" in failure.message

    heard, spec = Heard(), written(tmp_path, LONG.replace("6e7", "1000").replace("seeds = 6", "seeds = 1"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask_executor, "execute_text", poison)
        outcome = run_experiment(spec, tmp_path / "out", dask="local", jobs=1, tries=2, watcher=heard)
    assert heard.told == [("WorkerLost", 1, True), ("WorkerLost", 2, False)]
    assert not outcome.complete
