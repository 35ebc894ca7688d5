"""Statistics over runs: averages, bands and confidence intervals.

Everywhere axis 0 is the runs. NaN means unknown (a regret whose optimal gain is unknown): it makes what depends on
it NaN, and is never silently dropped; infinite values are rejected. Every function is deterministic given `seed`, and
no result depends on the order of the runs beyond rounding.

Sources: Agarwal et al. (2021), Deep Reinforcement Learning at the Edge of the Statistical Precipice, for the
interquartile mean and the stratified bootstrap; Hesterberg (2015), What Teachers Should Know About the Bootstrap, The
American Statistician 69(4), for the expanded percentile interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from gainful.errors import InvalidArgumentError
from gainful.experiments.run_values import Floats, as_runs, check_interval, format_ends, format_level, format_number

Statistic = Callable[[Floats], Any]
Method = Literal["expanded", "percentile", "student"]

RESAMPLED_AT_ONCE = 1 << 20
"""Values that are resampled at once: 8 MB."""


# ---------------------------------------------------------------------- statistics


def mean(runs: ArrayLike) -> Floats:
    """The mean over runs.

    Parameters
    ----------
    runs : array_like, shape (n, ...)
        One entry per run along axis 0.

    Returns
    -------
    ndarray, shape (...)
        A number for (n,). NaN makes NaN.

    Examples
    --------
    >>> float(mean([1.0, 2.0, 6.0]))
    3.0
    """
    found: Floats = np.mean(as_runs(runs), axis=0)
    return found


def median(runs: ArrayLike) -> Floats:
    """The median over runs, the mean of the middle two if their number is even.

    Parameters
    ----------
    runs : array_like, shape (n, ...)
        One entry per run along axis 0.

    Returns
    -------
    ndarray, shape (...)
        A number for (n,). NaN makes NaN.

    Examples
    --------
    >>> float(median([1.0, 2.0, 6.0]))
    2.0
    """
    found: Floats = np.median(as_runs(runs), axis=0)
    return found


def interquartile_mean(runs: ArrayLike) -> Floats:
    r"""The mean of the middle half of the runs.

    2 ∫_{1/4}^{3/4} F⁻¹(u) du for the empirical distribution F: n/4 runs are removed at each end. If that is not a whole
    number, the run on the boundary counts with the fraction of it that is inside. So the weights of n = 5 runs in
    ascending order are 0, 3/4, 1, 3/4, 0 (over 5/2), and counting every run twice changes nothing. If 4 divides n this
    is scipy.stats.trim_mean(runs, 0.25), which otherwise removes only ⌊n/4⌋ at each end (Agarwal et al. 2021).

    Parameters
    ----------
    runs : array_like, shape (n, ...)
        One entry per run along axis 0.

    Returns
    -------
    ndarray, shape (...)
        A number for (n,). NaN makes NaN.

    Examples
    --------
    >>> float(interquartile_mean([1.0, 2.0, 3.0, 4.0, 1000.0]))
    3.0
    """
    x = np.sort(as_runs(runs), axis=0)
    n = len(x)
    whole, rest = divmod(n, 4)
    total = x[whole : n - whole].sum(axis=0) - rest / 4 * (x[whole] + x[n - 1 - whole])
    return np.where(np.isnan(x[-1]), np.nan, total / (n / 2))[()]  # NaN sorts last


def quantile_band(runs: ArrayLike, low: float = 0.25, high: float = 0.75) -> tuple[Floats, Floats]:
    """Two quantiles over runs, linear between order statistics: the spread of runs, not a confidence interval.

    Parameters
    ----------
    runs : array_like, shape (n, ...)
        One entry per run along axis 0.
    low, high : float
        The quantiles, 0 <= low <= high <= 1.

    Returns
    -------
    tuple of two ndarrays, shape (...)
        The lower and the upper end.

    Examples
    --------
    >>> [float(end) for end in quantile_band([1.0, 2.0, 3.0, 4.0, 5.0])]
    [2.0, 4.0]
    """
    x = as_runs(runs)
    if not 0.0 <= low <= high <= 1.0:
        raise InvalidArgumentError(
            "band", (low, high), "0 <= low <= high <= 1", problem=f"the band is ({low!r}, {high!r})"
        )
    ends = np.quantile(x, [low, high], axis=0)
    return ends[0], ends[1]


# ---------------------------------------------------------------------- intervals


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval around it; both ends are NaN if the data do not allow one."""

    estimate: float
    low: float
    high: float
    confidence: float = 0.95

    def __str__(self) -> str:
        return f"{format_number(self.estimate)} {format_ends(self.low, self.high)} ({format_level(self.confidence)})"


