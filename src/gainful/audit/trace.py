"""The run once more, from the environment's own draws and the plans alone: what was executed, and what was counted.

Draw number t of an environment's stream decides step t (`gainful.rng`), so a run can be repeated outside the simulator:
the state follows from the draws, the action from the plan in force. Visits, transitions and rewards that this trace
has are compared with those from which the agent made its next plan. No counter of the simulator or the agent is read.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.agents.episodic import EpisodePlan, EpisodeView
from gainful.agents.statistics import Statistics
from gainful.audit.findings import Finding, compared
from gainful.audit.rows import CountedRows, counted_rows
from gainful.environments.continuous.dispatch import continuous_step, user_step
from gainful.mdp.model import MDP
from gainful.partition import axis_cell
from gainful.rng import Key, Role, draw, stream_key, uniform
from gainful.simulation.transition_table import BERNOULLI, DETERMINISTIC, RewardLaw, first_state

STATEMENTS_ABOUT_THE_TRACE = ("clock", "execution", "data")
MOST_COUNTERS = 1 << 22
"""Pairs times cells up to which the transitions among cells are counted one by one; beyond, visits and rewards are."""
FIRST_LOGGED = 1 << 12


class Tally(NamedTuple):
    """What the trace has counted, by pair: visits, Σ r and Σ r² (rewards from 0), and transitions."""

    visits: Any
    reward_sum: Any
    reward_squares: Any
    transitions: Any
    """Of an MDP, one for each of its entries; among cells, (pairs, cells), or empty if that were too many."""


class PlayedPolicy(NamedTuple):
    """The plan of an episode that began after `planned_at` steps; `cumulative` is empty if no action is drawn."""

    actions: Any
    """(H, S) the actions of its first H steps; the last of them go on. H = 1 unless the plan depends on the step."""
    cumulative: Any
    key: Key
    planned_at: int


class MDPLaw(NamedTuple):
    """An MDP as its environment draws from it: bounds of 32 bits for every entry, and what a step earns."""

    indptr: Any
    indices: Any
    bounds: Any
    kind: int
    means: Any
    entry_rewards: Any
    chances: Any
    success: float
    n_actions: int


class TraceErrors(NamedTuple):
    """How far an agent's data are from the trace's: in visits, and in counts or mean rewards, with the worst pair."""

    visits: float
    visited_pair: int
    data: float
    data_pair: int


@inlined
def played_action(policy: PlayedPolicy, s: int, t: int) -> int:
    """The action of the plan, or the one that draw 2t, or 2t + 1 at an episode's first step, takes from its mixture."""
    if policy.cumulative.size == 0:
        return int(policy.actions[min(t - policy.planned_at, policy.actions.shape[0] - 1), s])
    u = uniform(draw(policy.key, np.uint64(2 * t + (t == policy.planned_at))))
    a = 0
    while policy.cumulative[s, a] <= u:
        a += 1
    return a


@inlined
def tally_step(tally: Tally, pair: int, reward: float) -> None:
    """Count one execution of a pair and its reward, from 0."""
    tally.visits[pair] += 1
    tally.reward_sum[pair] += reward
    tally.reward_squares[pair] += reward * reward


# ---------------------------------------------------------------------- in an MDP


@kernel
def entry_bounds_of(indptr: Any, probabilities: Any, out: Any) -> None:
    """out[j] = round(2³²·(p_1 + … + p_j)) - 1, at least 0, and 2³² - 1 for the last of a row: j has u ≤ out[j]."""
    for k in range(indptr.size - 1):
        total = 0.0
        for j in range(indptr[k], indptr[k + 1]):
            total += probabilities[j]
            out[j] = np.int64(max(np.rint(total * 2.0**32), 1.0)) - 1
        if indptr[k + 1] > indptr[k]:
            out[indptr[k + 1] - 1] = (1 << 32) - 1


@inlined
def mdp_step(law: MDPLaw, tally: Tally, pair: int, bits: Any, least: float) -> Any:
    """Make and count one step: the high 32 bits choose the next state, the low ones a random reward.

    Returns the next state and the reward, from 0.
    """
    u, j = np.int64(bits >> np.uint64(32)), law.indptr[pair]
    while u > law.bounds[j]:
        j += 1
    if law.kind == DETERMINISTIC:
        reward = law.means[pair]
    elif law.kind == BERNOULLI:
        reward = law.success if (bits & np.uint64(0xFFFFFFFF)) < law.chances[pair] else 0.0
    else:
        reward = law.entry_rewards[j]
    tally_step(tally, pair, reward - least)
    tally.transitions[j] += 1
    return int(law.indices[j]), reward - least


