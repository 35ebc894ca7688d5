"""C-SCAL+ (Qian, Fruit, Pirotta & Lazaric, sec. 4): SCAL+ on the intervals of [0, 1]."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gainful.reference.scal_plus import DenseSCALPlus


class DenseCSCALPlus(DenseSCALPlus):
    """C-SCAL+ with states in [0, 1], cut into S intervals: [0, 1/S], then (1/S, 2/S] and so on.

    Parameters
    ----------
    S, A : int
        The numbers of intervals and actions.
    c : float
        The bound on the span of the optimal bias.
    L, alpha : float
        The Hölder constants of rewards and transitions.
    r_max, delta, scale : float
        As for SCAL+.

    Examples
    --------
    >>> agent = DenseCSCALPlus(20, 3, c=2.0, L=1.0, alpha=1.0)
    >>> agent.interval(0.05), agent.interval(0.0501), agent.interval(0.0)
    (0, 1, 0)
    >>> action = agent.act_at(0.31)
    >>> agent.observe_at(0.31, action, 0.5, 0.33)
    """

    def __init__(
        self,
        S: int,
        A: int,
        c: float,
        L: float,
        alpha: float,
        r_max: float = 1.0,
        delta: float = 0.05,
        scale: float = 1.0,
    ) -> None:
        super().__init__(S, A, c, r_max, delta, scale)
        self.L, self.alpha = L, alpha

    def bonus(self, N: NDArray[np.float64], t_k: int) -> NDArray[np.float64]:
        """SCAL+'s bonus plus (c + r_max)·L·S^{-α}: the states of one interval differ by that much."""
        holder_term: float = (self.c + self.r_max) * self.L * float(self.S) ** -self.alpha
        return super().bonus(N, t_k) + holder_term

    def interval(self, x: float) -> int:
        """Find the interval of a point, I(x).

        Parameters
        ----------
        x : float
            A point of [0, 1].

        Returns
        -------
        int
            The number of the interval, from 0.
        """
        return max(0, math.ceil(x * self.S) - 1)

    def act_at(self, x: float) -> int:
        """Choose the action to take at a point: that of its interval.

        Parameters
        ----------
        x : float
            A point of [0, 1].

        Returns
        -------
        int
            The action, from 0.
        """
        return self.act(self.interval(x))

    def observe_at(self, x: float, a: int, r: float, to: float) -> None:
        """Learn from a transition between two points.

        Parameters
        ----------
        x : float
            The point at which the action was taken.
        a : int
            The action.
        r : float
            The reward, in [0, r_max].
        to : float
            The point reached.
        """
        self.observe(self.interval(x), a, r, self.interval(to))
