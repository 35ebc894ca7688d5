"""A worker of the local pool: `python -m gainful.experiments.worker`, tasks on stdin, messages on stdout.

It shares no lock and no memory with anyone, so that a kill at any moment hurts no one else. When its stdin ends,
whoever started it has died, and it leaves at once.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from queue import SimpleQueue
from typing import Any

from gainful.experiments.frames import read_frame, write_frame

RUN, STOP = b"R", b"S"
RESULT, FAILURE, STEP, STOPPED = b"D", b"F", b"P", b"S"
"""The first byte of a message says what it is."""
TELL_EVERY = 0.5
"""Seconds between two messages about how far a run is."""


def serve() -> None:
    """Execute tasks until stdin ends."""
    from gainful.experiments.execution import Stopped, Task, execute

    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a step function prints is no message
    tasks: SimpleQueue[bytes] = SimpleQueue()
    stopping = threading.Event()

    def listen() -> None:
        while (message := read_frame(sys.stdin.buffer)) is not None:
            if message[:1] == STOP:
                stopping.set()
            else:
                tasks.put(message[1:])
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        text = tasks.get()
        told = -TELL_EVERY

        def tell(step: int, horizon: int) -> None:
            nonlocal told
            if time.monotonic() - told >= TELL_EVERY:
                told = time.monotonic()
                write_frame(out, STEP + json.dumps([step, horizon]).encode())

        try:
            if stopping.is_set():
                raise Stopped
            write_frame(out, RESULT + execute(Task.from_json(text.decode()), tell, stopping.is_set))
        except Stopped:
            write_frame(out, STOPPED)
        except Exception as error:
            write_frame(out, FAILURE + json.dumps(described(error)).encode())


def described(error: BaseException) -> dict[str, Any]:
    """An error in plain values: what a failed run leaves in the store."""
    return {
        "kind": type(error).__name__, "message": str(error) or type(error).__name__,
        "traceback": "".join(traceback.format_exception(error)),
    }  # fmt: skip


if __name__ == "__main__":
    serve()
