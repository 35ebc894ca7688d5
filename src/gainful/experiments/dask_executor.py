"""Runs on a Dask cluster: this machine keeps the store, workers anywhere make the runs.

A worker that is lost costs one try of the runs it had. If the scheduler is lost the sweep stops: every run stored
before is safe, and the same command with a new scheduler goes on.
"""

from __future__ import annotations

import json
import time
from queue import Empty, SimpleQueue
from typing import Any

from gainful.errors import ExperimentError, InvalidArgumentError
from gainful.experiments.execution import Stopped, Task, execute
from gainful.experiments.pool import Done, Event, Failed, Halted
from gainful.experiments.worker import described

LOCAL = "local"
PATIENCE = 15.0
"""Seconds to wait for a scheduler to answer, and for a first worker."""
AHEAD = 2
"""Runs handed out per thread of the cluster, so that a worker need not wait for the next."""


def execute_text(text: str, timeout: float | None) -> bytes:
    """On a worker: one byte that says how it went, and the packed result or the error as JSON."""
    began, task = time.monotonic(), Task.from_json(text)
    try:
        late = None if timeout is None else lambda: time.monotonic() - began > timeout
        return b"D" + execute(task, stop=late)
    except Stopped:
        message = f"still running after {timeout:g} s, the limit for a run; raise --timeout"
        return b"F" + json.dumps({"kind": "TimeoutError", "message": message, "traceback": ""}).encode()
    except Exception as error:
        return b"F" + json.dumps(described(error)).encode()


class DaskExecutor:
    """An executor on the cluster whose scheduler has this address; "local" starts one here, of processes."""

    def __init__(self, address: str, jobs: int, timeout: float | None = None) -> None:
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise InvalidArgumentError("--dask needs Dask: pip install 'gainful[dask]'") from error
        self._timeout, self._cluster = timeout, None
        if address == LOCAL:
            self._cluster = LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
            )  # fmt: skip
        try:
            self._client: Any = Client(  # type: ignore[no-untyped-call]
                self._cluster or address, timeout=PATIENCE, set_as_default=False
            )
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except (OSError, ValueError, TimeoutError) as error:
            self._close_cluster()
            raise ExperimentError(
                f"--dask {address}: no scheduler with a worker answers there within {PATIENCE:g} s ({error}); start "
                "them (dask scheduler, dask worker ADDRESS) and run again"
            ) from error
        self._address = address
        self._ended: SimpleQueue[tuple[Task, Any]] = SimpleQueue()
        self._under_way: dict[str, tuple[Task, Any]] = {}
        self._counted = 0.0
        self.slots = 1
        self._count()

    def _count(self) -> None:
        """The cluster may grow and shrink."""
        if time.monotonic() - self._counted > 2.0:
            self._counted = time.monotonic()
            threads = sum(w["nthreads"] for w in self._client.scheduler_info(n_workers=-1)["workers"].values())
            self.slots = max(1, AHEAD * threads)

    def submit(self, task: Task) -> None:
        """Hand it to the scheduler."""
        future = self._client.submit(
            execute_text, task.to_json(), self._timeout, key=f"gainful-{task.run_id}-{time.time_ns()}", pure=False
        )
        self._under_way[task.run_id] = task, future
        future.add_done_callback(lambda done: self._ended.put((task, done)))

    def wait(self, seconds: float) -> list[Event]:
        """What has come back; ExperimentError where the scheduler is gone."""
        found: list[Event] = []
        try:
            task, future = self._ended.get(timeout=seconds)
            while True:
                if task.run_id in self._under_way:
                    found.append(self._outcome(task, future))
                task, future = self._ended.get_nowait()
        except Empty:
            pass
        if self._client.status != "running":
            raise ExperimentError(
                f"the Dask scheduler {self._address} is gone; every run stored before is safe: start it again, with "
                "workers, and run the same command"
            )
        self._count()
        return found

    def _outcome(self, task: Task, future: Any) -> Event:
        status, data = future.status, b""
        kind, message = "WorkerLost", f"Dask says: {status}"
        if status == "finished":
            try:
                data = future.result(timeout=PATIENCE)
            except Exception as error:  # its worker died with the result
                kind, message = type(error).__name__, str(error)
        elif status == "error":
            reason = future.exception(timeout=PATIENCE)
            kind, message = type(reason).__name__, str(reason)
        elif self._client.status != "running":
            return Halted(task)
        del self._under_way[task.run_id]
        future.release()
        if data[:1] == b"D":
            return Done(task, data[1:])
        if data[:1] == b"F":
            return Failed(task, **json.loads(data[1:]), lost=False)
        return Failed(task, kind, message, "", lost=True)

    def stop(self) -> None:
        """Take back what has not begun; runs under way on other machines stay in their last checkpoint."""
        for task, future in self._under_way.values():
            self._ended.put((task, _Cancelled()))
            future.cancel()

    def close(self) -> None:
        """Leave the cluster; end it if it was started here."""
        for _, future in self._under_way.values():
            try:
                future.cancel()
            except Exception:
                break  # the scheduler is gone
        self._client.close(timeout=2)
        self._close_cluster()

    def _close_cluster(self) -> None:
        if self._cluster is not None:
            self._cluster.close(timeout=5)


class _Cancelled:
    """Stands for the future of a run that was taken back."""

    status = "cancelled"