@kernel
def replay_mdp(
    law: MDPLaw, policy: PlayedPolicy, tally: Tally, key: Key, least: float, state: int, t: int, until: int
) -> int:
    """Steps t … until - 1 from `state`; the state after them."""
    law, policy, tally = MDPLaw(*law), PlayedPolicy(*policy), Tally(*tally)
    for step in range(t, until):
        pair = state * law.n_actions + played_action(policy, state, step)
        state, _ = mdp_step(law, tally, pair, draw(key, np.uint64(step)), least)
    return state


@inlined
def pair_errors(rows: CountedRows, sums: Any, tally: Tally, k: int, reward_max: float) -> Any:
    """How far the visits of a pair are from the trace's, and its mean reward and mean square, in parts of r_max."""
    n = max(1, tally.visits[k])
    first = abs(sums[0][k] - tally.reward_sum[k]) / (n * reward_max)
    second = abs(sums[1][k] - tally.reward_squares[k]) / (n * reward_max * reward_max)
    return abs(float(rows.visits[k] - tally.visits[k])), max(first, second)


@kernel
def mdp_errors(rows: CountedRows, sums: Any, tally: Tally, indptr: Any, indices: Any, reward_max: float) -> TraceErrors:
    """Compare an agent's counts with the trace's; an MDP may list a next state several times, with several rewards."""
    rows, tally = CountedRows(*rows), Tally(*tally)
    visits, visited, data, place = 0.0, 0, 0.0, 0
    for k in range(rows.visits.size):
        off, wrong = pair_errors(rows, sums, tally, k, reward_max)
        if off > visits:
            visits, visited = off, k
        i, end = rows.begin[k], rows.begin[k] + rows.length[k]
        j = indptr[k]
        while i < end or j < indptr[k + 1]:
            to = np.int64(1 << 62)
            if i < end:
                to = np.int64(rows.next_state[i])
            if j < indptr[k + 1]:
                to = min(to, np.int64(indices[j]))
            counted, made = 0, 0
            if i < end and np.int64(rows.next_state[i]) == to:
                counted = rows.count[i]
                i += 1
            while j < indptr[k + 1] and np.int64(indices[j]) == to:
                made += tally.transitions[j]
                j += 1
            wrong = max(wrong, abs(float(counted - made)))
        if wrong > data:
            data, place = wrong, k
    return TraceErrors(visits, visited, data, place)


class Trace(Protocol):
    """A run that is repeated along with the one that is audited."""

    tally: Tally

    def go_on(self, policy: PlayedPolicy, until: int) -> None:
        """Repeat the run up to step `until`."""

    def errors(self, statistics: Statistics) -> TraceErrors:
        """Compare what an agent has counted with what the trace has."""


class MDPTrace:
    """A run in an MDP, repeated."""

    def __init__(self, mdp: MDP, seed: int, agent: Any) -> None:
        law = RewardLaw.of(mdp)
        bounds = np.empty(mdp.n_transitions, dtype=np.int64)
        entry_bounds_of(mdp.indptr, mdp.probabilities, bounds)
        self.law = MDPLaw(
            mdp.indptr,
            mdp.indices,
            bounds,
            len(law.kind),
            law.means,
            law.entry_rewards,
            law.chances,
            law.success,
            mdp.n_actions,
        )
        self.tally = new_tally(mdp.indptr.size - 1, np.zeros(mdp.n_transitions, dtype=np.int64))
        self.key, self.state, self.t = stream_key(seed, Role.ENVIRONMENT), first_state(mdp, seed), 0
        self._least, self._range = agent.reward_min, agent.reward_range

    def go_on(self, policy: PlayedPolicy, until: int) -> None:
        """Repeat the run up to step `until`."""
        self.state = replay_mdp(
            tuple(self.law), tuple(policy), tuple(self.tally), self.key, self._least, self.state, self.t, until
        )
        self.t = until

    def errors(self, statistics: Statistics) -> TraceErrors:
        """Compare what an agent has counted with what the trace has."""
        rows = tuple(counted_rows(statistics))
        sums = statistics.reward_sum, statistics.reward_squares
        return TraceErrors(*mdp_errors(rows, sums, tuple(self.tally), self.law.indptr, self.law.indices, self._range))


def new_tally(pairs: int, transitions: NDArray[np.int64]) -> Tally:
    """A tally in which nothing is counted yet."""
    return Tally(np.zeros(pairs, dtype=np.int64), np.zeros(pairs), np.zeros(pairs), transitions)


# ---------------------------------------------------------------------- among points


class PointsLaw(NamedTuple):
    """A continuous environment and the cells in which the agent sees its points."""

    kind: int
    parameters: Any
    uniforms: Any
    key: Key
    own_units: bool
    low: Any
    high: Any
    bins: Any
    cells_low: Any
    cells_high: Any
    n_actions: int


