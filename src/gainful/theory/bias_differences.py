r"""Bounds on differences of the optimal bias along a path, from the definitions: a second time, for the audit.

In units of r_max, with c ≥ sp(h*) and any g ≥ g*; see `docs/pmevi.md` for the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RATES_TRIED = 40


@dataclass
class WalkedPath:
    """A path, step by step: of every pair (s, s') the segments from a visit of s to the next visit of s'.

    Examples
    --------
    >>> path = WalkedPath(2)
    >>> for state, to in ((0, 0), (0, 1), (1, 0)):
    ...     path.walk(state, 0.5, to)
    >>> path.n.tolist(), path.length.tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [[0.0, 2.0], [1.0, 0.0]])
    """

    n_states: int
    steps: int = 0
    earned: float = 0.0
    pieces: int = 0
    at: int = -1
    n: Floats = field(init=False)
    """(S, S) complete segments."""
    cut: Floats = field(init=False)
    """(S, S) segments of at least one step that a break of the path cut short."""
    length: Floats = field(init=False)
    """(S, S) the steps of both."""
    rewards: Floats = field(init=False)
    """(S, S) their rewards."""

    def __post_init__(self) -> None:
        shape = (self.n_states, self.n_states)
        self.n, self.cut, self.length, self.rewards = (np.zeros(shape) for _ in range(4))
        self._open = np.zeros(shape, dtype=bool)
        self._open_length, self._open_rewards = np.zeros(shape), np.zeros(shape)

    def walk(self, state: int, reward: float, to: int) -> None:
        """Make one step.

        Parameters
        ----------
        state, to : int
            Where it begins and ends.
        reward : float
            What it earns, from 0, in units of r_max.
        """
        if state != self.at:
            self._cut()
            self.pieces += 1
        self._begin(state)
        self.steps, self.earned, self.at = self.steps + 1, self.earned + reward, to
        self._open_length[self._open] += 1.0
        self._open_rewards[self._open] += reward
        done = self._open[:, to].copy()
        self.n[done, to] += 1.0
        self.length[done, to] += self._open_length[done, to]
        self.rewards[done, to] += self._open_rewards[done, to]
        self._open[done, to] = False

    def _cut(self) -> None:
        self.cut += self._open & (self._open_length > 0.0)
        self.length += np.where(self._open, self._open_length, 0.0)
        self.rewards += np.where(self._open, self._open_rewards, 0.0)
        self._open[:] = False

    def _begin(self, state: int) -> None:
        new = ~self._open[state]
        new[state] = False
        self._open[state, new] = True
        self._open_length[state, new] = self._open_rewards[state, new] = 0.0

    @property
    def all_lengths(self) -> Floats:
        """(S, S) the steps of all segments, those under way included."""
        return self.length + np.where(self._open, self._open_length, 0.0)


def range_deviation(n: Floats, span: float, failure: float) -> Floats:
    """(c+1)·√(½(n+1)·ln(√(n+1)/δ')), which |Σ ξ| exceeds at no n with probability 1 - δ'.

    Parameters
    ----------
    n : ndarray
        The numbers of steps.
    span : float
        c.
    failure : float
        δ'.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> range_deviation(np.array([0.0]), 0.0, math.exp(-2.0)).tolist()
    [1.0]
    """
    return np.asarray((span + 1.0) * np.sqrt((n + 1.0) / 2.0 * (0.5 * np.log(n + 1.0) - math.log(failure))))


def square_deviation(squares: Floats, span: float, failure: float) -> Floats:
    """The least over i of b·[ψ(2^-i)·V/b² + ln(2i(i+1)/δ')]·2^i, b = c + 1, ψ(λ) = -ln(1-λ) - λ.

    Parameters
    ----------
    squares : ndarray
        V.
    span : float
        c.
    failure : float
        δ'.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> bool(square_deviation(np.array([0.0]), 0.0, 4.0 * math.exp(-1.0))[0] == 2.0)
    True
    """
    b, best = span + 1.0, np.full(np.shape(squares), np.inf)
    for i in range(1, RATES_TRIED + 1):
        rate = 0.5**i
        psi = -math.log1p(-rate) - rate
        best = np.minimum(best, b / rate * (psi * np.asarray(squares) / b**2 + math.log(2.0 * i * (i + 1) / failure)))
    return best


def difference_bounds(
    path: WalkedPath, gain: float, span: float, radius: Floats, all_radius: float
) -> tuple[Floats, Floats]:
    """(S, S) lower and upper bounds of h*(s') - h*(s) at (s, s').

    Parameters
    ----------
    path : WalkedPath
        The path so far.
    gain, span : float
        g and c.
    radius : ndarray of shape (S, S)
        A_ss'.
    all_radius : float
        A.

    Returns
    -------
    low, high : ndarray of shape (S, S)
        Infinite where there is no segment.
    """
    S = path.n_states
    low, high = np.full((S, S), -np.inf), np.full((S, S), np.inf)
    most = max(0.0, gain * path.steps - path.earned + span * path.pieces + all_radius)
    for s in range(S):
        for y in range(S):
            if path.n[s, y] > 0:
                x = gain * path.length[s, y] - path.rewards[s, y]
                apart = radius[s, y] + span * path.cut[s, y]
                low[s, y] = (x - most - apart) / path.n[s, y]
                high[s, y] = (x + apart) / path.n[s, y]
    return low, high


def shortest_differences(d: Floats) -> Floats:
    """The min-plus closure of d; a negative number on its diagonal says that no vector satisfies d.

    Parameters
    ----------
    d : ndarray of shape (S, S)
        Upper bounds of u(s) - u(s').

    Returns
    -------
    ndarray of shape (S, S)

    Examples
    --------
    >>> shortest_differences(np.array([[0.0, 1.0], [-2.0, 0.0]]))[0, 0] < 0.0
    np.True_
    """
    found = d.copy()
    for k in range(d.shape[0]):
        found = np.minimum(found, found[:, k, None] + found[None, k, :])
    return found


def largest_within(u: Floats, closed: Floats) -> Floats:
    """The largest vector below u whose differences are within closed bounds.

    Parameters
    ----------
    u : ndarray of shape (S,)
        Any vector.
    closed : ndarray of shape (S, S)
        What `shortest_differences` returned.

    Returns
    -------
    ndarray of shape (S,)

    Examples
    --------
    >>> largest_within(np.array([0.0, 5.0]), np.array([[0.0, 1.0], [2.0, 0.0]])).tolist()
    [0.0, 2.0]
    """
    return np.asarray((closed + u[None, :]).min(axis=1))


def bias_deviation(p: Floats, state: int, centre: Floats, closed: Floats) -> float:
    """Bound the standard deviation of h* under the row p of `state`, if h* is within closed differences.

    Parameters
    ----------
    p : ndarray of shape (S,)
        The row.
    state : int
        s.
    centre : ndarray of shape (S,)
        h₀, a vector within the differences.
    closed : ndarray of shape (S, S)
        The bounds.

    Returns
    -------
    float

    Examples
    --------
    >>> bias_deviation(np.array([0.5, 0.5]), 0, np.zeros(2), np.zeros((2, 2)))
    0.0
    """
    x = centre - centre[state]
    error = np.maximum(closed[:, state] - x, x + closed[state, :])
    spread = math.sqrt(max(0.0, float(p @ (x - p @ x) ** 2))) + math.sqrt(float(p @ error**2))
    largest = np.maximum(np.maximum(closed[:, state], closed[state, :]), 0.0)
    return min(spread, math.sqrt(float(p @ largest**2)), 0.5 * float(closed.max(initial=0.0)))
