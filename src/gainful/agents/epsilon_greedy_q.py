"""Differential Q-learning with ε-greedy exploration (Wan, Naik & Sutton 2021), a well-known baseline."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gainful.agents.guarantee import Guarantee
from gainful.agents.stepwise import DIFFERENTIAL, StepwiseAgent
from gainful.errors import InvalidArgumentError


class EpsilonGreedyQ(StepwiseAgent):
    r"""Differential Q-learning with ε-greedy exploration (Wan, Naik & Sutton 2021).

    After each step, with d = r - r̄ + max_a q(s',a) - q(s,a), it updates q(s,a) ← q(s,a) + αd and r̄ ← r̄ + ηαd. It takes
    the greedy action, except that with probability ε it draws one uniformly. Since it never stops exploring, its
    regret is linear.

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    epsilon : float
        ε, the probability of a uniformly random action, in [0, 1].
    step_size : float
        α, in [0, 1].
    gain_rate : float
        η, the rate at which the estimate r̄ of the gain follows, relative to α; positive.
    reward_max, reward_min : float
        The largest and the smallest reward.
    delta : float
        Unused; every agent accepts it.
    seed : int
        The seed of the agent's own randomness.
    allowed : array_like of bool, shape (S, A), optional
        The actions that each state has; all by default.

    Examples
    --------
    >>> EpsilonGreedyQ(2, 2, epsilon=0.0).act(1)
    0
    """

    kind = DIFFERENTIAL

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        epsilon: float = 0.1,
        step_size: float = 0.1,
        gain_rate: float = 1.0,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
    ) -> None:
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        for name, value, highest in (("epsilon", epsilon, 1.0), ("step_size", step_size, 1.0)):
            if not 0.0 <= value <= highest:
                raise InvalidArgumentError(name, value, "a number in [0, 1]")
        if not 0.0 < gain_rate < float("inf"):
            raise InvalidArgumentError("gain_rate", gain_rate, "a positive number")
        self.epsilon, self.step_size, self.gain_rate = float(epsilon), float(step_size), float(gain_rate)
        self.numbers = np.array([self.epsilon, self.step_size, self.gain_rate, 0.0])

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        own = {"epsilon": self.epsilon, "step_size": self.step_size, "gain_rate": self.gain_rate}
        return {**super().settings(), **own}

    @property
    def guarantee(self) -> Guarantee:
        """There is none: an agent with a constant ε never stops exploring."""
        return Guarantee("none", (), "Wan, Naik & Sutton 2021", "a constant epsilon explores for ever")
