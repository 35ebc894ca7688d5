"""KL-SCAL+ with every power of two as the bound on the span, balanced by regret; for an unknown span."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episode_plan import NEVER
from gainful.agents.episodic import EpisodePlan
from gainful.agents.guarantee import Guarantee
from gainful.agents.kl_scal_plus import KLSCALPlus, RewardBound
from gainful.agents.planning_agent import Episodes, PlanningAgent
from gainful.agents.span_balancing import SpanLedger, state_surplus
from gainful.agents.statistics import Statistics
from gainful.arguments import AddedLater, choice, positive_scale


class BalancedKLSCALPlus(PlanningAgent):
    r"""Balanced KL-SCAL+: all bounds c_i = 2^i·r_max on the span in turn, given up when refuted; needs no span.

    For processes that may have unreachable states and whose span nobody knows. Base i is `KLSCALPlus` with
    span = 2^i·r_max, in use from step 2^i·S·A on; all bases share one table of counts. At the beginning of an episode
    the base with the least c_i·n_i plays it, n_i its steps so far (its regret bound grows with sqrt(c_i·n_i): regret
    balancing), at most until c_i·n_i is four times the least of the others. Base i is given up if the least optimistic
    gain of its plans is below

        max_j [X_j - c_i·m_j - (r_max + c_i)·sqrt(n_j/2 · ln(n_j(n_j+1)(j+1)(j+2)/δ))]/n_j,

    where base j earned X_j in its n_j steps and m_j stretches of the path; breaks of the path, as when outcomes arrive
    out of order, count as well. With probability 1-2δ no base with c_i ≥ sp(h*) is ever given up (docs/unknown_span.md,
    with the proof). No bound on the regret is proven.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    reward_max, reward_min : float
        Every reward lies between them; r_max of the theory is their difference.
    delta : float
        δ: each of two events may fail with this probability.
    seed : int
        The seed of the agent's own randomness, which it does not use.
    allowed : array_like of bool, shape (S, A), optional
        The actions that each state has; all by default.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.
    width_scale : float
        Multiplies the radii of the bases. What is proven holds for 1 only.
    reward_bound : {"mean", "variance"}
        What of the rewards seen bounds their mean, as for `KLSCALPlus`.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.BalancedKLSCALPlus(n_states=2, n_actions=2)
    >>> action = agent.act(0)
    >>> agent.observe(0, action, 0.5, 1)
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        episodes: Episodes = "doubling",
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
        self.width_scale = positive_scale("width_scale", width_scale)
        self.reward_bound = choice("reward_bound", reward_bound, get_args(RewardBound))
        """What of the rewards seen bounds a mean reward."""
        self.ledger = SpanLedger(self.n_states * self.n_actions, self.delta, self.n_states)
        """What every base has played, claims and is refuted by."""
        self._bases: list[KLSCALPlus] = []

    # ------------------------------------------------------------------ the algorithm

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """Plan with the base whose turn it is; a base whose new plan is refuted at once is given up."""
        ledger = self.ledger
        earned = float(statistics.reward_sum.sum()) / self.reward_range
        ledger.settle(t - 1, earned, state_surplus(statistics, self.n_states))
        ledger.extend(t)
        ledger.refute()
        while True:
            i = ledger.choose()
            found = self._base(i).plan(statistics, t)
            ledger.claims[i] = min(ledger.claims[i], (found.gain_bounds[1] - self.reward_min) / self.reward_range)
            if ledger.active.size == 1 or not ledger.is_refuted(i):
                break
            ledger.refuted[i] = True
        longest = ledger.longest(i)
        ledger.begin(i)
        last = NEVER if longest is None else t - 1 + longest
        factor = self.multiplier(t, float(np.ptp(found.values)))  # by the spans of all bases
        return replace(found, last_step=last, multiplier=factor, details={**found.details, **self._details(i)})

    def _details(self, i: int) -> dict[str, Any]:
        """For `on_episode`: the base that plays, what every base claims (in units of r_max), and which are given up."""
        if self.on_episode is None:
            return {}
        return {"base": i, "claims": self.ledger.claims.copy(), "refuted": self.ledger.refuted.copy()}

    def _base(self, i: int) -> KLSCALPlus:
        """Base i, which plans from this agent's counts."""
        while len(self._bases) <= i:
            self._bases.append(self._made_base(len(self._bases)))
        base = self._bases[i]
        base.statistics, base.on_episode = self.statistics, self.on_episode
        return base

    def _made_base(self, i: int) -> KLSCALPlus:
        return KLSCALPlus(
            self.n_states,
            self.n_actions,
            span=2.0**i * self.reward_range,
            reward_max=self.reward_max,
            reward_min=self.reward_min,
            delta=self.delta,
            allowed=self.allowed,
            episodes=cast(Episodes, self.episode_rule),
            width_scale=self.width_scale,
            reward_bound=cast(RewardBound, self.reward_bound),
        )

    # ------------------------------------------------------------------ what it is

    @property
    def span(self) -> float | None:
        """The bound c of the present episode; None before the first."""
        return None if self.ledger.playing < 0 else 2.0**self.ledger.playing * self.reward_range

    @property
    def vacuous(self) -> bool:
        """Whether the balls of the last plan were so large that Pinsker's inequality bounds nothing."""
        return self.ledger.playing < 0 or self._base(self.ledger.playing).vacuous

    @property
    def guarantee(self) -> Guarantee:
        """What is proven: never to give up a bound that is large enough; no bound on the regret."""
        return Guarantee(
            bound="none",
            assumptions=("the MDP is weakly communicating",),
            source="docs/unknown_span.md",
            reason_void="no bound on the regret is proven; only that with probability 1 - 2δ no bound on the span that "
            "is large enough is ever given up (docs/unknown_span.md)",
        )

    # ------------------------------------------------------------------ files

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "width_scale": self.width_scale, "reward_bound": self.reward_bound}

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The ledger, and what the next plan of each base starts from."""
        kept = [base.own_arrays() for base in self._bases] or [self._made_base(0).own_arrays()]
        stacked = {f"base_{name}": np.stack([one[name] for one in kept]) for name in kept[0]}
        if not self._bases:
            stacked = {name: array[:0] for name, array in stacked.items()}
        return {**self.ledger.arrays(), **stacked}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that `own_arrays` returned."""
        if "surplus" not in arrays:  # a file from before breaks of the path were counted: as if there had been none
            none = np.zeros((arrays["steps"].size, self.n_states), dtype=np.int64)
            arrays = {**arrays, "surplus": none, "seen_surplus": state_surplus(self.statistics, self.n_states)}
        self.ledger.restore(arrays, self.t)
        made = len(arrays["base_values"])
        if not self.ledger.playing < made <= self.ledger.n_bases:
            raise ValueError(f"plans of {made} bases, of {self.ledger.n_bases} in use")
        names = [f"base_{name}" for name in self._made_base(0).own_arrays()]
        if any(len(arrays[name]) != made for name in names):
            raise ValueError("arrays of the bases have different lengths")
        self._bases = []
        for i in range(made):
            self._base(i).restore({name.removeprefix("base_"): arrays[name][i] for name in names})
