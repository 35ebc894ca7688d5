"""How fast regret grows with the number of steps: growth exponents, and whether it is still linear."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from gainful.errors import InvalidArgumentError
from gainful.experiments.run_statistics import RESAMPLED_AT_ONCE, bootstrap_interval, mean
from gainful.experiments.run_values import Floats, as_runs, check_interval, format_ends, format_level, format_number


@dataclass(frozen=True)
class GrowthExponent:
    """Regret grows like steps^exponent: 1/2 for √T, 1 for a linear regret, towards 0 for a logarithmic one."""

    exponent: float
    low: float
    high: float
    runs_used: int
    fit: Literal["runs", "mean curve", "none"] = "runs"
    """What was fitted: every run, the mean curve (some run is not positive), or nothing."""
    confidence: float = 0.95

    def __str__(self) -> str:
        runs = f"{self.runs_used} run{'' if self.runs_used == 1 else 's'}"
        if self.fit == "none":
            return f"no growth exponent: regret unknown or not positive on average ({runs})"
        of = "the mean of " if self.fit == "mean curve" else ""
        ends = format_ends(self.low, self.high)
        return f"steps^{self.exponent:.3f} {ends} ({format_level(self.confidence)}, {of}{runs})"


def growth_exponent(
    steps: ArrayLike,
    runs: ArrayLike,
    last_decades: float = 1.0,
    confidence: float = 0.95,
    seed: int = 0,
    resamples: int = 2000,
) -> GrowthExponent:
    r"""The least-squares slope of log regret against log steps over the last decade(s) of checkpoints.

    Parameters
    ----------
    steps : array_like, shape (k,)
        The checkpoints, strictly increasing.
    runs : array_like, shape (n, k)
        The regret of each run at the checkpoints. Runs with an unknown (NaN) regret in the window are left out, and
        not counted in `runs_used`.
    last_decades : float
        The window is steps ≥ steps[-1]/10^last_decades.
    confidence : float
        The confidence of the interval, between 0 and 1.
    seed : int
        The seed of the resampling.
    resamples : int
        The number of resamples.

    Returns
    -------
    GrowthExponent
        The exponent with its interval, and what was fitted. One run has no interval.

    Notes
    -----
    If every run is positive in the window, the exponent is the mean of the n slopes, with Student's interval. If
    some run is not, its slope does not exist, and leaving it out would leave out the best runs: the slope of the
    logarithm of the mean curve is fitted instead (`fit` says so), with an "expanded" bootstrap interval over runs (see
    `bootstrap_interval`; ν = n - 1; measured coverage 0.96 with 10 and 20 runs, more with fewer). A resampled mean
    curve that is not positive counts as below and above every number, so that an end may be infinite. All is NaN if the
    mean curve itself is not positive.

    Examples
    --------
    >>> print(growth_exponent([1, 10, 100, 1000], [[3, 6, 20, 200], [1, 5, 10, 100]]))
    steps^1.000 [1, 1] (95 %, 2 runs)
    """
    check_interval(confidence, resamples, seed)
    if not (isinstance(last_decades, Real) and last_decades > 0):
        raise InvalidArgumentError("last_decades", last_decades, "a number above 0")
    t, y = as_runs(steps, "steps"), as_runs(runs)
    if t.ndim != 1 or y.shape != (len(y), t.size):
        raise InvalidArgumentError(
            "runs", y.shape, "(k,) and (n, k)", problem=f"steps and runs have shapes {t.shape} and {y.shape}"
        )
    if not (np.diff(t) > 0).all() or not t[0] >= 0:
        raise InvalidArgumentError(
            "steps", t.tolist(), "increasing steps, none below 0", problem=f"steps are {t.tolist()}"
        )
    window = last_decades_window(t, last_decades)
    if window.sum() < 2:
        raise InvalidArgumentError(
            "steps",
            int(window.sum()),
            "at least 2",
            "raise last_decades, or record more checkpoints",
            problem=f"{window.sum()} of the steps is within {last_decades:g} decade(s) of the last, "
            f"{format_number(t[-1])}",
        )
    x = np.log(t[window])
    x -= x.mean()
    weights = x / (x @ x)  # the slope of y is weights · y
    y = y[:, window]
    y = y[~np.isnan(y).any(axis=1)]
    n = len(y)
    if n and (y > 0.0).all():
        found = bootstrap_interval(np.log(y) @ weights, mean, confidence, method="student")
        return GrowthExponent(found.estimate, found.low, found.high, n, "runs", confidence)
    curve = y.mean(axis=0) if n else np.zeros(weights.size)
    if not (curve > 0.0).all():
        return GrowthExponent(math.nan, math.nan, math.nan, n, "none", confidence)
    low, high = _mean_curve_ends(y, weights, confidence, resamples, seed) if n > 1 else (math.nan, math.nan)
    return GrowthExponent(float(np.log(curve) @ weights), low, high, n, "mean curve", confidence)


LINEAR_FROM = 0.85
"""The rate of the last half over that of the whole run from which regret counts as linear: steps^0.8 has 0.85."""
LARGE_LOSS = 0.05
"""The share of the gain that a step must lose on average for that to matter."""


def is_still_linear(steps: ArrayLike, regret: ArrayLike, level: float) -> bool:
    """Whether the regret of one run still grows linearly at its end, and costs a good part of the gain.

    The rate over the last half of the steps is at least 0.85 times the rate over the whole run (steps^0.8 has 0.85, and
    a square root 0.59), and a step loses more than 5 % of `level` on average.

    Parameters
    ----------
    steps : array_like, shape (k,)
        The checkpoints, strictly increasing.
    regret : array_like, shape (k,)
        The regret there.
    level : float
        The optimal gain above the least reward: what there is to lose.

    Returns
    -------
    bool
        False if the regret is unknown there, or no checkpoint is near the middle of the run.

    Examples
    --------
    >>> steps = [100, 500, 1000]
    >>> is_still_linear(steps, [10, 50, 100], 0.5), is_still_linear(steps, [10, 22, 31], 0.5)
    (True, False)
    """
    t, y = as_runs(steps, "steps"), as_runs(regret, "regret")
    middle = int(np.searchsorted(t, t[-1] / 2, side="right")) - 1
    if middle < 0 or t[middle] < 0.4 * t[-1]:
        return False
    overall = y[-1] / t[-1]
    late = (y[-1] - y[middle]) / (t[-1] - t[middle])
    return bool(late >= LINEAR_FROM * overall and overall > LARGE_LOSS * level)


def last_decades_window(steps: Floats, last_decades: float) -> NDArray[np.bool_]:
    """Which of increasing `steps` are within `last_decades` decades of the last one."""
    start = float(steps[-1]) * 10.0**-last_decades * (1.0 - 1e-12)  # a window of 10 to 100 has both
    inside: NDArray[np.bool_] = (steps > 0.0) & (steps >= start)
    return inside


def _mean_curve_ends(y: Floats, weights: Floats, confidence: float, resamples: int, seed: int) -> tuple[float, float]:
    """The expanded bootstrap interval of weights · log(mean of the rows of y)."""
    y = y[np.lexsort(y.T)]  # the order of the runs does not matter
    n = len(y)
    rng = np.random.default_rng(seed)
    slopes, defined = np.empty(resamples), np.empty(resamples, dtype=bool)
    step = max(1, RESAMPLED_AT_ONCE // n)
    for start in range(0, resamples, step):
        b = min(step, resamples - start)
        drawn = rng.integers(n, size=(b, n)) + n * np.arange(b)[:, None]
        counts = np.bincount(drawn.reshape(-1), minlength=b * n).reshape(b, n)
        curves = counts @ y / n  # (b, k)
        positive: NDArray[np.bool_] = np.all(curves > 0.0, axis=1)
        defined[start : start + b] = positive
        slopes[start : start + b] = np.log(np.where(positive[:, None], curves, 1.0)) @ weights
    t = float(special.stdtrit(n - 1, (1.0 + confidence) / 2))
    tail = float(special.ndtr(-math.sqrt(n / (n - 1)) * t))
    low = np.quantile(np.where(defined, slopes, -np.inf), tail, method="lower")
    high = np.quantile(np.where(defined, slopes, np.inf), 1.0 - tail, method="higher")
    return float(low), float(high)
