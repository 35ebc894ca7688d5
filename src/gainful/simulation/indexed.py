"""Simulation in a finite MDP of an agent that computes an index before every decision: IMED-RL."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.agents.imed_rl import IMEDRL, IndexTables, choose_by_index
from gainful.agents.statistics import AgentCounts, count_visit, named, touch
from gainful.growable_rows import add
from gainful.mdp.model import MDP
from gainful.optimism.imed_rl import RewardAtoms, count_reward
from gainful.planning.skeleton import CountedModel
from gainful.rng import draw
from gainful.simulation.counters import STATE, STEP, Clock
from gainful.simulation.tabular import TabularSimulation
from gainful.simulation.transition_table import BERNOULLI, DETERMINISTIC, LOW_BITS, RewardLaw, fill_bounds, search


class PlainEnvironment(NamedTuple):
    """An MDP for a loop in which a step of the environment costs little: one kind of table for all of them.

    The numbers are those of `TransitionTable` and `RewardLaw`, and so are the steps.
    """

    first: Any
    next_states: Any
    bounds: Any
    law: int
    means: Any
    entry_rewards: Any
    chances: Any
    success: float

    @classmethod
    def of(cls, mdp: MDP, law: RewardLaw) -> PlainEnvironment:
        """That of an MDP."""
        first = mdp.indptr.view(np.uint64)
        bounds: NDArray[np.uint32] = np.empty(mdp.n_transitions, dtype=np.uint32)
        fill_bounds(first, mdp.probabilities, bounds)
        means = law.means, law.entry_rewards, law.chances, float(law.success)
        return cls(first, mdp.indices, bounds, len(law.kind), *means)


@inlined
def plain_step(env: PlainEnvironment, pair: Any, bits: Any) -> tuple[Any, float]:
    """The next state and the reward of one step from `pair`."""
    at = env.first[pair] + search(env.bounds, env.first[pair], env.first[pair + np.uint64(1)], bits >> np.uint64(32))
    if env.law == DETERMINISTIC:
        reward = env.means[pair]
    elif env.law == BERNOULLI:
        reward = env.success if (bits & LOW_BITS) < env.chances[pair] else 0.0
    else:
        reward = env.entry_rewards[at]
    return env.next_states[at], reward


@kernel
def run_indexed(
    environment: PlainEnvironment,
    counts: AgentCounts,
    model: CountedModel,
    tables: IndexTables,
    steps_before: int,
    reward_min: float,
    clock: Clock,
    until: int,
) -> bool:
    """Step until step `until`; False if the agent has no room for a transition, which is then not made."""
    env, counted, clock, atoms = PlainEnvironment(*environment), named(counts), Clock(*clock), RewardAtoms(*tables[0])
    state, t, total, room_left = np.int64(clock.now[STATE]), clock.now[STEP], clock.earned[0], True
    while t < until:
        pair = state * counted.n_actions + choose_by_index(model, tables, state, steps_before + t)
        bits = draw(clock.key, np.uint64(t))
        to, reward = plain_step(env, np.uint64(pair), bits)
        inner = reward - reward_min
        room_left = add(counted.rows, pair, np.int64(to), 1)
        if not room_left:
            break
        touch(counted, pair)
        count_visit(counted, pair, inner)
        count_reward(atoms, pair, inner)
        counted.visited[state] = True
        counted.visited[to] = True
        total += reward
        t += 1
        state = np.int64(to)
    clock.now[STATE], clock.now[STEP], clock.earned[0] = state, t, total
    return bool(room_left)


class IndexedSimulation(TabularSimulation):
    """One run of IMED-RL in an MDP; nothing is counted but by the agent itself."""

    agent: IMEDRL

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._environment = tuple(PlainEnvironment.of(self.mdp, self.law))

    def advance(self, target: int) -> None:
        """Kernel calls to step `target`, as many as the room for counts needs."""
        agent, began = self.agent, time.thread_time()
        self.prepare()
        try:
            while self.t < target:
                what = agent.counts(), agent.model(), agent.tables(), self.steps_before, agent.reward_min
                if not run_indexed(self._environment, *what, tuple(self._clock), target):
                    agent.statistics.enlarge()
        finally:  # in any case, also after Ctrl-C: the agent has counted every step
            agent.t = self.steps_before + self.t
        self.acting_seconds += time.thread_time() - began
