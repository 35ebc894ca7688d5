"""UCRL2 (Jaksch, Ortner & Auer 2010)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.empirical import empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.statistics import Statistics
from gainful.optimism.ucrl2 import reward_log, reward_width, transition_log, transition_radius
from gainful.planning.confidence import L1Ball

SIMPLEX = 2.0  # an ℓ₁ ball of this radius is every distribution


@kernel
def l1_sets(
    visits: NDArray[Any], reward_sum: NDArray[Any], n_states: int, n_actions: int, t: int, delta: float, scale: float,
    reward_max: float, radius: NDArray[Any], r: NDArray[Any],
) -> None:  # fmt: skip
    """The ℓ₁ radius and the optimistic reward of every pair."""
    of_rewards, of_rows = reward_log(n_states, n_actions, t, delta), transition_log(n_actions, t, delta)
    for k in range(visits.size):
        if visits[k] == 0:
            radius[k], r[k] = SIMPLEX, reward_max
            continue
        radius[k] = min(SIMPLEX, transition_radius(n_states, of_rows, visits[k], scale))
        r[k] = min(reward_max, reward_sum[k] / visits[k] + reward_width(of_rewards, visits[k], reward_max, scale))


class UCRL2(ExtendedAgent):
    r"""UCRL2 (Jaksch, Ortner & Auer 2010): ℓ₁ balls around the empirical rows, extended value iteration.

    |r̃ - r̄| ≤ r_max·sqrt(7 ln(2SAt_k/δ)/(2N⁺)) and ‖p̃ - p̄‖₁ ≤ sqrt(14 S ln(2At_k/δ)/N⁺), N⁺ = max{1,N}.
    With probability 1-δ the regret is at most 34·r_max·D·S·sqrt(A·T·ln(T/δ)) in an MDP of diameter D. The balls are the
    whole simplex until N > 3.5·S·ln(2At/δ): for its first 10⁴ - 10⁵ steps UCRL2 ignores what it sees (`vacuous`).

    >>> agent = UCRL2(n_states=2, n_actions=2)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    @property
    def guarantee(self) -> Guarantee:
        """The theorem, as far as the constants are its own."""
        return Guarantee(
            bound=f"regret at most 34·r_max·D·S·sqrt(A·T·ln(T/δ)) with probability {1 - self.delta:g}",
            assumptions=("the MDP is communicating, of finite diameter D",),
            source="Jaksch, Ortner & Auer 2010, theorem 2",
            reason_void=self.scaled,
        )

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Extended value iteration over the ℓ₁ balls, to precision r_max/√t."""
        radius, r = np.empty(statistics.visits.size), np.empty(statistics.visits.size)
        l1_sets(
            statistics.visits, statistics.reward_sum, self.n_states, self.n_actions, t, self.delta, self.width_scale,
            self.reward_range, radius, r,
        )  # fmt: skip
        rows = empirical_rows(statistics, self.allowed)
        ball = L1Ball(radius.reshape(self.n_states, self.n_actions))
        return self.extended_plan(rows, ball, r, t, radius >= SIMPLEX)
