"""One agent of the service: its requests are taken one after the other, its disk syncs are shared.

Everything an agent does blocks: writing, syncing, planning. So it happens in a thread, and never two requests of one
agent at a time. Requests that arrive meanwhile wait in a queue and are taken together: each is journaled and learned in
turn, then one sync makes all of them durable, and only then are they answered. A slow agent holds up no other.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from gainful.errors import GainfulError, JournalError
from gainful.live import DurableAgent, open_agent
from gainful.live.life import Planning
from gainful.serve.crew import Answers, Crew
from gainful.serve.refusals import RefusedError

T = TypeVar("T")
Job = Callable[[DurableAgent], Any]

TOGETHER = 64
"""Requests of one agent that share a sync at most."""
HOUR = 3_600_000.0
"""Milliseconds: the policy of an agent whose syncs are made here. With "off" a change of segment would not sync."""
PATIENCE = 2.0
"""Seconds before an agent that could not be opened is tried again."""


@dataclass(frozen=True)
class Policy:
    """How agents are opened."""

    fsync: Literal["record", "off"] | float = "record"
    planning: Planning = "auto"

    @property
    def live(self) -> Any:
        """The policy that the agent itself is given."""
        return "off" if self.fsync == "off" else HOUR


class Seat:
    """An agent's place: its folder, its queue, the agent once it is open."""

    def __init__(self, agent_id: str, folder: Path, policy: Policy, crew: Crew, longest: int) -> None:
        self.id, self.folder = agent_id, folder
        self._policy, self._crew, self._longest = policy, crew, longest
        self._queue: deque[tuple[Job, asyncio.Future[Any]]] = deque()
        self._running = self._over = False
        self.agent: DurableAgent | None = None
        self.trouble = ""
        self._tried = -PATIENCE
        self._synced = 0
        self.syncs = 0

    # ------------------------------------------------------------------ in the event loop

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    def call(self, job: Callable[[DurableAgent], T]) -> asyncio.Future[T]:
        """Have the agent do something; what comes of it, once that is durable."""
        if self._over:
            raise RefusedError(
                503, "the agent is being closed", where="agent", then="send it again", headers={"Retry-After": "2"}
            )
        if len(self._queue) >= self._longest:
            raise RefusedError(
                503, f"{len(self._queue)} requests wait for this agent", where="agent",
                expected=f"at most {self._longest}", then="send it again later, with the same request_id",
                headers={"Retry-After": "1"},
            )  # fmt: skip
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append((job, future))
        if not self._running:
            self._running = True
            self._crew.put(self)
        return future

    def deliver(self, answers: Answers) -> None:
        """Give the answers to those who wait for them."""
        for future, answer in answers:
            if not future.done():
                if isinstance(answer, BaseException):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)
        if self._queue:
            self._crew.put(self)
        else:
            self._running = False

    async def close(self) -> None:
        """Answer all that wait, then close the agent; nothing is accepted any more."""
        self._over = True
        while self._running:
            await asyncio.sleep(0.005)
        await asyncio.get_running_loop().run_in_executor(self._crew.pool, self._close)

    # ------------------------------------------------------------------ in a thread, one at a time

    def take(self) -> Answers:
        """Do what waits, and make it durable."""
        answers: Answers = []
        while self._queue and len(answers) < TOGETHER:
            job, future = self._queue.popleft()
            try:
                answers.append((future, job(self.agent if self.agent is not None else self._opened())))
            except Exception as error:
                answers.append((future, error))
        try:
            self._make_durable()
        except Exception as error:
            answers = [(future, error) for future, _ in answers]
        if any(isinstance(answer, JournalError) for _, answer in answers):
            self._mend()
        return answers

    def _make_durable(self) -> None:
        agent, fsync = self.agent, self._policy.fsync
        if agent is None or agent.sequence == self._synced or fsync == "off":
            return
        if fsync == "record":
            agent.sync()
            self.syncs += 1
        else:
            self._crew.sync_soon(self._sync_aside)
        self._synced = agent.sequence

    def _mend(self) -> None:
        """After a failed sync an agent writes no more: the next request opens it again from its files."""
        if self.agent is not None and self.agent.status()["trouble"]:
            self._close()

    def _sync_aside(self) -> None:
        """In a thread of its own: decisions go on meanwhile."""
        agent = self.agent
        if agent is None:
            return
        try:
            agent.sync()
            self.syncs += 1
        except JournalError:
            if agent is self.agent:  # else it was closed meanwhile, which makes all durable
                raise

    def _opened(self) -> DurableAgent:
        if self.trouble and time.monotonic() - self._tried < PATIENCE:
            raise JournalError(self.trouble)
        self._tried = time.monotonic()
        try:
            self.agent = open_agent(self.folder, fsync=self._policy.live, planning=self._policy.planning)
        except (GainfulError, OSError, MemoryError) as error:
            self.trouble = f"the agent cannot be opened: {error}"
            raise
        self.trouble, self._synced = "", 0
        return self.agent

    def take_over(self, agent: DurableAgent) -> None:
        """An agent that was just made."""
        self.agent, self._synced = agent, 0

    def _close(self) -> None:
        agent, self.agent = self.agent, None
        if agent is not None:
            try:
                agent.close()
            except (GainfulError, OSError) as error:
                self.trouble = f"the agent could not be closed: {error}"