class PointsLog(NamedTuple):
    """The points, actions and rewards of the steps; of room for none if they are not kept."""

    points: Any
    actions: Any
    rewards: Any


@inlined
def cell_at(law: PointsLaw, x: Any) -> int:
    """The cell of a point of the unit cube."""
    cell = 0
    for i in range(x.size):
        seen = x[i]
        if law.own_units:
            seen = min(max(law.low[i] + seen * (law.high[i] - law.low[i]), law.low[i]), law.high[i])
        cell = cell * law.bins[i] + axis_cell(seen, law.bins[i], law.cells_low[i], law.cells_high[i])
    return cell


def _replay_points(
    function: Any, law: PointsLaw, policy: PlayedPolicy, tally: Tally, log: PointsLog, x: Any, least: float, steps: Any
) -> None:
    """Steps steps[0] … steps[1] - 1 from the point x, which ends at the last one; `function` is a user's step."""
    law, policy, tally, log = PointsLaw(*law), PlayedPolicy(*policy), Tally(*tally), PointsLog(*log)
    out, before, counting, logging = (
        np.empty(x.size),
        np.empty(x.size),
        tally.transitions.size > 0,
        log.actions.size > 0,
    )
    s = cell_at(law, x)
    for t in range(steps[0], steps[1]):
        a = played_action(policy, s, t)
        before[:] = x
        if function is None:
            reward = continuous_step(law.kind, law.parameters, x, a, law.key, t, out)
        else:
            reward = user_step(function, before, a, law.key, t, law.uniforms, out)
        if logging:
            log.points[t], log.actions[t], log.rewards[t] = x, a, reward
        x[:] = out
        to, pair = cell_at(law, x), s * law.n_actions + a
        tally_step(tally, pair, reward - least)
        if counting:
            tally.transitions[pair, to] += 1
        s = to


replay_points = kernel(_replay_points)
# a kernel that takes a function is not found in the cache: compiled in every process
replay_user_points = numba.njit(nogil=True, error_model="numpy")(_replay_points)


@kernel
def count_again(law: PointsLaw, tally: Tally, log: PointsLog, x: Any, least: float, n: int) -> None:
    """Count the first n steps of the log, which end at x, in the cells of `law`."""
    law, tally, log = PointsLaw(*law), Tally(*tally), PointsLog(*log)
    for t in range(n):
        pair = cell_at(law, log.points[t]) * law.n_actions + log.actions[t]
        tally_step(tally, pair, log.rewards[t] - least)
        if tally.transitions.size > 0:
            tally.transitions[pair, cell_at(law, log.points[t + 1] if t + 1 < n else x)] += 1


@kernel
def points_errors(rows: CountedRows, sums: Any, tally: Tally, reward_max: float) -> TraceErrors:
    """Compare an agent's counts with the trace's."""
    rows, tally = CountedRows(*rows), Tally(*tally)
    visits, visited, data, place = 0.0, 0, 0.0, 0
    for k in range(rows.visits.size):
        off, wrong = pair_errors(rows, sums, tally, k, reward_max)
        if off > visits:
            visits, visited = off, k
        if tally.transitions.size > 0:
            missed = tally.visits[k]
            for i in range(rows.begin[k], rows.begin[k] + rows.length[k]):
                made = tally.transitions[k, rows.next_state[i]]
                missed -= made
                wrong = max(wrong, abs(float(rows.count[i] - made)))
            wrong = max(wrong, abs(float(missed)))
        if wrong > data:
            data, place = wrong, k
    return TraceErrors(visits, visited, data, place)


