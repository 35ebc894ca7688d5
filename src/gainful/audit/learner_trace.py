"""The run of a Q-learner once more: the environment's draws, and the updates of the equation, from the first step on.

Nothing is read from the agent but its constants. Ties go to the lowest action, as everywhere; terms are added in the
order of the equation, so that two actions which are equally good for the agent are so here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.audit.findings import Finding, compared
from gainful.audit.trace import (
    MDPLaw,
    MDPTrace,
    PointsLaw,
    PointsTrace,
    Tally,
    TraceErrors,
    cell_at,
    mdp_step,
    tally_step,
)
from gainful.environments.continuous.dispatch import continuous_step, user_step
from gainful.rng import Key, draw, uniform
from gainful.simulation.tabular import TabularSimulation

OPTIMISTIC_RULE, DIFFERENTIAL_RULE = 1, 2


class LearnedTables(NamedTuple):
    """The tables of a learner, (S*A,) each, its rule with its constants, and what its values are compared with."""

    rule: int
    numbers: Any
    """Optimistic: H, 4·sp·sqrt(H·ln(2T/δ)), r_max. Differential: ε, α, η, and r̄, which changes."""
    q: Any
    """Q̂ of the optimistic rule, q of the differential one; -inf if not allowed."""
    target: Any
    """Q of the optimistic rule."""
    allowed: Any
    """(S, A)"""
    bound: Any
    """(S*A,) Q*, -inf where nothing is known."""
    nearest: Any
    """The largest Q* - Q̂ that occurred, its step from 1, and its pair."""
    key: Key
    """Of the agent's own draws."""


@inlined
def chosen_action(tables: LearnedTables, s: int, t: int) -> int:
    """The best action by q, or with probability ε any of those allowed, by draw 2t of the agent's stream."""
    n_actions = tables.allowed.shape[1]
    action = 0
    for a in range(1, n_actions):
        if tables.q[s * n_actions + a] > tables.q[s * n_actions + action]:
            action = a
    if tables.rule == DIFFERENTIAL_RULE:
        u = uniform(draw(tables.key, np.uint64(2 * t)))
        if u < tables.numbers[0]:
            number = 0
            for a in range(n_actions):
                number += tables.allowed[s, a]
            rank, seen = int(u / tables.numbers[0] * number), 0
            for a in range(n_actions):
                if tables.allowed[s, a]:
                    if seen == rank:
                        action = a
                    seen += 1
    return action


@inlined
def apply_rule(tables: LearnedTables, pair: int, reward: float, to: int, visits: int, step: int) -> None:
    """Update the tables after visit number `visits` of a pair, `reward` from 0, and note how near Q̂ came to Q*."""
    n_actions, q, numbers = tables.allowed.shape[1], tables.q, tables.numbers
    best = -np.inf
    for a in range(n_actions):
        best = max(best, q[to * n_actions + a])
    if tables.rule == OPTIMISTIC_RULE:
        H = numbers[0]
        rate = (H + 1.0) / (H + visits)
        goal = reward / numbers[2] + (1.0 - 1.0 / H) * best + numbers[1] / np.sqrt(visits)
        tables.target[pair] += rate * (goal - tables.target[pair])
        q[pair] = min(q[pair], tables.target[pair])
        if tables.bound[pair] - q[pair] > tables.nearest[0]:
            tables.nearest[0], tables.nearest[1], tables.nearest[2] = tables.bound[pair] - q[pair], step, pair
    else:
        error = reward - numbers[3] + best - q[pair]
        q[pair] += numbers[1] * error
        numbers[3] += numbers[2] * numbers[1] * error


@kernel
def learn_in_mdp(
    law: MDPLaw, tables: LearnedTables, tally: Tally, key: Key, least: float, state: int, t: int, until: int
) -> int:
    """Steps t … until - 1 from `state`; the state after them."""
    law, tables, tally = MDPLaw(*law), LearnedTables(*tables), Tally(*tally)
    for step in range(t, until):
        pair = state * law.n_actions + chosen_action(tables, state, step)
        state, reward = mdp_step(law, tally, pair, draw(key, np.uint64(step)), least)
        apply_rule(tables, pair, reward, state, tally.visits[pair], step + 1)
    return state


