"""SCAL+ on cells whose p̂ is a kernel density estimate of the next state: an experiment, with no theorem behind it.

Lakshmanan, Ortner & Ryabko (Improved regret bounds for undiscounted continuous reinforcement learning, ICML 2015)
estimate the density of the next state by a kernel in place of a histogram over cells. Here p̂(J|I,a) is the histogram of
SCAL+ convolved with a Gaussian kernel whose standard deviation, in the unit interval, is `smoothing`·N^(-1/5).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodePlan
from gainful.agents.guarantee import Guarantee
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.statistics import Statistics
from gainful.reference.scopt import dense_scopt

Array = NDArray[np.float64]


class KernelScalPlus(SCALPlus):
    """SCAL+ with a smoothed p̂; with `smoothing` 0 its decisions are those of SCAL+ up to the precision of plans.

    The bonus is SCAL+'s: it does not count the bias that smoothing adds to p̂.
    """

    def __init__(
        self, n_states: int, n_actions: int, *, span: float, smoothing: float = 0.0, bonus: Any = "appendix",
        bonus_scale: float = 1.0, reward_max: float = 1.0, reward_min: float = 0.0, seed: int = 0, allowed: Any = None,
    ) -> None:  # fmt: skip
        options: dict[str, Any] = {"bonus": bonus, "bonus_scale": bonus_scale, "seed": seed, "allowed": allowed}
        super().__init__(n_states, n_actions, span=span, reward_max=reward_max, reward_min=reward_min, **options)
        self.smoothing = float(smoothing)
        self._kernels: dict[int, Array] = {}
        self._values: Array | None = None

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """ScOpt on r̄ + b and the smoothed p̂."""
        S, A = self.n_states, self.n_actions
        visits = statistics.visits.astype(np.float64)
        rewards = (statistics.reward_sum / np.maximum(visits, 1.0)).reshape(S, A) + self.bonuses()
        p = self._smoothed(self._counts(statistics), visits)
        p[:, 0] += 1.0
        p /= (visits + 1.0)[:, None]
        values, actions, (low, high) = dense_scopt(
            p.reshape(S, A, S), rewards, self.span, self.reward_range / math.sqrt(t), self._values
        )
        self._values = values
        bounds = (low + self.reward_min, high + self.reward_min)
        return EpisodePlan(actions=actions, gain_bounds=bounds, values=values, sweeps=1)

    def _counts(self, statistics: Statistics) -> Array:
        """(S*A, S) N(s,a,s')."""
        counts = np.zeros((self.n_states * self.n_actions, self.n_states))
        for pair in np.flatnonzero(statistics.visits):
            to, count = statistics.row(int(pair))
            counts[pair, to] = count
        return counts

    def _smoothed(self, counts: Array, visits: Array) -> Array:
        """Every row convolved with the kernel for its N, rounded down to a power of two."""
        if self.smoothing == 0.0:
            return counts
        octaves = np.floor(np.log2(np.maximum(visits, 1.0))).astype(int)
        for octave in np.unique(octaves):
            rows = octaves == octave
            counts[rows] = counts[rows] @ self._kernel(int(octave))
        return counts

    def _kernel(self, octave: int) -> Array:
        """(S, S) where the mass of every cell goes; the end cells, which hold the atoms of clipping, keep theirs."""
        if octave not in self._kernels:
            S = self.n_states
            cells = np.arange(1, S - 1)
            width = self.smoothing * 2.0 ** (-octave / 5.0) * S
            near = np.exp(-0.5 * ((cells[:, None] - cells[None, :]) / width) ** 2)
            kernel = np.eye(S)
            kernel[1:-1, 1:-1] = near / near.sum(axis=1, keepdims=True)
            self._kernels[octave] = kernel
        return self._kernels[octave]

    @property
    def guarantee(self) -> Guarantee:
        """Nothing is proven."""
        return Guarantee(bound="none", assumptions=(), source="", reason_void="no proof is known for a smoothed p̂")

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        names = ("n_states", "n_actions", "span", "bonus", "bonus_scale", "reward_max", "reward_min", "seed", "allowed")
        known = super().settings()
        return {**{name: known[name] for name in names if name in known}, "smoothing": self.smoothing}
