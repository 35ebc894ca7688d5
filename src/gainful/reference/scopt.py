"""ScOpt (Fruit, Pirotta, Lazaric & Ortner 2018) on dense arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def dense_scopt(
    p: Array, r: Array, c: float, epsilon: float, v: Array | None = None, theta: float = 1.0
) -> tuple[Array, NDArray[np.int64], tuple[float, float]]:
    """Iterate T_c v = min{Lv, min Lv + c}, relative to state 0, until sp(T_c v - v) ≤ ε.

    Parameters
    ----------
    p : ndarray, shape (S, A, S)
        p(s'|s,a).
    r : ndarray, shape (S, A)
        r(s,a) ≥ 0; -inf if a state does not have an action.
    c : float
        The bound on the span of v.
    epsilon : float
        ε, the precision.
    v : ndarray, shape (S,), optional
        Where to start; 0 by default.
    theta : float
        θ of v ← (1-θ)v + θT_c v; 1 is ScOpt's.

    Returns
    -------
    v : ndarray, shape (S,)
        The last vector, of span at most c.
    pi : ndarray of int, shape (S,)
        The greedy actions at v.
    bounds : tuple of float
        The least and the largest of T_c v - v: the gain of T_c lies between them.

    Examples
    --------
    >>> p = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> v, pi, (low, high) = dense_scopt(p, np.array([[0.0, 1.0], [0.0, 3.0]]), c=1.0, epsilon=1e-9)
    >>> v, pi, round(low, 6)
    (array([0., 1.]), array([1, 1]), 1.5)
    """
    v = np.zeros(len(r)) if v is None else np.minimum(v, v.min() + c)
    while True:
        q = r + p @ v
        Lv = q.max(axis=1)
        Tv = np.minimum(Lv, Lv.min() + c)
        if np.ptp(Tv - v) <= epsilon:
            return v, q.argmax(axis=1), (float((Tv - v).min()), float((Tv - v).max()))
        Tv = Tv if theta == 1.0 else (1 - theta) * v + theta * Tv
        v = Tv - Tv[0]