def _learn_among_points(
    function: Any, law: PointsLaw, tables: LearnedTables, tally: Tally, x: Any, least: float, steps: Any
) -> None:
    """Steps steps[0] … steps[1] - 1 from the point x, which ends at the last one; `function` is a user's step."""
    law, tables, tally = PointsLaw(*law), LearnedTables(*tables), Tally(*tally)
    out, before, counting = np.empty(x.size), np.empty(x.size), tally.transitions.size > 0
    s = cell_at(law, x)
    for t in range(steps[0], steps[1]):
        a = chosen_action(tables, s, t)
        before[:] = x
        if function is None:
            reward = continuous_step(law.kind, law.parameters, x, a, law.key, t, out)
        else:
            reward = user_step(function, before, a, law.key, t, law.uniforms, out)
        x[:] = out
        to, pair = cell_at(law, x), s * law.n_actions + a
        tally_step(tally, pair, reward - least)
        if counting:
            tally.transitions[pair, to] += 1
        apply_rule(tables, pair, reward - least, to, tally.visits[pair], t + 1)
        s = to


learn_among_points = kernel(_learn_among_points)
# a kernel that takes a function is not found in the cache: compiled in every process
learn_among_user_points = numba.njit(nogil=True, error_model="numpy")(_learn_among_points)


class LearnerTrace:
    """Repeats the whole run of a Q-learner at its end.

    Parameters
    ----------
    agent : Agent
        A new agent, on states or on cells.
    simulation : TabularSimulation or ContinuousSimulation
        The run that is about to begin.
    tables : LearnedTables
        Its tables before the first step.
    """

    def __init__(self, agent: Any, simulation: Any, tables: LearnedTables) -> None:
        self.tables, self._agent, self._simulation = tables, agent, simulation
        self._trace: MDPTrace | PointsTrace
        if isinstance(simulation, TabularSimulation):
            self._trace = MDPTrace(simulation.mdp, simulation.seed, agent)
        else:
            self._trace = PointsTrace(simulation.env, simulation.seed, agent, simulation.user_units)
        self._clock: list[tuple[int, int]] = []

    @property
    def steps(self) -> int:
        """The steps made so far."""
        return int(self._simulation.t)

    def see(self, step: int) -> None:
        """Note that the agent begins an episode, of which it has but one, at `step`."""
        self._clock.append((step, self._simulation.t))

    def _repeat(self, T: int) -> None:
        """Make the T steps of the run."""
        trace, tables = self._trace, tuple(self.tables)
        if isinstance(trace, MDPTrace):
            what = tuple(trace.law), tables, tuple(trace.tally), trace.key
            trace.state = learn_in_mdp(*what, self._agent.reward_min, trace.state, 0, T)
        else:
            learn = learn_among_points if trace.env.function is None else learn_among_user_points
            what_there = tuple(trace.law), tables, tuple(trace.tally)
            learn(trace.env.function, *what_there, trace.x, self._agent.reward_min, np.array([0, T]))
        trace.t = T

    def findings(self) -> dict[str, Finding]:
        """Repeat the run, and compare its visits, transitions, rewards and length with the agent's."""
        T, core = self._simulation.t, self._agent.core
        self._repeat(T)
        errors: TraceErrors = self._trace.errors(core.statistics)
        clock = [abs(step - (made + 1)) for step, made in self._clock] + [abs(core.t - T)]
        at: NDArray[np.int64] = np.array([*(step for step, _ in self._clock), T])
        pairs = {
            name: {"states": [int(pair) // core.n_actions], "actions": [int(pair) % core.n_actions]}
            for name, pair in (("execution", errors.visited_pair), ("data", errors.data_pair))
        }
        return {
            "clock": compared(clock, 0.0, at),
            "execution": compared([errors.visits], 0.0, [T], **pairs["execution"]),
            "data": compared([errors.data], 0.0, [T], rounding=1e-9, **pairs["data"]),
        }
