"""Any object with `act` and `observe` as an agent: what the library needs to know is counted beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.episodic import EpisodicAgent, one_hot
from gainful.agents.guarantee import Guarantee
from gainful.agents.partitioned import PartitionedAgent
from gainful.arguments import finite, whole_below
from gainful.errors import InvalidArgumentError, describe
from gainful.partition import Partition


class PlainLearner(EpisodicAgent):
    """An object with `act` and `observe` on numbered states, in one episode that never ends.

    Visits, rewards and the clock are counted here. The object itself is asked at every step and told of every step,
    with plain integers and floats.
    """

    def __init__(self, learner: Any, n_states: int, n_actions: int, **options: Any) -> None:
        super().__init__(n_states, n_actions, **options)
        self.learner = learner
        self._last_actions: NDArray[np.int64] = self.allowed.argmax(axis=1)

    @property
    def title(self) -> str:
        """The name of the object's class."""
        return type(self.learner).__name__

    def act(self, state: int) -> int:
        """The action of the object, checked."""
        return self.checked(self.learner.act(state), state, state)

    def checked(self, action: Any, state: int, seen: Any) -> int:
        """An action that the object chose in `state`, which it was shown as `seen`; the first begins the episode."""
        if not len(self.records):
            low, high = self.reward_min, self.reward_max
            self.records.append((self.t + 1, low + (high - low) / 2, low, high, 0.0, 0, 0.0))
        return checked_action(self, self.title, action, state, seen)

    def observe(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Tell the object, then count the transition."""
        self.learner.observe(state, action, reward, next_state)
        self.count(state, action, reward, next_state)

    def count(self, state: int, action: int, reward: float, next_state: int) -> None:
        """Count a transition that the object has been told of."""
        if not finite(reward):
            raise InvalidArgumentError(
                "reward", reward, "a finite number", problem=f"reward {reward} at step {self.t + 1}"
            )
        self._last_actions[state] = action
        self.learn(state, action, float(reward), next_state)

    def policy_at(self, states: NDArray[np.int64]) -> NDArray[np.float64]:
        """(N, A) the action taken last in each of these states, as probabilities; the lowest where there was none."""
        return one_hot(self._last_actions[states], self.n_actions)

    def save(self, path: str | Path) -> None:
        """Refuse: what the object has learned is not known here."""
        raise InvalidArgumentError(
            "path",
            str(path),
            hint="derive it from EpisodicAgent, and write plan (docs/howto/own_agent.md)",
            problem=f"a {self.title} cannot be saved, because gainful does not know its state",
        )

    @property
    def guarantee(self) -> Guarantee:
        """None: the object does not say what is proven."""
        return Guarantee("none", (), "", f"{self.title} does not say what is proven")

    def settings(self) -> dict[str, Any]:
        """The sizes and the range of rewards: the object itself cannot be made again."""
        return {**super().settings(), "learner": f"{type(self.learner).__module__}.{type(self.learner).__qualname__}"}


class PlainLearnerOnPoints(PartitionedAgent):
    """An object with `act` and `observe` whose states are whatever the environment shows: counted as one cell."""

    core: PlainLearner

    def __init__(self, learner: Any, n_actions: int, box: Partition | None = None, **options: Any) -> None:
        self.core = PlainLearner(learner, 1, n_actions, **options)
        self.partition = box or Partition.uniform(bins=1, dim=1, outside="clip")

    def cell(self, state: ArrayLike) -> int:  # noqa: ARG002
        """The only cell."""
        return 0

    def act(self, state: Any) -> int:
        """The action of the object, checked."""
        return self.core.checked(self.core.learner.act(state), 0, state)

    def observe(self, state: Any, action: int, reward: float, next_state: Any) -> None:
        """Tell the object, then count the transition."""
        self.core.learner.observe(state, action, reward, next_state)
        self.core.count(0, action, reward, 0)

    def save(self, path: str | Path) -> None:
        """Refuse: what the object has learned is not known here."""
        self.core.save(path)

    @property
    def guarantee(self) -> Guarantee:
        """None: the object does not say what is proven."""
        return self.core.guarantee


def is_plain(agent: Any) -> bool:
    """Whether an agent stands for an object of another kind, whose state it does not know."""
    return isinstance(agent.core, PlainLearner)


def checked_action(agent: EpisodicAgent, title: str, action: Any, state: int, seen: Any) -> int:
    """An action that a user's `act` returned for `state`; an InvalidArgumentError if the state does not have it."""
    try:
        chosen = whole_below("action", action, agent.n_actions)
    except InvalidArgumentError as error:
        problem = f"{title}.act returned {describe(action)} in state {describe(seen)} at step {agent.t + 1}"
        expected = f"an action, from 0 to {agent.n_actions - 1}"
        raise InvalidArgumentError("action", action, expected, problem=problem) from error
    if not agent.allowed[state, chosen]:
        problem = (
            f"{title}.act returned {chosen} in state {describe(seen)} at step {agent.t + 1}, which does not have it"
        )
        raise InvalidArgumentError("action", action, hint="take one of mdp.allowed[state]", problem=problem)
    return chosen
