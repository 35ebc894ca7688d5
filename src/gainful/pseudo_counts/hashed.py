"""Counts of hash codes: states with the same code are counted as one (Tang et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.arguments import number_of
from gainful.errors import InvalidArgumentError
from gainful.pseudo_counts.features import checked_features

MOST_BITS = 62
"""A code is one 64-bit integer."""


class HashedCounts:
    r"""Pseudo-counts N̂(s,a) = Σ N(s',a) over the states s' with the code of s (Tang et al., NIPS 2017).

    Give it the codes that your own hash or encoder finds, or let `simhash` compute them from features. States of one
    code share their visits, so N̂ ≥ N: what was seen in one of them counts as seen in all.

    Parameters
    ----------
    codes : array_like of int, shape (S,)
        The code of each state; only which of them are equal matters.

    Examples
    --------
    >>> import gainful as gf, numpy as np
    >>> counts = gf.HashedCounts([0, 0, 1])
    >>> counts.table(np.array([[5, 0], [1, 2], [7, 7]])).tolist()
    [[6.0, 2.0], [6.0, 2.0], [7.0, 7.0]]
    """

    def __init__(self, codes: ArrayLike) -> None:
        given = np.asarray(codes)
        if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
            problem = f"codes have shape {given.shape} and type {given.dtype}"
            raise InvalidArgumentError("codes", codes, "one integer for each state", problem=problem)
        self.codes: NDArray[np.int64] = np.unique(given, return_inverse=True)[1].astype(np.int64)
        """(S,) from 0 on, in the order of the codes given."""
        self.codes.flags.writeable = False

    @classmethod
    def simhash(cls, features: ArrayLike, bits: int, seed: int = 0) -> Self:
        r"""Codes by SimHash: on which sides of random hyperplanes the features of a state lie (Charikar 2002).

        The code of s is sgn(A·g(s)), where g(s) are the features, each scaled to [-1, 1], and a 1, and the entries of
        A are standard normal. States with similar features mostly share a code, the more bits the more rarely.

        Parameters
        ----------
        features : array_like of float, shape (S, d)
            What describes each state: coordinates, pixels, the output of an encoder.
        bits : int
            The number of hyperplanes, 1 to 62.
        seed : int
            The seed of A.

        Returns
        -------
        HashedCounts

        Examples
        --------
        >>> import gainful as gf
        >>> gf.HashedCounts.simhash([[0.0], [1.0], [2.0], [3.0]], bits=4, seed=1).codes.tolist()
        [0, 1, 1, 1]
        """
        table = checked_features(features)
        bits = number_of("bits", "bits", bits)
        if bits > MOST_BITS:
            raise InvalidArgumentError("bits", bits, f"at most {MOST_BITS}")
        low, high = table.min(axis=0), table.max(axis=0)
        scaled = 2.0 * (table - low) / np.where(high > low, high - low, 1.0) - 1.0
        scaled = np.column_stack([scaled, np.ones(len(scaled))])
        rng = np.random.default_rng(number_of("seeds", "seed", seed, at_least=0))
        codes = np.zeros(len(scaled), dtype=np.int64)
        for plane in rng.standard_normal((bits, scaled.shape[1])):
            codes = 2 * codes + ((scaled * plane).sum(axis=1) > 0.0)
        return cls(codes)

    @classmethod
    def modulo(cls, n_states: int, buckets: int) -> Self:
        """Codes s modulo k: a hash that mixes states which have nothing in common.

        Parameters
        ----------
        n_states : int
            The number of states S.
        buckets : int
            k.

        Returns
        -------
        HashedCounts

        Examples
        --------
        >>> import gainful as gf
        >>> gf.HashedCounts.modulo(5, 3).codes.tolist()
        [0, 1, 2, 0, 1]
        """
        return cls(np.arange(number_of("states", "n_states", n_states)) % number_of("buckets", "buckets", buckets))

    @property
    def n_states(self) -> int:
        """The number of states S."""
        return int(self.codes.size)

    @property
    def n_codes(self) -> int:
        """How many different codes there are."""
        return int(self.codes.max()) + 1

    def table(self, visits: NDArray[np.int64]) -> NDArray[np.float64]:
        """Pseudo-counts from exact ones.

        Parameters
        ----------
        visits : ndarray of int64, shape (S, A)
            N(s,a).

        Returns
        -------
        ndarray of float64, shape (S, A)
            N̂(s,a).
        """
        sums = np.zeros((self.n_codes, visits.shape[1]))
        np.add.at(sums, self.codes, visits)
        return np.asarray(sums[self.codes])

    def settings(self) -> dict[str, Any]:
        """Plain JSON values from which the same counts are made again.

        Returns
        -------
        dict
            With the key "codes".
        """
        return {"codes": self.codes.tolist()}

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Make the counts again that `settings` describes.

        Parameters
        ----------
        settings : mapping
            With the key "codes".

        Returns
        -------
        HashedCounts
        """
        return cls(settings["codes"])
