"""UCRL2B: UCRL2 with empirical-Bernstein intervals around every transition probability."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.empirical import EmpiricalRows, empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.statistics import Statistics
from gainful.optimism.bernstein import entry_variance, log_term, reward_variance, width
from gainful.planning.confidence import Intervals


@kernel
def bernstein_sets(
    indptr: NDArray[Any], p: NDArray[Any], visits: NDArray[Any], reward_sum: NDArray[Any], reward_squares: NDArray[Any],
    n_states: int, n_actions: int, delta: float, scale: float, reward_max: float,
    lower: NDArray[Any], upper: NDArray[Any], unseen: NDArray[Any], r: NDArray[Any],
) -> None:  # fmt: skip
    """Bounds of every entry of the rows, of the states that a row does not list, and optimistic rewards."""
    for k in range(visits.size):
        n = visits[k]
        if n == 0:
            unseen[k], r[k] = 1.0, reward_max
            for j in range(indptr[k], indptr[k + 1]):
                lower[j], upper[j] = 0.0, 1.0
            continue
        log = log_term(n_states, n_actions, n, delta)
        unseen[k] = min(1.0, width(0.0, log, n, 1.0, scale))
        for j in range(indptr[k], indptr[k + 1]):
            w = width(entry_variance(p[j]), log, n, 1.0, scale)
            lower[j], upper[j] = max(0.0, p[j] - w), min(1.0, p[j] + w)
        spread = reward_variance(reward_sum[k], reward_squares[k], n)
        r[k] = min(reward_max, reward_sum[k] / n + width(spread, log, n, reward_max, scale))


class UCRL2B(ExtendedAgent):
    r"""UCRL2B (Fruit, Pirotta & Lazaric 2020): per-entry Bernstein intervals, extended value iteration.

    r and each p(s') within 2·sqrt(σ̂²ℓ/N⁺) + 6·range·ℓ/N⁺ of the estimate, ℓ = ln(6SAN⁺/δ), N⁺ = max{1,N}, σ̂² the
    empirical variance. With probability 1-δ the regret is Õ(r_max·sqrt(D·Γ·S·A·T)) in an MDP of diameter D.

    >>> agent = UCRL2B(n_states=2, n_actions=2)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    @property
    def guarantee(self) -> Guarantee:
        """The theorem, as far as the constants are its own."""
        return Guarantee(
            bound=f"regret Õ(r_max·sqrt(D·Γ·S·A·T)) with probability {1 - self.delta:g}",
            assumptions=("the MDP is communicating, of finite diameter D",),
            source="Fruit, Pirotta & Lazaric 2020, theorem on UCRL2B",
            reason_void=self.scaled,
        )

    def bounds(
        self, statistics: Statistics, filler: int
    ) -> tuple[EmpiricalRows, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Rows, lower and upper bounds of their entries, bounds (S,A) of other next states, rewards (S*A,)."""
        rows = empirical_rows(statistics, self.allowed, filler)
        lower, upper = np.empty(rows.p.size), np.empty(rows.p.size)
        unseen, r = np.empty(statistics.visits.size), np.empty(statistics.visits.size)
        bernstein_sets(
            rows.indptr, rows.p, statistics.visits, statistics.reward_sum, statistics.reward_squares, self.n_states,
            self.n_actions, self.delta, self.width_scale, self.reward_range, lower, upper, unseen, r,
        )  # fmt: skip
        return rows, lower, upper, unseen.reshape(self.n_states, self.n_actions), r

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Extended value iteration over the intervals, to precision r_max/√t."""
        rows, lower, upper, unseen, r = self.bounds(statistics, 0)
        return self.extended_plan(rows, Intervals(lower, upper, unseen), r, t, unseen >= 1.0)
