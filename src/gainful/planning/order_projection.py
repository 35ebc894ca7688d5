"""Projection onto the vectors whose differences are bounded, and a bound on optimism: what PMEVI adds to a sweep.

(Γu)(s) = min_{s'} [u(s') + d⁺(s,s')] is the largest vector below u with u(s) - u(s') ≤ d(s,s') for all pairs, d⁺ the
min-plus closure of d. Γ is monotone and commutes with constants; d ≡ c gives min{u, min u + c}, the cut of ScOpt.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.planning.rounding import UNIT_ROUNDOFF

CYCLE_TOLERANCE = 1e-12
"""A cycle this far below 0, in parts of the largest difference, is rounding."""


class BiasConstraint(NamedTuple):
    """What is known about the optimal bias when a plan is made."""

    differences: Any
    """(S, S) d⁺(s,s') ≥ h*(s) - h*(s'), closed: 0 on the diagonal, d⁺(s,s') ≤ d⁺(s,x) + d⁺(x,s')."""
    indptr: Any
    indices: Any
    probabilities: Any
    """p̄ as CSR over pairs."""
    mitigation: Any
    """(S*A,) β(s,a): the value of a pair is at most r̃ + p̄·v + β. inf where nothing is known."""

    def scaled(self, factor: float) -> BiasConstraint:
        """The constraint in another unit of reward."""
        return self._replace(differences=self.differences * factor, mitigation=self.mitigation * factor)


@kernel
def close_kernel(d: Any) -> float:
    """Floyd and Warshall's closure of d in place; returns the least number on the diagonal before it is set to 0."""
    n = d.shape[0]
    for x in range(n):
        for s in range(n):
            through = d[s, x]
            for y in range(n):
                d[s, y] = min(d[s, y], through + d[x, y])
    least = 0.0
    for s in range(n):
        least = min(least, d[s, s])
        d[s, s] = 0.0
    return least


def closed_differences(d: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The min-plus closure d⁺ of bounds d(s,s') on u(s) - u(s'); None if no vector satisfies them.

    >>> d = np.array([[0.0, 1.0, 9.0], [9.0, 0.0, 2.0], [9.0, 9.0, 0.0]])
    >>> closed_differences(d).tolist()
    [[0.0, 1.0, 3.0], [9.0, 0.0, 2.0], [9.0, 9.0, 0.0]]
    """
    found = np.array(d, dtype=np.float64)
    np.fill_diagonal(found, 0.0)
    least = float(close_kernel(found))
    largest = float(np.abs(found[np.isfinite(found)]).max(initial=0.0))
    return None if least < -CYCLE_TOLERANCE * largest else found


def order_projection(u: NDArray[np.float64], closed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Γu for a closed table of differences; u itself where it satisfies them.

    >>> apart = np.array([[0.0, 2.0, 2.0], [2.0, 0.0, 2.0], [2.0, 2.0, 0.0]])
    >>> order_projection(np.array([0.0, 5.0, 1.0]), apart).tolist()
    [0.0, 2.0, 1.0]
    """
    found = np.array(u, dtype=np.float64)
    project_onto(found, closed, np.empty_like(found))
    return found


@kernel
def project_onto(u: Any, d: Any, space: Any) -> None:
    """Write Γu into u."""
    for s in range(u.size):
        least = u[s]
        for y in range(u.size):
            least = min(least, u[y] + d[s, y])
        space[s] = least
    for s in range(u.size):
        u[s] = space[s]


@inlined
def mitigated(within: BiasConstraint, rewards: Any, v: Any, k: int) -> float:
    """r̃ + p̄·v + β of pair k, from above; inf where β is."""
    worth: float = within.mitigation[k]
    if worth < np.inf:
        total, size = 0.0, 0.0
        first, end = within.indptr[k], within.indptr[k + 1]
        for j in range(first, end):
            term = within.probabilities[j] * v[within.indices[j]]
            total += term
            size += abs(term)
        rounding = (end - first + 4) * UNIT_ROUNDOFF * (size + abs(rewards[k]) + worth)
        worth = rewards[k] + (total + worth) + rounding
    return worth
