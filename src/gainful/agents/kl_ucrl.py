"""KL-UCRL: UCRL2 with Kullback-Leibler balls."""

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
from gainful.optimism.kl import reward_constant, reward_width, transition_constant, transition_radius
from gainful.planning.confidence import KLBall

UNINFORMATIVE = 2.0
"""The KL radius from which on Pinsker's inequality, ‖p - p̄‖₁ ≤ sqrt(2·KL), says nothing."""


@kernel
def kl_sets(
    visits: NDArray[Any], reward_sum: NDArray[Any], n_states: int, n_actions: int, horizon: float, delta: float,
    scale: float, reward_max: float, radius: NDArray[Any], r: NDArray[Any],
) -> None:  # fmt: skip
    """The KL radius and the optimistic reward of every pair."""
    of_rows = transition_constant(n_states, n_actions, horizon, delta)
    of_rewards = reward_constant(n_states, n_actions, horizon, delta)
    for k in range(visits.size):
        if visits[k] == 0:
            radius[k], r[k] = np.inf, reward_max
            continue
        radius[k] = transition_radius(of_rows, visits[k], scale)
        r[k] = min(reward_max, reward_sum[k] / visits[k] + reward_width(of_rewards, visits[k], reward_max, scale))


class KLUCRL(ExtendedAgent):
    r"""KL-UCRL (Filippi, Cappé & Garivier 2010), told the number of steps T = `horizon` it will live.

    KL(p̄, p̃) ≤ C_p/N⁺ and |r̃ - r̄| ≤ r_max·C_r/√N⁺, N⁺ = max{1,N}, with B = ln(2e·S²A·ln T/δ),
    C_p = S(B + ln(B + 1/ln T)(1 + 1/(B + 1/ln T))) and C_r = sqrt(ln(4SA·ln T/δ)/1.99). `width_scale` multiplies the
    KL radius and the width of rewards. With probability 1-δ the regret is Õ(r_max·D·S·sqrt(AT)), D the diameter.
    `vacuous` here means that every radius is at least 2, where Pinsker's inequality no longer keeps p̃ near p̄.

    >>> agent = KLUCRL(n_states=2, n_actions=2, horizon=1000)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self, n_states: int, n_actions: int, *, horizon: float, reward_max: float = 1.0, reward_min: float = 0.0,
        delta: float = 0.05, seed: int = 0, allowed: ArrayLike | None = None, width_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed,
            width_scale=width_scale,
        )  # fmt: skip
        if not (finite(horizon) and horizon >= 2 and horizon == int(horizon)):
            raise InvalidArgumentError(f"horizon is {horizon}, expected a whole number of steps, at least 2")
        self.horizon = int(horizon)

    def settings(self) -> dict[str, Any]:
        """The arguments that make this agent again."""
        return {**super().settings(), "horizon": self.horizon}

    @property
    def guarantee(self) -> Guarantee:
        """The theorem, as far as the constants are its own and the horizon has not passed."""
        late = f"{self.t} steps lived, more than the horizon of {self.horizon}" if self.t > self.horizon else ""
        return Guarantee(
            bound=f"regret Õ(r_max·D·S·sqrt(A·T)) with probability {1 - self.delta:g} at T = {self.horizon}",
            assumptions=("the MDP is communicating, of finite diameter D",),
            source="Filippi, Cappé & Garivier 2010, theorem on KL-UCRL",
            reason_void=self.scaled or late,
        )

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Extended value iteration over the Kullback-Leibler balls, to precision r_max/√t."""
        radius, r = np.empty(statistics.visits.size), np.empty(statistics.visits.size)
        kl_sets(
            statistics.visits, statistics.reward_sum, self.n_states, self.n_actions, float(self.horizon), self.delta,
            self.width_scale, self.reward_range, radius, r,
        )  # fmt: skip
        rows = empirical_rows(statistics, self.allowed)
        ball = KLBall(radius.reshape(self.n_states, self.n_actions))
        return self.extended_plan(rows, ball, r, t, radius >= UNINFORMATIVE)
