"""UCRL3 (Bourel, Maillard & Talebi 2020, Tightening exploration in upper confidence reinforcement learning)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gainful.reference.episodes import DoublingEpisodes

Array = NDArray[np.float64]
FREE_SWEEPS_OF_REFERENCE = 100  # supports only grow after so many sweeps


def most_inside(lower: Array, upper: Array, u: Array, inside: NDArray[np.bool_]) -> float:
    """Find F(X) = max { Σ_X u·p : lower ≤ p ≤ upper, Σ_X p ≤ 1 } for u ≥ 0: lower bounds first, then the best states.

    Parameters
    ----------
    lower, upper : ndarray of shape (S,)
        The bounds of every probability of one pair.
    u : ndarray of shape (S,)
        The values of the states, none negative.
    inside : ndarray of bool, shape (S,)
        X.

    Returns
    -------
    float
        F(X).

    Examples
    --------
    >>> everywhere = np.ones(3, dtype=bool)
    >>> most_inside(np.array([0.2, 0.0, 0.0]), np.array([1.0, 0.5, 0.1]), np.array([0.0, 1.0, 2.0]), everywhere)
    0.7
    """
    p = np.where(inside, lower, 0.0)
    left = 1.0 - p.sum()
    for y in np.argsort(-u, kind="stable"):
        if inside[y]:
            more = min(upper[y] - p[y], left)
            p[y], left = p[y] + more, left - more
    return float(p @ u)


def near_optimistic_support(
    lower: Array, upper: Array, u: Array, seen: NDArray[np.bool_], kappa: float
) -> NDArray[np.bool_]:
    """Select the support of one pair: what was seen and the best state, then the best others while they matter.

    Parameters
    ----------
    lower, upper : ndarray of shape (S,)
        The bounds of every probability.
    u : ndarray of shape (S,)
        v - min v.
    seen : ndarray of bool, shape (S,)
        The next states that followed the pair.
    kappa : float
        κ.

    Returns
    -------
    ndarray of bool, shape (S,)
        S̃: the first for which F(S∖S̃) < min{κ, F(S̃)}, or all states.

    Examples
    --------
    >>> seen = np.array([True, False, False])
    >>> bounds = np.array([0.9, 0.0, 0.0]), np.array([1.0, 0.01, 0.01])
    >>> near_optimistic_support(*bounds, np.array([1.0, 1.5, 2.0]), seen, kappa=0.1).tolist()
    [True, False, True]
    """
    order = np.argsort(-u, kind="stable")
    inside = seen.copy()
    inside[order[0]] = True
    while not inside.all():
        outside = most_inside(np.zeros_like(lower), upper, u, ~inside)
        if outside < min(kappa, most_inside(lower, upper, u, inside)):
            break
        inside[next(y for y in order if not inside[y])] = True
    return inside


class DenseUCRL3(DoublingEpisodes):
    """UCRL3: extended value iteration over time-uniform bounds, on near-optimistic supports.

    Parameters
    ----------
    S, A : int
        The numbers of states and actions.
    r_max, delta : float
        Rewards lie in [0, r_max]; δ as in the paper.
    allowed : ndarray of bool, shape (S, A), optional
        The actions that each state has.

    Examples
    --------
    >>> agent = DenseUCRL3(2, 2)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self, S: int, A: int, r_max: float = 1.0, delta: float = 0.05, allowed: NDArray[np.bool_] | None = None
    ) -> None:
        super().__init__(S, A, r_max, delta)
        self.allowed = np.ones((S, A), dtype=bool) if allowed is None else allowed
        self.v = np.zeros(S)

    def terms(self, n: Array) -> tuple[Array, Array]:
        """Compute ℓ_n/n and β_n, for δ' = δ/((3+3S)SA).

        Parameters
        ----------
        n : ndarray
            The visits of pairs, at least 1.

        Returns
        -------
        tuple of ndarray
            Both of them.
        """
        level, log_eta = self.delta / ((3 + 3 * self.S) * self.S * self.A), math.log(1.12)
        peeling = 1.12 * np.log(np.log(1.12 * n) * np.log(1.12**2 * n) / (log_eta**2 * level)) / n
        return peeling, np.sqrt(2 * (1 + 1 / n) * np.log(np.sqrt(n + 1) / level) / n)

    def bounds(self, N: Array) -> tuple[Array, Array]:
        """Find the smallest and the largest plausible probability of every transition, by bisection.

        Parameters
        ----------
        N : ndarray of shape (S, A)
            The visits of each pair.

        Returns
        -------
        tuple of ndarray of shape (S, A, S)
            The bounds: [0, 1] for pairs never visited.
        """
        n = np.maximum(1, N)[:, :, None]
        p, (x, beta) = self.N / n, self.terms(n)

        def g(q: Array) -> Array:
            inner = np.clip(q, 1e-300, 1 - 1e-16)
            with np.errstate(divide="ignore", invalid="ignore"):
                found = (0.5 - inner) / np.log(1 / inner - 1)
            return np.where(q == 0.5, 0.25, np.where((q <= 0) | (q >= 1), 0.0, found))

        def plausible(q: Array, proxy: Array) -> NDArray[np.bool_]:
            by_variance = np.sqrt(2 * q * (1 - q) * x) + x / 3
            return np.asarray(np.abs(p - q) <= np.minimum(by_variance, beta * np.sqrt(proxy)))

        low, good_low, high, good_high = np.zeros_like(p), p, np.ones_like(p), p
        high = np.where(plausible(high, np.zeros_like(p)), p, high)  # only if p = 1
        for _ in range(60):
            q = (low + good_low) / 2
            ok = plausible(q, g(q))
            low, good_low = np.where(ok, low, q), np.where(ok, q, good_low)
            q = (high + good_high) / 2
            ok = plausible(q, np.where(q < 0.5, q * (1 - q), g(q)))
            high, good_high = np.where(ok, high, q), np.where(ok, q, good_high)
        never = (N == 0)[:, :, None]
        return np.where(never, 0.0, low), np.where(never, 1.0, high)

    def rewards(self, N: Array) -> Array:
        """Compute the optimistic rewards, −∞ for an action that a state does not have.

        Parameters
        ----------
        N : ndarray of shape (S, A)
            The visits of each pair.

        Returns
        -------
        ndarray of shape (S, A)
            r̃.
        """
        n = np.maximum(1, N)
        x, beta = self.terms(n)
        mean = self.R / n
        variance = np.maximum(0, self.R2 / n - mean**2) / self.r_max**2
        width = self.r_max * np.minimum(beta / 2, np.sqrt(2 * variance * x) + 7 * x / 3)
        r = np.where(N == 0, self.r_max, np.minimum(self.r_max, mean + width))
        return np.where(self.allowed, r, -np.inf)

    def plan(self, N: Array, t_k: int) -> NDArray[np.int64]:
        """EVI-NOSS, damped by 0.9, to precision r_max/√t_k; after 100 sweeps supports keep their size or grow."""
        (lower, upper), r, seen = self.bounds(N), self.rewards(N), self.N > 0
        v, kept = self.v - self.v.min(), np.zeros((self.S, self.A), dtype=np.int64)
        for sweep in range(10**6):
            q, order = r.copy(), np.argsort(-v, kind="stable")
            for s, a in np.argwhere(self.allowed):
                kappa = 10 * np.ptp(v) * seen[s, a].sum() / max(1, N.max()) ** (2 / 3)
                support = near_optimistic_support(lower[s, a], upper[s, a], v, seen[s, a], kappa)
                needed = int((support & ~seen[s, a]).sum())
                kept[s, a] = max(kept[s, a], needed) if sweep >= FREE_SWEEPS_OF_REFERENCE else needed
                support[[y for y in order if not seen[s, a, y]][: kept[s, a]]] = True
                q[s, a] += most_inside(lower[s, a], upper[s, a], v, support)
            gaps = q.max(axis=1) - v
            if np.ptp(gaps) <= self.r_max / math.sqrt(t_k):
                break
            v = v + 0.9 * gaps
            v -= v.min()
        self.v = v
        return np.asarray(q.argmax(axis=1))
