"""Fixed: a given policy, played without learning; a baseline for learning agents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.guarantee import Guarantee
from gainful.agents.statistics import Statistics
from gainful.errors import InvalidArgumentError
from gainful.planning.plan import Plan
from gainful.planning.rounding import UNIT_ROUNDOFF

POLICY_SUM_TOLERANCE = 1e-8
"""How far the probabilities of a state may be from summing to 1."""


class Fixed(EpisodicAgent):
    r"""A fixed policy, played forever: a baseline for learning agents.

    There is a single episode, which never ends. The agent has no model, so the gain it records is only known to lie in
    [reward_min, reward_max].

    Parameters
    ----------
    n_states, n_actions : int
        The numbers of states S and actions A.
    policy : array_like or Plan, optional
        (S,) actions, (S,A) probabilities, or a Plan such as `gf.solve` returns. Without a policy the agent plays at
        random: every allowed action of a state with the same probability.
    reward_max, reward_min, delta, seed, allowed
        As for `SCALPlus`; δ is not used.

    Raises
    ------
    InvalidArgumentError
        If the policy has another shape, is not made of distributions, or plays an action that a state does not have.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.Fixed(n_states=2, n_actions=2, policy=[1, 0])
    >>> agent.act(0)
    1
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        *,
        policy: ArrayLike | Plan | None = None,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
    ) -> None:
        super().__init__(
            n_states, n_actions, reward_max=reward_max, reward_min=reward_min, delta=delta, seed=seed, allowed=allowed
        )
        given: Any = policy
        if given is None:
            given = self.allowed / self.allowed.sum(axis=1, keepdims=True)
        elif isinstance(given, Plan):
            given = given.policy if given.actions is None else given.actions
        try:
            table = np.array(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            problem = f"policy is not an array of numbers: {error}"
            raise InvalidArgumentError("policy", given, problem=problem) from error
        self.policy: NDArray[Any] = self._actions(table) if table.ndim == 1 else self._probabilities(table)
        """(S,) actions or (S,A) probabilities."""
        self.policy.flags.writeable = False

    def _actions(self, table: NDArray[np.float64]) -> NDArray[np.int64]:
        S, A = self.n_states, self.n_actions
        if table.shape != (S,):
            wanted = f"one for each of the {S} states"
            raise InvalidArgumentError("policy", table.size, wanted, problem=f"policy has {table.size} actions")
        inside = (table >= 0) & (table < A) & (table == np.floor(table))
        if not inside.all():
            s = int(np.flatnonzero(~inside)[0])
            problem = f"policy[{s}] is {table[s]:g}"
            raise InvalidArgumentError(f"policy[{s}]", table[s], f"an action in 0 … {A - 1}", problem=problem)
        actions = table.astype(np.int64)
        self._check_allowed(~self.allowed[np.arange(S), actions], actions)
        return actions

    def _probabilities(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        S, A = self.n_states, self.n_actions
        if table.shape != (S, A):
            wanted = f"({S},) actions or ({S}, {A}) probabilities"
            raise InvalidArgumentError("policy", table.shape, wanted, problem=f"policy has shape {table.shape}")
        total = table.sum(axis=1)
        good = (table >= 0.0).all(axis=1) & (np.abs(total - 1.0) <= POLICY_SUM_TOLERANCE)
        if not good.all():
            s = int(np.flatnonzero(~good)[0])
            problem = f"policy[{s}] sums to {total[s]:.10g} (smallest entry {table[s].min():g})"
            raise InvalidArgumentError(f"policy[{s}]", table[s], "a distribution", problem=problem)
        misplaced = np.where(self.allowed, 0.0, table)
        self._check_allowed(misplaced.max(axis=1) > 0.0, misplaced.argmax(axis=1))
        off = np.abs(total - 1.0) > (A + 2) * UNIT_ROUNDOFF  # divided once, a row stays as it is: saved and loaded
        table[off] /= total[off, None]
        return table

    @staticmethod
    def _check_allowed(forbidden: NDArray[np.bool_], actions: NDArray[Any]) -> None:
        if forbidden.any():
            s = int(np.flatnonzero(forbidden)[0])
            a = int(actions[s])
            problem = f"policy[{s}] plays action {a}, which state {s} does not have"
            raise InvalidArgumentError(f"policy[{s}]", a, problem=problem)

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        return {**super().settings(), "policy": self.policy.tolist()}

    @property
    def guarantee(self) -> Guarantee:
        """No guarantee: the agent does not learn."""
        return Guarantee(bound="none", assumptions=(), source="", reason_void="a fixed policy does not learn")

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:  # noqa: ARG002
        """The policy itself, in an episode that never ends."""
        mixed = self.policy.ndim == 2
        return EpisodePlan(
            actions=self.policy.argmax(axis=1) if mixed else self.policy.copy(),
            probabilities=self.policy if mixed else None,
            gain_bounds=(self.reward_min, self.reward_max),
            values=np.zeros(self.n_states),
            sweeps=0,
            doubling=False,
        )
