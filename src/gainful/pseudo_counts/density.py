"""Pseudo-counts from a density model of states (Bellemare et al. 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.pseudo_counts.features import checked_features


class DensityCounts:
    r"""Pseudo-counts N̂ = ρ(1-ρ′)/(ρ′-ρ) of a factored density model (Bellemare et al., NIPS 2016, eq. 2).

    ρ(s|a) is the probability that a density model of the states in which a was taken gives to s, and ρ′(s|a) the
    one that it would give after seeing s once more. The model is the product over features of their frequencies,
    ρ(s|a) = Π_i n_i(x_i(s),a)/n(a), ρ′(s|a) = Π_i (n_i(x_i(s),a) + 1)/(n(a) + 1). With one feature that tells all
    states apart N̂ = N. With several, a state that was never seen has N̂ > 0 if each of its features was.

    Parameters
    ----------
    features : array_like of float, shape (S, d)
        What describes each state; only which values of a feature are equal matters.

    Examples
    --------
    A grid of two rows and two columns of which three cells were seen four times each, and the last never:

    >>> import gainful as gf, numpy as np
    >>> counts = gf.DensityCounts([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> counts.table(np.array([[4], [4], [4], [0]])).round(2).tolist()
    [[6.64], [3.7], [3.7], [2.57]]
    """

    def __init__(self, features: ArrayLike) -> None:
        table = checked_features(features)
        columns = [np.unique(column, return_inverse=True)[1] for column in table.T]
        self.features: NDArray[np.int64] = np.stack(columns, axis=1).astype(np.int64)
        """(S,d) the values of each feature, numbered from 0."""
        self.features.flags.writeable = False

    @property
    def n_states(self) -> int:
        """The number of states S."""
        return int(self.features.shape[0])

    def table(self, visits: NDArray[np.int64]) -> NDArray[np.float64]:
        """Pseudo-counts from exact ones.

        Parameters
        ----------
        visits : ndarray of int64, shape (S, A)
            N(s,a).

        Returns
        -------
        ndarray of float64, shape (S, A)
            N̂(s,a); 0 for an action that was never taken, and for a state with a feature that was never seen.
        """
        n = visits.sum(axis=0, dtype=np.float64)  # (A,)
        seen = np.ones(visits.shape, dtype=bool)
        log_ratio, log_after = np.zeros(visits.shape), np.zeros(visits.shape)  # of ρ′/ρ, and of ρ′
        for column in self.features.T:
            sums = np.zeros((int(column.max()) + 1, visits.shape[1]))
            np.add.at(sums, column, visits)
            m = sums[column]  # n_i(x_i(s),a)
            seen &= m > 0.0
            log_ratio += np.log1p(1.0 / np.maximum(m, 1.0)) - np.log1p(1.0 / np.maximum(n, 1.0))
            log_after += np.log1p((m - n) / (n + 1.0))
        known = seen & (log_ratio > 0.0)
        counts = np.where(seen, n, 0.0)  # if nothing but s was ever seen, ρ = ρ′ = 1: every visit of a counts
        counts[known] = -np.expm1(log_after[known]) / np.expm1(log_ratio[known])
        return counts

    def settings(self) -> dict[str, Any]:
        """Plain JSON values from which the same counts are made again.

        Returns
        -------
        dict
            With the key "features".
        """
        return {"features": self.features.tolist()}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Make the counts again that `settings` describes.

        Parameters
        ----------
        settings : mapping
            With the key "features".

        Returns
        -------
        DensityCounts
        """
        return cls(settings["features"])
