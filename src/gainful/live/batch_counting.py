"""Many checked observations at once, to the same bits as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodicAgent
from gainful.agents.stepwise import StepwiseAgent
from gainful.live.records import TransitionColumns


def cells_of(agent: Any, rows: TransitionColumns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """States and next states as the numbers a tabular agent knows."""
    return agent.cells(rows.states), agent.cells(rows.next_states)


def observe_rows(agent: Any, rows: TransitionColumns) -> None:
    """Learn from every row in turn; the rows have been checked."""
    core: EpisodicAgent = agent.core
    states, to = cells_of(agent, rows)
    if isinstance(core, StepwiseAgent):
        for transition in zip(states.tolist(), rows.actions.tolist(), rows.rewards.tolist(), to.tolist(), strict=True):
            core.learn(*transition)
    else:
        pairs = states * core.n_actions + rows.actions
        if core.count_many(pairs, to, rows.rewards - core.reward_min):
            core.interrupted = core.current is not None and core.current.stop_on_new_state
        core.t += len(pairs)
    if agent.log is not None:
        log, n = agent.log, len(states)
        log.reserve(n)
        log.origin[log.n : log.n + n] = rows.states.reshape(n, -1)
        log.target[log.n : log.n + n] = rows.next_states.reshape(n, -1)
        log.action[log.n : log.n + n], log.reward[log.n : log.n + n] = rows.actions, rows.rewards
        log.n += n
