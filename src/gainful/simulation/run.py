"""The result of a simulation: regret at checkpoints, and what every episode was."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.arguments import finite
from gainful.errors import InvalidArgumentError

MAX_HORIZON = 10**18
"""Steps of the longest run."""


@dataclass(frozen=True, eq=False)
class Run:
    """One agent in one environment; arrays have one entry per checkpoint. Rewards are maximised (costs negated)."""

    steps: NDArray[np.int64]
    rewards: NDArray[np.float64] = field(repr=False)
    """Total reward after so many steps."""
    regret: NDArray[np.float64] = field(repr=False)
    """T·g* - Σ r_t."""
    pseudo_regret: NDArray[np.float64] = field(repr=False)
    """Σ (g* - r(s_t,a_t)) with mean rewards."""
    gain: float
    """g* per step, in the units of the rewards."""
    episodes: NDArray[Any] = field(repr=False)
    """One record per episode of the agent (all of its life): see `agents.episodic.EPISODE_RECORD`."""
    final_state: int
    seed: int
    planning_seconds: float
    acting_seconds: float
    """CPU time; outside the promise that the same seed gives the same bits."""
    vacuous: bool = False
    """Whether, at the end, the agent's bounds were still so wide that its plan ignored the data."""

    @property
    def horizon(self) -> int:
        """The number of steps simulated."""
        return int(self.steps[-1])


def log_checkpoints(horizon: int, per_decade: int = 20) -> NDArray[np.int64]:
    """About `per_decade` steps per factor of ten, from 1 to `horizon`, both included.

    >>> log_checkpoints(100, per_decade=2).tolist()
    [1, 3, 10, 32, 100]
    """
    n = max(2, round(per_decade * np.log10(max(horizon, 2))) + 1)
    return np.unique(np.append(np.rint(np.logspace(0, np.log10(horizon), n)), horizon).astype(np.int64))


def checked_horizon(horizon: float) -> int:
    """A number of steps, at least 1; 1e7 is accepted as an integer."""
    if not (finite(horizon) and 1 <= horizon <= MAX_HORIZON and int(horizon) == horizon):
        raise InvalidArgumentError(f"horizon is {horizon!r}, expected a whole number of steps, from 1 to 1e18")
    return int(horizon)


def checked_checkpoints(checkpoints: Any, horizon: int) -> NDArray[np.int64]:
    """Increasing steps in 1 … horizon; the horizon itself is added."""
    if checkpoints is None:
        return log_checkpoints(horizon)
    given = np.asarray(checkpoints)
    if given.dtype.kind not in "iuf" or not np.all(np.abs(given) <= MAX_HORIZON) or np.any(given != np.rint(given)):
        raise InvalidArgumentError(f"checkpoints are {checkpoints!r}, expected whole numbers of steps")
    steps = np.unique(np.append(given.astype(np.int64), horizon))
    if steps[0] < 1 or steps[-1] > horizon:
        raise InvalidArgumentError(f"checkpoints {steps[0]} … {steps[-1]}, expected steps in 1 … {horizon}")
    return steps
