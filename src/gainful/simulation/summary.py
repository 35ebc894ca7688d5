"""What is kept of many runs if not the runs: mean, variance, extremes and a histogram of regret at each checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError

SUMMARISED = ("expected_regret", "regret")
"""The measures that a summary has."""
BINS_PER_DOUBLING = 32
_LEAST_EXPONENT, _LARGEST_EXPONENT = -10, 64
_BINS = BINS_PER_DOUBLING * (_LARGEST_EXPONENT - _LEAST_EXPONENT)
"""Bins of positive numbers, and as many of negative ones; in between one bin for 0 and what is closer to it."""


def bin_edges() -> NDArray[np.float64]:
    """The edges of all bins, increasing: 32 for each doubling, so that a bin is 2.2 % wide, from 2⁻¹⁰ to 2⁶⁴."""
    positive = 2.0 ** (np.arange(_BINS + 1) / BINS_PER_DOUBLING + _LEAST_EXPONENT)
    return np.concatenate([-positive[::-1], positive])


def bins_of(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """The number of the bin of each value; what lies beyond the last edges is in the last bins."""
    size = np.abs(values)
    with np.errstate(divide="ignore"):
        place = np.floor((np.log2(size) - _LEAST_EXPONENT) * BINS_PER_DOUBLING)
    place = np.where(size < 2.0**_LEAST_EXPONENT, -1.0, np.clip(place, 0.0, _BINS - 1.0)) + 1.0
    return (_BINS + np.sign(values) * place).astype(np.int64)


@dataclass
class MeasureSummary:
    """One measure of regret over all runs, at each checkpoint: arrays (C,), and a histogram (C, bins)."""

    n: int
    mean: NDArray[np.float64]
    squares: NDArray[np.float64] = field(repr=False)
    """Sums of squared deviations from the mean."""
    minimum: NDArray[np.float64] = field(repr=False)
    maximum: NDArray[np.float64] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    """(C, bins) runs in each bin of `bin_edges`."""

    @classmethod
    def empty(cls, n_checkpoints: int) -> MeasureSummary:
        """No runs yet."""
        c = n_checkpoints
        counts = np.zeros((c, 2 * _BINS + 1), dtype=np.int64)
        return cls(0, np.zeros(c), np.zeros(c), np.full(c, np.inf), np.full(c, -np.inf), counts)

    def add(self, values: NDArray[np.float64]) -> None:
        """Add runs: (C, R) their values at the checkpoints."""
        n, mean = values.shape[1], values.mean(axis=1)
        squares = ((values - mean[:, None]) ** 2).sum(axis=1)
        total, shift = self.n + n, mean - self.mean
        self.squares += squares + shift**2 * (self.n * n / total)
        self.mean += shift * (n / total)
        self.n = total
        self.minimum, self.maximum = (
            np.minimum(self.minimum, values.min(axis=1)),
            np.maximum(self.maximum, values.max(axis=1)),
        )
        for row, known in zip(values, self.counts, strict=True):
            known += np.bincount(bins_of(row[np.isfinite(row)]), minlength=known.size)

    @property
    def variance(self) -> NDArray[np.float64]:
        """(C,) the variance of one run, from n - 1 degrees of freedom; NaN for a single run."""
        return self.squares / (self.n - 1) if self.n > 1 else np.full(self.mean.size, np.nan)

    @property
    def standard_error(self) -> NDArray[np.float64]:
        """(C,) the standard error of the mean."""
        return np.sqrt(self.variance / max(1, self.n))

    def quantile(self, q: float) -> NDArray[np.float64]:
        """(C,) the value below which a part q of all runs lies, to 1.1 % of itself: the middle of its bin.

        Parameters
        ----------
        q : float
            A probability.

        Returns
        -------
        ndarray
        """
        if not 0.0 <= q <= 1.0:
            raise InvalidArgumentError("q", q, "a probability in [0, 1]")
        if q in (0.0, 1.0):
            return (self.minimum if q == 0.0 else self.maximum).copy()
        edges, known = bin_edges(), self.counts.sum(axis=1)
        middle = np.sign(edges[:-1]) * np.sqrt(np.abs(edges[:-1] * edges[1:]))
        middle[_BINS] = 0.0
        found = np.full(known.size, np.nan)
        for i, (row, n) in enumerate(zip(self.counts, known, strict=True)):
            if n:
                place = int(np.searchsorted(np.cumsum(row), max(1.0, q * n)))
                found[i] = np.clip(middle[place], self.minimum[i], self.maximum[i])
        return found


@dataclass(frozen=True)
class RunSummary:
    """Many runs of one agent in one MDP, of which only distributions are kept: `simulate_many(..., keep="summary")`.

    Attributes
    ----------
    steps : ndarray of int
        The checkpoints.
    n_runs : int
        The number of runs.
    gain : float
        The optimal gain g* per step.
    expected_regret, regret : MeasureSummary
        Mean, variance, extremes, quantiles and a histogram at each checkpoint.
    seconds : float
        Wall time on a GPU, CPU time elsewhere.

    Examples
    --------
    >>> import gainful as gf
    >>> mdp = gf.environments.riverswim(6)
    >>> found = gf.simulate_many(lambda seed: gf.UCRL2(6, 2, seed=seed), mdp, 100, range(3), keep="summary")
    >>> found.n_runs, found.expected_regret.mean.shape == found.steps.shape
    (3, True)
    """

    steps: NDArray[np.int64]
    n_runs: int
    gain: float
    expected_regret: MeasureSummary
    regret: MeasureSummary
    seconds: float = 0.0


class Summariser:
    """Adds runs to a summary, batch after batch."""

    def __init__(self, steps: NDArray[np.int64], gain: float) -> None:
        self.steps, self.gain, self.seconds = steps, gain, 0.0
        self.measures = {name: MeasureSummary.empty(steps.size) for name in SUMMARISED}

    def add(self, expected_regret: NDArray[np.float64], rewards: NDArray[np.float64], seconds: float) -> None:
        """Add runs: (C, R) expected regret and total rewards, and the seconds that they took together."""
        self.measures["expected_regret"].add(expected_regret)
        self.measures["regret"].add((self.steps * self.gain)[:, None] - rewards)
        self.seconds += seconds

    def add_runs(self, runs: list[Any]) -> None:
        """Add runs of the CPU."""
        expected, rewards = (
            np.array([getattr(run, name) for run in runs]).T for name in ("expected_regret", "rewards")
        )
        self.add(expected, rewards, sum(run.planning_seconds + run.acting_seconds for run in runs))

    def summary(self) -> RunSummary:
        """All runs so far."""
        n = self.measures["regret"].n
        return RunSummary(self.steps, n, self.gain, **self.measures, seconds=self.seconds)
