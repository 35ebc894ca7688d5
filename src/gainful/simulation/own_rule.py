"""Simulation in a finite MDP of a `StepwiseAgent` whose update is the user's own compiled function.

The loop takes the functions as arguments. Such a loop never hits Numba's cache on disk, whose keys hold the addresses
of functions, and so it is compiled in every process, once for each rule. That is why the library's own rules are not
written this way: they are chosen by a constant in the cached loop of `tabular.py`.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numba
import numpy as np

from gainful.agents.statistics import AgentCounts, named
from gainful.agents.stepwise import StepwiseAgent, own_function, wrong_choice
from gainful.rng import draw, uniform
from gainful.simulation.counters import (
    NOT_LOADED,
    RECORD_SHIFT,
    SQUARES,
    STATE,
    STEP,
    SUM,
    TOUCHED,
    UNLIMITED,
    Clock,
    Counters,
    counted_step,
)
from gainful.simulation.tabular import TabularSimulation
from gainful.simulation.transition_table import RewardLaw, TransitionTable


class RuleTables(NamedTuple):
    """What a user's functions see: (S, A) q and target, numbers, and (S, A) the actions that each state has."""

    q: Any
    target: Any
    numbers: Any
    allowed: Any


class Decisions(NamedTuple):
    """The stream of the agent's draws, its steps before the run, and its least reward."""

    key: Any
    steps_before: int
    reward_min: float


def _run_rule(
    update: Any,
    choose: Any,
    environment: tuple[Any, Any, Any],
    counts: AgentCounts,
    tables: RuleTables,
    decisions: Decisions,
    clock: Clock,
    until: int,
) -> int:
    """Step until step `until`; an action that the state does not have ends it and is returned, else -1."""
    table, law, counters = TransitionTable(*environment[0]), RewardLaw(*environment[1]), Counters(*environment[2])
    counts, tables, decisions, clock = named(counts), RuleTables(*tables), Decisions(*decisions), Clock(*clock)
    record, real, now, n_actions = counters.record, counters.real, clock.now, table.n_actions
    state, t, total, refused = np.uint64(now[STATE]), now[STEP], clock.earned[0], np.int64(-1)
    while t < until:
        u = uniform(draw(decisions.key, np.uint64(2 * (decisions.steps_before + t))))
        action = np.int64(choose(tables.q, tables.numbers, tables.allowed, np.int64(state), u))
        if not (0 <= action < np.int64(n_actions)) or not tables.allowed[state, action]:
            refused = action
            break
        pair = state * n_actions + np.uint64(action)
        at = pair << RECORD_SHIFT
        left = record[at]
        if left == NOT_LOADED:
            left = UNLIMITED
            real[at + SUM], real[at + SQUARES] = counts.reward_sum[pair], counts.reward_squares[pair]
            counters.touched[now[TOUCHED]] = pair
            now[TOUCHED] += 1
        to, reward = counted_step(
            table, law, counters, pair, at, left - 1, decisions.reward_min, draw(clock.key, np.uint64(t))
        )
        total += reward
        t += 1
        visits = counts.visits[pair] + (UNLIMITED - (left - 1))
        update(tables.q, tables.target, tables.numbers, np.int64(state), action, reward, np.int64(to), visits)
        state = to
    now[STATE], now[STEP], clock.earned[0] = state, t, total
    return int(refused)


# takes functions, so it cannot be cached: compiled in every process
run_rule = numba.njit(nogil=True, error_model="numpy")(_run_rule)


@numba.njit(error_model="numpy")  # type: ignore[untyped-decorator]
def greedy_choice(q: Any, numbers: Any, allowed: Any, state: int, u: float) -> int:  # noqa: ARG001
    """The action of the largest value, ties to the lowest."""
    chosen = 0
    for a in range(1, q.shape[1]):
        if q[state, a] > q[state, chosen]:
            chosen = a
    return chosen


def is_compiled(function: Any) -> bool:
    """Whether a user's function was compiled by Numba."""
    return isinstance(function, numba.core.registry.CPUDispatcher)


def can_be_compiled(agent: StepwiseAgent) -> bool:
    """Whether the functions of an agent with its own rule are ones that a compiled loop can call."""
    choose = own_function(agent, "choose")
    return is_compiled(own_function(agent, "update")) and (choose is None or is_compiled(choose))


class OwnRuleSimulation(TabularSimulation):
    """One agent's run in an MDP, with its own compiled update."""

    agent: StepwiseAgent

    def advance(self, target: int) -> None:
        """One kernel call, to step `target`."""
        agent, _ = self.agent, self.prepare()
        began = time.thread_time()
        update, choose = own_function(agent, "update"), own_function(agent, "choose") or greedy_choice
        decisions = agent.key, self.steps_before, agent.reward_min
        tables, refused = (*agent.own_tables(), agent.allowed), -1
        try:
            refused = run_rule(
                update, choose, self._where, agent.counts(), tables, decisions, tuple(self._clock), target
            )
        finally:  # in any case, also after Ctrl-C: the agent learns all that was counted
            self.update_agent()
        self.acting_seconds += time.thread_time() - began
        if refused != -1 or self.t < target:
            raise wrong_choice(agent, self.state, refused)
