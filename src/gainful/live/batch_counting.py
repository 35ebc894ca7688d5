"""Many observations at once, to the same bits as one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.statistics import Statistics, mark
from gainful.agents.stepwise import StepwiseAgent
from gainful.growable_rows import add
from gainful.live.records import TransitionRows


@kernel
def count_rows(
    pairs: Any, to: Any, rewards: Any, at: int, begin: Any, length: Any, room: Any, used: Any, next_state: Any,
    count: Any, is_changed: Any, changed: Any, n_changed: Any, visits: Any, reward_sum: Any, reward_squares: Any,
) -> int:  # fmt: skip
    """Count the transitions from number `at` on; returns how far it came: all, or where the arena was full."""
    for i in range(at, pairs.size):
        k = pairs[i]
        if not add(begin, length, room, used, next_state, count, k, to[i], 1):
            return i
        mark(is_changed, changed, n_changed, k)
        visits[k] += 1
        reward_sum[k] += rewards[i]
        reward_squares[k] += rewards[i] * rewards[i]
    return int(pairs.size)


@kernel
def visit_rows(states: Any, to: Any, pairs: Any, visited: Any, remaining: Any) -> bool:
    """Mark the states as seen, and the executions as used; whether one ended in a state never seen before."""
    new = False
    for i in range(pairs.size):
        remaining[pairs[i]] -= 1
        visited[states[i]] = True
        if not visited[to[i]]:
            visited[to[i]] = True
            new = True
    return new


def count_many(
    statistics: Statistics, pairs: NDArray[np.int64], to: NDArray[np.int64], rewards: NDArray[np.float64]
) -> None:
    """`statistics.observe` for every transition in turn; rewards in internal units."""
    at = 0
    while True:
        at = count_rows(
            pairs, to, rewards, at, *statistics.arena, *statistics.changes, statistics.visits, statistics.reward_sum,
            statistics.reward_squares,
        )  # fmt: skip
        if at == pairs.size:
            return
        statistics.enlarge()


def cells_of(agent: Any, rows: TransitionRows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """States and next states as the numbers a tabular agent knows."""
    return agent.cells(rows.states), agent.cells(rows.next_states)


def observe_rows(agent: Any, rows: TransitionRows) -> None:
    """`agent.observe` for every row in turn; the rows have been checked."""
    core: EpisodicAgent = agent.core
    if isinstance(core, StepwiseAgent):
        for s, a, r, to in zip(rows.states, rows.actions, rows.rewards.tolist(), rows.next_states, strict=True):
            agent.observe(s, int(a), r, to)
        return
    states, to = cells_of(agent, rows)
    pairs = states * core.n_actions + rows.actions
    count_many(core.statistics, pairs, to, rows.rewards - core.reward_min)
    new = visit_rows(states, to, pairs, core.visited, core.remaining)
    if new:
        core.interrupted = core.current is not None and core.current.stop_on_new_state
    core.t += len(pairs)
    if agent.log is not None:
        log, n = agent.log, len(pairs)
        log.reserve(n)
        log.origin[log.n : log.n + n] = rows.states.reshape(n, -1)
        log.target[log.n : log.n + n] = rows.next_states.reshape(n, -1)
        log.action[log.n : log.n + n], log.reward[log.n : log.n + n] = rows.actions, rows.rewards
        log.n += n
