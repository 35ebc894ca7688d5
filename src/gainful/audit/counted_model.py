"""The empirical model p̄ of an agent's counts as a sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from gainful.agents.statistics import Statistics
from gainful.audit.findings import Floats


@dataclass(frozen=True)
class CountedModel:
    """r̄ and p̄ of every pair; both are 0 where N = 0."""

    visits: NDArray[np.int64]
    mean_rewards: Floats
    """From 0."""
    rows: csr_matrix

    @classmethod
    def of(cls, statistics: Statistics) -> CountedModel:
        """Read an agent's statistics."""
        kept = statistics.to_arrays()
        visits, length = kept["visits"].copy(), kept["length"]
        n = np.maximum(1, visits)
        p = kept["count"] / np.repeat(n, length)
        ptr = np.concatenate([[0], np.cumsum(length)])
        shape = (visits.size, statistics.n_states)
        return cls(
            visits, kept["reward_sum"] / n, csr_matrix((p, kept["next_state"].astype(np.int64), ptr), shape=shape)
        )

    def expected(self, values: Floats) -> Floats:
        """p̄·v of every pair."""
        return np.asarray(self.rows @ values)
