"""Ctrl-C as a request: a long job ends where nothing is lost, and not in the middle of a step."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class StopRequest:
    """Whether somebody has asked a job to stop; the job looks when it can stop without losing anything.

    Examples
    --------
    >>> import signal
    >>> request = StopRequest()
    >>> with request.on_signals():
    ...     signal.raise_signal(signal.SIGINT)
    >>> request.made
    True
    """

    def __init__(self) -> None:
        self.made = False

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """A block in which the first SIGINT or SIGTERM makes the request; the second one raises KeyboardInterrupt.

        Only the main thread receives signals: in another one nothing changes.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._signalled) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _signalled(self, _: int, __: FrameType | None) -> None:
        if self.made:
            raise KeyboardInterrupt
        self.made = True
