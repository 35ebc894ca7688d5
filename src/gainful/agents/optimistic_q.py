"""Optimistic Q-learning for average reward (Wei, Jafarnia-Jahromi, Luo, Sharma & Jain 2020, algorithm 1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gainful.agents.guarantee import Guarantee
from gainful.agents.stepwise import OPTIMISTIC, StepwiseAgent
from gainful.arguments import finite
from gainful.errors import InvalidArgumentError


class OptimisticQ(StepwiseAgent):
    r"""Optimistic Q-learning for a known span and number of steps (Wei et al. 2020).

    It learns a problem discounted by γ = 1 - 1/H. After visit τ to (s,a), Q moves with step size (H+1)/(H+τ) towards
    r + γ·max Q̂(s') + 4·sp·sqrt(H·ln(2T/δ)/τ), where Q̂ is the smallest Q so far, and H at the start. Its regret is
    Õ(sp·(SA)^⅓·T^⅔) for weakly communicating MDPs.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    span : float
        sp, an upper bound on the span of the optimal bias; positive.
    horizon : int
        T, the number of steps.
    effective_horizon : float, optional
        H, above 1; by default min{ sqrt(sp·T/(SA)), (T/(SA·ln(4T/δ)))^⅓ }, but at least 2.
    bonus_scale : float
        Multiplies the bonus. The guarantee holds for 1 only.
    reward_max, reward_min : float
        The largest and the smallest reward.
    delta : float
        δ, the probability that the guarantee fails.
    seed : int
        The seed of the agent's own randomness.
    allowed : array_like of bool, shape (S, A), optional
        The actions that each state has; all by default.

    Examples
    --------
    >>> OptimisticQ(2, 2, span=1.0, horizon=1000).act(0)
    0
    """

    kind = OPTIMISTIC

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        span: float,
        horizon: int,
        effective_horizon: float | None = None,
        bonus_scale: float = 1.0,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
    ) -> None:
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        if not (finite(span) and span > 0.0):
            raise InvalidArgumentError("span", span, "a positive number")
        if not (finite(horizon) and horizon >= 1 and int(horizon) == horizon):
            raise InvalidArgumentError("horizon", horizon, "a whole number of steps")
        if not (finite(bonus_scale) and bonus_scale > 0.0):
            raise InvalidArgumentError("bonus_scale", bonus_scale, "a positive number", "1 is the theorem's")
        T, pairs, sp = float(horizon), n_states * n_actions, span / self.reward_range
        self.span, self.horizon, self.bonus_scale = float(span), int(horizon), float(bonus_scale)
        self.given_horizon = None if effective_horizon is None else float(effective_horizon)
        H = formula = min(math.sqrt(sp * T / pairs), (T / (pairs * math.log(4 * T / delta))) ** (1 / 3))
        H = max(H, 2.0) if self.given_horizon is None else self.given_horizon
        if not (finite(H) and H > 1.0):
            raise InvalidArgumentError("effective_horizon", H, "a number above 1")
        self.effective_horizon, self.raised = H, formula != H
        self.numbers = np.array([H, bonus_scale * sp * math.sqrt(H * math.log(2 * T / delta)), self.reward_range])
        self.q = np.where(self.allowed, H, -np.inf).reshape(-1)
        self.target = self.q.copy()

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {
            **super().settings(),
            "span": self.span,
            "horizon": self.horizon,
            "bonus_scale": self.bonus_scale,
            "effective_horizon": self.given_horizon,
        }

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem, void if the constants were changed."""
        void = ""
        if self.t > self.horizon:
            void = f"it has made {self.t} steps, more than its horizon of {self.horizon}"
        if self.raised:
            void = f"effective_horizon is {self.effective_horizon:g}, not the theorem's (which must exceed 2)"
        if self.bonus_scale != 1.0 or self.given_horizon is not None:
            void = "bonus_scale or effective_horizon differ from the theorem's"
        return Guarantee(
            bound=f"regret Õ(sp·(S·A)^⅓·T^⅔) at T = {self.horizon} with probability {1 - self.delta:g}",
            assumptions=(f"the optimal bias has span at most {self.span:g}", "the MDP is weakly communicating"),
            source="Wei et al. 2020, theorem 1",
            reason_void=void,
            span=self.span,
        )

    @property
    def vacuous(self) -> bool:
        """Whether every value is still at its initial bound H, so that no observation has lowered one."""
        return bool(np.all(self.q[self.allowed.reshape(-1)] == self.effective_horizon))
