"""One interface to an MDP and to a continuous environment, for the checks of agents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gainful.environments.continuous.environment import ContinuousEnvironment
from gainful.mdp.model import MDP
from gainful.simulation.transition_table import TabularStepper

Transition = tuple[Any, int, float, Any]


class EnvironmentAdapter(Protocol):
    """States, steps, and transitions that are possible or not."""

    environment: Any

    def start(self) -> Any:
        """The first state."""

    def has(self, state: Any, action: int) -> bool:
        """Whether `action` may be taken in `state`."""

    def step(self, t: int, state: Any, action: int, seed: int) -> tuple[float, Any]:
        """Reward and next state of step t."""

    def any_transition(self, rng: np.random.Generator) -> Transition:
        """A possible transition, with any action."""

    def impossible(self, state: Any) -> Iterator[Transition]:
        """Transitions from `state` that an agent must reject."""

    def ended_at(self, run: Any, state: Any) -> bool:
        """Whether the run ended in `state`."""


class _TabularAdapter:
    """An MDP."""

    def __init__(self, mdp: MDP) -> None:
        self.environment = mdp
        self._steppers: dict[int, TabularStepper] = {}

    def start(self) -> int:
        return TabularStepper(self.environment, 0).first_state

    def has(self, state: int, action: int) -> bool:
        return 0 <= action < self.environment.n_actions and bool(self.environment.allowed[state, action])

    def step(self, t: int, state: int, action: int, seed: int) -> tuple[float, int]:
        if seed not in self._steppers:
            self._steppers[seed] = TabularStepper(self.environment, seed)
        return self._steppers[seed].step(t, state, action)

    def any_transition(self, rng: np.random.Generator) -> Transition:
        mdp = self.environment
        s = int(rng.integers(mdp.n_states))
        a = int(rng.choice(np.flatnonzero(mdp.allowed[s])))
        return s, a, mdp.reward_max, int(rng.integers(mdp.n_states))

    def impossible(self, state: int) -> Iterator[Transition]:
        mdp = self.environment
        fine = (state, int(np.argmax(mdp.allowed[state])), mdp.reward_min, 0)
        states = (-1, mdp.n_states)
        yield from _replaced(fine, mdp, states)

    def ended_at(self, run: Any, state: int) -> bool:
        return bool(run.final_state == state)


class _ContinuousAdapter:
    """A continuous environment, whose states are points of the unit cube."""

    def __init__(self, env: ContinuousEnvironment) -> None:
        self.environment = env

    def start(self) -> NDArray[np.float64]:
        return self.environment.start

    def has(self, state: NDArray[np.float64], action: int) -> bool:  # noqa: ARG002
        return 0 <= action < self.environment.n_actions

    def step(self, t: int, state: NDArray[np.float64], action: int, seed: int) -> tuple[float, NDArray[np.float64]]:
        return self.environment.step(t, state, action, seed=seed)

    def any_transition(self, rng: np.random.Generator) -> Transition:
        env = self.environment
        return rng.random(env.dim), int(rng.integers(env.n_actions)), env.reward_max, rng.random(env.dim)

    def impossible(self, state: NDArray[np.float64]) -> Iterator[Transition]:
        env = self.environment
        points = []
        for wrong in (-0.5, 1.5, np.nan, np.inf):
            point = np.full(env.dim, 0.5)
            point[-1] = wrong
            points.append(point)
        points += [np.full(env.dim + 1, 0.5), np.full((1, env.dim, 1), 0.5)]
        yield from _replaced((state, 0, env.reward_min, env.start), env, points)

    def ended_at(self, run: Any, state: NDArray[np.float64]) -> bool:
        return bool(np.array_equal(run.final_point, state))


def _replaced(fine: Transition, environment: Any, states: Any) -> Iterator[Transition]:
    """The transition with one thing wrong with it, in every way."""
    rewards = (float("nan"), environment.reward_max + 10.0, environment.reward_min - 10.0)
    for position, values in ((0, states), (1, (-1, environment.n_actions)), (2, rewards), (3, states)):
        for value in values:
            wrong: list[Any] = list(fine)
            wrong[position] = value
            yield wrong[0], wrong[1], wrong[2], wrong[3]


def adapter_for(environment: MDP | ContinuousEnvironment) -> EnvironmentAdapter:
    """The adapter of an environment."""
    return _TabularAdapter(environment) if isinstance(environment, MDP) else _ContinuousAdapter(environment)
