"""Doubling episodes: figure 1 of Qian, Fruit, Pirotta & Lazaric, without steps 2 and 3."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class DoublingEpisodes:
    """An agent that plans anew whenever a pair has been executed max{1, N_k} times in episode k.

    Parameters
    ----------
    S, A : int
        The numbers of states and actions.
    r_max : float
        Rewards lie in [0, r_max].
    delta : float
        δ, the probability with which the guarantee may fail.
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
        """Steps 2 and 3: the policy π_k (S,) of an episode that begins at step t_k, N (S,A) being the visits."""
        raise NotImplementedError

    def new_episode(self) -> NDArray[np.int64]:
        """Step 1, then 2 and 3."""
        self.t_k.append(self.t)
        self.N_k, self.nu = self.N.sum(axis=2), np.zeros((self.S, self.A))
        self.pi = self.plan(self.N_k, self.t)
        return self.pi

    def act(self, s: int) -> int:
        """Steps 4 and 5: the action of π_k, unless it has been executed max{1, N_k} times already."""
        pi = self.new_episode() if self.pi is None else self.pi
        if self.nu[s, pi[s]] >= max(1, self.N_k[s, pi[s]]):
            pi = self.new_episode()
        return int(pi[s])

    def observe(self, s: int, a: int, r: float, to: int) -> None:
        """Steps 5 (a) and (b): one transition, with a reward in [0, r_max]."""
        self.nu[s, a] += 1
        self.N[s, a, to] += 1
        self.R[s, a] += r
        self.R2[s, a] += r * r
        self.t += 1
