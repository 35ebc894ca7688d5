"""How many times one agent's mean regret is another's, on shared seeds, with an interval.

Source: Fieller (1954), Some Problems in Interval Estimation, Journal of the Royal Statistical Society B 16(2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from gainful.experiments.run_values import Floats, check_confidence


@dataclass(frozen=True)
class PairedRatio:
    """The mean of the second over the mean of the first, on the seeds that both have."""

    ratio: float
    """NaN if a mean is not above 0."""
    low: float
    """NaN where the data allow no interval: fewer than two pairs, or a first mean that may be 0."""
    high: float
    pairs: int
    wins: int
    """Seeds on which the first is smaller."""
    confidence: float = 0.95

    @property
    def decided(self) -> bool:
        """Whether the interval excludes 1: the first is smaller on average."""
        return self.low > 1.0


def ratio_of_means(first: Mapping[int, float], second: Mapping[int, float], *, confidence: float = 0.95) -> PairedRatio:
    r"""Compare two agents by the ratio of their mean regrets on shared seeds, with Fieller's interval.

    Parameters
    ----------
    first, second : mapping from seed to regret
        Seeds that only one has, or whose value is NaN, are left out.
    confidence : float
        The confidence of the interval, between 0 and 1.

    Returns
    -------
    PairedRatio
        The ratio mean(second)/mean(first), and the number of seeds on which the first is smaller.

    Notes
    -----
    With n pairs (x, y), the interval is the set of all ρ for which Student's test does not reject that y - ρx has
    mean 0: (ȳ - ρx̄)² ≤ t² (s_yy - 2ρ s_xy + ρ² s_xx)/n, t = t_{n-1, 1-α/2}, s the sample covariances. It is exact if
    the pairs are normal. It is a bounded interval if x̄² > t² s_xx/n, and otherwise left out.

    Examples
    --------
    >>> found = ratio_of_means({1: 1.0, 2: 1.1, 3: 0.9}, {1: 3.0, 2: 3.4, 3: 2.6})
    >>> round(found.ratio, 6), round(found.low, 2), round(found.high, 2), found.wins
    (3.0, 2.67, 3.2, 3)
    """
    check_confidence(confidence)
    shared = [seed for seed in first if seed in second]
    x, y = (np.array([side[seed] for seed in shared], dtype=np.float64) for side in (first, second))
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    n, wins = x.size, int((x < y).sum())
    if n == 0 or x.mean() <= 0.0 or y.mean() <= 0.0:
        return PairedRatio(math.nan, math.nan, math.nan, n, wins, confidence)
    low, high = _fieller(x, y, confidence) if n > 1 else (math.nan, math.nan)
    return PairedRatio(float(y.mean() / x.mean()), low, high, n, wins, confidence)


def _fieller(x: Floats, y: Floats, confidence: float) -> tuple[float, float]:
    """The roots of a ρ² - 2b ρ + c = 0, or NaN if the set is not an interval."""
    scale_x, scale_y = float(x.mean()), float(y.mean())
    x, y = x / scale_x, y / scale_y  # both means are 1: no square overflows
    t = float(special.stdtrit(x.size - 1, (1.0 + confidence) / 2))
    (xx, xy), (_, yy) = (np.cov(x, y) * t * t / x.size).tolist()
    a, b, c = 1.0 - xx, 1.0 - xy, 1.0 - yy
    if not a > 0.0:
        return math.nan, math.nan
    root = math.sqrt(max(0.0, b * b - a * c))
    return (b - root) / a * scale_y / scale_x, (b + root) / a * scale_y / scale_x
