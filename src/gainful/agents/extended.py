"""What UCRL2 shares with its descendants: a plan over a confidence set around the empirical model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.empirical import EmpiricalRows
from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.arguments import finite
from gainful.errors import InvalidArgumentError, NotConvergedError
from gainful.mdp.model import MDP
from gainful.planning.confidence import Confidence
from gainful.planning.extended import extended_value_iteration

MAX_SWEEPS = 100_000_000  # nearly disconnected sets need many; Ctrl-C is heard between batches


class ExtendedAgent(EpisodicAgent):
    """An agent that plans by extended value iteration, to ε_k = r_max/√t_k, over sets around p̄ and r̄.

    Optimistic rewards are min{r_max, r̄ + width}. A pair never visited has reward r_max and may move anywhere,
    whatever `width_scale` is; it multiplies every radius and width, and anything but 1 voids the guarantee.
    """

    def __init__(
        self, n_states: int, n_actions: int, *, reward_max: float = 1.0, reward_min: float = 0.0, delta: float = 0.05,
        seed: int = 0, allowed: ArrayLike | None = None, width_scale: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        if not (finite(width_scale) and width_scale > 0.0):
            raise InvalidArgumentError(f"width_scale is {width_scale}, expected a positive number; 1 is the theorem's")
        self.width_scale = float(width_scale)
        self._values = np.zeros(self.n_states)  # the last plan's v: a warm start
        self._vacuous = True

    def settings(self) -> dict[str, Any]:
        """The arguments that make this agent again."""
        return {**super().settings(), "width_scale": self.width_scale}

    def own_arrays(self) -> dict[str, NDArray[Any]]:
        """The warm start, and whether the last plan was vacuous."""
        return {"values": self._values, "vacuous": np.array([self._vacuous])}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take back what `own_arrays` gave."""
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
        """Why the guarantee is void, if it is for the constants' sake."""
        return f"width_scale is {self.width_scale:g}, the theorem needs 1" if self.width_scale != 1.0 else ""

    def extended_plan(
        self, rows: EmpiricalRows, confidence: Confidence, r: NDArray[np.float64], t: int, simplex: NDArray[np.bool_],
        *, span: float | None = None, stop_on_new_state: bool = False,
    ) -> EpisodePlan:  # fmt: skip
        """The best policy over `confidence` with rewards r (S*A,); `simplex` marks the pairs that may go anywhere."""
        shape = (self.n_states, self.n_actions)
        rewards = r.reshape(shape)
        try:
            plan = extended_value_iteration(
                MDP.from_rows(*rows, rewards), confidence, precision=self.reward_range / math.sqrt(t),
                max_sweeps=MAX_SWEEPS, span=span, start_values=self._values,
            )  # fmt: skip
        except NotConvergedError as error:
            raise NotConvergedError(
                f"{type(self).__name__} cannot plan at step {t}: {error}. Some states are all but unreachable by now; "
                "SCAL, SCALPlus and TUCRL are made for that",
                error.plan,
            ) from error
        self._values = plan.bias.copy()
        self._vacuous = bool(np.all(simplex.reshape(shape)[self.allowed]))
        low, high = plan.gain_bounds
        return EpisodePlan(
            actions=plan.details["greedy"].copy(), gain_bounds=(low + self.reward_min, high + self.reward_min),
            values=self._values.copy(), sweeps=plan.sweeps, stop_on_new_state=stop_on_new_state,
            details={
                "rewards": rewards, "rows": rows, "confidence": confidence, "optimistic_rows": plan.details["rows"],
            },
        )  # fmt: skip
