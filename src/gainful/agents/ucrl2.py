"""UCRL2 (Jaksch, Ortner & Auer 2010)."""

from __future__ import annotations

from gainful._compiled import inlined, kernel
from gainful.agents.episodic import EpisodePlan
from gainful.agents.extended import ExtendedAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.sets import SIMPLEX, Balls, SetConstants, Sums, capped_reward, empty_balls, sums_of
from gainful.agents.statistics import Statistics
from gainful.optimism.ucrl2 import reward_log, reward_width, transition_log, transition_radius


@kernel
def l1_sets(sums: Sums, t: int, constants: SetConstants, out: Balls) -> None:
    """The ℓ₁ radius and the optimistic reward of every pair."""
    sums, c, out = Sums(*sums), SetConstants(*constants), Balls(*out)
    of_rewards, of_rows = reward_log(c.n_states, c.n_actions, t, c.delta), transition_log(c.n_actions, t, c.delta)
    for k in range(sums.visits.size):
        write_ball(sums, c, of_rewards, of_rows, k, out)


@inlined
def write_ball(sums: Sums, c: SetConstants, of_rewards: float, of_rows: float, k: int, out: Balls) -> None:
    """The ℓ₁ radius and the optimistic reward of pair k, given the two logarithms."""
    n = sums.visits[k]
    if n == 0:
        out.radius[k], out.rewards[k] = SIMPLEX, c.reward_max
    else:
        out.radius[k] = min(SIMPLEX, transition_radius(c.n_states, of_rows, n, c.scale))
        out.rewards[k] = capped_reward(sums, k, reward_width(of_rewards, n, c.reward_max, c.scale), c.reward_max)


class UCRL2(ExtendedAgent):
    r"""UCRL2 (Jaksch, Ortner & Auer 2010): ℓ₁ balls around the empirical rows, extended value iteration.

    |r̃ - r̄| ≤ r_max·sqrt(7 ln(2SAt_k/δ)/(2N⁺)) and ‖p̃ - p̄‖₁ ≤ sqrt(14 S ln(2At_k/δ)/N⁺), N⁺ = max{1,N}.
    With probability 1-δ the regret is at most 34·r_max·D·S·sqrt(A·T·ln(T/δ)) in an MDP of diameter D. The balls are the
    whole simplex until N > 3.5·S·ln(2At/δ): for its first 10⁴ - 10⁵ steps UCRL2 ignores what it sees (`vacuous`).

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    width_scale : float
        Multiplies every radius and width. The guarantee holds for 1 only.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.UCRL2(n_states=2, n_actions=2)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem, void if the constants were changed; its order only if episodes are shorter."""
        bound = "at most 34·r_max·D·S·sqrt(A·T·ln(T/δ))"
        if not self.is_doubling:
            bound = f"Õ({self.order_with_episodes('r_max·D·S·sqrt(A·T)', 'r_max·D')})"
        return Guarantee(
            bound=f"regret {bound} with probability {1 - self.delta:g}",
            assumptions=("the MDP is communicating, of finite diameter D",),
            source=self.source_with_episodes("Jaksch, Ortner & Auer 2010, theorem 2"),
            reason_void=self.scaled,
            communicating=True,
        )

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Extended value iteration over the ℓ₁ balls, to precision r_max/√t."""
        balls = empty_balls(statistics.visits.size)
        l1_sets(sums_of(statistics), t, self.set_constants, tuple(balls))
        return self.plan_over(self.l1_models(statistics, balls), t)
