"""The data of an agent as plain arrays: r̄ and p̄ of every pair."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.agents.statistics import Statistics
from gainful.audit.findings import Floats


class Seen(NamedTuple):
    """The data of an agent as plain arrays: p̄ as CSR over pairs, with empty rows where N = 0."""

    visits: NDArray[np.int64]
    ptr: NDArray[np.int64]
    next_state: NDArray[np.uint32]
    p: Floats
    pair: NDArray[np.int64]
    """The pair of each entry."""
    mean: Floats
    """r̄, 0 if N = 0."""
    variance: Floats
    """The variance of the rewards: Σr²/N − r̄²."""

    @classmethod
    def of(cls, statistics: Statistics) -> Seen:
        """Read an agent's statistics."""
        kept = statistics.to_arrays()
        visits, length = kept["visits"].copy(), kept["length"]
        n = np.maximum(1, visits)
        pair = np.repeat(np.arange(visits.size), length)
        mean = kept["reward_sum"] / n
        return cls(
            visits=visits,
            ptr=np.concatenate([[0], np.cumsum(length)]),
            next_state=kept["next_state"],
            p=kept["count"] / n[pair],
            pair=pair,
            mean=mean,
            variance=np.maximum(0.0, kept["reward_squares"] / n - mean * mean),
        )

    def states(self, n_states: int) -> NDArray[np.bool_]:
        """(S,) the states seen, as the origin or the end of a transition."""
        known = np.asarray((self.visits > 0).reshape(n_states, -1).any(axis=1))
        known[self.next_state] = True
        return known

    def expected(self, values: Floats) -> Floats:
        """(S*A,) p̄·v; 0 if N = 0."""
        found = np.bincount(self.pair, self.p * values[self.next_state], minlength=self.visits.size)
        return np.asarray(found, dtype=np.float64)
