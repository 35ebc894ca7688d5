"""The threads that work for all agents.

Handing a single request to a thread and its response back costs more than most requests do. So an agent with requests
in its queue is put on one list shared by all threads. A thread takes agents from the list until it is empty, and the
event loop is woken once for all responses that are ready. A few threads are enough while agents respond quickly; if all
of them are blocked for a moment, by planning or a slow disk, more are started.
"""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from gainful.errors import JournalError

MAX_THREADS = 32
"""Agents that can work at the same time."""
USUAL_THREADS = 4
"""Threads while none is blocked: more would only wait for each other."""
AGENTS_PER_THREAD = 4
"""Waiting agents for which one more thread is started."""
BLOCKED_AFTER = 0.002
"""Seconds without an agent taken from the list after which the threads count as blocked."""

Results = list[tuple["asyncio.Future[Any]", Any]]
"""Futures, each with its result or an exception."""


class Worker(Protocol):
    """Something with a queue of work."""

    def run_batch(self) -> Results:
        """Do what is queued; called in a thread."""

    def deliver(self, results: Results) -> None:
        """Hand over the results; called in the event loop."""


class WorkerPool:
    """Threads, and the list of workers that have something to do.

    Parameters
    ----------
    sync_interval : float or None
        Milliseconds between timed syncs to disk; None if there are none.
    """

    def __init__(self, sync_interval: float | None) -> None:
        self._executor = ThreadPoolExecutor(MAX_THREADS, "gainful-agent")
        self.administration = ThreadPoolExecutor(MAX_THREADS, "gainful-administration")
        """To create and close agents, which may take long."""
        self.files = ThreadPoolExecutor(2, "gainful-files")
        """To write small files, which never waits for an agent: a leaked key can always be replaced."""
        self._loop = asyncio.get_running_loop()
        self._ready: deque[Worker] = deque()
        self._finished: deque[tuple[Worker, Results] | None] = deque()
        self._n_threads = self._n_taken = self._n_taken_before = 0
        self._start_scheduled = self._watch_scheduled = self._delivery_scheduled = False
        self._due_syncs: set[Callable[[], None]] = set()
        self._closing = threading.Event()
        self._sync_thread: threading.Thread | None = None
        if sync_interval is not None:
            self._sync_thread = threading.Thread(
                target=self._sync_regularly, args=(sync_interval / 1000.0,), name="gainful-sync", daemon=True
            )
            self._sync_thread.start()

    # ------------------------------------------------------------------ in the event loop

    def put(self, worker: Worker) -> None:
        """Add a worker that has something to do and is not on the list yet."""
        self._ready.append(worker)
        if not self._start_scheduled:
            self._start_scheduled = True
            self._loop.call_soon(self._start_usual_threads)

    def _start_usual_threads(self) -> None:
        self._start_scheduled = False
        self._start_threads(min(USUAL_THREADS, -(-len(self._ready) // AGENTS_PER_THREAD)) - self._n_threads)
        if self._ready and not self._watch_scheduled:
            self._watch_scheduled, self._n_taken_before = True, self._n_taken
            self._loop.call_later(BLOCKED_AFTER, self._start_more_if_blocked)

    def _start_threads(self, n: int) -> None:
        for _ in range(min(n, MAX_THREADS - self._n_threads)):
            self._n_threads += 1
            self._executor.submit(self._work)

    def _start_more_if_blocked(self) -> None:
        self._watch_scheduled = False
        if self._ready:
            if self._n_taken == self._n_taken_before:  # all threads are blocked
                self._start_threads(-(-len(self._ready) // AGENTS_PER_THREAD))
            self._start_usual_threads()

    def _deliver(self) -> None:
        self._delivery_scheduled = False
        while self._finished:
            finished = self._finished.popleft()
            if finished is None:
                self._n_threads -= 1
                if self._ready:
                    self._start_usual_threads()
            else:
                worker, results = finished
                worker.deliver(results)

    def shutdown(self) -> None:
        """Stop all threads once they have finished; no more work may be added."""
        self._closing.set()
        if self._sync_thread is not None:
            self._sync_thread.join()
        for executor in (self._executor, self.administration, self.files):
            executor.shutdown()

    # ------------------------------------------------------------------ in threads

    def _work(self) -> None:
        while True:
            try:
                worker = self._ready.popleft()
            except IndexError:
                break
            self._n_taken += 1
            try:
                self._finish((worker, worker.run_batch()))
            except Exception:  # a bug of ours: report it and continue for the other agents
                traceback.print_exc()
        self._finish(None)

    def _finish(self, finished: tuple[Worker, Results] | None) -> None:
        self._finished.append(finished)
        if not self._delivery_scheduled:  # `_deliver` clears it before it looks, so nothing is left undelivered
            self._delivery_scheduled = True
            self._loop.call_soon_threadsafe(self._deliver)

    def sync_soon(self, sync: Callable[[], None]) -> None:
        """Call `sync` within the interval of timed syncs."""
        self._due_syncs.add(sync)

    def _sync_regularly(self, seconds: float) -> None:
        """One thread for all agents: one thread each would wake up a hundred times a second, mostly for nothing."""
        while not self._closing.wait(seconds):
            due, self._due_syncs = self._due_syncs, set()
            for sync in due:
                try:
                    sync()
                except JournalError:  # the journal reports it to its next caller
                    pass
                except Exception:  # a bug of ours: report it and continue for the other agents
                    traceback.print_exc()
