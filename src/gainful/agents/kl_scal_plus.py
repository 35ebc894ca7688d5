"""KL-SCAL+: optimism at the optimal bias alone, by Kullback-Leibler balls, with or without a bound on the span."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episodic import EpisodePlan
from gainful.agents.guarantee import Guarantee
from gainful.agents.planning_agent import Episodes as Episodes
from gainful.agents.planning_agent import PlanningAgent, episode_multiplier
from gainful.agents.saved_arrays import check_saved
from gainful.agents.statistics import Statistics
from gainful.agents.tucrl import truncated_pairs
from gainful.arguments import AddedLater, choice, finite, positive_scale
from gainful.errors import InvalidArgumentError, NotConvergedError
from gainful.optimism.kl_scal_plus import kl_scal_plus_sets
from gainful.optimism.reward_variance import rewards_by_variance
from gainful.planning.estimated import TransitionCounts
from gainful.planning.kl_on_counts import KLPlan, KLPlanner

Unreachable: TypeAlias = Literal["tucrl"]
RewardBound: TypeAlias = Literal["mean", "variance"]
"""What of the rewards seen bounds a mean reward: their mean, or their mean and variance."""

Floats: TypeAlias = NDArray[np.float64]

KL_UNINFORMATIVE = 2.0
"""The KL radius from which Pinsker's inequality, ‖p - p̄‖₁ ≤ sqrt(2·KL), no longer bounds anything."""
KL_MAX_SWEEPS = 10_000_000
"""Sweeps after which a plan is given up; Ctrl-C is heard between batches."""


