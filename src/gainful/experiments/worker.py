"""A worker of the local pool: `python -m gainful.experiments.worker`, tasks on stdin, messages on stdout.

It shares no lock and no memory, so that killing it at any moment affects no other process. When its stdin ends, the
process that started it has died, and it exits at once.
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

from gainful.experiments.wire_format import read_frame, write_frame

MESSAGE_RUN, MESSAGE_STOP = b"R", b"S"
MESSAGE_RESULT, MESSAGE_FAILURE, MESSAGE_STEP, MESSAGE_STOPPED = b"D", b"F", b"P", b"S"
"""The first byte of a message: its kind."""
PROGRESS_EVERY = 0.5
"""Seconds between two messages about the progress of a run."""


def serve() -> None:
    """Execute tasks until stdin ends."""
    from gainful.experiments.execution import RunStoppedError, Task, execute

    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # so that what a step function prints is not taken for a message
    tasks: SimpleQueue[bytes] = SimpleQueue()
    stopping = threading.Event()

    def listen() -> None:
        while (message := read_frame(sys.stdin.buffer)) is not None:
            if message[:1] == MESSAGE_STOP:
                stopping.set()
            else:
                tasks.put(message[1:])
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        text = tasks.get()
        last_progress = -PROGRESS_EVERY

        def tell(step: int, horizon: int) -> None:
            nonlocal last_progress
            if time.monotonic() - last_progress >= PROGRESS_EVERY:
                last_progress = time.monotonic()
                write_frame(out, MESSAGE_STEP + json.dumps([step, horizon]).encode())

        try:
            if stopping.is_set():
                raise RunStoppedError
            write_frame(out, MESSAGE_RESULT + execute(Task.from_json(text.decode()), tell, stopping.is_set))
        except RunStoppedError:
            write_frame(out, MESSAGE_STOPPED)
        except Exception as error:
            write_frame(out, MESSAGE_FAILURE + json.dumps(described(error)).encode())


def described(error: BaseException) -> dict[str, Any]:
    """An error as plain values: what the store keeps of a failed run."""
    return {
        "kind": type(error).__name__,
        "message": str(error) or type(error).__name__,
        "traceback": "".join(traceback.format_exception(error)),
    }


if __name__ == "__main__":
    serve()
