"""Comparisons of a run, kept as they are made: one found ≤ allowed per statement and episode."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.audit.episodes import execution_limits
from gainful.audit.findings import Finding, Floats, compared

NO_PAIR = -1


class CaseOfEpisode(NamedTuple):
    """Both sides of an inequality in one episode, with the pair it is about, or -1."""

    episode: int
    step: int
    found: float
    allowed: float
    rounding: float
    pair: int
    certain: bool


class ExecutedEpisodes(NamedTuple):
    """What every episode executed, one entry each."""

    ratio: Floats
    """The largest ν/max{1, ⌊f·N⌋}."""
    pair: NDArray[np.int64]
    """Where that is."""
    full: NDArray[np.bool_]
    """Whether some pair reached 1."""
    made: NDArray[np.int64]
    """Its steps."""


class CaseLog:
    """Keeps comparisons by statement, episode after episode.

    Parameters
    ----------
    n_actions : int
        The number of actions, by which a pair is a state and an action.
    """

    def __init__(self, n_actions: int) -> None:
        self._n_actions = n_actions
        self._kept: dict[str, list[CaseOfEpisode]] = defaultdict(list)
        self.steps: list[int] = []
        """The first step of every episode so far."""

    def begin(self, step: int) -> None:
        """Begin an episode."""
        self.steps.append(step)

    def keep(
        self,
        name: str,
        found: float,
        allowed: float,
        rounding: float = 0.0,
        *,
        pair: int = NO_PAIR,
        certain: bool = False,
    ) -> None:
        """Keep a comparison of the present episode; `certain` if nothing that is possible exceeds `allowed`."""
        at = len(self.steps), self.steps[-1]
        self._kept[name].append(CaseOfEpisode(*at, float(found), float(allowed), float(rounding), int(pair), certain))

    def keep_worst(
        self,
        name: str,
        found: Floats,
        allowed: Floats | float,
        rounding: float = 0.0,
        which: NDArray[np.bool_] | None = None,
    ) -> None:
        """Keep the pair, among those in `which`, at which found less allowed is largest."""
        right = np.broadcast_to(np.asarray(allowed, dtype=np.float64), found.shape)
        above = found - right if which is None else np.where(which, found - right, -np.inf)
        k = int(np.argmax(above))  # the first NaN, if there is one
        if above[k] > -np.inf or np.isnan(above[k]):
            self.keep(name, found[k], right[k], rounding, pair=k)

    def finding(self, name: str) -> Finding:
        """The finding on one statement over all episodes."""
        kept = self._kept[name]
        if not kept:
            return compared([], 0.0, [])
        episode, step, found, allowed, rounding, pair, certain = (
            np.array(column) for column in zip(*kept, strict=True)
        )
        places = {} if pair.max() < 0 else {"states": pair // self._n_actions, "actions": pair % self._n_actions}
        return compared(found, allowed, step, episodes=episode, rounding=rounding, certain=certain, **places)


class ExecutionLog:
    """What every episode executed, from the visits of the pairs as episodes begin.

    Parameters
    ----------
    n_pairs : int
        The number of states times that of actions.
    """

    def __init__(self, n_pairs: int) -> None:
        self._before: NDArray[np.int64] = np.zeros(n_pairs, dtype=np.int64)
        self._kept: list[tuple[float, int, bool, int]] = []
        self._begun, self._factor = 0, 1.0

    def begin(self, visits: NDArray[np.int64], factor: float = 1.0) -> None:
        """Begin an episode with the limits max{1, ⌊f_k·N_k⌋}; the one before, if there is one, is over."""
        if self._begun:
            self._close(visits)
        self._before, self._factor = visits.copy(), factor
        self._begun += 1

    def end(self, visits: NDArray[np.int64]) -> None:
        """End the run."""
        if self._begun > len(self._kept):
            self._close(visits)

    def _close(self, visits: NDArray[np.int64]) -> None:
        nu, limit = visits - self._before, execution_limits(self._before, self._factor)
        at = int(np.argmax(nu / limit))
        self._kept.append((float(nu[at] / limit[at]), at, bool(np.any(nu == limit)), int(nu.sum())))

    @property
    def columns(self) -> ExecutedEpisodes:
        """The episodes that are over."""
        ratio, pair, full, steps = zip(*self._kept, strict=True) if self._kept else ((), (), (), ())
        return ExecutedEpisodes(
            np.array(ratio),
            np.array(pair, dtype=np.int64),
            np.array(full, dtype=bool),
            np.array(steps, dtype=np.int64),
        )
