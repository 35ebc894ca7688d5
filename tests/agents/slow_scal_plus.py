"""SCAL+ written straight from the equations with dense arrays: slow, and obviously right."""

from __future__ import annotations

import math

import numpy as np


class SlowSCALPlus:
    def __init__(
        self, S: int, A: int, c: float, low: float, high: float, delta: float, scale: float, allowed: np.ndarray
    ) -> None:
        self.S, self.A, self.c, self.low, self.r_max, self.delta, self.scale = S, A, c, low, high - low, delta, scale
        self.allowed = allowed
        self.N, self.R = np.zeros((S, A, S)), np.zeros((S, A))
        self.t = 1
        self.v = np.zeros(S)
        self.episode_starts: list[int] = []
        self.policy: np.ndarray | None = None
        self.nu, self.N_k = np.zeros((S, A)), np.zeros((S, A))

    def act(self, s: int) -> int:
        if self.policy is None:
            self.new_episode()
        assert self.policy is not None
        a = int(self.policy[s])
        if self.nu[s, a] >= max(1, self.N_k[s, a]):
            self.new_episode()
            a = int(self.policy[s])
        return a

    def observe(self, s: int, a: int, r: float, to: int) -> None:
        self.nu[s, a] += 1
        self.N[s, a, to] += 1
        self.R[s, a] += r - self.low
        self.t += 1

    def new_episode(self) -> None:
        self.episode_starts.append(self.t)
        N = self.N.sum(axis=2)
        self.N_k, self.nu = N.copy(), np.zeros((self.S, self.A))
        beta = self.scale * np.sqrt(7 * math.log(2 * self.S * self.A * self.t / self.delta) / np.maximum(1, N))
        bonus = self.c * np.minimum(beta + 1 / (N + 1), 2) + self.r_max * np.minimum(beta, 1)
        r = np.where(self.allowed, self.R / np.maximum(1, N) + bonus, -np.inf)
        p = (self.N + np.eye(self.S)[0]) / (N + 1)[:, :, None]
        v = np.minimum(self.v, self.v.min() + self.c)
        while True:
            q = r + p @ v
            Tv = np.minimum(q.max(axis=1), q.max(axis=1).min() + self.c)
            if np.ptp(Tv - v) <= self.r_max / math.sqrt(self.t):
                break
            v = Tv - Tv[0]
        self.v, self.policy = v, q.argmax(axis=1)
