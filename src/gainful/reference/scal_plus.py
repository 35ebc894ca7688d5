"""SCAL+ (Qian, Fruit, Pirotta & Lazaric, Exploration bonus for regret minimization, sec. 3) on dense arrays."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gainful.reference.episodes import DoublingEpisodes
from gainful.reference.scopt import dense_scopt


class DenseSCALPlus(DoublingEpisodes):
    """SCAL+ with the appendix's bonus.

    Parameters
    ----------
    S, A : int
        The numbers of states and actions.
    c : float
        The bound on the span of the optimal bias.
    r_max, delta : float
        Rewards lie in [0, r_max]; δ is the probability with which the guarantee may fail.
    scale : float
        Multiplies β; 1 is the theorem's.
    allowed : ndarray of bool, shape (S, A), optional
        The actions that each state has.

    Examples
    --------
    >>> agent = DenseSCALPlus(2, 2, c=1.0)
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
    ) -> None:
        super().__init__(S, A, r_max, delta)
        self.c, self.scale = c, scale
        self.allowed = np.ones((S, A), dtype=bool) if allowed is None else allowed
        self.v = np.zeros(S)

    def bonus(self, N: NDArray[np.float64], t_k: int) -> NDArray[np.float64]:
        """Compute the bonus of the paper's appendix.

        With β = sqrt(7·ln(2SAt_k/δ)/max{1, N}), times `scale`, it is::

            b_k = c·min{β + 1/(N+1), 2} + r_max·min{β, 1}.

        Parameters
        ----------
        N : ndarray of shape (S, A)
            N_k, the visits of each pair before the episode.
        t_k : int
            The first step of the episode, from 1.

        Returns
        -------
        ndarray of shape (S, A)
            b_k.

        Examples
        --------
        >>> float(DenseSCALPlus(2, 2, c=1.0).bonus(np.zeros((2, 2)), t_k=1)[0, 0])  # the cap, 2c + r_max
        3.0
        """
        beta = self.scale * np.sqrt(7 * math.log(2 * self.S * self.A * t_k / self.delta) / np.maximum(1, N))
        return np.asarray(self.c * np.minimum(beta + 1 / (N + 1), 2) + self.r_max * np.minimum(beta, 1))

    def plan(self, N: NDArray[np.float64], t_k: int) -> NDArray[np.int64]:
        """ScOpt to precision r_max/√t_k on the MDP with p̂_k and r̄_k + b_k."""
        r = np.where(self.allowed, self.R / np.maximum(1, N) + self.bonus(N, t_k), -np.inf)
        p = (self.N + np.eye(self.S)[0]) / (N + 1)[:, :, None]  # s̄ = 0
        self.v, pi, _ = dense_scopt(p, r, self.c, self.r_max / math.sqrt(t_k), self.v)
        return pi
