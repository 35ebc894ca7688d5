"""The base of UCRL2 and its descendants: planning over a confidence set around the empirical model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.empirical import EmpiricalRows, empirical_rows
from gainful.agents.episodic import EpisodePlan
from gainful.agents.planning_agent import Episodes, PlanningAgent
from gainful.agents.sets import SIMPLEX, Balls, EntryIntervals
from gainful.agents.statistics import Statistics
from gainful.arguments import AddedLater, positive_scale
from gainful.errors import NotConvergedError
from gainful.mdp.model import MDP
from gainful.planning.confidence import Confidence, Intervals, L1Ball
from gainful.planning.extended import extended_value_iteration
from gainful.planning.order_projection import BiasConstraint

EXTENDED_MAX_SWEEPS = 100_000_000  # nearly disconnected sets need many; Ctrl-C is heard between batches


@dataclass(frozen=True)
class PlausibleModels:
    """The MDPs that the data do not rule out: rows in a set around p̄, and optimistic rewards."""

    rows: EmpiricalRows
    confidence: Confidence
    rewards: NDArray[np.float64]
    """(S*A,)"""
    unrestricted: NDArray[np.bool_]
    """(S*A,) the pairs whose set is the whole simplex."""


class ExtendedAgent(PlanningAgent):
    """An agent that plans by extended value iteration, to ε_k = r_max/√t_k, over sets around p̄ and r̄.

    Optimistic rewards are min{r_max, r̄ + width}. A pair never visited has reward r_max and may move anywhere,
    whatever `width_scale` is; it multiplies every radius and width, and anything but 1 voids the guarantee.
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
            episodes=episodes,
        )
        self.width_scale = positive_scale("width_scale", width_scale)
        self._values = np.zeros(self.n_states)  # the last plan's v: a warm start
        self._vacuous = True
        self.within: BiasConstraint | None = None
        """What plans may assume about the optimal bias (PMEVI-DT); None for nothing."""

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "width_scale": self.width_scale}

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The warm start, and whether the last plan was vacuous."""
        return {"values": self._values, "vacuous": np.array([self._vacuous])}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that `own_arrays` returned."""
        for name, shape, dtype in (("values", (self.n_states,), np.float64), ("vacuous", (1,), np.bool_)):
            if arrays[name].shape != shape or arrays[name].dtype != dtype:
                raise ValueError(f"array '{name}' has shape {arrays[name].shape} and dtype {arrays[name].dtype}")
        if not np.isfinite(arrays["values"]).all():
            raise ValueError("array 'values' holds a number that is not finite")
        self._values, self._vacuous = arrays["values"], bool(arrays["vacuous"][0])

    @property
    def vacuous(self) -> bool:
        """Whether the last plan ignored the transitions seen: every pair's set was still the whole simplex."""
        return self._vacuous

    @property
    def scaled(self) -> str:
        """Why the guarantee is void; empty if the constants are the theorem's."""
        return f"width_scale is {self.width_scale:g}, the theorem needs 1" if self.width_scale != 1.0 else ""

    @property
    def set_constants(self) -> tuple[Any, ...]:
        """`SetConstants` as a plain tuple: everything but the step and the visits on which the widths depend."""
        return (self.n_states, self.n_actions, self.delta, self.width_scale, self.reward_range)

    def l1_models(self, statistics: Statistics, balls: Balls) -> PlausibleModels:
        """Give the models whose rows lie in ℓ₁ balls around the empirical ones.

        Parameters
        ----------
        statistics : Statistics
            What has been seen, for the empirical rows.
        balls : Balls
            The radius and the optimistic reward of every pair.

        Returns
        -------
        PlausibleModels
            What `plan_over` plans over.
        """
        confidence = L1Ball(balls.radius.reshape(self.n_states, self.n_actions))
        rows = empirical_rows(statistics, self.allowed)
        return PlausibleModels(rows, confidence, balls.rewards, balls.radius >= SIMPLEX)

    def interval_models(self, rows: EmpiricalRows, found: EntryIntervals, **options: Any) -> PlausibleModels:
        """Give the models whose probabilities lie in intervals, one for each entry of the empirical rows.

        Parameters
        ----------
        rows : EmpiricalRows
            The empirical rows.
        found : EntryIntervals
            The bounds of every entry, and the optimistic reward of every pair.
        **options
            Further arguments of `Intervals`: `floor_state`, `floor`, `reachable`, `truncated`.

        Returns
        -------
        PlausibleModels
            What `plan_over` plans over.
        """
        unseen = found.unseen.reshape(self.n_states, self.n_actions)
        confidence = Intervals(found.lower, found.upper, unseen, **options)
        return PlausibleModels(rows, confidence, found.rewards, found.unseen >= 1.0)

    def plan_over(
        self, models: PlausibleModels, t: int, *, span: float | None = None, stop_on_new_state: bool = False
    ) -> EpisodePlan:
        """Find the best policy in the best of the plausible models, to precision r_max/√t.

        Parameters
        ----------
        models : PlausibleModels
            The models to choose from.
        t : int
            The number of the episode's first step, from 1.
        span : float, optional
            c, a bound on the span of the values (SCAL); none by default.
        stop_on_new_state : bool
            Whether reaching a state never visited before ends the episode (TUCRL).

        Returns
        -------
        EpisodePlan
            What to do until the episode ends.

        Raises
        ------
        NotConvergedError
            If the precision cannot be reached, because some states are nearly unreachable in every model.
        """
        shape = (self.n_states, self.n_actions)
        rewards = models.rewards.reshape(shape)
        try:
            plan = extended_value_iteration(
                MDP.from_rows(*models.rows, rewards),
                models.confidence,
                precision=self.reward_range / math.sqrt(t),
                max_sweeps=EXTENDED_MAX_SWEEPS,
                span=span,
                start_values=self._values,
                within=self.within,
            )
        except NotConvergedError as error:
            raise NotConvergedError(
                f"{type(self).__name__} cannot plan at step {t}: {error}. Some states are all but unreachable by now",
                error.plan,
                found=error.found,
                expected=error.expected,
                hint="SCAL, SCALPlus and TUCRL are made for that",
            ) from error
        self._values = plan.bias.copy()
        self._vacuous = bool(np.all(models.unrestricted.reshape(shape)[self.allowed]))
        low, high = plan.gain_bounds
        return EpisodePlan(
            actions=plan.details["greedy"].copy(),
            gain_bounds=(low + self.reward_min, high + self.reward_min),
            values=self._values.copy(),
            sweeps=plan.sweeps,
            multiplier=self.multiplier(t, float(np.ptp(self._values))),
            stop_on_new_state=stop_on_new_state,
            details={
                "rewards": rewards,
                "rows": models.rows,
                "confidence": models.confidence,
                "optimistic_rows": plan.details["rows"],
                "kept": plan.details.get("kept"),
            },
        )
