r"""How many sweeps value iteration needs, estimated from the graph of a chain before its bracket narrows.

While news of rewards has not spread over all states, the bracket narrows like a power of the sweeps, and its rate says
nothing about the end. Where likely moves lead to near states only (a ring, a river, a grid), the distance d(s) from one
end is a coordinate in which the chain is a walk. With L its largest value, V its variance over the states (L²/12 where
they are spread evenly), σ² the mean variance of a step in d, and μ the mean step where steps have one direction, a walk
on an interval or a ring relaxes at the rate

    γ = σ²π² / (24V) + μ² / (2σ²)

(the least eigenvalue of a diffusion between reflecting ends, or on a ring of 2L states; Levin & Peres 2017, ch. 12),
after news has travelled for L/|μ| sweeps. Rare far moves are part of σ². A bracket of width w thus needs about
L/|μ| + ln(w / target) / γ sweeps. Parts of the process that only rare moves connect relax at the rate at which the most
secluded of them is left, if that is slower. All of this is an order of magnitude.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gainful.mdp.model import MDP
from gainful.planning.distances import moves_from
from gainful.planning.evaluation import chain_of

LIKELY = 0.01
"""Moves of at least this probability make states near to each other."""
LEAST_DISTANCE = 50
"""Below this largest distance the bracket itself soon shows the rate."""
NEAR_SHARE = 0.01
"""The fraction of states within a quarter of the largest distance that a walk has, at least; where a few moves lead to
many states, it is far less, and distances say nothing."""
GRAPH_UP_TO = 20_000_000
"""Transitions up to which the graph is looked at: that takes about a second for ten million of them."""
ONE_DIRECTION = 0.5
"""The mean step, as a fraction of the mean size of steps, from which they have one direction."""


class Relaxation(NamedTuple):
    """How fast a chain forgets where it was, and why not faster."""

    distance: int
    """L, in likely moves; 0 if rare moves between parts are what takes long."""
    rate: float
    """γ, per sweep."""
    travel: float
    """Sweeps that news takes from one end to the other where steps have one direction, or 0."""

    def sweeps(self, width: float, target: float) -> float:
        """The sweeps in which a bracket narrows to `target`."""
        return self.travel + max(0.0, math.log(width) - math.log(target)) / self.rate

    @property
    def reason(self) -> str:
        """What takes long, in words."""
        if self.distance:
            return f"news of a reward spreads at random over up to {self.distance:,} moves"
        return f"parts of the process are left by rare moves only, once in {1.0 / self.rate:.0e} steps"


def relaxation(mdp: MDP, actions: NDArray[np.int64], damping: float) -> Relaxation | None:
    """The estimate for the chain of a policy under damped sweeps; None where its graph says nothing, or is too large.

    Examples
    --------
    >>> import gainful as gf
    >>> n = 1000
    >>> ring = gf.MDP.from_rows(np.arange(n + 1), (np.arange(n) + 1) % n, np.ones(n), np.eye(1, n).T)
    >>> found = relaxation(ring, np.zeros(n, dtype=np.int64), 0.97)
    >>> found.distance, f"{found.sweeps(1.0, 1e-8):.0e}"
    (500, '3e+07')
    >>> rarely_left = gf.MDP([[[0.5, 0.5, 0]], [[0.5, 0.5, 0]], [[1e-6, 0, 1 - 1e-6]]], np.eye(1, 3).T)
    >>> relaxation(rarely_left, np.zeros(3, dtype=np.int64), 0.97).reason
    'parts of the process are left by rare moves only, once in 1e+06 steps'
    """
    if mdp.n_transitions > GRAPH_UP_TO:
        return None
    chain, _ = chain_of(mdp, actions)
    likely = sp.csr_array(chain >= LIKELY)
    n_parts, part = connected_components(likely, directed=False)
    walk = _walk(chain, likely, int(np.argmax(part == np.bincount(part).argmax())), damping)
    leaving = _least_leaving(chain, n_parts, part) * damping
    if 0.0 < leaving < (1.0 if walk is None else walk.rate):
        return Relaxation(0, leaving, 0.0)
    return walk


def _least_leaving(chain: sp.csr_array, n_parts: int, part: NDArray[Any]) -> float:
    """The least positive probability of leaving a part, on average over its states; 0 if none is left."""
    states = np.repeat(np.arange(part.size), np.diff(chain.indptr))
    outside = part[states] != part[chain.indices]
    leaving = np.bincount(part[states[outside]], chain.data[outside], n_parts) / np.bincount(part, minlength=n_parts)
    return float(leaving[leaving > 0.0].min(initial=np.inf)) if outside.any() else 0.0


def _walk(chain: sp.csr_array, likely: sp.csr_array, start: int, damping: float) -> Relaxation | None:
    """The walk in d among the states that likely moves connect with `start`; None where it is not one."""
    moves = _distances(likely, start)
    inside = moves >= 0
    longest = int(moves.max())
    if longest < LEAST_DISTANCE or np.count_nonzero(moves[inside] <= longest / 4) < NEAR_SHARE * inside.sum():
        return None
    drift, variance = (found[inside] for found in _steps(chain, moves, damping))
    spread, mean, size = float(variance.mean()), float(drift.mean()), float(np.abs(drift).mean())
    if not spread > 0.0:
        return None
    rate, travel = spread * math.pi**2 / (24.0 * float(moves[inside].var())), 0.0
    if abs(mean) > ONE_DIRECTION * size:
        rate += mean**2 / (2.0 * spread)
        travel = longest / abs(mean)
    return Relaxation(longest, min(rate, 1.0), travel)


def _distances(likely: sp.csr_array, start: int) -> NDArray[np.int64]:
    """Likely moves, in either direction, from a state as far from `start` as any; -1 in other parts."""
    both = sp.csr_array(likely + likely.T)
    return moves_from(both, int(moves_from(both, start).argmax()))


def _steps(
    chain: sp.csr_array, moves: NDArray[np.int64], damping: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of a damped step in d, from each state; steps to other parts count as staying."""
    states = np.repeat(np.arange(moves.size), np.diff(chain.indptr))
    there = moves[chain.indices]
    step = np.where(there >= 0, there - moves[states], 0).astype(np.float64)
    weight = damping * np.asarray(chain.data, dtype=np.float64)
    mean = np.bincount(states, weight * step, moves.size).astype(np.float64)
    square = np.bincount(states, weight * step**2, moves.size)
    return mean, np.maximum(square - mean**2, 0.0).astype(np.float64)
