"""Simulation in a finite MDP, step by step in Python: for agents whose `act` and `observe` are their author's own."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.own_verbs import sees_steps
from gainful.agents.plain_learner import checked_action, is_plain
from gainful.errors import InvalidArgumentError
from gainful.simulation.counters import STATE, STEP
from gainful.simulation.slices import STEPS_AT_A_TIME
from gainful.simulation.tabular import TabularSimulation
from gainful.simulation.transition_table import one_step


class SteppedSimulation(TabularSimulation):
    """One agent's run in an MDP, by `act` and `observe` alone; visits are counted here and not taken from the agent."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._visits = np.zeros_like(self._visits_before)
        self._visits_before = np.zeros_like(self._visits_before)
        if is_plain(self.agent):
            title = type(self.agent.core.learner).__name__  # type: ignore[attr-defined]
            self.restarts_because = f"gainful does not know the state of {title}"
        elif sees_steps(self.agent):
            self.restarts_because = f"gainful does not know the state of {self.agent.core.bonus_counts.title}"  # type: ignore[union-attr]

    @property
    def visits(self) -> NDArray[np.int64]:
        """(S*A,) how often this run has taken each action in each state."""
        return self._visits

    def advance(self, target: int) -> None:
        """Make the steps to `target`, but not more than a few thousand."""
        agent, now, n_actions = self.agent, self._clock.now, self.mdp.n_actions
        table, law, _ = self._where
        title, episodes, began = type(agent).__name__, len(agent.records), time.thread_time()
        state, t, until = self.state, self.t, min(target, self.t + STEPS_AT_A_TIME)
        while t < until:
            action = checked_action(agent, title, agent.act(state), state, state)
            pair = state * n_actions + action
            reward, to = one_step(table, law, self._clock.key, np.uint64(t), np.uint64(pair))
            following = int(to)
            agent.observe(state, action, float(reward), following)
            self._visits[pair] += 1
            self._clock.earned[0] += reward
            state, t = following, t + 1
            now[STATE], now[STEP] = state, t  # at every step: the agent's observer may ask
        spent = time.thread_time() - began
        planning = float(sum(agent.records.array["planning_seconds"][episodes:]))
        self.planning_seconds += planning
        self.acting_seconds += max(0.0, spent - planning)

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """As of a compiled run, and the visits."""
        return {**super().state_arrays(), "visits": self._visits}

    def state_to_save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state of the run; an InvalidArgumentError if the agent keeps its own elsewhere."""
        if self.agent.t != self.steps_before + self.t:
            name = type(self.agent).__name__
            raise InvalidArgumentError(
                "agent",
                self.agent,
                hint=f"call super().observe(...) in {name}.observe, or leave the checkpoint file out",
                problem=f"{name} has counted {self.agent.t} steps after {self.t} of this run, so it cannot be saved",
            )
        return super().state_to_save()
