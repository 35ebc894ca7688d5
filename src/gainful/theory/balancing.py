"""Balanced KL-SCAL+ in NumPy: what play proves about the gain, and whose turn it is.

Everything is in units of r_max; base i has c_i = 2^i. Source: docs/unknown_span.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def balanced_proven_gain(
    steps: ArrayLike, rewards: ArrayLike, segments: ArrayLike, *, span: float, delta: float
) -> float:
    """The largest lower bound on g* that some base proves if sp(h*) ≤ span.

    [X_j - c·m_j - (1 + c)·sqrt(n_j/2 · ln(n_j(n_j+1)(j+1)(j+2)/δ))]/n_j, over the bases j that have played.

    Parameters
    ----------
    steps, rewards, segments : array_like, shape (k,)
        n_j, X_j and m_j of each base.
    span : float
        c.
    delta : float
        δ.

    Returns
    -------
    float
        The bound, in units of r_max; -inf if nobody has played.

    Examples
    --------
    >>> round(balanced_proven_gain([10_000, 0], [5_000.0, 0.0], [3, 0], span=1.0, delta=0.05), 6)
    0.433202
    """
    n, X, m = (np.asarray(x, dtype=np.float64) for x in (steps, rewards, segments))
    j = np.arange(n.size, dtype=np.float64)
    played = n > 0
    n, X, m, j = n[played], X[played], m[played], j[played]
    level = np.log(n * (n + 1.0) * (j + 1.0) * (j + 2.0) / delta)
    found = (X - span * m - (1.0 + span) * np.sqrt(n / 2.0 * level)) / n
    return float(found.max(initial=-np.inf))


def balanced_deviation(steps: ArrayLike, *, span: float, delta: float) -> Floats:
    """How far rewards may be from what steps are worth: w_j = (1 + c)·sqrt(½(n_j+1)·ln(sqrt(n_j+1)·(j+1)(j+2)/δ)).

    By lemma 8 of docs/kl_scal_plus.md the deviations of all j stay below w_j, on both sides and at all times, with
    probability 1-δ.

    Parameters
    ----------
    steps : array_like, shape (k,)
        n_j of each grid.
    span : float
        c, in units of r_max.
    delta : float
        δ.

    Returns
    -------
    ndarray of shape (k,)
        In units of r_max.

    Examples
    --------
    >>> balanced_deviation([10_000, 10_000], span=1.0, delta=0.05).round(1)
    array([407.3, 433.4])
    """
    n = np.asarray(steps, dtype=np.float64)
    j = np.arange(n.size, dtype=np.float64)
    level = np.log(np.sqrt(n + 1.0) * (j + 1.0) * (j + 2.0) / delta)
    return np.asarray((1.0 + span) * np.sqrt(0.5 * (n + 1.0) * level))


def balanced_choice(steps: ArrayLike, active: ArrayLike) -> int:
    """The active base with the least 2^i·n_i, ties to the smallest.

    Parameters
    ----------
    steps : array_like of int, shape (k,)
        n_i of each base.
    active : array_like of bool, shape (k,)
        The bases that were not given up.

    Returns
    -------
    int
        The base.

    Examples
    --------
    >>> balanced_choice([100, 40, 30], [True, True, True])
    1
    """
    n = np.asarray(steps, dtype=np.float64)
    weight = np.where(active, n * 2.0 ** np.arange(n.size), np.inf)
    return int(weight.argmin())


def balanced_bases(t: int, n_pairs: int) -> int:
    """How many bases are in use at step t: base i from step 2^i·S·A on, base 0 from the first.

    Parameters
    ----------
    t : int
        The step, from 1.
    n_pairs : int
        S·A.

    Returns
    -------
    int
        Their number, at least 1.

    Examples
    --------
    >>> [balanced_bases(t, 12) for t in (1, 24, 47, 48)]
    [1, 2, 2, 3]
    """
    return 1 + int(np.sum(2.0 ** np.arange(1, 60) * n_pairs <= t))
