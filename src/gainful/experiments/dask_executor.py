"""Runs on a Dask cluster: this process writes the store, workers anywhere make the runs.

If a worker is lost, Dask gives its run to another one, and the work since the last checkpoint is lost. If the scheduler
is lost, the sweep stops: every run stored before is safe, and the same command with a new scheduler resumes.

Only the start waits for the network: results are fetched, and workers counted, on Dask's own event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import signal
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from gainful.errors import ExperimentError, InvalidArgumentError
from gainful.experiments.execution import RunStoppedError, Task, execute
from gainful.experiments.pool import Event, RunFailed, RunFinished, RunProgress, RunStopped
from gainful.experiments.worker import MESSAGE_FAILURE, MESSAGE_RESULT, MESSAGE_STOPPED, described

LOCAL_CLUSTER = "local"
CONNECT_SECONDS = 10.0
"""Seconds to wait for the scheduler to answer, and for a first worker."""
NO_WORKER_SECONDS = 120.0
"""Seconds without any worker after which a sweep gives up. Workers that are being replaced are back sooner."""
COUNT_WORKERS_EVERY = 2.0
"""Seconds between two counts of the workers."""
NOISY_LOGGERS = ("distributed", "distributed.client", "distributed.gc", "tornado", "tornado.application", "asyncio")
"""Loggers with levels of their own that report lost connections as tracebacks."""
RUNS_ARE_SAFE = "every run stored before is safe: "

# ---------------------------------------------------------------------- on a worker

_halted: set[str] = set()
"""Sweeps whose driver has asked to stop."""


def execute_text(text: str, timeout: float | None, sweep: str) -> bytes:
    """Make the run that `text` describes; a result is preceded by the step at which the run began here.

    A run writes its checkpoint and stops at its next pause if it takes too long, if its sweep is stopped, or if it is
    no longer wanted: its driver has died, or this worker is closing (then another one resumes it).
    """
    task, began = Task.from_json(text), time.monotonic()
    seen: list[int] = []
    resumed, left = Path(task.checkpoint_file or "").is_file(), left_alone()

    def late() -> bool:
        return timeout is not None and time.monotonic() - began > timeout

    def note(step: int, _: int) -> None:
        if not seen:
            seen.append(step)

    try:
        if sweep in _halted:
            raise RunStoppedError
        data = execute(task, note, lambda: sweep in _halted or late() or left())
    except RunStoppedError:
        if sweep in _halted:
            return MESSAGE_STOPPED
        if late():
            message = f"still running after {timeout:g} s, the limit for a run; raise --timeout"
            return MESSAGE_FAILURE + json.dumps({"kind": "TimeoutError", "message": message, "traceback": ""}).encode()
        from distributed import Reschedule

        raise Reschedule from None
    except Exception as error:
        return MESSAGE_FAILURE + json.dumps(described(error)).encode()
    first = 0 if not resumed else seen[0] if seen else task.configuration["horizon"]
    return MESSAGE_RESULT + struct.pack("<q", first) + data


def left_alone() -> Callable[[], bool]:
    """Make a function that tells whether the run in this thread is no longer wanted (cancelled, or worker closing)."""
    from distributed import get_worker

    try:
        worker: Any = get_worker()
        key, tasks = worker.get_current_task(), worker.state.tasks
    except (ValueError, AttributeError):  # not in a Dask worker, or in an unknown kind: run to the end
        return lambda: False

    def left() -> bool:
        known = tasks.get(key)
        return known is None or known.state == "cancelled" or worker.status.name not in ("running", "paused")

    return left


def halt(sweep: str) -> None:
    """Stop the runs of a sweep on this worker, active ones and later ones."""
    _halted.add(sweep)


def halted(sweep: str) -> bool:
    """Whether the driver of a sweep has asked to stop."""
    return sweep in _halted


# ---------------------------------------------------------------------- here


class DaskExecutor:
    """Executes runs on the cluster whose scheduler has this address; "local" starts a cluster of local processes."""

    def __init__(self, address: str, jobs: int, timeout: float | None = None) -> None:
        try:
            from distributed import Client, LocalCluster
            from distributed.comm.addressing import get_address_host_port
        except ImportError as error:
            raise InvalidArgumentError(
                "dask", address, hint="pip install 'gainful[dask]'", problem="--dask needs Dask"
            ) from error
        if address != LOCAL_CLUSTER:
            try:
                get_address_host_port(address if "://" in address else f"tcp://{address}")
            except ValueError as error:
                raise InvalidArgumentError(
                    "dask",
                    address,
                    "an address such as tcp://head:8786, or local",
                    problem=f"--dask {address!r}: {error}",
                ) from error
        self._address, self._timeout, self._sweep = address, timeout, secrets.token_hex(8)
        self._client: Any = None
        self._cluster: Any = None
        self._quiet = contextlib.ExitStack()
        self._quiet.enter_context(_quiet())
        try:
            if address == LOCAL_CLUSTER:
                with _ctrl_c_later():
                    self._cluster = LocalCluster(  # type: ignore[no-untyped-call]
                        n_workers=jobs,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address=None,
                        memory_limit=None,
                        silence_logs=logging.CRITICAL + 1,
                        scheduler_kwargs={"allowed_failures": 0},  # a lost worker is a try, as in the local pool
                    )
            self._client = Client(  # type: ignore[no-untyped-call]
                self._cluster or address, timeout=CONNECT_SECONDS, set_as_default=False
            )
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
            self.slots = self.slots_for(sum(self._client.nthreads().values()))
        except BaseException as error:
            connected = self._client is not None
            self.close()
            if not isinstance(error, Exception):
                raise
            raise _unreachable(address, connected, error) from error
        self._ended: SimpleQueue[tuple[Any, Any, bytes, BaseException | None]] = SimpleQueue()
        self._under_way: dict[str, Any] = {}
        self._submitted = 0
        self._counted = self._worked = time.monotonic()
        self._counting = False
        self._lost = ""
        """Why the scheduler is considered lost; empty while it is not."""

    def slots_for(self, threads: int) -> int:
        """Runs at a time on a cluster with so many threads."""
        return max(1, threads)

    def submit(self, task: Task) -> None:
        """Hand a task to the scheduler."""
        self._hand_over(task, execute_text, task.to_json(), self._timeout, self._sweep)

    def _hand_over(self, work: Any, function: Callable[..., bytes], *arguments: Any, **where: Any) -> None:
        """Let the cluster call a function; `work`, a task or several with one `run_id`, is what it works on."""
        self._submitted += 1
        # the number comes second, so that Dask groups all runs under one prefix
        key = f"gainful-{self._submitted}-{work.run_id}-{self._sweep}"
        try:
            future = self._client.submit(function, *arguments, key=key, pure=False, **where)
        except Exception as error:  # the client has closed; `wait` reports it
            self._lost = self._lost or str(error)
            return
        self._under_way[work.run_id] = future
        self._client.loop.add_callback(self._follow, work, future)

    async def _follow(self, work: Any, future: Any) -> None:
        """On the event loop: fetch the result as soon as there is one."""
        try:
            self._ended.put((work, future, await future, None))
        except (Exception, asyncio.CancelledError) as error:
            self._ended.put((work, future, b"", error))

    def wait(self, seconds: float) -> list[Event]:
        """The results that have arrived; ExperimentError if the scheduler, or every worker, is gone."""
        if time.monotonic() - self._counted > COUNT_WORKERS_EVERY and not self._counting:
            self._counting = True
            self._client.loop.add_callback(self._count)
        found: list[Event] = []
        with contextlib.suppress(Empty):
            found += self._heard(*self._ended.get(timeout=seconds))
            while True:
                found += self._heard(*self._ended.get_nowait())
        if not found:
            self._check()
        return found

    def _check(self) -> None:
        if self._lost or self._client.status != "running":
            raise ExperimentError(
                f"the Dask scheduler {self._address} is gone",
                name="dask",
                found=self._address,
                hint=f"{RUNS_ARE_SAFE}start it again, with workers, and run the same command",
            )
        if time.monotonic() - self._worked > NO_WORKER_SECONDS:
            raise ExperimentError(
                f"the Dask cluster {self._address} has had no worker for {NO_WORKER_SECONDS:g} s",
                name="dask",
                found=self._address,
                hint=f"{RUNS_ARE_SAFE}start workers, and run the same command",
            )

    async def _count(self) -> None:
        """On the event loop: count the workers, as clusters change size; without an answer the scheduler is gone."""
        try:
            workers = await asyncio.wait_for(self._client.nthreads(), CONNECT_SECONDS)
            await self._met(list(workers))
        except (Exception, asyncio.CancelledError) as error:
            self._lost = str(error) or type(error).__name__
            return
        threads = sum(workers.values())
        self.slots = self.slots_for(threads)
        self._counted = time.monotonic()
        if threads:
            self._worked = self._counted
        self._counting = False

    async def _met(self, workers: list[str]) -> None:
        """On the event loop: these are the workers now."""

    def _heard(self, work: Any, future: Any, answer: bytes, error: BaseException | None) -> Iterator[Event]:
        if work.run_id not in self._under_way or self._under_way[work.run_id] is not future:
            return  # of an earlier try
        if self._client.status != "running" and error is not None:
            return  # cancelled with the connection; it stays under way
        if isinstance(error, OSError):  # a finished run could not be fetched from the scheduler
            self._lost = self._lost or str(error)
            return
        del self._under_way[work.run_id]
        future.release()
        yield from self._events_of(work, answer, error)

    def _events_of(self, task: Any, answer: bytes, error: BaseException | None) -> Iterator[Event]:
        """What an answer of the cluster, or an error in place of one, says about a task."""
        kind, rest = answer[:1], answer[1:]
        if error is not None:
            yield _failed(task, error)
        elif kind == MESSAGE_RESULT:
            yield RunProgress(task, struct.unpack_from("<q", rest)[0])
            yield RunFinished(task, rest[8:])
        elif kind == MESSAGE_STOPPED:
            yield RunStopped(task)
        else:
            yield RunFailed(task, **json.loads(rest), lost=False)

    def stop(self) -> None:
        """Let active runs write their checkpoints and return; waiting ones return at once."""

        async def tell() -> None:
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await self._client.run(halt, self._sweep, on_error="ignore")

        self._client.loop.add_callback(tell)

    def close(self) -> None:
        """Leave the cluster, which cancels the active runs; end it if it was started here."""
        with self._quiet, _ctrl_c_ignored():
            for part, seconds in ((self._client, 2.0), (self._cluster, 5.0)):
                if part is not None:
                    with contextlib.suppress(Exception):
                        part.close(timeout=seconds)


def was_lost(error: BaseException) -> bool:
    """Whether a run has no answer because its worker is gone, or because the cluster took it back."""
    from distributed import KilledWorker

    return isinstance(error, KilledWorker) or "Cancelled" in type(error).__name__


def _failed(task: Task, error: BaseException) -> RunFailed:
    """What Dask reports about a run that returned no answer."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        last = getattr(error.last_worker, "address", error.last_worker)
        words = f"the worker {last} died with it (out of memory?)"
        if error.allowed_failures:
            words = f"{error.allowed_failures + 1} workers died with it, the last of them {last} (out of memory?)"
        return RunFailed(task, "WorkerLost", words, "", lost=True)
    failure = described(error)
    if was_lost(error):
        return RunFailed(task, "WorkerLost", f"taken back by the cluster: {failure['message']}", "", lost=True)
    failure["message"] += "; install the same gainful on the scheduler and on every worker"
    return RunFailed(task, **failure, lost=False)


def _unreachable(address: str, connected: bool, error: Exception) -> ExperimentError:
    if address == LOCAL_CLUSTER:
        return ExperimentError(
            f"--dask local: no cluster could be started here ({error})",
            name="dask",
            found=address,
            hint="run without --dask",
        )
    if connected:
        return ExperimentError(
            f"--dask {address}: the scheduler has no worker after {CONNECT_SECONDS:g} s",
            name="dask",
            found=address,
            hint=f"start some (dask worker {address} --nthreads 1 --nworkers auto) and run again",
        )
    return ExperimentError(
        f"--dask {address}: no Dask scheduler answered within {CONNECT_SECONDS:g} s ({error})",
        name="dask",
        found=address,
        hint="start one (dask scheduler) and workers (dask worker ADDRESS), and run again",
    )


@contextlib.contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Deliver SIGINT at the end; threads and processes started in the block never see it."""
    resource_tracker.ensure_running()  # which would let the signal through again where it starts later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Ignore SIGINT while the cluster is being closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's log lines and warnings; users see errors of gainful instead."""
    loggers = [logging.getLogger(name) for name in NOISY_LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="distributed")
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
