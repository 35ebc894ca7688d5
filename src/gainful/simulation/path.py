"""Simulation in a finite MDP for an agent that needs the order of states: compiled, and followed once more."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful._compiled import kernel
from gainful.agents.state_path import Segments, follow
from gainful.rng import Key, draw
from gainful.simulation.counters import STATE, STEP
from gainful.simulation.tabular import TabularSimulation
from gainful.simulation.transition_table import RewardLaw, TransitionTable, env_step


@kernel
def follow_steps(
    table: TransitionTable, law: RewardLaw, actions: Any, segments: Segments, key: Key, least: float, start: Any
) -> None:
    """Repeat the steps `start` = (state, first, end) of a run, which its draws decide, and note the path."""
    table, law, segments = TransitionTable(*table), RewardLaw(*law), Segments(*segments)
    state, first, end = np.uint64(start[0]), start[1], start[2]
    for t in range(first, end):
        pair = state * table.n_actions + np.uint64(actions[state])
        _, to, reward = env_step(table, law, pair, law.means[pair], draw(key, np.uint64(t)))
        here: Any = np.int64(state)
        there: Any = np.int64(to)
        follow(segments, here, reward - least, there)
        state = np.uint64(to)


class PathSimulation(TabularSimulation):
    """One run of an agent with a deterministic policy and a `StatePath`."""

    def advance(self, target: int) -> None:
        """One kernel call to step `target`, or to the end of the episode, and one that notes the path."""
        agent, now = self.agent, self._clock.now
        plan, state, first = self.prepare(), int(now[STATE]), int(now[STEP])
        try:
            super().advance(target)
        finally:
            table, law, _ = self._where
            assert agent.path is not None
            segments, where = tuple(agent.path.segments), (state, first, int(now[STEP]))
            follow_steps(table, law, plan.actions, segments, self._clock.key, agent.reward_min, where)
