"""Runs on the GPUs of a Dask cluster: each worker that has a card of its own makes many seeds of an agent at once.

The driver gives every card one batch of runs at a time. If a worker is lost, another one makes its batch again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gainful.errors import DeviceError, ExperimentError
from gainful.experiments.dask_executor import (
    CONNECT_SECONDS,
    LOCAL_CLUSTER,
    RUNS_ARE_SAFE,
    DaskExecutor,
    halted,
    left_alone,
    was_lost,
)
from gainful.experiments.device_executor import MOST_AT_ONCE, device_results, kind_of
from gainful.experiments.execution import RunStoppedError, Task
from gainful.experiments.pool import Event, RunFailed, RunFinished, RunStopped
from gainful.experiments.worker import MESSAGE_FAILURE, MESSAGE_RESULT, MESSAGE_STOPPED, described
from gainful.experiments.worker_card import card_or_problem, cards_here, own_card

FEWEST_IN_BATCH, MOST_IN_BATCH = 1 << 12, 1 << 14
"""Runs of a batch: with fewer, a card has little to do; more of them take long to send back."""
LOSSES_AT_MOST = 3
"""Workers that may be lost with a run, one after the other, before that counts as a try that failed."""
NO_CARD_SECONDS = 120.0
"""Seconds without any card after which a sweep gives up."""

# ---------------------------------------------------------------------- on a worker


def make_batch(texts: list[str], sweep: str) -> bytes:
    """Make runs that differ in their seed alone on this worker's card: the results, each after its length."""
    tasks, left = [Task.from_json(text) for text in texts], left_alone()

    def heard(_: int, __: int) -> None:
        if halted(sweep) or left():
            raise RunStoppedError

    try:
        heard(0, 0)
        with own_card().used():
            found = {task.run_id: data for task, data in device_results(tasks, heard)}
    except RunStoppedError:
        if halted(sweep):
            return MESSAGE_STOPPED
        from distributed import Reschedule

        raise Reschedule from None
    except Exception as error:
        return MESSAGE_FAILURE + json.dumps(described(error)).encode()
    parts = [found[task.run_id] for task in tasks]
    return MESSAGE_RESULT + b"".join(struct.pack("<q", len(part)) + part for part in parts)


def divided(answer: bytes) -> Iterator[bytes]:
    """The results of `make_batch`."""
    at = 0
    while at < len(answer):
        (size,) = struct.unpack_from("<q", answer, at)
        yield answer[at + 8 : at + 8 + size]
        at += 8 + size


# ---------------------------------------------------------------------- here


@dataclass(frozen=True)
class SentBatch:
    """Runs that a worker makes together."""

    run_id: str
    """That of the first of them."""
    tasks: tuple[Task, ...]
    worker: str


