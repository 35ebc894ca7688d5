"""How many sweeps one compiled call may make; Ctrl-C takes effect when the call returns."""

from __future__ import annotations

BATCH_TRANSITIONS = 20_000_000
"""Transitions read by one call that repeats its last sweep when it is called again."""
RESUMED_TRANSITIONS = 1 << 23
"""Transitions read by one call that continues where the last one stopped."""
SMALLEST_BATCH = 8
"""Sweeps per batch at least: the first of a batch repeats the last of the one before."""


def sweeps_per_batch(n_transitions: int) -> int:
    """The number of sweeps of one call over this many transitions."""
    return max(SMALLEST_BATCH, BATCH_TRANSITIONS // max(1, n_transitions))


def resumed_sweeps(work: int) -> int:
    """The sweeps of one call that resumes, `work` being the transitions read by one sweep."""
    return max(1, RESUMED_TRANSITIONS // work)
