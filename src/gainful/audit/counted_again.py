"""The counts in a bonus, computed again from the visits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gainful.audit.findings import Floats
from gainful.pseudo_counts.density import DensityCounts
from gainful.pseudo_counts.hashed import HashedCounts
from gainful.pseudo_counts.provider import BonusCounts
from gainful.theory.pseudo_counts import density_counts, hashed_counts


def counted_again(counts: BonusCounts, visits: NDArray[np.int64]) -> Floats:
    """(S*A,) N̂ from (S*A,) visits, by the equations; counts of the user's own are asked a second time.

    >>> counted_again(BonusCounts("modulo:buckets=1", 2, 1), np.array([3, 4])).tolist()
    [7.0, 7.0]
    """
    table, provider = visits.reshape(counts.shape), counts.provider
    if counts.is_exact:
        return visits.astype(np.float64)
    if isinstance(provider, HashedCounts):
        return hashed_counts(table, provider.codes).reshape(-1)
    if isinstance(provider, DensityCounts):
        return density_counts(table, provider.features).reshape(-1)
    return counts.table(visits)
