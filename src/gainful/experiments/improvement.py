"""Two agents on the same seeds: how often, and by how much, one is better than the other.

Source: Agarwal et al. (2021), Deep Reinforcement Learning at the Edge of the Statistical Precipice, for the probability
of improvement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from gainful.errors import InvalidArgumentError
from gainful.experiments.run_statistics import bootstrap_interval, mean
from gainful.experiments.run_values import Floats, as_runs, check_confidence, format_ends, format_level, format_number


@dataclass(frozen=True)
class Improvement:
    """How often, and by how much, the first of two is better (smaller) on the same seed."""

    probability: float
    """P(first < second) + P(first = second)/2."""
    low: float
    high: float
    difference: float
    """The mean of first - second: negative if the first is better."""
    difference_low: float
    difference_high: float
    pairs: int
    wins: int
    ties: int
    confidence: float = 0.95

    def __str__(self) -> str:
        if self.pairs == 0:
            return "no pairs to compare"
        ties = f", {self.ties} tied" if self.ties else ""
        return (
            f"better in {self.wins} of {self.pairs} pairs{ties}: probability {format_number(self.probability)} "
            f"{format_ends(self.low, self.high)}, mean difference {format_number(self.difference)} "
            f"{format_ends(self.difference_low, self.difference_high)} ({format_level(self.confidence)})"
        )


def probability_of_improvement(
    first: Mapping[Any, float] | ArrayLike, second: Mapping[Any, float] | ArrayLike, *, confidence: float = 0.95
) -> Improvement:
    r"""The probability that `first` is better (smaller) than `second` on a shared seed; ties count one half.

    Parameters
    ----------
    first, second : mapping from seed to value, or array_like of shape (n,)
        Both mappings (also Series indexed by seed), or both arrays aligned by seed. Only seeds where both values are
        known (not NaN) are used.
    confidence : float
        The confidence of the intervals, between 0 and 1.

    Returns
    -------
    Improvement
        The probability and the mean difference with their intervals, and the number of pairs.

    Raises
    ------
    InvalidArgumentError
        If there is no pair of known values.

    Notes
    -----
    The interval is Clopper and Pearson's (1934) with x = wins + ties/2 of n:
    [B⁻¹(α/2; x, n-x+1), B⁻¹(1-α/2; x+1, n-x)]. Without ties it covers by construction; with ties too, as the exact
    enumeration in the tests shows, since they only reduce the variance. For five wins of five, a bootstrap would
    give [1, 1] and this gives [0.48, 1]. The difference first - second has Student's interval, NaN for one pair.

    Examples
    --------
    >>> print(probability_of_improvement({1: 3.0, 2: 4.0, 3: 5.0}, {1: 4.0, 2: 6.0, 3: 8.0, 4: 1.0}))
    better in 3 of 3 pairs: probability 1 [0.2924, 1], mean difference -2 [-4.484, 0.4841] (95 %)
    """
    check_confidence(confidence)
    x, y = _paired(first, second)
    known = ~(np.isnan(x) | np.isnan(y))
    if not known.any():
        if not x.size:
            raise InvalidArgumentError(
                "seeds", [], "at least one", "run both with the same seeds", problem="the two share no seed"
            )
        raise InvalidArgumentError(
            "seeds",
            expected="at least one pair of numbers",
            problem=f"none of the {x.size} shared seeds has both values",
        )
    return improvement_of(x[known], y[known], confidence)


def improvement_of(x: Floats, y: Floats, confidence: float) -> Improvement:
    """`probability_of_improvement` of aligned values without NaN, possibly none."""
    n, wins, ties = x.size, int((x < y).sum()), int((x == y).sum())
    if n == 0:
        unknown = math.nan
        return Improvement(unknown, unknown, unknown, unknown, unknown, unknown, 0, 0, 0, confidence)
    better, tail = wins + ties / 2, (1.0 - confidence) / 2
    low = float(special.betaincinv(better, n - better + 1, tail)) if better > 0 else 0.0
    high = float(special.betaincinv(better + 1, n - better, 1.0 - tail)) if better < n else 1.0
    gap = bootstrap_interval(x - y, mean, confidence, method="student")
    return Improvement(
        better / n, low, high, gap.estimate, gap.low, gap.high, pairs=n, wins=wins, ties=ties, confidence=confidence
    )


def _paired(first: Any, second: Any) -> tuple[Floats, Floats]:
    """The values of both on the seeds of both."""
    by_seed = [hasattr(values, "items") for values in (first, second)]
    if by_seed[0] != by_seed[1]:
        raise InvalidArgumentError(
            "second",
            second,
            "two mappings or two arrays",
            problem="one side is a mapping from seeds and the other is not",
        )
    if not by_seed[0]:
        x, y = (as_runs(values, name) for values, name in ((first, "first"), (second, "second")))
        if x.ndim != 1 or x.shape != y.shape:
            raise InvalidArgumentError(
                "second",
                y.shape,
                "(n,) for both, aligned by seed",
                "give mappings from seed to value if the seeds differ",
                problem=f"first and second have shapes {x.shape} and {y.shape}",
            )
        return x, y
    sides = []
    for name, values in (("first", first), ("second", second)):
        pairs = list(values.items())
        if len(dict(pairs)) != len(pairs):
            raise InvalidArgumentError(name, values, "one value per seed", problem=f"{name} has a seed twice")
        sides.append(dict(pairs))
    shared = [s for s in sides[0] if s in sides[1]]
    if not shared:
        return np.empty(0), np.empty(0)
    return as_runs([sides[0][s] for s in shared], "first"), as_runs([sides[1][s] for s in shared], "second")