def bootstrap_interval(
    strata: ArrayLike | Sequence[ArrayLike],
    statistic: Statistic = interquartile_mean,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    method: Method = "expanded",
) -> Interval:
    r"""A statistic of the pooled runs with a confidence interval.

    The estimate is the statistic of all strata together, so a stratum counts by its number of runs. Runs are resampled
    with replacement within each stratum.

    Parameters
    ----------
    strata : array_like, shape (n,), or a sequence of them
        The runs, or one array per environment, already on a common scale.
    statistic : callable
        Maps (n, b) to (b,) along axis 0.
    confidence : float
        The nominal coverage, between 0 and 1.
    resamples : int
        The number of resamples.
    seed : int
        The seed of the resampling.
    method : {"expanded", "percentile", "student"}
        How the interval is made; see below.

    Returns
    -------
    Interval
        NaN in the data gives NaN. A stratum of one run, which says nothing about its spread, gives an estimate without
        an interval.

    Notes
    -----
    The methods are

    percentile
        the quantiles α/2 and 1 - α/2 of the resampled statistic, α = 1 - confidence.
    expanded
        the quantiles α'/2 and 1 - α'/2, α'/2 = Φ(-√(V/V*) t_{ν, 1-α/2}) (Hesterberg 2015 for one
        stratum): V = Σᵢ (nᵢ/N)² sᵢ²/nᵢ estimates the variance of the pooled mean, V*, with sᵢ²(nᵢ-1)/nᵢ for
        sᵢ², is what the bootstrap sees of it, ν are Satterthwaite's degrees of freedom. For one stratum
        V/V* = n/(n-1) and ν = n - 1, and the mean of normal runs gets about Student's interval.
    student
        x̄ ± t_{ν, 1-α/2} √V: for `statistic=mean` only, needs no resampling.

    Measured coverage of nominal 95 % on normal and exponential runs (20,000 samples each, standard error at most 0.3 %;
    the tests repeat it for 5 and 10 runs)::

                              5 runs         10 runs        20 runs
                            norm.  exp.    norm.  exp.    norm.  exp.
        mean, student       0.953  0.883   0.949  0.901   0.950  0.919
        mean, expanded      0.922  0.868   0.943  0.909   0.948  0.926
        mean, percentile    0.838  0.784   0.900  0.863   0.927  0.905
        median, expanded    0.940  0.939   0.964  0.964   0.960  0.955
        median, percentile  0.940  0.939   0.938  0.938   0.938  0.936
        IQM, expanded       0.940  0.937   0.969  0.971   0.961  0.958
        IQM, percentile     0.909  0.905   0.931  0.936   0.941  0.939

    With few runs the percentile interval is too short, most of all for a mean, and BCa and the basic interval do not
    help: in 1,500 samples of 5 runs BCa covered the mean in 0.86 (normal) and 0.80 (exponential), the basic interval
    in 0.85 and 0.75, and the median in 0.78 and 0.71. Hence "expanded" by default, which errs on the long side from 10
    runs on, and "student" for means. Nothing here repairs the mean of few skewed runs. No bootstrap leaves the range of
    the data, so with n runs no such interval covers a median more often than 1 - 2^(1-n): 0.75 for 3 runs.

    Examples
    --------
    >>> print(bootstrap_interval([1.0, 2.0, 3.0, 4.0], mean, method="student"))
    2.5 [0.4457, 4.554] (95 %)
    """
    parts = _strata(strata)
    check_interval(confidence, resamples, seed)
    if method not in get_args(Method):
        raise InvalidArgumentError("method", method, f"one of {', '.join(get_args(Method))}")
    if method == "student" and statistic is not mean:
        raise InvalidArgumentError(
            "method",
            method,
            hint="use 'expanded' for any other statistic",
            problem="method 'student' is for statistic=mean",
        )
    estimate = _one_number(statistic, np.concatenate(parts))
    if math.isnan(estimate) or min(p.size for p in parts) < 2:
        return Interval(estimate, math.nan, math.nan, confidence)
    error, scale, t = _pooled_error(parts, confidence)
    if error == 0.0:  # constant within every stratum: every resample is the sample
        return Interval(estimate, estimate, estimate, confidence)
    if method == "student":
        return Interval(estimate, estimate - t * error, estimate + t * error, confidence)
    tail = (1.0 - confidence) / 2 if method == "percentile" else float(special.ndtr(-scale * t))
    low, high = np.quantile(_replicates(parts, statistic, resamples, seed), [tail, 1.0 - tail])
    return Interval(estimate, float(low), float(high), confidence)


