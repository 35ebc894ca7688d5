"""Confidence intervals of one proportion and of one mean, for any number of them at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Values = NDArray[np.float64]


def clopper_pearson(successes: ArrayLike, trials: ArrayLike, confidence: float) -> tuple[Values, Values]:
    """The exact interval of a proportion (Clopper & Pearson 1934), from quantiles of Beta distributions.

    Its coverage is at least `confidence` for every proportion and every number of trials, one success out of one
    included; approximate intervals are shorter, but fail where counts are small, as most counts of a log are.

    >>> low, high = clopper_pearson([0, 5, 10], [10, 10, 10], 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.187, 0.692], [0.308, 0.813, 1.0])
    """
    k, n = np.broadcast_arrays(np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    tail = (1.0 - confidence) / 2.0
    low, high = np.zeros(k.shape), np.ones(k.shape)
    some, not_all = k > 0, k < n
    low[some] = special.betaincinv(k[some], n[some] - k[some] + 1.0, tail)
    high[not_all] = special.betaincinv(k[not_all] + 1.0, n[not_all] - k[not_all], 1.0 - tail)
    return low, high


def student(mean: Values, variance: Values, count: NDArray[np.int64], confidence: float) -> tuple[Values, Values]:
    """Student's interval of a mean: mean ± t·s/√n; it is not known (NaN) for a single value.

    >>> low, high = student(np.array([2.0]), np.array([1.0]), np.array([4]), 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.409], [3.591])
    """
    several = count > 1
    half = np.full(mean.shape, np.nan)
    n = count[several].astype(np.float64)
    half[several] = special.stdtrit(n - 1.0, (1.0 + confidence) / 2.0) * np.sqrt(variance[several] / n)
    return mean - half, mean + half
