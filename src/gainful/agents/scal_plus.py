"""SCAL+: an exploration bonus and a span constraint (Qian, Fruit, Pirotta & Lazaric, sec. 3)."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episodic import EpisodePlan
from gainful.agents.guarantee import Guarantee
from gainful.agents.planning_agent import Episodes, PlanningAgent
from gainful.agents.saved_arrays import check_saved
from gainful.agents.scal_plus_bonuses import BONUSES, OptimisticRewards
from gainful.agents.scal_plus_bonuses import Bonus as Bonus
from gainful.agents.statistics import Statistics
from gainful.arguments import AddedLater, finite
from gainful.errors import InvalidArgumentError
from gainful.optimism.bernstein_scal_plus import BernsteinRewards
from gainful.optimism.scal_plus import BonusConstants
from gainful.planning.bernstein_scopt import BernsteinScOpt, always_capped
from gainful.planning.local_scopt import LOCAL_FROM_PAIRS, LocalScOpt
from gainful.planning.mixture import Mixture as Mixture
from gainful.planning.scopt_on_counts import FullScOpt, ScOptPlan

Replanning: TypeAlias = Literal["full", "local"]


class SCALPlus(PlanningAgent):
    r"""SCAL+ (Qian, Fruit, Pirotta & Lazaric, sec. 3): an exploration bonus under a bound on the span of the bias.

    At the beginning of episode k it plans by ScOpt(c), to precision ε_k = r_max/√t_k, on the MDP with
    p̂(s'|s,a) = (N(s,a,s') + 1{s' = s̄})/(N(s,a) + 1), s̄ = state 0, and rewards r̄ + b_k, where with
    β = sqrt(7 ln(2SAt_k/δ)/max{1,N}) the bonus b_k is c·min{β + 1/(N+1), 2} + r_max·min{β, 1} (`bonus="appendix"`) or
    (c + r_max)·β + c/(N+1) (`bonus="main text"`).
    With probability 1-δ the regret is Õ(max{c, r_max}·sqrt(ΓSAT)) if c ≥ sp(h*)
    (Qian, Fruit, Pirotta & Lazaric, theorem on SCAL+).

    `bonus="sharp"` keeps p̂ and the operator and replaces the rewards by r̃ + b, where with
    β = sqrt((1 + 1/N)·ln(1/2 + S·sqrt(N+1)/δ)/(2N)) r̃ = min{r_max, r̄ + r_max·β} and b = c·min{1, (N·β + 1)/(N + 1)};
    r_max and c if N = 0. Optimism is needed at h* alone, one fixed function, so neither A nor t enters, and the bound
    of one mean is enough. The regret is Õ(max{c, r_max}·sqrt(ΓSAT)) with probability 1-3δ, and every plan is optimistic
    with probability 1-δ (docs/kl_scal_plus.md, theorem 11).

    `bonus="bernstein"` uses the variance of the values instead: with x = ln(4S·N(N+1)/δ)/(N-1)
    b = min{c, max{(3/√2)·sqrt(Var_p̄(v)·x), 7c·x} + c/(N+1)}, c if N < 2, and r̃ by the KL bound of the mean reward.
    It is monotone in v and contracts (`gainful.planning.bernstein_scopt`), so that plans are optimistic with
    probability 1-δ; regret Õ(sqrt(r_max·c·ΓSAT) + cS²A) is sketched in docs/kl_scal_plus.md, not proven. It plans in
    full.

    `bonus="authors"` has the constants of the authors' own experiments: b_k = (c + r_max)/2 · sqrt(ln(SA·sqrt(t_k+1))/
    max{1,N}), also if N = 0, without c/(N+1), and r̄ + b_k is at most 3(c + r_max). Nothing is proven about it; it is
    there to repeat their figures.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    span : float
        c, an upper bound on the span of the optimal bias; at least 0.
    reward_max, reward_min : float
        Every reward lies between them; r_max of the theory is their difference.
    delta : float
        δ, the probability with which the guarantee may fail.
    seed : int
        The seed of the agent's own randomness, which only mixtures of actions use.
    allowed : array_like of bool, shape (S, A), optional
        The actions that each state has; all by default.
    bonus : {"appendix", "main text", "sharp", "bernstein", "authors"}
        One of the paper's two bonuses, of which the appendix's is tighter and has the same proof, one of ours, or the
        one of the authors' experiments, which has no guarantee.
    bonus_scale : float
        Multiplies β, the two logarithms of the Bernstein bonus, or all of the authors'. The guarantee holds for 1 only.
    mixture : {"copy", "min-action"}
        Where the span constraint cuts, the greedy action is mixed with its own copy of reward 0, so that the policy
        executed is deterministic ("copy"), or with the worst of all copies ("min-action": the policy of Fruit et al.
        2018, which draws its actions there, and needs full re-planning). The proofs of "sharp" and "bernstein" are for
        "copy" only.
    replanning : {"full", "local"}, optional
        "full" sweeps the whole model in every episode. "local" repairs the last plan around what has changed
        (`gainful.planning.local_scopt`), to the same certified ε_k: the rows not visited since keep the bonus of an
        earlier step, and the bracket is widened by the most that the logarithm can have moved it. By default the
        number of pairs S·A decides.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Examples
    --------
    >>> agent = SCALPlus(n_states=2, n_actions=2, span=1.0)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        span: float,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        bonus: Bonus = "appendix",
        bonus_scale: float = 1.0,
        mixture: Mixture = "copy",
        replanning: Replanning | None = None,
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
        if not (finite(span) and span >= 0.0):
            raise InvalidArgumentError("span", span, "a finite number of at least 0")
        variant = next((one for name, one in BONUSES.items() if name == bonus), None)
        if variant is None:
            raise InvalidArgumentError("bonus", bonus, "'appendix', 'main text', 'sharp', 'bernstein' or 'authors'")
        if not (finite(bonus_scale) and bonus_scale > 0.0):
            raise InvalidArgumentError("bonus_scale", bonus_scale, "a positive number", "the theorem's is 1")
        if replanning not in (None, "full", "local"):
            raise InvalidArgumentError("replanning", replanning, "'full' or 'local'")
        if mixture not in ("copy", "min-action"):
            raise InvalidArgumentError("mixture", mixture, "'copy' or 'min-action'")
        if replanning == "local" and mixture == "min-action":
            raise InvalidArgumentError(
                "replanning",
                replanning,
                "'full'",
                "a local plan is deterministic",
                problem="mixture is 'min-action' and replanning is 'local'",
            )
        if replanning == "local" and not variant.repairable:
            raise InvalidArgumentError(
                "replanning",
                replanning,
                "'full'",
                "a bonus that depends on the values of all next states cannot be repaired row by row",
                problem=f"bonus is {bonus!r} and replanning is 'local'",
            )
        self.span, self.bonus_scale = float(span), float(bonus_scale)
        self.bonus: Bonus = bonus
        self._variant = variant
        self.mixture: Mixture = mixture
        large = self.n_states * self.n_actions >= LOCAL_FROM_PAIRS and mixture == "copy" and variant.repairable
        self.replanning: Replanning = replanning or ("local" if large else "full")
        self.model_error = 0.0
        """Added to every bonus: what a model of cells may be wrong by (C-SCAL+)."""
        self.n_deviations = self.n_states
        """The pairs whose deviations the sharp bonus bounds: one in each state, but on cells all of them."""
        self._possible = self.allowed.reshape(-1)
        self._planner: FullScOpt | LocalScOpt
        if self.replanning == "local":
            self._planner = LocalScOpt(self.n_states, self.n_actions, self.span, variant.damping)
        else:
            sizes = self.n_states, self.n_actions
            self._planner = variant.planner(*sizes, self.span, self.allowed, mixture, variant.damping)

    # ------------------------------------------------------------------ the algorithm

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Plan episode k, which begins at step t: steps 2 and 3 of the paper's figure 1."""
        rewards: Any = self._optimism(statistics.visits, statistics.reward_sum, t)  # r̄ + b_k, eq. (5)
        found = self._planner.plan(statistics, rewards, precision=self.reward_range / math.sqrt(t))  # ScOpt on p̂
        return EpisodePlan(
            actions=found.actions,
            gain_bounds=(found.low + self.reward_min, found.high + self.reward_min),
            values=found.values,
            sweeps=found.sweeps,
            probabilities=found.probabilities,
            multiplier=self.multiplier(t, found.span),
            span=found.span,
            details=self._details(statistics, t, found),
        )

    def _optimism(self, visits: NDArray[np.int64], reward_sum: NDArray[np.float64], t: int) -> OptimisticRewards:
        """The rewards that these visits justify at step t."""
        return self._variant.rewards(self, visits, reward_sum, t)

    @property
    def constants(self) -> BonusConstants:
        """The quantities other than the step and the visits on which the paper's bonuses depend."""
        return self._variant.constants(self)

    def bonuses(self) -> NDArray[np.float64]:
        """Compute the bonus of every pair if a plan were made now: what is added to its mean reward.

        Returns
        -------
        ndarray of shape (S, A)
            In the user's units of reward.

        Examples
        --------
        >>> SCALPlus(n_states=2, n_actions=2, span=1.0).bonuses().tolist()  # nothing seen: the cap, 2c + r_max
        [[3.0, 3.0], [3.0, 3.0]]
        """
        return self._bonuses(self.statistics, self.t + 1)

    def _bonuses(self, statistics: Statistics, t: int) -> NDArray[np.float64]:
        """(S,A) the bonuses at step t; the Bernstein bonus at the values of the last plan."""
        optimism = self._optimism(statistics.visits, statistics.reward_sum, t)
        if isinstance(optimism, BernsteinRewards):
            everywhere = optimism._replace(allowed=np.ones(self._possible.size, dtype=bool))
            b = self._bernstein_rewards(statistics, everywhere) - statistics.reward_sum / np.maximum(
                1, statistics.visits
            )
        else:
            b = optimism.added()
        return b.reshape(self.n_states, self.n_actions)

    def _bernstein_rewards(self, statistics: Statistics, optimism: BernsteinRewards) -> NDArray[np.float64]:
        """(S*A,) r̃ and the bonus at the values of the last plan together."""
        assert isinstance(self._planner, BernsteinScOpt)
        return self._planner.optimistic_rewards(statistics, optimism)

    # ------------------------------------------------------------------ bonuses and guarantee

    @property
    def vacuous(self) -> bool:
        """Whether the last plan ignored the data: every pair's bonus was so wide that its cap was reached."""
        if self.current is None:
            return True
        before = self.visits_before
        optimism = self._optimism(before, np.zeros(before.size), self.planned_at + 1)
        if isinstance(optimism, BernsteinRewards):
            return always_capped(optimism, self._possible, before)
        return bool(np.min(optimism.added()[self._possible]) - self.model_error >= self.span + self.reward_range)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem, void if the constants were changed."""
        bound, source = self._variant.theorem(self)
        assumed = f"the optimal bias has span at most c = {self.span:g}", "the MDP is weakly communicating"
        return Guarantee(bound, assumed, self.source_with_episodes(source), self.reason_void, span=self.span)

    @property
    def reason_void(self) -> str:
        """Which choice voids the guarantee; empty if none does."""
        return self._variant.reason_void(self)

    def _details(self, statistics: Statistics, t: int, found: ScOptPlan) -> dict[str, Any]:
        """For `on_episode`: the bonus b_k (S,A), and the rewards (S*A,) that the plan was made with.

        These are r̄ + b_k, or less by at most `drift` where a local plan keeps the bonus of an earlier step.
        """
        if self.on_episode is None:
            return {}
        b, rewards = self._bonuses(statistics, t), self._planner.rewards.copy()
        optimism = self._optimism(statistics.visits, statistics.reward_sum, t)
        if isinstance(optimism, BernsteinRewards):
            rewards = self._bernstein_rewards(statistics, optimism)
        return {"bonus": b, "rewards": rewards, "drift": found.drift, "repaired": found.repaired}

    # ------------------------------------------------------------------ files

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {
            **super().settings(),
            "span": self.span,
            "bonus": self.bonus,
            "bonus_scale": self.bonus_scale,
            "mixture": self.mixture,
            "replanning": self.replanning,
        }

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """What the next plan starts from."""
        return self._planner.arrays()

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that `own_arrays` returned."""
        check_saved(arrays, "values", np.empty(self.n_states))
        if "rewards" in arrays:
            check_saved(arrays, "rewards", np.empty(self.n_states * self.n_actions), allowed=self.allowed)
        if "band" in arrays:
            check_saved(arrays, "band", np.empty(arrays["band"].shape))
        if "numbers" in arrays:
            check_saved(arrays, "numbers", np.empty(arrays["numbers"].shape, dtype=np.int64), low=0, high=self.t + 1)
        self._planner.restore(arrays, self.statistics)