class PointsTrace:
    """A run among points, repeated; the steps are kept if the agent's cells may be refined, and counted again then."""

    def __init__(self, env: Any, seed: int, agent: Any, own_units: bool) -> None:
        self.env, self.agent, self._own_units = env, agent, own_units
        self.key, self.t = stream_key(seed, Role.ENVIRONMENT), 0
        self.x: NDArray[np.float64] = env.start.copy()
        self._least, self._range = agent.reward_min, agent.reward_range
        self._keeps = bool(getattr(agent, "doubling", False))
        self._log = self._new_log(FIRST_LOGGED if self._keeps else 0)
        self._uniforms = np.empty(env.draws)
        self._take_cells()

    def _new_log(self, room: int) -> PointsLog:
        return PointsLog(np.empty((room, self.env.dim)), np.empty(room, dtype=np.int64), np.empty(room))

    def _take_cells(self) -> None:
        """Count in the agent's present cells."""
        env, agent = self.env, self.agent
        self._partition, cells = agent.partition, agent.partition.n_cells
        pairs = cells * agent.n_actions
        self.tally = new_tally(
            pairs, np.zeros((pairs, cells) if pairs * cells <= MOST_COUNTERS else (0, 0), dtype=np.int64)
        )
        bins, low, high = agent.partition.arrays
        self.law = PointsLaw(
            kind=int(env.kind),
            parameters=env.parameters,
            uniforms=self._uniforms,
            key=self.key,
            own_units=self._own_units,
            low=env.low,
            high=env.high,
            bins=bins,
            cells_low=low,
            cells_high=high,
            n_actions=agent.n_actions,
        )

    def go_on(self, policy: PlayedPolicy, until: int) -> None:
        """Repeat the run up to step `until`."""
        while self._keeps and until > self._log.actions.size:
            larger = self._new_log(2 * self._log.actions.size)
            for new, old in zip(larger, self._log, strict=True):
                new[: len(old)] = old
            self._log = larger
        replay = replay_points if self.env.function is None else replay_user_points
        what = tuple(self.law), tuple(policy), tuple(self.tally), tuple(self._log)
        replay(self.env.function, *what, self.x, self._least, np.array([self.t, until]))
        self.t = until

    def errors(self, statistics: Statistics) -> TraceErrors:
        """Compare what an agent has counted, perhaps in finer cells by now, with what the trace has."""
        if self.agent.partition is not self._partition:
            self._take_cells()
            count_again(tuple(self.law), tuple(self.tally), tuple(self._log), self.x, self._least, self.t)
        rows, sums = tuple(counted_rows(statistics)), (statistics.reward_sum, statistics.reward_squares)
        return TraceErrors(*points_errors(rows, sums, tuple(self.tally), self._range))


# ---------------------------------------------------------------------- the auditor


class TraceAuditor:
    """Compares every episode of a run with its trace.

    Parameters
    ----------
    agent : Agent
        A new agent, with plans.
    simulation : TabularSimulation or ContinuousSimulation
        The run that is about to begin.
    """

    names = STATEMENTS_ABOUT_THE_TRACE

    def __init__(self, agent: Any, simulation: Any) -> None:
        from gainful.simulation.tabular import TabularSimulation

        self._agent, self._simulation = agent, simulation
        self._trace: Trace
        if isinstance(simulation, TabularSimulation):
            self._trace = MDPTrace(simulation.mdp, simulation.seed, agent)
        else:
            self._trace = PointsTrace(simulation.env, simulation.seed, agent, simulation.user_units)
        self._policy: PlayedPolicy | None = None
        self._clock: list[tuple[int, int]] = []
        """The first step of each episode by the agent's clock, and the steps made before it."""
        self._errors: list[TraceErrors] = []

    @property
    def _core(self) -> Any:
        """The agent, or the one on cells within it, which a refinement replaces."""
        return getattr(self._agent, "core", self._agent)

    def see(self, view: EpisodeView) -> None:
        """Repeat the episode before, and compare the data of the one that begins."""
        made = self._simulation.t
        self._catch_up(made, view.statistics)
        self._clock.append((view.step, made))
        self._policy = self._played(view.plan, made)

    def _played(self, plan: EpisodePlan, made: int) -> PlayedPolicy:
        """The policy of a plan; arrays are copied, as the agent may reuse its own."""
        drawn = np.empty((0, 0))
        if plan.probabilities is not None:
            drawn = np.cumsum(plan.probabilities, axis=1)
            drawn[drawn >= drawn[:, -1:] - 1e-12] = 1.0
        actions = plan.details.get("actions", plan.actions[None, :])  # of every step, if the plan depends on it
        return PlayedPolicy(np.array(actions), drawn, self._core.key, made)

    def _catch_up(self, made: int, statistics: Statistics) -> None:
        """Repeat the steps up to `made`, and compare."""
        if self._policy is not None:
            self._trace.go_on(self._policy, made)
        self._errors.append(self._trace.errors(statistics))

    def findings(self) -> dict[str, Finding]:
        """The finding on each statement; entries are the data before each episode, and those at the end."""
        self._catch_up(self._simulation.t, self._core.statistics)
        step, made = np.array(self._clock, dtype=np.float64).reshape(-1, 2).T
        at = np.append(step, self._simulation.t)
        visits, visited, data, place = np.array(self._errors, dtype=np.float64).T
        A = self._core.n_actions
        return {
            "clock": compared(np.abs(step - (made + 1.0)), 0.0, step),
            "execution": compared(visits, 0.0, at, states=visited // A, actions=visited % A),
            "data": compared(data, 0.0, at, states=place // A, actions=place % A, rounding=1e-9),
        }
