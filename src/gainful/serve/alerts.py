"""What the owner of an agent should look at, in one sentence each, the most urgent first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

MANY_PENDING = 100
"""So many decisions without an outcome are worth a word."""
FALL_IN_ERRORS = 5.0
"""A fall of the average by so many standard errors is worth a word."""
FEWEST_BLOCKS = 40
"""Blocks of observations below which nothing is said about a fall."""


def alerts(status: dict[str, Any], averages: NDArray[np.float64]) -> list[str]:
    """What is wrong or unusual, from `DurableAgent.status` and the averages of its blocks; empty if nothing is."""
    found = [f"The journal cannot be written: {status['trouble']}"] if status["trouble"] else []
    fall = fall_of(averages, status["objective"] == "cost")
    if fall:
        found.append(fall)
    if status["pending"] >= MANY_PENDING:
        found.append(f"{status['pending']:,} decisions are waiting for their outcomes: are outcomes being reported?")
    if not status["guarantee_holds"]:
        found.append(f"On the regret there is {status['guarantee']}")
    return found


def fall_of(averages: NDArray[np.float64], costs: bool) -> str:
    """A sentence if the last tenth of the blocks was worse than the four tenths before, beyond chance; else empty.

    Blocks are taken for independent, which they nearly are once they are longer than the process remembers. An agent
    that explores less and less improves, so that a fall is a sign of a process that has changed.
    """
    n = len(averages)
    if n < FEWEST_BLOCKS:
        return ""
    last, before = averages[n - n // 10 :], averages[n // 2 : n - n // 10]
    worse = float(last.mean() - before.mean()) if costs else float(before.mean() - last.mean())
    error = math.sqrt(last.var(ddof=1) / len(last) + before.var(ddof=1) / len(before))
    if worse <= FALL_IN_ERRORS * error or worse <= 0.0:
        return ""
    what, how = ("cost", "rose") if costs else ("reward", "fell")
    return (
        f"The average {what} {how} from {before.mean():.4g} to {last.mean():.4g} in the last tenth of the time: "
        "has the process changed?"
    )
