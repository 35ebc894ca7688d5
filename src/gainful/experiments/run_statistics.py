"""Statistics over runs: averages, bands and intervals, paired comparisons, growth exponents.

Everywhere axis 0 is the runs. NaN means unknown (a regret whose optimal gain is unknown): it makes what depends on
it NaN, and is never silently dropped; infinite values are rejected. Every function is deterministic given `seed`, and
no result depends on the order of the runs beyond rounding.

Sources: Agarwal et al. (2021), Deep Reinforcement Learning at the Edge of the Statistical Precipice, for the
interquartile mean, the stratified bootstrap and the probability of improvement; Hesterberg (2015), What Teachers Should
Know About the Bootstrap, The American Statistician 69(4), for the expanded percentile interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from gainful.errors import InvalidArgumentError

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Any]
Method = Literal["expanded", "percentile", "student"]

CHUNK = 1 << 20  # values resampled at once: 8 MB


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
    step = max(1, CHUNK // sum(p.size for p in parts))
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


# ---------------------------------------------------------------------- pairs


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


# ---------------------------------------------------------------------- growth


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
    step = max(1, CHUNK // n)
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


# ---------------------------------------------------------------------- input


def as_runs(values: Any, name: str = "runs") -> Floats:
    """The values as float64, runs on axis 0: at least one, and none infinite."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiu" and array.size:
        raise InvalidArgumentError(
            name, values, "(n, ...)", problem=f"{name} are {type(values).__name__} of unequal lengths or not numbers"
        )
    if array.ndim == 0 or len(array) == 0:
        raise InvalidArgumentError(
            name, array.shape, "(n, ...) with at least one run", problem=f"{name} have shape {array.shape}"
        )
    array = array.astype(np.float64, copy=False)
    if np.isinf(array).any():
        raise InvalidArgumentError(name, values, "finite numbers or NaN", problem=f"{name} have infinite values")
    return array


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


def check_confidence(confidence: float) -> None:
    """Raise InvalidArgumentError unless 0 < confidence < 1."""
    if not (isinstance(confidence, Real) and 0.0 < confidence < 1.0):
        raise InvalidArgumentError("confidence", confidence, "a number between 0 and 1")


def check_interval(confidence: float, resamples: int, seed: int) -> None:
    """Raise InvalidArgumentError unless these can make an interval."""
    check_confidence(confidence)
    for name, number, least in (("resamples", resamples, 1), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
            raise InvalidArgumentError(name, number, f"an integer of at least {least}")


def format_number(x: float) -> str:
    """A number with four digits, or with thousands separators if it is large."""
    if math.isnan(x):
        return "unknown"
    return f"{x:,.0f}" if 1e4 <= abs(x) < 1e15 else f"{x:.4g}"


def format_level(confidence: float) -> str:
    """A confidence in percent."""
    return f"{100 * confidence:.4g} %"


def format_ends(low: float, high: float) -> str:
    """The ends of an interval in brackets."""
    return "[no interval]" if math.isnan(low) or math.isnan(high) else f"[{format_number(low)}, {format_number(high)}]"
