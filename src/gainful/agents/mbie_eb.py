"""MBIE-EB: discounted planning with a bonus β/√N (Strehl & Littman, JCSS 74, 2008)."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.agents.empirical import empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.guarantee import Guarantee
from gainful.agents.planning_agent import Episodes, PlanningAgent
from gainful.agents.sets import SetConstants, Sums, sums_of
from gainful.agents.statistics import Statistics
from gainful.arguments import AddedLater, number_of, positive_scale, real
from gainful.mdp.model import MDP
from gainful.optimism.count_bonus import count_bonus
from gainful.optimism.mbie_eb import bonus, coefficient, confidence_log
from gainful.planning.discounted import discounted_value_iteration
from gainful.pseudo_counts.named import EXACT
from gainful.pseudo_counts.provider import BonusCounts, Counts

MBIE_EB_MAX_SWEEPS = 1_000_000


@kernel
def rewards_with_bonus(
    sums: Sums, m: int, discount: float, constants: SetConstants, bonuses: NDArray[Any], out: NDArray[Any]
) -> None:
    """r̄ + β/√N for every pair; the largest such number, r_max + β, where N = 0."""
    sums, c = Sums(*sums), SetConstants(*constants)
    beta = coefficient(confidence_log(c.n_states, c.n_actions, m, c.delta), discount, c.reward_max, c.scale)
    for k in range(sums.visits.size):
        n = sums.visits[k]
        bonuses[k] = bonus(beta, n)
        out[k] = bonuses[k] + (sums.rewards[k] / n if n > 0 else c.reward_max)


class MBIEEB(PlanningAgent):
    r"""MBIE-EB (Strehl & Littman 2008): discounted planning with a bonus β/√N.

    It plans Q(s,a) = r̄ + β/√N + γ·p̄·max_a' Q, β = r_max/(1-γ)·sqrt(ln(2SAm/δ)/2), to precision r_max/√t_k in the
    values. A pair never visited is worth the most this equation can give any pair, (r_max + β)/(1-γ): its row goes to
    an additional state that pays r_max + β forever.

    It differs in three ways from the published algorithm, which is made for discounted reward: it plans once per
    doubling episode, not at every step; counting continues beyond `m` visits (m only enters the logarithm); an
    unvisited pair is worth more than the published 1/(1-γ), with which it would lose to any pair seen once.
    The gain recorded is that of the discounted policy in the optimistic model: it lies in (1-γ)·[min V, max V].

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    discount : float
        γ in [0, 1).
    m : int
        The number of visits after which the published algorithm stops counting; here it only enters the logarithm.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`.
    bonus_scale : float
        Multiplies β.
    counts : str or object
        What stands for N in the bonus: the visits ("exact"), or pseudo-counts as for `CountBonus`. A pair that was
        never visited stays worth the most, whatever its pseudo-count.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.MBIEEB(n_states=2, n_actions=2, discount=0.9, m=100)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    bonus_counts: BonusCounts

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        discount: float,
        m: int,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        bonus_scale: float = 1.0,
        counts: Annotated[Counts, AddedLater(EXACT)] = EXACT,
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
            episodes=episodes,
        )
        self.discount = real("discount", discount, 0.0, 1.0, high_open=True)
        self.m, self.bonus_scale = number_of("visits", "m", m), positive_scale("bonus_scale", bonus_scale)
        self.bonus_counts = BonusCounts(counts, self.n_states, self.n_actions)

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {
            **super().settings(),
            "discount": self.discount,
            "m": self.m,
            "bonus_scale": self.bonus_scale,
            "counts": self.bonus_counts.settings(),
        }

    @property
    def guarantee(self) -> Guarantee:
        """No guarantee for the average reward."""
        return Guarantee(
            bound="none",
            assumptions=(),
            source="Strehl & Littman 2008",
            reason_void="MBIE-EB's theorem counts steps far from the best discounted value (PAC-MDP); "
            "it bounds no average-reward regret",
        )

    @property
    def vacuous(self) -> bool:
        """Whether every bonus is still at least r_max/(1-γ), the largest possible value."""
        bonuses, _ = self._optimistic_rewards(self.statistics)
        return bool(np.min(bonuses[self.allowed.reshape(-1)]) >= self.reward_range / (1.0 - self.discount))

    def _optimistic_rewards(self, statistics: Statistics) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(S*A,) bonuses and rewards with them."""
        bonuses, r = np.empty(statistics.visits.size), np.empty(statistics.visits.size)
        constants = (self.n_states, self.n_actions, self.delta, self.bonus_scale, self.reward_range)
        rewards_with_bonus(sums_of(statistics), self.m, self.discount, constants, bonuses, r)
        if self.bonus_counts.is_exact:
            return bonuses, r
        visits = np.maximum(1, statistics.visits)
        beta = float(bonuses[0] * math.sqrt(visits[0]))
        pseudo = count_bonus(beta, self.bonus_counts.table(statistics.visits))
        return pseudo, np.where(statistics.visits > 0, statistics.reward_sum / visits + pseudo, r)

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Discounted value iteration on the estimated MDP with bonus, to precision r_max/√t."""
        S, A = self.n_states, self.n_actions
        bonuses, r = self._optimistic_rewards(statistics)
        indptr, indices, probabilities = empirical_rows(statistics, self.allowed, S)
        table = r.reshape(S, A)
        if np.any(indices == S):  # the additional state: one action, to itself
            best = float(np.max(r[(statistics.visits == 0) & self.allowed.reshape(-1)]))  # r_max + β
            indptr = np.concatenate([indptr, np.full(A, indptr[-1] + 1)])
            indices, probabilities = np.append(indices, S), np.append(probabilities, 1.0)
            table = np.vstack([table, np.full(A, best)])
        start = np.zeros(table.shape[0])
        if self.current is not None:
            start[:S] = self.current.values
            start[S:] = start[:S].max()
        found = discounted_value_iteration(
            MDP.from_rows(indptr, indices, probabilities, table),
            self.discount,
            precision=self.reward_range / math.sqrt(t),
            max_sweeps=MBIE_EB_MAX_SWEEPS,
            start_values=start,
        )
        lower, upper = found.value_bounds
        low, high = (1.0 - self.discount) * float(lower.min()), (1.0 - self.discount) * float(upper.max())
        return EpisodePlan(
            actions=found.actions[:S].copy(),
            gain_bounds=(low + self.reward_min, high + self.reward_min),
            values=found.values[:S].copy(),
            sweeps=found.sweeps,
            multiplier=self.multiplier(t, float(np.ptp(found.values[:S]))),
            details={"bonus": bonuses.reshape(S, A), "rewards": r},
        )
