"""Doubling episodes: figure 1 of Qian, Fruit, Pirotta & Lazaric, without steps 2 and 3."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class DoublingEpisodes:
    """An agent that plans again whenever a pair has been executed max{1, N_k} times in episode k.

    Parameters
    ----------
    S, A : int
        The numbers of states and actions.
    r_max : float
        Rewards lie in [0, r_max].
    delta : float
        δ, the probability with which the guarantee may fail.

    Examples
    --------
    >>> class Constant(DoublingEpisodes):
    ...     def plan(self, N, t_k):
    ...         return np.ones(self.S, dtype=np.int64)
    >>> agent = Constant(1, 2, r_max=1.0, delta=0.05)
    >>> for _ in range(8):
    ...     agent.observe(0, agent.act(0), 0.5, 0)
    >>> agent.t_k  # the first steps of the episodes
    [1, 2, 3, 5]
    """

    def __init__(self, S: int, A: int, r_max: float, delta: float) -> None:
        self.S, self.A, self.r_max, self.delta = S, A, r_max, delta
        self.N = np.zeros((S, A, S))  # N(s,a,s')
        self.R, self.R2 = np.zeros((S, A)), np.zeros((S, A))  # sums of rewards and of their squares
        self.N_k, self.nu = np.zeros((S, A)), np.zeros((S, A))
        self.t = 1
        self.t_k: list[int] = []
        self.pi: NDArray[np.int64] | None = None

    def plan(self, N: NDArray[np.float64], t_k: int) -> NDArray[np.int64]:
        """Plan an episode: steps 2 and 3 of the figure, which a subclass fills in.

        Parameters
        ----------
        N : ndarray of shape (S, A)
            N_k, the visits of each pair before the episode.
        t_k : int
            The first step of the episode, from 1.

        Returns
        -------
        ndarray of int64, shape (S,)
            π_k, the action of each state.
        """
        raise NotImplementedError

    def new_episode(self) -> NDArray[np.int64]:
        """Begin an episode: step 1 of the figure, then `plan`.

        Returns
        -------
        ndarray of int64, shape (S,)
            π_k, the action of each state.
        """
        self.t_k.append(self.t)
        self.N_k, self.nu = self.N.sum(axis=2), np.zeros((self.S, self.A))
        self.pi = self.plan(self.N_k, self.t)
        return self.pi

    def act(self, s: int) -> int:
        """Choose an action, steps 4 and 5: that of π_k, unless it has been executed max{1, N_k} times already.

        In that case a new episode begins, and the action is that of its policy.

        Parameters
        ----------
        s : int
            The state, from 0.

        Returns
        -------
        int
            The action, from 0.
        """
        pi = self.new_episode() if self.pi is None else self.pi
        if self.nu[s, pi[s]] >= max(1, self.N_k[s, pi[s]]):
            pi = self.new_episode()
        return int(pi[s])

    def observe(self, s: int, a: int, r: float, to: int) -> None:
        """Learn from a transition: steps 5 (a) and (b).

        Parameters
        ----------
        s, a : int
            The state and the action taken in it.
        r : float
            The reward, in [0, r_max].
        to : int
            The next state.
        """
        self.nu[s, a] += 1
        self.N[s, a, to] += 1
        self.R[s, a] += r
        self.R2[s, a] += r * r
        self.t += 1
