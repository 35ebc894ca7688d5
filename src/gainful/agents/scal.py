"""SCAL: Bernstein intervals and a bound on the span of the bias."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.agents.empirical import empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.statistics import Statistics
from gainful.arguments import finite
from gainful.errors import InvalidArgumentError
from gainful.optimism.bernstein import entry_variance, reward_variance
from gainful.optimism.scal import log_term, perturbation, width
from gainful.planning.confidence import Intervals

ATTRACTIVE = 0
"""s̄, the state on which every row keeps mass η_k."""


@kernel
def scal_sets(
    indptr: NDArray[Any], indices: NDArray[Any], p: NDArray[Any], visits: NDArray[Any], reward_sum: NDArray[Any],
    reward_squares: NDArray[Any], n_states: int, n_actions: int, t: int, delta: float, scale: float, span: float,
    reward_max: float, lower: NDArray[Any], upper: NDArray[Any], unseen: NDArray[Any], r: NDArray[Any],
) -> float:  # fmt: skip
    """Bounds of entries and of other next states, and optimistic rewards; returns η_k.

    Where the lower bounds leave less than η_k for s̄ (narrow sets, a small c), they are shrunk by a common factor
    until they do not.
    """
    log, eta = log_term(n_states, n_actions, t, delta), perturbation(span, reward_max, t)
    for k in range(visits.size):
        n = visits[k]
        if n == 0:
            unseen[k], r[k] = 1.0, reward_max
            for j in range(indptr[k], indptr[k + 1]):
                lower[j], upper[j] = 0.0, 1.0
            continue
        unseen[k] = min(1.0, width(0.0, log, n, 1.0, scale))
        others = 0.0
        for j in range(indptr[k], indptr[k + 1]):
            w = width(entry_variance(p[j]), log, n, 1.0, scale)
            lower[j], upper[j] = max(0.0, p[j] - w), min(1.0, p[j] + w)
            if indices[j] != ATTRACTIVE:
                others += lower[j]
        if others > 1.0 - eta:
            for j in range(indptr[k], indptr[k + 1]):
                if indices[j] != ATTRACTIVE:
                    lower[j] *= (1.0 - eta) / others
        spread = reward_variance(reward_sum[k], reward_squares[k], n)
        r[k] = min(reward_max, reward_sum[k] / n + width(spread, log, n, reward_max, scale))
    return eta


class SCAL(ExtendedAgent):
    r"""SCAL (Fruit, Pirotta, Lazaric & Ortner 2018), told a bound c = `span` on the span of the optimal bias.

    r and each p(s') within sqrt(14σ̂²b/N⁺) + (49/3)·range·b/max{1,N-1} of the estimate, b = ln(2SAt_k/δ). Rows
    keep p(s̄) ≥ η_k = r_max/(c·t_k), s̄ = state 0; planning is extended value iteration cut to span c (ScOpt on the
    extended MDP), to precision r_max/√t_k. Where the constraint cuts, the greedy action is mixed with its own copy of
    reward 0, so that the policy executed is deterministic. With probability 1-δ the regret is
    Õ(max{c, r_max}·sqrt(ΓSAT)) if c ≥ sp(h*). The perturbation lowers the optimistic gain by at most c·η_k = r_max/t_k.

    >>> agent = SCAL(n_states=2, n_actions=2, span=1.0)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self, n_states: int, n_actions: int, *, span: float, reward_max: float = 1.0, reward_min: float = 0.0,
        delta: float = 0.05, seed: int = 0, allowed: ArrayLike | None = None, width_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed,
            width_scale=width_scale,
        )  # fmt: skip
        if not (finite(span) and span > 0.0):
            raise InvalidArgumentError(f"span is {span}, expected a finite number above 0")
        self.span = float(span)

    def settings(self) -> dict[str, Any]:
        """The arguments that make this agent again."""
        return {**super().settings(), "span": self.span}

    @property
    def guarantee(self) -> Guarantee:
        """The theorem, as far as the constants are its own."""
        return Guarantee(
            bound=f"regret Õ(max{{c, r_max}}·sqrt(Γ·S·A·T)) with probability {1 - self.delta:g}",
            assumptions=(f"the optimal bias has span at most c = {self.span:g}", "the MDP is weakly communicating"),
            source="Fruit, Pirotta, Lazaric & Ortner 2018, theorem on SCAL",
            reason_void=self.scaled,
        )

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Span-constrained extended value iteration over the perturbed intervals, to precision r_max/√t."""
        rows = empirical_rows(statistics, self.allowed)
        lower, upper = np.empty(rows.p.size), np.empty(rows.p.size)
        unseen, r = np.empty(statistics.visits.size), np.empty(statistics.visits.size)
        eta = scal_sets(
            *rows, statistics.visits, statistics.reward_sum, statistics.reward_squares, self.n_states, self.n_actions,
            t, self.delta, self.width_scale, self.span, self.reward_range, lower, upper, unseen, r,
        )  # fmt: skip
        sets = Intervals(
            lower, upper, unseen.reshape(self.n_states, self.n_actions), floor_state=ATTRACTIVE, floor=float(eta)
        )
        return self.extended_plan(rows, sets, r, t, unseen >= 1.0, span=self.span)
