"""The threads that work for all agents.

Handing one request to a thread and its answer back costs more than most requests. So an agent with requests waiting is
put on one list for all threads; a thread takes agents from it until it is empty, and the event loop is woken once for
all answers that are ready. A few threads are enough while agents are quick; where all of them are held up for a moment,
by plans or a slow disk, more come.
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

THREADS = 32
"""Agents that can be at work at a time."""
FEW = 4
"""Threads while none is held up: more would only wait for each other."""
EACH = 4
"""Agents waiting for which a thread more is started."""
MOMENT = 0.002
"""Seconds without an agent taken from the list after which more than a few threads are started."""

Answers = list[tuple["asyncio.Future[Any]", Any]]


class Worked(Protocol):
    """What has work to do."""

    def take(self) -> Answers:
        """Do what waits; in a thread."""

    def deliver(self, answers: Answers) -> None:
        """What came of it; in the event loop."""


class Crew:
    """Threads, and the list of those with work; `every` is the number of milliseconds between timed syncs."""

    def __init__(self, every: float | None) -> None:
        self.pool = ThreadPoolExecutor(THREADS + 1, "gainful-agent")
        self._loop = asyncio.get_running_loop()
        self._ready: deque[Worked] = deque()
        self._done: deque[tuple[Worked, Answers] | None] = deque()
        self._active = self._taken = self._seen = 0
        self._due = self._watching = self._told = False
        self._dirty: set[Callable[[], None]] = set()
        self._over = threading.Event()
        self._syncer: threading.Thread | None = None
        if every is not None:
            self._syncer = threading.Thread(target=self._sync, args=(every / 1000.0,), name="gainful-sync", daemon=True)
            self._syncer.start()

    # ------------------------------------------------------------------ in the event loop

    def put(self, worked: Worked) -> None:
        """It has work to do, and is on the list no more than once."""
        self._ready.append(worked)
        if not self._due:
            self._due = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._due = False
        self._start(min(FEW, -(-len(self._ready) // EACH)) - self._active)
        if self._ready and not self._watching:
            self._watching, self._seen = True, self._taken
            self._loop.call_later(MOMENT, self._watch)

    def _start(self, threads: int) -> None:
        for _ in range(min(threads, THREADS - self._active)):
            self._active += 1
            self.pool.submit(self._work)

    def _watch(self) -> None:
        self._watching = False
        if self._ready:
            if self._taken == self._seen:  # all threads are held up
                self._start(-(-len(self._ready) // EACH))
            self._begin()

    def _deliver(self) -> None:
        self._told = False
        while self._done:
            found = self._done.popleft()
            if found is None:
                self._active -= 1
                if self._ready:
                    self._begin()
            else:
                found[0].deliver(found[1])

    def dismiss(self) -> None:
        """No more work comes."""
        self._over.set()
        if self._syncer is not None:
            self._syncer.join()
        self.pool.shutdown()

    # ------------------------------------------------------------------ in threads

    def _work(self) -> None:
        while True:
            try:
                worked = self._ready.popleft()
            except IndexError:
                break
            self._taken += 1
            try:
                self._tell((worked, worked.take()))
            except Exception:  # our own mistake: say so, and go on for the others
                traceback.print_exc()
        self._tell(None)

    def _tell(self, found: tuple[Worked, Answers] | None) -> None:
        self._done.append(found)
        if not self._told:  # `_deliver` clears it before it looks: nothing is left lying
            self._told = True
            self._loop.call_soon_threadsafe(self._deliver)

    def sync_soon(self, sync: Callable[[], None]) -> None:
        """Have this called within the interval of timed syncs."""
        self._dirty.add(sync)

    def _sync(self, seconds: float) -> None:
        """One thread for all agents: one for each would wake up a hundred times a second, for nothing mostly."""
        while not self._over.wait(seconds):
            due, self._dirty = self._dirty, set()
            for sync in due:
                try:
                    sync()
                except JournalError:  # the journal tells its next caller
                    pass
                except Exception:  # our own mistake: say so, and go on for the others
                    traceback.print_exc()
