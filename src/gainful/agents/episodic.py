"""What all agents share that plan once per episode: the clock, the statistics, `act` and `observe`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.statistics import Statistics
from gainful.errors import InvalidArgumentError
from gainful.rng import Role, stream_key

NEVER = np.iinfo(np.int64).max

EPISODE_RECORD = np.dtype(
    [("step", "i8"), ("gain", "f8"), ("gain_low", "f8"), ("gain_high", "f8"), ("span", "f8"), ("sweeps", "i8"),
     ("planning_seconds", "f8")]
)  # fmt: skip
"""One record per episode: first step t_k (from 1), planner's gain with its bracket, sp(v_k), sweeps, CPU seconds."""


@dataclass(frozen=True)
class EpisodePlan:
    """What an agent does until the episode ends, and what the planner says of it (in the user's units)."""

    actions: NDArray[np.int64]
    gain_bounds: tuple[float, float]
    values: NDArray[np.float64]
    sweeps: int
    last_step: int = NEVER
    """The step (from 1) after which a new episode begins in any case."""
    details: dict[str, Any] = field(default_factory=dict)
    """What else `on_episode` may show: bonus, optimistic rewards, ..."""


@dataclass(frozen=True)
class EpisodeView:
    """One episode's beginning, shown to `agent.on_episode`."""

    episode: int
    step: int
    plan: EpisodePlan
    statistics: Statistics


class EpisodicAgent:
    """An agent with doubling episodes; a subclass says how to `plan`.

    An episode ends when the action chosen in the current state has been executed in it max{1, N_k(s,a)} times, N_k
    being the visits before the episode. The test comes before the execution: the action is then chosen anew by
    the new policy. Rewards enter in the user's units, in [reward_min, reward_max], and are shifted to [0, r_max] here
    and nowhere else.
    """

    def __init__(
        self, n_states: int, n_actions: int, *, reward_max: float = 1.0, reward_min: float = 0.0, delta: float = 0.05,
        seed: int = 0,
    ) -> None:  # fmt: skip
        for name, size in (("n_states", n_states), ("n_actions", n_actions)):
            if not isinstance(size, int | np.integer) or size < 1:  # type: ignore[redundant-expr]
                raise InvalidArgumentError(f"{name} is {size!r}, expected an integer of at least 1")
        if not (math.isfinite(reward_min) and math.isfinite(reward_max) and reward_min < reward_max):
            raise InvalidArgumentError(f"rewards in [{reward_min}, {reward_max}], expected reward_min < reward_max")
        if not 0.0 < delta < 1.0:
            raise InvalidArgumentError(f"delta is {delta}, expected a probability in (0, 1)")
        self.n_states, self.n_actions = int(n_states), int(n_actions)
        self.reward_min, self.reward_max, self.delta = float(reward_min), float(reward_max), float(delta)
        self.seed = int(seed)
        self.key = stream_key(seed, Role.ACTIONS)
        self.statistics = Statistics(self.n_states, self.n_actions)
        self.t = 0
        """Steps observed so far; the next one is number t + 1."""
        self.current: EpisodePlan | None = None
        self.remaining: NDArray[np.int64] = np.ones(self.n_states * self.n_actions, dtype=np.int64)
        """How often each pair may still be executed in this episode."""
        self.records: list[tuple[Any, ...]] = []
        self.on_episode: Callable[[EpisodeView], None] | None = None

    @property
    def reward_range(self) -> float:
        """r_max of the theory: reward_max - reward_min."""
        return self.reward_max - self.reward_min

    @property
    def episodes(self) -> NDArray[Any]:
        """One record per episode so far, see `EPISODE_RECORD`."""
        return np.array(self.records, dtype=EPISODE_RECORD)

    def plan(self, statistics: Statistics, t: int) -> EpisodePlan:
        """The plan of an episode whose first step is number t."""
        raise NotImplementedError

    def act(self, state: int) -> int:
        """The action to take in `state`; asked again before `observe`, the answer is the same."""
        s = self._checked("state", state, self.n_states)
        if self.current is None or self.t >= self.current.last_step:
            self.begin_episode()
        assert self.current is not None
        a = int(self.current.actions[s])
        if self.remaining[s * self.n_actions + a] <= 0:
            self.begin_episode()
            a = int(self.current.actions[s])
        return a

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """What happened: any valid transition, whether or not the agent chose it."""
        s = self._checked("state", state, self.n_states)
        a = self._checked("action", action, self.n_actions)
        to = self._checked("next state", next_state, self.n_states)
        r = float(reward)
        if not self.reward_min <= r <= self.reward_max:
            raise InvalidArgumentError(
                f"reward {reward} at step {self.t + 1}, expected a number in "
                f"[{self.reward_min:g}, {self.reward_max:g}]; give the agent the true reward_min and reward_max"
            )
        pair = s * self.n_actions + a
        self.statistics.observe(pair, to, r - self.reward_min)
        self.remaining[pair] -= 1
        self.t += 1

    def begin_episode(self) -> None:
        """Plan from what has been seen, and give every pair max{1, N} executions."""
        began = time.process_time()
        plan = self.plan(self.statistics, self.t + 1)
        spent = time.process_time() - began
        low, high = plan.gain_bounds
        self.records.append(
            (self.t + 1, low + (high - low) / 2, low, high, float(np.ptp(plan.values)), plan.sweeps, spent)
        )
        self.current = plan
        np.maximum(self.statistics.visits, 1, out=self.remaining)
        if self.on_episode is not None:
            self.on_episode(EpisodeView(len(self.records), self.t + 1, plan, self.statistics))

    @staticmethod
    def _checked(what: str, value: int, n: int) -> int:
        try:
            i = int(value)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{what} is {value!r}, expected an integer in 0 … {n - 1}") from error
        if i != value or not 0 <= i < n:
            raise InvalidArgumentError(f"{what} is {value}, expected an integer in 0 … {n - 1}")
        return i
