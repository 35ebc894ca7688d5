"""One agent of the service: its requests are handled one after another, and share their syncs to disk.

Everything an agent does blocks: writing, syncing, planning. So it happens in a thread, and never for two requests of
one agent at the same time. Requests that arrive meanwhile wait in a queue and are handled together: each is written to
the journal and learned from in turn, then one sync makes all of them durable, and only then are they answered. A slow
agent delays no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from gainful.errors import GainfulError, JournalError
from gainful.live import DurableAgent, open_agent
from gainful.live.state_machine import Planning
from gainful.serve.problem_details import ProblemError
from gainful.serve.worker_pool import Results, WorkerPool

T = TypeVar("T")
Job = Callable[[DurableAgent], Any]

MAX_BATCH = 64
"""Requests of one agent that share a sync at most."""
MAX_LARGE = 2
"""Large requests and responses of one agent at the same time."""
ONE_HOUR = 3_600_000.0
"""Milliseconds between the agent's own syncs if the service syncs: with "off", a new segment would not be synced."""
RETRY_AFTER = 2.0
"""Seconds before opening an agent is attempted again."""


@dataclass(frozen=True)
class OpenOptions:
    """How the service opens its agents."""

    fsync: Literal["record", "off"] | float = "record"
    planning: Planning = "auto"
    allow: tuple[str, ...] = ()
    """Modules whose classes agents may have, apart from gainful's own."""

    @property
    def agent_fsync(self) -> Any:
        """The value of `fsync` that the agent itself is opened with."""
        return "off" if self.fsync == "off" else ONE_HOUR


def _being_closed() -> ProblemError:
    return ProblemError(
        503, "the agent is being closed", where="agent", hint="send the request again", headers={"Retry-After": "2"}
    )


def _resolve(results: Results) -> None:
    for future, result in results:
        if not future.done():
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)


class AgentSlot:
    """The folder of an agent, its queue of requests, and the agent itself while it is open.

    Parameters
    ----------
    agent_id : str
        The id of the agent.
    folder : Path
        The folder of the durable agent.
    options : OpenOptions
        How to open it.
    workers : WorkerPool
        The threads to work in.
    max_queue : int
        Requests that may wait; further ones are rejected with 503.
    """

    def __init__(self, agent_id: str, folder: Path, options: OpenOptions, workers: WorkerPool, max_queue: int) -> None:
        self.id, self.folder = agent_id, folder
        self._options, self._workers, self._max_queue = options, workers, max_queue
        self.large = asyncio.Semaphore(MAX_LARGE)
        """For requests and responses that are large: those of one agent wait for each other, not others for them."""
        self._queue: deque[tuple[Job, asyncio.Future[Any]]] = deque()
        self._running = self._closed = False
        self.agent: DurableAgent | None = None
        self.trouble = ""
        self._opening_tried_at = -RETRY_AFTER
        self._synced_sequence = 0
        self.syncs = 0

    # ------------------------------------------------------------------ in the event loop

    @property
    def waiting(self) -> int:
        """The number of requests in the queue."""
        return len(self._queue)

    def call(self, job: Callable[[DurableAgent], T]) -> asyncio.Future[T]:
        """Call `job` with the agent in a thread; its result arrives once it is durable."""
        if self._closed:
            raise _being_closed()
        if len(self._queue) >= self._max_queue:
            raise ProblemError(
                503,
                f"{len(self._queue)} requests are waiting for this agent",
                where="agent",
                expected=f"at most {self._max_queue}",
                hint="send the request again later, with the same request_id",
                headers={"Retry-After": "1"},
            )
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append((job, future))
        if not self._running:
            self._running = True
            self._workers.put(self)
        return future

    def deliver(self, results: Results) -> None:
        """Hand the results to those who wait for them, and continue with the queue."""
        _resolve(results)
        if self._queue:
            self._workers.put(self)
        else:
            self._running = False

    async def close(self, *, answer: bool = True) -> None:
        """Answer all requests in the queue, or reject them; then close the agent. Further requests are rejected."""
        self._closed = True
        while not answer and self._queue:
            with contextlib.suppress(IndexError):  # a thread may take the last one
                _resolve([(self._queue.popleft()[1], _being_closed())])
        while self._running:
            await asyncio.sleep(0.005)
        await asyncio.get_running_loop().run_in_executor(self._workers.administration, self.close_agent)

    # ------------------------------------------------------------------ in a thread, one at a time

    def run_batch(self) -> Results:
        """Do the jobs in the queue, and make them durable together."""
        results: Results = []
        while self._queue and len(results) < MAX_BATCH:
            try:
                job, future = self._queue.popleft()
            except IndexError:  # rejected meanwhile
                break
            if future.done():  # nobody waits for it any more
                continue
            try:
                results.append((future, job(self.agent if self.agent is not None else self._open())))
            except Exception as error:
                results.append((future, error))
        try:
            self._make_durable()
        except Exception as error:
            results = [(future, error) for future, _ in results]
        if any(isinstance(result, JournalError) for _, result in results):
            self._close_if_broken()
        return results

    def _make_durable(self) -> None:
        agent, fsync = self.agent, self._options.fsync
        if agent is None or agent.sequence == self._synced_sequence or fsync == "off":
            return
        if fsync == "record":
            agent.sync()
            self.syncs += 1
        else:
            self._workers.sync_soon(self.sync_if_open)
        self._synced_sequence = agent.sequence

    def _close_if_broken(self) -> None:
        """After a failed sync an agent stops writing; the next request opens it again from its files."""
        if self.agent is not None and self.agent.status()["trouble"]:
            self.close_agent()

    def sync_if_open(self) -> None:
        """Make the journal durable, in a thread of its own while the agent continues to work."""
        agent = self.agent
        if agent is None:
            return
        try:
            agent.sync()
            self.syncs += 1
        except JournalError:
            if agent is self.agent:  # otherwise it was closed meanwhile, which makes everything durable
                raise

    def _open(self) -> DurableAgent:
        if self.trouble and time.monotonic() - self._opening_tried_at < RETRY_AFTER:
            raise JournalError(self.trouble)
        self._opening_tried_at = time.monotonic()
        try:
            options = self._options
            self.agent = open_agent(
                self.folder, fsync=options.agent_fsync, planning=options.planning, allow=options.allow
            )
        except (GainfulError, OSError, MemoryError) as error:
            self.trouble = f"the agent cannot be opened: {error}"
            raise
        self.trouble, self._synced_sequence = "", 0
        return self.agent

    def put_agent(self, agent: DurableAgent) -> None:
        """Fill the slot with an agent that was just created."""
        self.agent, self._synced_sequence = agent, 0

    def close_agent(self) -> None:
        """Close the agent if it is open; the next request opens it again."""
        agent, self.agent = self.agent, None
        if agent is not None:
            try:
                agent.close()
            except (GainfulError, OSError) as error:
                self.trouble = f"the agent could not be closed: {error}"
