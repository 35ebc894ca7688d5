"""What was found of one statement in one run, in plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROUNDING = 1e-9
"""What rounding may add to either side of an inequality, relative to its larger side."""


@dataclass(frozen=True)
class Worst:
    """Where a statement came nearest to failing, or failed most: found ≤ allowed was asked."""

    found: float
    allowed: float
    episode: int
    step: int
    state: int | None = None
    action: int | None = None
    seed: int | None = None

    @property
    def excess(self) -> float:
        """By how much it was exceeded, relative to the larger of the two; above 0 the statement failed."""
        return (self.found - self.allowed) / max(abs(self.found), abs(self.allowed), 1e-300)


@dataclass(frozen=True)
class Finding:
    """One statement in one run: how often it was checked, how often it failed, and its worst case."""

    checks: int
    failures: int
    worst: Worst | None
    reason: str = ""
    """Why it is not applicable; empty where it is."""

    @property
    def applicable(self) -> bool:
        """Whether it was checked at all."""
        return not self.reason

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Finding:
        """What `to_dict` gave."""
        worst = values["worst"]
        return cls(**{**values, "worst": None if worst is None else Worst(**worst)})


def not_applicable(reason: str) -> Finding:
    """A statement whose assumptions do not hold here."""
    return Finding(0, 0, None, reason)


def compared(
    found: ArrayLike, allowed: ArrayLike, steps: ArrayLike, *, states: ArrayLike | None = None,
    actions: ArrayLike | None = None, episodes: ArrayLike | None = None, rounding: ArrayLike = 0.0,
) -> Finding:  # fmt: skip
    """Whether found ≤ allowed, one number of each per episode (or other occasion, from 1), up to rounding.

    `rounding` is an absolute allowance beside the relative one. NaN on either side is a failure.
    """
    left = np.atleast_1d(np.asarray(found, dtype=np.float64))
    right = np.broadcast_to(np.asarray(allowed, dtype=np.float64), left.shape)
    if left.size == 0:
        return not_applicable("nothing to check: no episode was complete")
    scale = np.maximum(np.abs(left), np.abs(right))
    holds = left <= right + ROUNDING * scale + np.asarray(rounding)
    excess = np.where(np.isnan(left - right), np.inf, (left - right) / np.maximum(scale, 1e-300))
    i = int(np.argmax(excess))
    if not holds.all():  # a failure within the rounding of another place must not be hidden by it
        bad = np.flatnonzero(~holds)
        i = int(bad[np.argmax(excess[bad])])

    def at(values: ArrayLike | None) -> int | None:
        return None if values is None else int(np.broadcast_to(np.asarray(values), left.shape)[i])

    number = i + 1 if episodes is None else at(episodes)
    step = at(steps)
    assert number is not None
    assert step is not None
    worst = Worst(float(left[i]), float(right[i]), number, step, at(states), at(actions))
    return Finding(left.size, int(np.sum(~holds)), worst)


Floats = NDArray[np.float64]
