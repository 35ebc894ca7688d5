"""Runs on this machine: worker processes that share nothing, so that a killed worker costs one try of one run.

A worker that is killed could be holding a lock or a queue it shares with others. Here each worker has its own two
pipes and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from gainful.experiments.execution import Task
from gainful.experiments.wire_format import FrameDecoder, write_frame
from gainful.experiments.worker import (
    MESSAGE_FAILURE,
    MESSAGE_RESULT,
    MESSAGE_RUN,
    MESSAGE_STEP,
    MESSAGE_STOP,
    MESSAGE_STOPPED,
)


@dataclass(frozen=True)
class RunFinished:
    """A run has finished; `data` is what `execution.packed` made."""

    task: Task
    data: bytes


@dataclass(frozen=True)
class RunFailed:
    """A run has failed; `lost` if its worker was lost, so that another try may succeed."""

    task: Task
    kind: str
    message: str
    traceback: str
    lost: bool


@dataclass(frozen=True)
class RunProgress:
    """A run has reached `step`."""

    task: Task
    step: int


@dataclass(frozen=True)
class RunStopped:
    """A run has stopped on request; its checkpoint file has its state."""

    task: Task


Event = RunFinished | RunFailed | RunProgress | RunStopped


class Executor(Protocol):
    """Executes tasks, at most `slots` at a time."""

    slots: int

    def submit(self, task: Task) -> None:
        """Start one more task; at most `slots` may be active."""

    def wait(self, seconds: float) -> list[Event]:
        """The events since the last call, after `seconds` seconds at the latest."""

    def stop(self) -> None:
        """Ask the active runs to stop at their next pause."""

    def close(self) -> None:
        """End everything immediately."""


TIMEOUT_GRACE_SECONDS = 5.0
"""Seconds that a run which takes too long gets to write its checkpoint."""


class LocalPool:
    """`jobs` worker processes, started when needed and replaced when they die."""

    def __init__(self, jobs: int, timeout: float | None = None) -> None:
        self.slots, self.timeout = jobs, timeout
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []
        self._selector = selectors.DefaultSelector()

    def submit(self, task: Task) -> None:
        """Give the task to an idle worker, or to a new one."""
        worker = self._idle.pop() if self._idle else self._started()
        self._busy.append(worker)
        with contextlib.suppress(OSError):  # it has died: the end of its other pipe tells `wait`
            worker.begin(task)

    def _started(self) -> _Worker:
        worker = _Worker()
        self._selector.register(worker.output, selectors.EVENT_READ, worker)
        return worker

    def wait(self, seconds: float) -> list[Event]:
        """The messages of the workers, and which of them have died or take too long."""
        events: list[Event] = []
        for key, _ in self._selector.select(seconds):
            worker: _Worker = key.data
            data = os.read(worker.output.fileno(), 1 << 20)
            for message in worker.frames.feed(data):
                events += self._heard(worker, message)
            if not data:  # the end of its pipe
                events += self._died(worker)
        now = time.monotonic()
        limit = float("inf") if self.timeout is None else self.timeout
        for worker in [w for w in self._busy if now - w.since > limit]:
            if not worker.late:
                worker.late = True
                worker.ask_to_stop()  # its checkpoint serves a later call with a longer limit
            elif now - worker.since > limit + TIMEOUT_GRACE_SECONDS:
                assert worker.task is not None
                events.append(self._too_late(worker.task))
                worker.task = None
                self._forget(worker)
        return events

    def _too_late(self, task: Task) -> RunFailed:
        message = f"still running after {self.timeout:g} s, the limit for a run; raise --timeout"
        return RunFailed(task, "TimeoutError", message, "", lost=False)

    def _heard(self, worker: _Worker, message: bytes) -> Iterator[Event]:
        task, kind, rest = worker.task, message[:1], message[1:]
        assert task is not None
        if kind == MESSAGE_STEP:
            yield RunProgress(task, json.loads(rest)[0])
            return
        worker.task = None
        if worker.late:  # it was asked to stop, and accepts no more tasks
            self._forget(worker)
        else:
            self._busy.remove(worker)
            self._idle.append(worker)
        if kind == MESSAGE_STOPPED and worker.late:
            yield self._too_late(task)
        elif kind == MESSAGE_RESULT:
            yield RunFinished(task, rest)
        elif kind == MESSAGE_FAILURE:
            yield RunFailed(task, **json.loads(rest), lost=False)
        elif kind == MESSAGE_STOPPED:
            yield RunStopped(task)

    def _died(self, worker: _Worker) -> Iterator[Event]:
        task = worker.task
        ending, words = self._forget(worker, died=True)
        if task is not None:
            yield RunFailed(task, "WorkerLost", f"its worker process {ending}", words, lost=True)

    def _forget(self, worker: _Worker, died: bool = False) -> tuple[str, str]:
        self._selector.unregister(worker.output)
        for workers in (self._busy, self._idle):
            if worker in workers:
                workers.remove(worker)
        return worker.end(died)

    def stop(self) -> None:
        """Ask the busy workers to write their checkpoints and stop."""
        for worker in self._busy:
            worker.ask_to_stop()

    def close(self) -> None:
        """End all workers at once."""
        for worker in [*self._busy, *self._idle]:
            self._forget(worker)
        self._selector.close()


class _Worker:
    """One process with its pipes and its current task."""

    def __init__(self) -> None:
        self._words = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gainful.experiments.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            start_new_session=True,  # Ctrl-C must reach the driver only
            env={**os.environ, **ONE_THREAD},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.output: Any = self._process.stdout
        self._input: Any = self._process.stdin
        self.frames, self.since, self.late = FrameDecoder(), 0.0, False
        self.task: Task | None = None

    def begin(self, task: Task) -> None:
        self.task, self.since = task, time.monotonic()
        write_frame(self._input, MESSAGE_RUN + task.to_json().encode())

    def ask_to_stop(self) -> None:
        with contextlib.suppress(OSError):
            write_frame(self._input, MESSAGE_STOP)

    def end(self, died: bool) -> tuple[str, str]:
        """Kill the process; return how it ended if it had `died` before, and the end of what it wrote to stderr."""
        code: int | None = None
        if died:  # its pipe closes a moment before its exit code is known
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(1.0)
        self._process.kill()
        self._process.wait()
        for pipe in (self._input, self.output):
            with contextlib.suppress(OSError):
                pipe.close()
        self._words.seek(max(0, self._words.seek(0, os.SEEK_END) - 4000))
        words = self._words.read().decode(errors="replace")
        self._words.close()
        return _ending(code), words


def _ending(code: int | None) -> str:
    if code is None:
        return "closed its pipe"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")


ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""Environment variables that keep numerical libraries from starting threads in every worker."""
