"""The equations of count-based bonuses: β/√N̂, and the pseudo-counts N̂ of hash codes and of a density model.

Pseudo-counts of a density model are computed in whole numbers, without rounding, and divided once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def pseudo_count_bonus(counts: ArrayLike, beta: float) -> Floats:
    """The bonus of deep reinforcement learning: β/sqrt(max{1, N̂}).

    Bellemare et al. 2016, section 4; Tang et al. 2017, equation 1.

    Parameters
    ----------
    counts : array_like
        N̂, the counts or pseudo-counts of each pair.
    beta : float
        β, in units of the reward.

    Returns
    -------
    ndarray
        The bonus of each pair.

    Examples
    --------
    >>> pseudo_count_bonus([0, 0.5, 4], 2.0).tolist()
    [2.0, 2.0, 1.0]
    """
    return np.asarray(beta * np.maximum(1.0, np.asarray(counts, dtype=np.float64)) ** -0.5)


def hashed_counts(visits: ArrayLike, codes: ArrayLike) -> Floats:
    """The pseudo-counts of hash codes: the visits of all states with the same code, action by action.

    Tang et al. 2017, section 2.2.

    Parameters
    ----------
    visits : array_like of int, shape (S, A)
        N(s,a).
    codes : array_like of int, shape (S,)
        The code of each state.

    Returns
    -------
    ndarray of shape (S, A)
        N̂(s,a).

    Examples
    --------
    >>> hashed_counts([[5, 0], [1, 2], [7, 7]], [0, 0, 1]).tolist()
    [[6.0, 2.0], [6.0, 2.0], [7.0, 7.0]]
    """
    N = np.asarray(visits, dtype=np.float64)
    code = np.unique(np.asarray(codes), return_inverse=True)[1]
    return np.stack([np.bincount(code, column)[code] for column in N.T], axis=1)


def density_counts(visits: ArrayLike, features: ArrayLike) -> Floats:
    """The pseudo-counts of a density model that is a product over features: N̂ = ρ·(1-ρ′)/(ρ′-ρ).

    Bellemare et al. 2016, equation 2, with ρ(s|a) = Π_i n_i/n and ρ′(s|a) = Π_i (n_i + 1)/(n + 1): n visits of a, n_i
    of them in states with feature i of s. Multiplied by (n·(n+1))^d, numerator and denominator are whole numbers.

    Parameters
    ----------
    visits : array_like of int, shape (S, A)
        N(s,a).
    features : array_like, shape (S, d)
        What describes each state; only which values of a feature are equal matters.

    Returns
    -------
    ndarray of shape (S, A)
        N̂(s,a): 0 if a feature of s was never seen with a, and n if nothing else was.

    Examples
    --------
    >>> density_counts([[4], [4], [4], [0]], [[0, 0], [0, 1], [1, 0], [1, 1]]).round(2).tolist()
    [[6.64], [3.7], [3.7], [2.57]]
    """
    N, x = np.asarray(visits), np.asarray(features)
    by_feature = np.stack([hashed_counts(N, column) for column in x.T])  # n_i
    found = np.zeros(N.shape)
    d = len(by_feature)
    for s, a in np.ndindex(*N.shape):
        n = int(N[:, a].sum())
        before, after = 1, 1  # n^d·ρ and (n+1)^d·ρ′
        for n_i in map(int, by_feature[:, s, a]):
            before, after = before * n_i, after * (n_i + 1)
        difference = after * n**d - before * (n + 1) ** d
        if before > 0:
            found[s, a] = before * ((n + 1) ** d - after) / difference if difference > 0 else n
    return found
