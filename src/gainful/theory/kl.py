"""The Kullback-Leibler quantities of KL-SCAL+, written from their definitions in `docs/kl_scal_plus.md`.

They are slow and plain: bisection on one variable. The agents compute the same numbers in compiled code.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
HALVINGS = 60


def kl_scal_plus_radius(visits: ArrayLike, n_states: int, delta: float) -> Floats:
    """The radius of KL-SCAL+: ι_n/n with ι_n = ln(S(S+1)/δ) + ½ ln n + ln 2, infinite for n = 0.

    `docs/kl_scal_plus.md`, section 2.

    Parameters
    ----------
    visits : array_like
        n, the visits of each pair.
    n_states : int
        S.
    delta : float
        The probability with which optimism may fail.

    Returns
    -------
    ndarray
        The radius of each pair.

    Examples
    --------
    >>> kl_scal_plus_radius([0, 1, 100], 6, 0.05).round(4)
    array([   inf, 7.4265, 0.0973])
    """
    return _radius(visits, math.log(n_states * (n_states + 1)) - math.log(delta))


def c_kl_scal_plus_radius(visits: ArrayLike, n_cells: int, n_actions: int, delta: float) -> Floats:
    """The radius of C-KL-SCAL+: ι_n/n with ι_n = ln(2KA/δ) + ½ ln n + ln 2, infinite for n = 0.

    `docs/kl_scal_plus.md`, section 7.

    Parameters
    ----------
    visits : array_like
        n, the visits of each pair of a cell and an action.
    n_cells, n_actions : int
        K and A.
    delta : float
        The probability with which optimism may fail.

    Returns
    -------
    ndarray
        The radius of each pair.

    Examples
    --------
    >>> c_kl_scal_plus_radius([0, 1, 100], 6, 2, 0.05).round(4)
    array([   inf, 6.8669, 0.0917])
    """
    return _radius(visits, math.log(2 * n_cells * n_actions) - math.log(delta))


def _radius(visits: ArrayLike, log: float) -> Floats:
    n = np.asarray(visits, dtype=np.float64)
    some = np.maximum(n, 1.0)
    return np.where(n > 0, (log + 0.5 * np.log(some) + math.log(2.0)) / some, np.inf)


def binary_kl(x: ArrayLike, y: ArrayLike) -> Floats:
    """kl(x, y) = x ln(x/y) + (1-x) ln((1-x)/(1-y)), with 0 ln 0 = 0.

    Parameters
    ----------
    x, y : array_like
        Numbers in [0, 1].

    Returns
    -------
    ndarray
        The relative entropy of two coins.

    Examples
    --------
    >>> float(binary_kl(0.0, 0.5)) == math.log(2)
    True
    """
    a, b = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(a > 0.0, a * np.log(a / b), 0.0)
        second = np.where(a < 1.0, (1.0 - a) * np.log((1.0 - a) / (1.0 - b)), 0.0)
    return np.asarray(first + second)


def klup(mean: ArrayLike, radius: ArrayLike) -> Floats:
    """klup(x, ρ) = max{y : kl(x, y) ≤ ρ}, by bisection.

    Parameters
    ----------
    mean : array_like
        x in [0, 1].
    radius : array_like
        ρ ≥ 0, possibly infinite.

    Returns
    -------
    ndarray
        The largest such y, to within rounding.

    Examples
    --------
    >>> float(klup(0.0, math.log(2)))
    0.5
    """
    x, rho = np.broadcast_arrays(np.asarray(mean, dtype=np.float64), np.asarray(radius, dtype=np.float64))
    low, high = x.copy(), np.ones_like(x)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        inside = binary_kl(x, middle) <= rho
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.where(np.isinf(rho), 1.0, low)


def klup_by_variance(mean: ArrayLike, variance: ArrayLike, radius: ArrayLike) -> Floats:
    """The largest mean that is possible for numbers in [0, 1] with this mean and variance, at radius ρ, by bisection.

    It is max{y : kl(w, (y-a)/(1-a)) ≤ ρ} with a = x - V/(1-x) and w = (x-a)/(1-a): of all laws with mean x and variance
    V, the one on a and 1 has the least `kinf`. `docs/kl_scal_plus.md`, lemma 4a.

    Parameters
    ----------
    mean : array_like
        x in [0, 1].
    variance : array_like
        V, from 0 to x(1-x); with x(1-x) the result is klup(x, ρ).
    radius : array_like
        ρ ≥ 0, possibly infinite.

    Returns
    -------
    ndarray
        The largest such mean, to within rounding.

    Examples
    --------
    >>> klup_by_variance(0.5, [0.0, 0.01, 0.25], 0.02).round(4)
    array([0.5099, 0.5266, 0.599 ])
    """
    inputs = (np.asarray(one, dtype=np.float64) for one in (mean, variance, radius))
    x, spread, rho = np.broadcast_arrays(*inputs)
    below = np.where(x < 1.0, x, 0.0)
    point = np.where(x < 1.0, np.maximum(below - spread / (1.0 - below), 0.0), 0.0)
    low, high = x.copy(), np.ones_like(x)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        inside = binary_kl((x - point) / (1.0 - point), (middle - point) / (1.0 - point)) <= rho
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.where(np.isinf(rho), 1.0, low)


def kinf(row: ArrayLike, values: ArrayLike, level: float) -> float:
    """inf{KL(p‖q) : q·h ≥ μ}, with q any law on all states, by its dual.

    It is max over 0 ≤ λ ≤ 1 of Σ p ln(1 - λ(h - μ)/(M - μ)), M = max h; 0 if p·h ≥ μ, infinite if μ > M.
    Honda & Takemura 2010, An asymptotically optimal bandit algorithm for bounded support models.

    Parameters
    ----------
    row : array_like
        p, a law on the states.
    values : array_like
        h.
    level : float
        μ.

    Returns
    -------
    float
        The least divergence.

    Examples
    --------
    >>> round(kinf([0.5, 0.5], [0.0, 1.0], 0.75), 12) == round(float(binary_kl(0.5, 0.75)), 12)
    True
    """
    p, h = np.asarray(row, dtype=np.float64), np.asarray(values, dtype=np.float64)
    top = float(h.max())
    if p @ h >= level:
        return 0.0
    if level > top:
        return math.inf
    if level == top:
        return math.inf if np.any(h[p > 0.0] < top) else 0.0
    z, p = ((h - level) / (top - level))[p > 0.0], p[p > 0.0]
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        with np.errstate(divide="ignore"):
            rising = np.sum(p * -z / (1.0 - middle * z)) > 0.0
        low, high = (middle, high) if rising else (low, middle)
    return float(np.sum(p * np.log1p(-low * z)))


def klmax(row: ArrayLike, values: ArrayLike, radius: float) -> float:
    """klmax(p, v, ρ) = max{q·v : KL(p‖q) ≤ ρ}, with q any law on all states, by its dual.

    With h = max v - v it is max v + x - exp(Σ p ln(x + h) - ρ), where x ≥ 0 solves Σ p ln(x + h) + ln Σ p/(x + h) = ρ
    by bisection, or is 0 if the left side is at most ρ there: then q has mass on the best state and p has none.

    Parameters
    ----------
    row : array_like
        p, a law on the states.
    values : array_like
        v.
    radius : float
        ρ ≥ 0, possibly infinite.

    Returns
    -------
    float
        The maximum, to within rounding.

    Examples
    --------
    >>> round(klmax([1.0, 0.0], [0.0, 1.0], math.log(2)), 12)
    0.5
    """
    p, v = np.asarray(row, dtype=np.float64), np.asarray(values, dtype=np.float64)
    top, span = float(v.max()), float(np.ptp(v))
    if math.isinf(radius) or span == 0.0:
        return top
    if radius == 0.0:
        return float(p @ v)
    h, p = (top - v)[p > 0.0] / span, p[p > 0.0]

    def excess(x: float) -> float:
        return float(np.sum(p * np.log(x + h)) + math.log(np.sum(p / (x + h)))) - radius

    if h.min() > 0.0 and excess(0.0) <= 0.0:
        x = 0.0
    else:
        low, high = -50.0, 50.0  # ln x
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if excess(math.exp(middle)) > 0.0 else (low, middle)
        x = math.exp(high)
    # x - exp(Σ p ln(x + h) - ρ), without the difference of two large numbers
    inner = float(np.sum(p * np.log1p(h / x))) if x > 0.0 else 0.0
    gain = -x * math.expm1(inner - radius) if x > 0.0 else -math.exp(float(np.sum(p * np.log(h))) - radius)
    return top + span * gain