def _pooled_error(parts: Sequence[Floats], confidence: float) -> tuple[float, float, float]:
    """(√V, √(V/V*), t_{ν, 1-α/2}) of `bootstrap_interval`; √V is 0 if no stratum varies."""
    n = np.array([p.size for p in parts], dtype=np.float64)
    spread = np.array([0.0 if p[0] == p[-1] else p.var(ddof=1) for p in parts])  # the parts are sorted
    v = n * spread / n.sum() ** 2
    total = float(v.sum())
    if total == 0.0:
        return 0.0, 1.0, math.nan
    share = v / total  # first, so that no square underflows
    nu = 1.0 / float(np.sum(share**2 / (n - 1)))
    seen = float(np.sum(share * (n - 1) / n))
    return math.sqrt(total), 1.0 / math.sqrt(seen), float(special.stdtrit(nu, (1.0 + confidence) / 2))


def _replicates(parts: Sequence[Floats], statistic: Statistic, resamples: int, seed: int) -> Floats:
    """(resamples,) values of the statistic, each of runs drawn with replacement within every stratum."""
    rng = np.random.default_rng(seed)
    found = np.empty(resamples)
    step = max(1, RESAMPLED_AT_ONCE // sum(p.size for p in parts))
    for start in range(0, resamples, step):
        b = min(step, resamples - start)
        drawn = np.concatenate([p[rng.integers(p.size, size=(b, p.size))] for p in parts], axis=1)  # (b, N)
        values = np.asarray(statistic(drawn.T))  # runs on axis 0, and contiguous
        if values.shape != (b,):
            raise InvalidArgumentError(
                "statistic",
                statistic,
                f"{(b,)}: one value per column",
                problem=f"the statistic made shape {values.shape} from {drawn.T.shape}",
            )
        found[start : start + b] = values
    return found


def _strata(strata: Any) -> list[Floats]:
    """One sorted array per stratum, so that the order of the runs does not matter."""
    if isinstance(strata, Mapping):
        raise InvalidArgumentError(
            "strata", strata, "(n,), or a sequence of arrays: list(strata.values())", problem="strata are a mapping"
        )
    if getattr(strata, "ndim", 1) > 1:
        raise InvalidArgumentError(
            "strata",
            strata.shape,
            "(n,), or a sequence of arrays, one per stratum: list(array)",
            problem=f"strata have shape {strata.shape}",
        )
    nested = isinstance(strata, (list, tuple)) and any(np.ndim(s) > 0 for s in strata)
    parts = []
    for i, stratum in enumerate(strata if nested else [strata]):
        name = f"the runs of stratum {i}" if nested else "runs"
        runs = as_runs(stratum, name)
        if runs.ndim != 1:
            raise InvalidArgumentError(
                name, runs.shape, "(n,), one value per run", problem=f"{name} have shape {runs.shape}"
            )
        parts.append(np.sort(runs))
    return parts


def _one_number(statistic: Statistic, values: Floats) -> float:
    found = np.asarray(statistic(values[:, None]))
    if found.shape != (1,):
        raise InvalidArgumentError(
            "statistic",
            statistic,
            "(1,): it works along axis 0",
            problem=f"the statistic made shape {found.shape} from {(values.size, 1)}",
        )
    return float(found[0])
