"""UCRL2B (Fruit, Pirotta & Lazaric 2020, Improved analysis of UCRL2 with empirical Bernstein inequality)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gainful.reference.episodes import DoublingEpisodes

Array = NDArray[np.float64]


def best_rows(lower: Array, upper: Array, v: Array) -> Array:
    """Find the rows between two bounds that maximise p·v: mass goes to the states of largest v first.

    Parameters
    ----------
    lower, upper : ndarray of shape (S, A, S)
        The bounds of every probability; each row of `lower` sums to at most 1, each of `upper` to at least 1.
    v : ndarray of shape (S,)
        The values of the states.

    Returns
    -------
    ndarray of shape (S, A, S)
        The rows p.

    Examples
    --------
    >>> best_rows(np.array([[[0.1, 0.1]]]), np.array([[[1.0, 0.6]]]), np.array([0.0, 1.0]))
    array([[[0.4, 0.6]]])
    """
    order = np.argsort(-v, kind="stable")
    room = (upper - lower)[:, :, order]
    left = (1 - lower.sum(axis=2))[:, :, None] - (np.cumsum(room, axis=2) - room)  # when a state's turn comes
    p = lower.copy()
    p[:, :, order] += np.clip(left, 0, room)
    return p


class DenseUCRL2B(DoublingEpisodes):
    """UCRL2B: extended value iteration over Bernstein intervals around every p(s'|s,a).

    Parameters
    ----------
    S, A : int
        The numbers of states and actions.
    r_max, delta : float
        Rewards lie in [0, r_max]; δ is the probability with which the guarantee may fail.
    scale : float
        Multiplies every width; 1 is the theorem's.
    allowed : ndarray of bool, shape (S, A), optional
        The actions that each state has.

    Examples
    --------
    >>> agent = DenseUCRL2B(2, 2)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self,
        S: int,
        A: int,
        r_max: float = 1.0,
        delta: float = 0.05,
        scale: float = 1.0,
        allowed: NDArray[np.bool_] | None = None,
    ) -> None:
        super().__init__(S, A, r_max, delta)
        self.scale = scale
        self.allowed = np.ones((S, A), dtype=bool) if allowed is None else allowed
        self.v = np.zeros(S)

    def width(self, variance: Array, n: Array, value_range: float) -> Array:
        """Compute empirical Bernstein widths: 2·sqrt(σ̂²ℓ/n) + 6·range·ℓ/n with ℓ = ln(6SAn/δ), times `scale`.

        Parameters
        ----------
        variance : ndarray
            σ̂², the empirical variances.
        n : ndarray
            The numbers of samples, at least 1; broadcast against `variance`.
        value_range : float
            The range of the samples.

        Returns
        -------
        ndarray
            The widths.
        """
        log = np.log(6 * self.S * self.A * n / self.delta)
        return np.asarray(self.scale * (2 * np.sqrt(variance * log / n) + 6 * value_range * log / n))

    def plan(self, N: Array, t_k: int) -> NDArray[np.int64]:
        """Extended value iteration, damped by 0.9, to precision r_max/√t_k."""
        n = np.maximum(1, N)
        p_bar, r_bar = self.N / n[:, :, None], self.R / n
        w = self.width(p_bar * (1 - p_bar), n[:, :, None], 1.0)
        w[N == 0] = 1.0  # a pair never visited may move anywhere
        lower, upper = np.maximum(0, p_bar - w), np.minimum(1, p_bar + w)
        r = r_bar + self.width(np.maximum(0, self.R2 / n - r_bar**2), n, self.r_max)
        r = np.where(self.allowed, np.where(N == 0, self.r_max, np.minimum(self.r_max, r)), -np.inf)
        v = self.v - self.v.min()
        while True:
            q = r + best_rows(lower, upper, v) @ v
            gaps = q.max(axis=1) - v
            if np.ptp(gaps) <= self.r_max / math.sqrt(t_k):
                self.v = v
                return np.asarray(q.argmax(axis=1))
            v = v + 0.9 * gaps
            v -= v.min()
