"""SCAL+ with the sharp bonus (docs/kl_scal_plus.md, theorem 11) on dense arrays."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gainful.reference.episodes import DoublingEpisodes
from gainful.reference.scopt import dense_scopt


class DenseSharpSCALPlus(DoublingEpisodes):
    """SCAL+ with the sharp bonus, which depends on neither A nor t.

    Parameters
    ----------
    S, A : int
        The numbers of states and actions.
    c : float
        The bound on the span of the optimal bias.
    r_max, delta : float
        Rewards lie in [0, r_max]; δ is the probability with which optimism may fail.
    scale : float
        Multiplies β; 1 is the theorem's.
    allowed : ndarray of bool, shape (S, A), optional
        The actions that each state has.
    holder_term : float, optional
        For states that are intervals: (c + r_max)·L·S^{-α}. The deviations of all S·A pairs are then bounded.

    Examples
    --------
    >>> agent = DenseSharpSCALPlus(2, 2, c=1.0)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self,
        S: int,
        A: int,
        c: float,
        r_max: float = 1.0,
        delta: float = 0.05,
        scale: float = 1.0,
        allowed: NDArray[np.bool_] | None = None,
        holder_term: float | None = None,
    ) -> None:
        super().__init__(S, A, r_max, delta)
        self.c, self.scale, self.holder_term = c, scale, holder_term
        self.allowed = np.ones((S, A), dtype=bool) if allowed is None else allowed
        self.v = np.zeros(S)

    def beta(self, N: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the deviation of one mean, β = sqrt((1 + 1/N)·ln(1/2 + S·sqrt(N+1)/δ)/(2N)), times `scale`.

        Parameters
        ----------
        N : ndarray of shape (S, A)
            The visits of each pair; β is infinite if there are none.

        Returns
        -------
        ndarray of shape (S, A)
            β.

        Examples
        --------
        >>> DenseSharpSCALPlus(2, 1, c=1.0).beta(np.array([[0.0], [100.0]])).round(4).tolist()
        [[inf], [0.174]]
        """
        pairs = self.S if self.holder_term is None else self.S * self.A
        n = np.maximum(1, N)
        beta = np.sqrt((1 + 1 / n) * np.log(0.5 + pairs * np.sqrt(n + 1) / self.delta) / (2 * n))
        return np.where(N == 0, np.inf, self.scale * beta)

    def plan(self, N: NDArray[np.float64], t_k: int) -> NDArray[np.int64]:
        """ScOpt, damped by 0.9, to precision r_max/√t_k on the MDP with p̂_k and r̃_k + b_k."""
        beta = self.beta(N)
        r = np.minimum(self.r_max, self.R / np.maximum(1, N) + self.r_max * beta)
        b = self.c * np.minimum(1, (N * np.where(N == 0, 0, beta) + 1) / (N + 1))
        p = (self.N + np.eye(self.S)[0]) / (N + 1)[:, :, None]  # s̄ = 0
        optimistic = np.where(self.allowed, r + b + (self.holder_term or 0.0), -np.inf)
        self.v, pi, _ = dense_scopt(p, optimistic, self.c, self.r_max / math.sqrt(t_k), self.v, theta=0.9)
        return pi
