"""KL-UCRL: UCRL2 with Kullback-Leibler balls."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from gainful._compiled import kernel
from gainful.agents.empirical import empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent, PlausibleModels
from gainful.agents.guarantee import Guarantee
from gainful.agents.planning_agent import Episodes
from gainful.agents.sets import Balls, SetConstants, Sums, capped_reward, empty_balls, sums_of
from gainful.agents.statistics import Statistics
from gainful.arguments import AddedLater, number_of
from gainful.optimism.kl import reward_constant, reward_width, transition_constant, transition_radius
from gainful.planning.confidence import KLBall

UNINFORMATIVE = 2.0
"""The KL radius from which Pinsker's inequality, ‖p - p̄‖₁ ≤ sqrt(2·KL), no longer bounds anything."""


@kernel
def kl_sets(sums: Sums, horizon: float, constants: SetConstants, out: Balls) -> None:
    """The KL radius and the optimistic reward of every pair."""
    sums, c, out = Sums(*sums), SetConstants(*constants), Balls(*out)
    of_rows = transition_constant(c.n_states, c.n_actions, horizon, c.delta)
    of_rewards = reward_constant(c.n_states, c.n_actions, horizon, c.delta)
    for k in range(sums.visits.size):
        n = sums.visits[k]
        if n == 0:
            out.radius[k], out.rewards[k] = np.inf, c.reward_max
            continue
        out.radius[k] = transition_radius(of_rows, n, c.scale)
        out.rewards[k] = capped_reward(sums, k, reward_width(of_rewards, n, c.reward_max, c.scale), c.reward_max)


class KLUCRL(ExtendedAgent):
    r"""KL-UCRL (Filippi, Cappé & Garivier 2010): extended value iteration over Kullback-Leibler balls.

    KL(p̄, p̃) ≤ C_p/N⁺ and |r̃ - r̄| ≤ r_max·C_r/√N⁺, N⁺ = max{1,N}, with B = ln(2e·S²A·ln T/δ),
    C_p = S(B + ln(B + 1/ln T)(1 + 1/(B + 1/ln T))) and C_r = sqrt(ln(4SA·ln T/δ)/1.99). With
    probability 1-δ the regret is Õ(r_max·D·S·sqrt(AT)), D the diameter.
    `vacuous` here means that every radius is at least 2, where Pinsker's inequality no longer keeps p̃ near p̄.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    horizon : float
        The number of steps T that the agent will run for, a whole number of at least 2.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    width_scale : float
        Multiplies the KL radius and the width of rewards. The guarantee holds for 1 only.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.KLUCRL(n_states=2, n_actions=2, horizon=1000)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        horizon: float,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        width_scale: float = 1.0,
        episodes: Annotated[Episodes, AddedLater("doubling")] = "doubling",
    ) -> None:
        super().__init__(
            n_states,
            n_actions,
            reward_max=reward_max,
            reward_min=reward_min,
            delta=delta,
            seed=seed,
            allowed=allowed,
            width_scale=width_scale,
            episodes=episodes,
        )
        self.horizon = number_of("steps", "horizon", horizon, 2)

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "horizon": self.horizon}

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem, void if the constants were changed or the horizon has passed."""
        late = f"{self.t} steps observed, more than the horizon of {self.horizon}" if self.t > self.horizon else ""
        order = self.order_with_episodes("r_max·D·S·sqrt(A·T)", "r_max·D")
        return Guarantee(
            bound=f"regret Õ({order}) with probability {1 - self.delta:g} at T = {self.horizon}",
            assumptions=("the MDP is communicating, of finite diameter D",),
            source=self.source_with_episodes("Filippi, Cappé & Garivier 2010, theorem on KL-UCRL"),
            reason_void=self.scaled or late,
            communicating=True,
        )

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Extended value iteration over the Kullback-Leibler balls, to precision r_max/√t."""
        balls = empty_balls(statistics.visits.size)
        kl_sets(sums_of(statistics), float(self.horizon), self.set_constants, tuple(balls))
        rows = empirical_rows(statistics, self.allowed)
        confidence = KLBall(balls.radius.reshape(self.n_states, self.n_actions))
        return self.plan_over(PlausibleModels(rows, confidence, balls.rewards, balls.radius >= UNINFORMATIVE), t)
