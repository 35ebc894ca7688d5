"""Runs in several threads, all of which end soon after Ctrl-C or after an error in one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Pause = Callable[[], None]
"""What a thread calls as often as convenient; it raises an error if the thread is to end."""

WAKE_EVERY = 0.5
"""Seconds between two looks at the threads: where nothing interrupts a wait, Ctrl-C is answered then."""


class ThreadEndedError(Exception):
    """Ends a thread that has nothing left to work for; nobody sees it."""


def in_threads(work: Callable[[Item, Pause], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """`work(item, pause)` for every item, in the order of the items; several at a time.

    After Ctrl-C, and after an error of one thread, the others end at their next `pause()`, and no other item is begun.
    """
    if threads == 1 or len(items) <= 1:
        return [work(item, _go_on) for item in items]
    ended = threading.Event()

    def pause() -> None:
        if ended.is_set():
            raise ThreadEndedError

    pool, futures = ThreadPoolExecutor(threads), []
    try:  # from the first thread on: Ctrl-C may come before the last one has begun
        for item in items:
            futures.append(pool.submit(work, item, pause))
        _wait_for_all(futures)
    finally:
        ended.set()
        pool.shutdown(cancel_futures=True)
    return [future.result() for future in futures]


def _go_on() -> None:
    """Nothing to do: in the main thread Python answers Ctrl-C itself."""


def _wait_for_all(futures: list[Future[Any]]) -> None:
    """Wait until all have ended, or raise the error of one that failed."""
    waiting: set[Future[Any]] = set(futures)
    while waiting:
        done, waiting = wait(waiting, WAKE_EVERY, FIRST_EXCEPTION)
        for future in done:
            future.result()