class DaskDeviceExecutor(DaskExecutor):
    """Executes runs on the cards of the cluster whose scheduler has this address.

    "local" starts a worker for each card of this machine, in the simulator for each of `jobs`.
    """

    def __init__(self, address: str, jobs: int) -> None:
        self._waiting: dict[str, list[Task]] = {}
        self._sent: dict[str, SentBatch] = {}
        self._losses: Counter[str] = Counter()
        self._stopped: list[Event] = []
        super().__init__(address, _cards_to_start(jobs) if address == LOCAL_CLUSTER else jobs)
        self._busy: set[str] = set()
        self._had_card = time.monotonic()
        try:
            answers = self._client.run(card_or_problem, on_error="return")
        except BaseException:
            self.close()
            raise
        self.cards = _cards_of(answers)
        without = [f"{worker}: {_why_none(answer)}" for worker, answer in answers.items() if worker not in self.cards]
        self.notices = _notices(without, len(answers))
        if not self.cards:
            self.close()
            raise DeviceError(
                f"no worker of the Dask cluster {address} has a GPU of its own:\n  " + "\n  ".join(without),
                name="device",
                found="cuda",
                expected="workers on machines with GPUs, one for each GPU",
                hint=f"start some (dask worker {address} --nthreads 1 --nworkers GPUS), or leave device out",
            )

    def slots_for(self, threads: int) -> int:  # noqa: ARG002
        """Runs that may wait for the cards together."""
        return MOST_AT_ONCE

    def submit(self, task: Task) -> None:
        """Let one more task wait."""
        self._waiting.setdefault(kind_of(task), []).append(task)

    def wait(self, seconds: float) -> list[Event]:
        """The results that have arrived, after the next batches were sent to idle cards."""
        found, self._stopped = self._stopped, []
        for worker in sorted(set(self.cards) - self._busy):
            if self._waiting:
                self._send(worker)
        for batch in [batch for batch in self._sent.values() if batch.worker not in self.cards]:
            future = self._under_way.pop(batch.run_id, None)
            if future is not None:
                future.cancel()
            found += self._lost_with_worker(batch)
        return found or super().wait(seconds)

    def _send(self, worker: str) -> None:
        """Give a card the next batch: of the kind that has waited longest, its share."""
        kind = next(iter(self._waiting))
        tasks = self._waiting[kind]
        share = min(MOST_IN_BATCH, max(FEWEST_IN_BATCH, -(-len(tasks) // max(1, len(self.cards)))))
        batch = SentBatch(tasks[0].run_id, tuple(tasks[:share]), worker)
        del tasks[:share]
        if not tasks:
            del self._waiting[kind]
        self._busy.add(worker)
        self._sent[batch.run_id] = batch
        texts = [task.to_json() for task in batch.tasks]
        self._hand_over(batch, make_batch, texts, self._sweep, workers=[worker])

    def _lost_with_worker(self, batch: SentBatch) -> Iterator[Event]:
        """Let the runs of a batch wait again; those that were lost too often have failed."""
        self._forget(batch)
        for task in batch.tasks:
            self._losses[task.run_id] += 1
            if self._losses[task.run_id] % LOSSES_AT_MOST:
                self.submit(task)
            else:
                yield RunFailed(task, "WorkerLost", f"the worker {batch.worker} died with it", "", lost=True)

    def _forget(self, batch: SentBatch) -> None:
        del self._sent[batch.run_id]
        self._busy.discard(batch.worker)

    def _events_of(self, batch: Any, answer: bytes, error: BaseException | None) -> Iterator[Event]:
        self._forget(batch)
        if error is None and answer[:1] == MESSAGE_RESULT:
            for task, data in zip(batch.tasks, divided(answer[1:]), strict=True):
                yield RunFinished(task, data)
            return
        if error is not None and was_lost(error):
            yield from self._lost_with_worker(batch)
            return
        for task in batch.tasks:
            yield from super()._events_of(task, answer, error)

    async def _met(self, workers: list[str]) -> None:
        """On the event loop: ask those who are not known to have a card; a card may have become free."""
        unknown = [worker for worker in workers if worker not in self.cards]
        answers: dict[str, Any] = {}
        if unknown:
            with contextlib.suppress(Exception):  # one that leaves at this moment is not asked again
                asked = self._client.run(card_or_problem, workers=unknown, on_error="return")
                answers = await asyncio.wait_for(asked, CONNECT_SECONDS)
        kept = {worker: name for worker, name in self.cards.items() if worker in workers}
        self.cards = kept | _cards_of(answers)
        if self.cards:
            self._had_card = time.monotonic()

    def _check(self) -> None:
        super()._check()
        if not self.cards and time.monotonic() - self._had_card > NO_CARD_SECONDS:
            raise ExperimentError(
                f"no worker of the Dask cluster {self._address} has had a GPU for {NO_CARD_SECONDS:g} s",
                name="dask",
                found=self._address,
                hint=f"{RUNS_ARE_SAFE}start workers, and run the same command",
            )

    def stop(self) -> None:
        """Stop the batches under way, which have no checkpoints, and those that wait."""
        super().stop()
        self._stopped += [RunStopped(task) for tasks in self._waiting.values() for task in tasks]
        self._waiting.clear()


def _cards_to_start(jobs: int) -> int:
    """Workers of a cluster on this machine: one for each of its cards."""
    from gainful.cuda_device import SIMULATED

    found = len(cards_here())
    return jobs if SIMULATED else found


def _cards_of(answers: dict[str, Any]) -> dict[str, str]:
    """The cards of the workers that have one; what a worker with another gainful raised is no answer."""
    return {worker: answer[0] for worker, answer in answers.items() if isinstance(answer, tuple) and answer[0]}


def _why_none(answer: Any) -> str:
    if isinstance(answer, tuple):
        return str(answer[1])
    return f"{type(answer).__name__}: {answer}; install the same gainful on every worker"


def _notices(without: list[str], n_workers: int) -> list[str]:
    if not without or len(without) == n_workers:
        return []
    verb = "has no GPU of its own and makes" if len(without) == 1 else "have no GPU of their own and make"
    return [f"{len(without)} of {n_workers} workers {verb} no runs:\n  " + "\n  ".join(without)]