class KLSCALPlus(PlanningAgent):
    r"""KL-SCAL+: optimism at the optimal bias alone, by Kullback-Leibler balls; needs no bound on the span.

    For a pair with n ≥ 1 visits, ι_n = ln(S(S+1)/δ) + ½ ln n + ln 2, ρ = ι_n/n and r̃ = klup(r̄, ρ), the largest y with
    kl(r̄, y) ≤ ρ; for a pair never visited r̃ = r_max and ρ = ∞. With
    Lv(s) = max_a [r̃(s,a) + max{q·v : KL(p̄(·|s,a)‖q) ≤ ρ(s,a)}] and Tv = min{Lv, min Lv + c} it iterates
    v ← v + 0.9(Tv - v) until max(Tv - v) - min(Tv - v) ≤ ε_k = r_max/√t_k, and plays the greedy actions of L.

    The radius is that of a statement about one function, h*, at one action per state: it has no factor S and no t. With
    probability 1-3δ the regret is Õ(sqrt(r_max·min{c, r_max·D}·ΓSAT)) for all T at once, D the diameter, Γ the largest
    number of next states of a pair (docs/kl_scal_plus.md, theorem 10, with explicit constants).

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    span : float, optional
        c, an upper bound on the span of the optimal bias, at least 0. None needs every state to be reachable from every
        other; the plan's span is then bounded by the diameter.
    reward_max, reward_min : float
        Every reward lies between them; r_max of the theory is their difference.
    delta : float
        δ: each of three events may fail with this probability.
    seed : int
        The seed of the agent's own randomness, which it does not use.
    allowed : array_like of bool, shape (S, A), optional
        The actions that each state has; all by default.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        An episode ends before a pair would be executed more than max{1, ⌊f_k·N_k⌋} times in it. "doubling": f_k = 1.
        "vanishing": f_k = min{1, sqrt(SA·Ĥ_k/t_k)} with Ĥ_k = max{1, max_{j≤k} sp(v_j)/r_max}, which keeps the order of
        the bound. "vanishing-sqrt": f_k = sqrt(ln t_k/t_k), for which that order is not proven.
    unreachable : {"tucrl"}, optional
        What to do about states that may be unreachable if c is unknown. "tucrl" is the rule of TUCRL: a pair with
        max{1, N-1} > sqrt(t_k/(SA)) may not move to a state never visited, and reaching a new state ends the episode.
        There is no guarantee then.
    width_scale : float
        Multiplies ρ. The guarantee holds for 1 only.
    reward_bound : {"mean", "variance"}
        What of the rewards seen bounds their mean. "mean": r̃ = klup(r̄, ρ) as above. "variance": with V the variance of
        the rewards seen over r_max², x = r̄/r_max and a = x - V/(1-x), it is r̃ = r_max·(a + (1-a)·klup(w, ρ)),
        w = V/(V + (1-x)²). That is never more, the same for rewards that are all 0 or r_max, and about
        r̄ + r_max·sqrt(2Vρ) for many visits. The guarantee is the same.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.KLSCALPlus(n_states=2, n_actions=2)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    planner_class = KLPlanner
    """What plans: another one for plans within what is known about the bias (PMEVI-DT)."""
    hint_without_span = "give span, or unreachable='tucrl', if some states may be unreachable"
    """What to do if no plan is found and no span was given."""

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        span: float | None = None,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        episodes: Episodes = "doubling",
        unreachable: Unreachable | None = None,
        width_scale: float = 1.0,
        reward_bound: Annotated[RewardBound, AddedLater("mean")] = "mean",
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
        if span is not None and not (finite(span) and span >= 0.0):
            raise InvalidArgumentError("span", span, "a finite number of at least 0, or None for no bound")
        if unreachable not in (None, "tucrl"):
            raise InvalidArgumentError("unreachable", unreachable, "'tucrl' or None")
        self.span = None if span is None else float(span)
        self.unreachable: Unreachable | None = unreachable
        self.width_scale = positive_scale("width_scale", width_scale)
        self.reward_bound = choice("reward_bound", reward_bound, get_args(RewardBound))
        """What of the rewards seen bounds a mean reward."""
        self.model_error = 0.0
        """Added to the gain: what a model of cells may be wrong by (C-KL-SCAL+)."""
        cut = np.inf if self.span is None else self.span / self.reward_range
        self._planner = self.planner_class(self.n_states, self.n_actions, cut, self.allowed)
        self._possible = self.allowed.reshape(-1)
        self._planned_visits: NDArray[np.int64] = np.full(self._possible.size, -1, dtype=np.int64)
        self._most_span = 0.0  # max sp(v_j) so far, in units of r_max

    # ------------------------------------------------------------------ the algorithm

    @property
    def log_union(self) -> float:
        """ln(1/δ'), δ' = δ/(S(S+1)): for r and h* at the optimal actions, and for S(S-1) least expected times."""
        return math.log(self.n_states * (self.n_states + 1)) - math.log(self.delta)

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Plan episode k, which begins at step t, to precision r_max/√t."""
        self._renew_sets(statistics.visits, statistics.reward_sum, statistics.reward_squares)
        if self.unreachable == "tucrl":
            self._truncate(statistics.visits, t)
        found = self._planned(statistics, t)
        r_max = self.reward_range
        return EpisodePlan(
            actions=found.actions,
            gain_bounds=self._gain_bounds(found),
            values=r_max * found.values,
            sweeps=found.sweeps,
            multiplier=episode_multiplier(self.episode_rule, t, self._possible.size, self._most_span),
            stop_on_new_state=self.unreachable is not None,
            span=r_max * found.span,
            details=self._details(),
        )

    def _planned(self, counts: TransitionCounts, t: int) -> KLPlan:
        """The plan on these counts to precision 1/√t, in units of r_max; its span counts for the episodes to come."""
        try:
            found = self._planner.plan(counts, 1.0 / math.sqrt(t), KL_MAX_SWEEPS)
        except NotConvergedError as error:
            raise NotConvergedError(
                f"KL-SCAL+ cannot plan at step {t}: {error}",
                error.plan,
                found=error.found,
                hint=self.hint_without_span if self.span is None else "",
            ) from error
        self._most_span = max(self._most_span, found.span)
        return found

    def _gain_bounds(self, found: KLPlan) -> tuple[float, float]:
        """The bracket on the optimistic gain, in the user's units."""
        base = self.reward_min + self.model_error
        return base + self.reward_range * found.low, base + self.reward_range * found.high

    def _renew_sets(self, visits: NDArray[np.int64], reward_sum: Floats, reward_squares: Floats | None = None) -> None:
        """ρ and r̃ of the pairs whose visits are not those of the last plan."""
        sums, pairs = (visits, reward_sum, self._possible, self._planned_visits), tuple(self._planner.pairs)
        constants = (self.log_union, self.reward_range, self.width_scale)
        renewed = np.flatnonzero(visits != self._planned_visits) if self.reward_bound == "variance" else None
        kl_scal_plus_sets(sums, constants, pairs)
        if renewed is not None:
            assert reward_squares is not None  # only agents that have no such bound do without
            rewards_by_variance(renewed, sums, reward_squares, constants, pairs)

    def _truncate(self, visits: NDArray[np.int64], t: int) -> None:
        """TUCRL's rule: mark the pairs that may not move to states never visited.

        If no pair of a visited state may, no pair may at all: otherwise the states never visited would be a second
        closed class. Keys of pairs that may move to more states than before prove nothing.
        """
        if not self.visited.any():
            return
        pairs, reachable = self._planner.pairs, self._planner.state.reachable
        marks = np.zeros(visits.size, dtype=bool)
        truncated_pairs(visits, self.n_states, self.n_actions, t, marks)
        table = marks.reshape(self.allowed.shape)
        if np.all(table[self.visited] | ~self.allowed[self.visited]):
            table[:] = True
        wider = (pairs.level == 1) & (~marks | np.any(reachable != self.visited))
        pairs.key[wider] = np.inf
        pairs.level[:] = marks
        reachable[:] = self.visited

    def _details(self) -> dict[str, Any]:
        """For `on_episode`: r̃ (S*A,), in [0, r_max] and -inf if not allowed, and ρ (S*A,)."""
        if self.on_episode is None:
            return {}
        pairs = self._planner.pairs
        return {"rewards": self.reward_range * pairs.rewards, "radius": pairs.radius.copy()}

    # ------------------------------------------------------------------ what it is

    @property
    def vacuous(self) -> bool:
        """Whether every ball of the last plan was so large that Pinsker's inequality bounds nothing."""
        return bool(np.all(self._planner.pairs.radius[self._possible] >= KL_UNINFORMATIVE))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem, void if the constants were changed."""
        order, assumption = "r_max·sqrt(D·Γ·S·A·T)", "the MDP is communicating, of finite diameter D"
        per_episode = "r_max·D"
        if self.span is not None:
            order, per_episode = "sqrt(r_max·min{c, r_max·D}·Γ·S·A·T)", "min{c, r_max·D}"
            assumption = f"the MDP is weakly communicating and the optimal bias has span at most c = {self.span:g}"
        order = self.order_with_episodes(order, per_episode)
        return Guarantee(
            bound=f"regret Õ({order}) with probability {1 - 3 * self.delta:g}, all T at once, and optimism of every "
            f"plan with probability {1 - self.delta:g}",
            assumptions=(assumption,),
            source=f"proved in docs/kl_scal_plus.md, theorem 10{self.lemma_of_rewards}",
            reason_void=self._reason_void(),
            span=self.span,
            communicating=self.span is None,
        )

    @property
    def lemma_of_rewards(self) -> str:
        """What a theorem on these rewards needs beside its own page's lemmas, as the end of a source."""
        return "" if self.reward_bound == "mean" else ", with lemma 4a for the rewards"

    def _reason_void(self) -> str:
        if self.delta >= 1.0 / 3.0:
            return f"delta is {self.delta:g}, and the bound on the regret may fail with probability 3·delta"
        if self.width_scale != 1.0:
            return f"width_scale is {self.width_scale:g}, the theorem needs 1"
        if self.unreachable is not None:
            return "unreachable is 'tucrl': nothing is proven for KL balls with TUCRL's rule"
        return ""

    # ------------------------------------------------------------------ files

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {
            **super().settings(),
            "span": self.span,
            "unreachable": self.unreachable,
            "width_scale": self.width_scale,
            "reward_bound": self.reward_bound,
        }

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """What the next plan starts from, and the largest span so far."""
        planner = self._planner
        return {
            "values": planner.state.values,
            "actions": planner.state.actions,
            "rise": planner.state.rise,
            "reachable": planner.state.reachable,
            "x": planner.pairs.x,
            "key": planner.pairs.key,
            "level": planner.pairs.level,
            "planned_visits": self._planned_visits,
            "most_span": np.array([self._most_span]),
        }

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that `own_arrays` returned."""
        seen = self.statistics
        self._restore_planner(arrays, seen.visits, seen.reward_sum, seen.reward_squares)

    def _restore_planner(
        self,
        arrays: dict[str, NDArray[Any]],
        visits: NDArray[np.int64],
        reward_sum: Floats,
        reward_squares: Floats | None = None,
    ) -> None:
        """Let the next plan start from where the saved agent's would; the sums are those that it is made on."""
        self._check_planner_arrays(arrays, visits)
        self._renew_sets(arrays["planned_visits"], reward_sum, reward_squares)  # visited since: by the next plan
        for name, own in (*self._planner.pairs._asdict().items(), *self._planner.state._asdict().items()):
            if name in arrays:
                own[:] = arrays[name]
        self._most_span = float(arrays["most_span"][0])

    def _check_planner_arrays(self, arrays: dict[str, NDArray[Any]], visits: NDArray[np.int64]) -> None:
        """Raise a ValueError unless these arrays are those of a planner for counts with these visits."""
        like = KLSCALPlus.own_arrays(self)
        for name in ("values", "rise", "x", "most_span"):
            check_saved(arrays, name, like[name], low=0.0)
        check_saved(arrays, "actions", like["actions"], low=0, high=self.n_actions - 1)
        check_saved(arrays, "reachable", like["reachable"])
        check_saved(arrays, "level", like["level"], high=0 if self.unreachable is None else 1)
        check_saved(arrays, "planned_visits", like["planned_visits"], low=-1, high=visits)
        key, actions = arrays["key"], arrays["actions"]
        if key.shape != like["key"].shape or key.dtype != like["key"].dtype or np.isnan(key).any():
            raise ValueError("array 'key' has another shape or dtype, or holds NaN")
        if not self._possible.reshape(-1, self.n_actions)[np.arange(actions.size), actions].all():
            raise ValueError("array 'actions' holds an action that its state does not have")
