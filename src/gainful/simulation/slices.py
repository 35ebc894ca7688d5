"""How many steps a loop makes before it returns to its caller, who shows progress and answers Ctrl-C."""

from __future__ import annotations

import time

STEPS_AT_A_TIME = 4096
"""Steps between two returns of a loop in Python, and the length of the first slice of a compiled one."""
PAUSE = 1 << 24
"""Steps after which a compiled loop returns to Python at the latest."""
LONGEST_SLICE = 0.2
"""Seconds that a slice may take; one that takes longer is followed by a shorter one."""


class SliceLength:
    """The number of steps to make at a time, so that they take about a tenth of a second.

    Where a run is cut has no influence on its bits. The fastest loops make 2²⁴ steps at a time, and return to Python
    for a few microseconds; an agent that makes a million steps per second is asked for fewer.

    Examples
    --------
    >>> length = SliceLength()
    >>> length.steps
    4096
    >>> for _ in range(3):
    ...     length.begin()
    ...     length.end(length.steps)  # of no work
    >>> 4096 <= length.steps <= 2**24
    True
    """

    def __init__(self) -> None:
        self.steps = STEPS_AT_A_TIME
        self._began = 0.0

    def begin(self) -> None:
        """A slice begins now."""
        self._began = time.perf_counter()

    def end(self, made: int) -> None:
        """It has ended after `made` steps: the next one is longer, or shorter."""
        spent = time.perf_counter() - self._began
        if spent > LONGEST_SLICE:
            self.steps = max(STEPS_AT_A_TIME, int(0.5 * LONGEST_SLICE / spent * made))
        elif made >= self.steps and spent < 0.5 * LONGEST_SLICE:
            self.steps = min(2 * self.steps, PAUSE)
