"""A count-based bonus β/√N̂ that does not know the span: what deep reinforcement learning adds to rewards."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episodic import EpisodePlan
from gainful.agents.guarantee import Guarantee
from gainful.agents.planning_agent import Episodes, PlanningAgent
from gainful.agents.saved_arrays import check_saved
from gainful.agents.statistics import Statistics
from gainful.arguments import AddedLater, real
from gainful.optimism.count_bonus import CountBonusRewards, count_bonus
from gainful.planning.scopt_on_counts import FullScOpt
from gainful.pseudo_counts.named import EXACT
from gainful.pseudo_counts.provider import BonusCounts, Counts

COUNT_BONUS_DAMPING = 0.9
"""θ of v ← (1-θ)v + θTv, with which periodic MDPs need no more sweeps than others."""


class CountBonus(PlanningAgent):
    r"""SCAL+ without the span: a count-based bonus β/√N̂, with exact counts or pseudo-counts.

    At the beginning of an episode it plans the largest gain, to precision r_max/√t_k, of the model of SCAL+,
    p̂(s'|s,a) = (N(s,a,s') + 1{s' = state 0})/(N(s,a) + 1), with rewards r̄(s,a) + β/sqrt(max{1, N̂(s,a)}), r̄ = 0 if
    N = 0. The values may have any span. β is a number that nobody has derived, as in deep reinforcement learning
    (Bellemare et al. 2016, Tang et al. 2017); a plan is optimistic if β ≥ (sp(h*) + r_max)·sqrt(ln(1/δ)/2) or so, and
    under-explores below that (Qian, Fruit, Pirotta & Lazaric, conclusion; docs/claims/count_bonus.md).

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    beta : float
        β, in units of the reward; at least 0.
    counts : str or object
        N̂: "exact" (the visits N), "simhash:bits=4", "modulo:buckets=4" or "density" by name; a `HashedCounts` or a
        `DensityCounts`; or an object of your own with `table(visits)`, or with `update(state, action)` and
        `count(state, action)`, for which steps are made in Python (docs/howto/pseudo_counts.md).
    reward_max, reward_min, seed, allowed
        As for `SCALPlus`.
    delta : float
        Unused; every agent accepts it.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.CountBonus(n_states=4, n_actions=2, beta=0.5, counts=gf.HashedCounts([0, 0, 1, 1]))
    >>> agent.observe(0, agent.act(0), 0.5, 1)
    >>> agent.pseudo_counts().tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """

    bonus_counts: BonusCounts

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        beta: float = 1.0,
        counts: Counts = EXACT,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
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
        self.beta = real("beta", beta, 0.0)
        self.bonus_counts = BonusCounts(counts, self.n_states, self.n_actions)
        self._possible = self.allowed.reshape(-1)
        self._planner = FullScOpt(
            self.n_states, self.n_actions, math.inf, self.allowed, damping=COUNT_BONUS_DAMPING
        )  # sweeps without a bound on the span

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Plan on the estimated MDP with bonus, to precision r_max/√t."""
        rewards = self._rewards(statistics, t)
        found = self._planner.plan(statistics, rewards, precision=self.reward_range / math.sqrt(t))
        return EpisodePlan(
            actions=found.actions,
            gain_bounds=(found.low + self.reward_min, found.high + self.reward_min),
            values=found.values,
            sweeps=found.sweeps,
            span=found.span,
            multiplier=self.multiplier(t, found.span),
            details={"bonus": rewards.bonus.reshape(self.allowed.shape), "rewards": self._planner.rewards.copy()},
        )

    def _rewards(self, statistics: Statistics, t: int) -> CountBonusRewards:
        """r̄ + β/√N̂ at step t."""
        bonus = count_bonus(self.beta, self.bonus_counts.table(statistics.visits))
        return CountBonusRewards(statistics.visits, statistics.reward_sum, bonus, self._possible, t)

    def pseudo_counts(self) -> NDArray[np.float64]:
        """Compute N̂ of every pair.

        Returns
        -------
        ndarray of shape (S, A)

        Examples
        --------
        >>> CountBonus(n_states=2, n_actions=1).pseudo_counts().tolist()
        [[0.0], [0.0]]
        """
        return self.bonus_counts.table(self.statistics.visits).reshape(self.allowed.shape)

    def bonuses(self) -> NDArray[np.float64]:
        """Compute the bonus of every pair if a plan were made now: what is added to its mean reward.

        Returns
        -------
        ndarray of shape (S, A)
            In the user's units of reward.

        Examples
        --------
        >>> CountBonus(n_states=2, n_actions=1, beta=0.5).bonuses().tolist()
        [[0.5], [0.5]]
        """
        return count_bonus(self.beta, self.pseudo_counts())

    @property
    def guarantee(self) -> Guarantee:
        """No guarantee: β knows nothing of the span."""
        return Guarantee(
            bound="none",
            assumptions=(),
            source="Qian, Fruit, Pirotta & Lazaric, conclusion",
            reason_void="a bonus β/√N̂ that is not scaled by the span of the optimal bias need not be optimistic",
        )

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "beta": self.beta, "counts": self.bonus_counts.settings()}

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """What the next plan starts from."""
        return self._planner.arrays()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that `own_arrays` returned."""
        check_saved(arrays, "values", np.empty(self.n_states))
        self._planner.restore(arrays, self.statistics)
