"""Simulation in a finite MDP: one compiled call per episode, the same trace as stepping `act` and `observe`."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.policy_kernels import Policy, choose
from gainful.agents.statistics import AgentCounts, named
from gainful.agents.stepwise import (
    DIFFERENTIAL,
    OPTIMISTIC,
    PLANNED,
    LearningTables,
    differential_error,
    learner_of,
    optimistic_update,
)
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.rng import Key, Role, draw, stream_key, uniform
from gainful.simulation.base import ResumableSimulation
from gainful.simulation.counters import (
    NEW_STATE,
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
    executions_left,
    fold,
    new_counters,
    total_over_pairs,
)
from gainful.simulation.run import Run
from gainful.simulation.transition_table import DETERMINISTIC, RewardLaw, TransitionTable, first_state


@kernel
def run_steps(
    table: TransitionTable,
    law: RewardLaw,
    counters: Counters,
    counts: AgentCounts,
    learner: LearningTables,
    policy: Policy,
    clock: Clock,
    until: int,
) -> None:
    """Step until step `until` or the end of the episode, and give the agent what was counted.

    Everything is counted in `counters`, and folded into the agent's `counts` at the end, as far as there is room; what
    was not folded is left in `clock`. An agent that learns at every step decides by the tables of `learner` and updates
    them, in line: functions of arrays would take most of the time.
    """
    table, law, counters, counts = TransitionTable(*table), RewardLaw(*law), Counters(*counters), named(counts)
    policy, clock = Policy(*policy), Clock(*clock)
    record, real, now, n_actions = counters.record, counters.real, clock.now, table.n_actions
    rule, q, target, numbers, allowed = learner
    mixed, planned, low = policy.cumulative.size > 0, policy.planned_now, policy.reward_min
    state, t, total = np.uint64(now[STATE]), now[STEP], clock.earned[0]
    now[NEW_STATE] = False
    while t < until:
        row = state * n_actions
        if len(rule) == PLANNED:
            action: Any = np.uint64(policy.actions[state])
        else:
            action = np.uint64(0)  # greedy, ties to the lowest
            for a in range(np.uint64(1), n_actions):
                if q[row + a] > q[row + action]:
                    action = a
            if len(rule) == DIFFERENTIAL:
                u = uniform(draw(policy.key, np.uint64(2 * (policy.steps_before + t))))
                if u < numbers[0]:
                    possible = 0
                    for a in range(n_actions):
                        possible += allowed[state, a]
                    rank = int(u / numbers[0] * possible)
                    for a in range(n_actions):
                        if allowed[state, a]:
                            if rank == 0:
                                action = a
                                break
                            rank -= 1
        if mixed:
            number = np.uint64(2 * (policy.steps_before + t) + planned)
            action = np.uint64(choose(policy.cumulative, np.int64(state), policy.key, number))
            planned = False
        pair = row + action
        at = pair << RECORD_SHIFT
        left = record[at]
        if left <= 0:
            if left == NOT_LOADED:
                left = executions_left(
                    policy.doubling,
                    counts.is_changed[pair],
                    counts.remaining[pair],
                    counts.multiplier,
                    counts.visits_before[pair],
                )
                record[at] = left
                real[at + SUM], real[at + SQUARES] = counts.reward_sum[pair], counts.reward_squares[pair]
                counters.touched[now[TOUCHED]] = pair
                now[TOUCHED] += 1
            if left <= 0:
                break
        to, reward = counted_step(table, law, counters, pair, at, left - 1, low, draw(clock.key, np.uint64(t)))
        total += reward
        t += 1
        if len(rule) > PLANNED:
            inner, visits = reward - low, counts.visits[pair] + (UNLIMITED - (left - 1))
            row = to * n_actions
            best = q[row]
            for a in range(np.uint64(1), n_actions):
                best = max(best, q[row + a])
            if len(rule) == OPTIMISTIC:
                target[pair] = optimistic_update(target[pair], inner / numbers[2], best, visits, numbers[0], numbers[1])
                q[pair] = min(q[pair], target[pair])
            else:
                d = differential_error(q[pair], inner, best, numbers[3])
                q[pair] += numbers[1] * d
                numbers[3] += numbers[2] * numbers[1] * d
        elif policy.stop_on_new_state:
            counts.visited[state] = True
            if not counts.visited[to]:
                counts.visited[to] = True
                state = to
                now[NEW_STATE] = True
                break
        state = to
    now[STATE], now[STEP], clock.earned[0] = state, t, total
    fold(table, counters, counts, now)


def check_fit(agent: EpisodicAgent, mdp: MDP) -> None:
    """Raise an error unless the agent fits the shape, the actions and the rewards of the MDP."""
    if not isinstance(agent, EpisodicAgent):
        problem = f"{type(agent).__name__} is an agent on points, and the MDP has {mdp.n_states} states"
        raise InvalidArgumentError("agent", agent, hint="take a tabular agent", problem=problem)
    if (agent.n_states, agent.n_actions) != (mdp.n_states, mdp.n_actions):
        raise InvalidArgumentError(
            "agent",
            agent,
            hint=f"{type(agent).__name__}.for_mdp(mdp) makes one that fits",
            problem=f"the agent has {agent.n_states} states and {agent.n_actions} actions, "
            f"the MDP {mdp.n_states} and {mdp.n_actions}",
        )
    if np.any(agent.allowed & ~mdp.allowed):
        s, a = (int(i) for i in np.argwhere(agent.allowed & ~mdp.allowed)[0])
        missing = f"state {mdp.state_name(s)} does not have the action {mdp.action_name(a)}"
        raise InvalidArgumentError(
            "agent",
            agent,
            hint="make it with allowed=mdp.allowed",
            problem=f"{missing}, which the agent may choose",
        )
    low, high = mdp.reward_range
    if low < agent.reward_min or high > agent.reward_max:
        raise InvalidArgumentError(
            "agent",
            agent,
            hint="give it mdp.reward_min and mdp.reward_max",
            problem=f"rewards of this MDP lie in [{low:g}, {high:g}], the agent accepts "
            f"[{agent.reward_min:g}, {agent.reward_max:g}]",
        )


class TabularSimulation(ResumableSimulation):
    """One agent's run in an MDP: its state, and what it has earned and lost at each checkpoint."""

    agent: EpisodicAgent
    added_later = ("expected_regret",)

    def __init__(
        self,
        agent: EpisodicAgent,
        mdp: MDP,
        seed: int,
        grid: NDArray[np.int64],
        gain: float,
        gaps: NDArray[np.float64],
        compiled: tuple[TransitionTable, RewardLaw] | None = None,
    ) -> None:
        super().__init__(agent, seed, grid)
        self.mdp, self.gain, self.gaps = mdp, gain, gaps
        self.means, self.expected_regret = np.zeros(grid.size), np.zeros(grid.size)
        self.table, self.law = compiled or (TransitionTable.of(mdp), RewardLaw.of(mdp))
        self._visits_before = agent.statistics.visits.copy()
        now = np.array([first_state(mdp, seed), 0, 0, False], dtype=np.int64)
        self.count_in(
            new_counters(self.law.means, self.n_long), Clock(now, np.zeros(1), stream_key(seed, Role.ENVIRONMENT))
        )

    @property
    def n_long(self) -> int:
        """The number of transitions that need a counter outside the records: those of an MDP with long rows."""
        return 0 if self.table.padding else self.mdp.n_transitions

    @property
    def clock(self) -> NDArray[np.int64]:
        """State, step, number of pairs loaded, and whether a new state ended the episode."""
        now: NDArray[np.int64] = self._clock.now
        return now

    @property
    def key(self) -> Key:
        """The stream from which the environment draws."""
        return self._clock.key

    @property
    def earned(self) -> NDArray[np.float64]:
        """(1,) the sum of rewards so far."""
        earned: NDArray[np.float64] = self._clock.earned
        return earned

    def count_in(self, counters: Counters, clock: Clock) -> None:
        """Count in these arrays from now on; nothing is loaded now."""
        self._clock = clock
        self._where = tuple(self.table), tuple(self.law), tuple(counters)  # plain tuples: quicker arguments

    @property
    def state(self) -> int:
        """Where the agent is."""
        return int(self._clock.now[STATE])

    @property
    def t(self) -> int:
        """Steps made in this run."""
        return int(self._clock.now[STEP])

    @property
    def total(self) -> float:
        """The sum of rewards so far."""
        return float(self._clock.earned[0])

    def prepare(self) -> EpisodePlan:
        """Let the agent decide, and so plan if a new episode is due; return the plan in force."""
        before = time.process_time()
        self.agent.act(self.state)
        self.planning_seconds += time.process_time() - before
        plan = self.agent.current
        assert plan is not None
        return plan

    @property
    def visits(self) -> NDArray[np.int64]:
        """(S*A,) the visits from which mean rewards and gaps are summed, less those before the run."""
        return self.agent.statistics.visits

    def update_agent(self) -> None:
        """Give the agent all that has been counted, and the time."""
        now, (table, _, counters) = self._clock.now, self._where
        while now[TOUCHED] > 0 and not fold(table, counters, self.agent.counts(), now):
            self.agent.statistics.enlarge()
        self.agent.t = self.steps_before + int(now[STEP])

    def record_checkpoint(self) -> None:
        """Record what has been earned and lost if this is a checkpoint; the agent must be up to date."""
        if self.finished or self.t != self.checkpoints[self.checkpoints_passed]:
            return
        i, visits = self.checkpoints_passed, self.visits
        self.rewards[i] = self.means[i] = self.total
        if len(self.law.kind) != DETERMINISTIC:
            self.means[i] = total_over_pairs(visits, self._visits_before, self.law.means)
        self.expected_regret[i] = total_over_pairs(visits, self._visits_before, self.gaps)
        self.checkpoints_passed += 1

    def advance(self, target: int) -> None:
        """One kernel call: to step `target`, or to the end of the episode."""
        agent, plan = self.agent, self.prepare()
        began = time.thread_time()
        until = min(target, plan.last_step - self.steps_before)
        policy, learner = agent.policy_in_force(self.steps_before), learner_of(agent)
        try:
            run_steps(*self._where, agent.counts(), learner, policy, tuple(self._clock), until)
        finally:  # in any case, also after Ctrl-C: the agent learns all that was counted
            self.update_agent()
            agent.interrupted = bool(self._clock.now[NEW_STATE])
        self.acting_seconds += time.thread_time() - began

    @property
    def fingerprint(self) -> str:
        """A digest of everything in the MDP that a run depends on; labels and names do not count."""
        mdp, digest = self.mdp, hashlib.sha256()
        arrays: list[NDArray[Any]] = [
            mdp.indptr,
            mdp.indices,
            mdp.probabilities,
            mdp.pair_rewards,
            mdp.start,
            mdp.allowed,
        ]
        for array in arrays if mdp.entry_rewards is None else [*arrays, mdp.entry_rewards]:
            digest.update(str((array.dtype.str, array.shape)).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        units = mdp.units
        digest.update(repr((mdp.reward_law, mdp.n_actions, units.sign, units.offset, units.step_duration)).encode())
        return digest.hexdigest()

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Clock, rewards, expected regret, and the visits from which mean rewards and gaps count."""
        return {
            "clock": self.clock,
            "earned": self.earned,
            "rewards": self.rewards,
            "means": self.means,
            "expected_regret": self.expected_regret,
            "visits_before": self._visits_before,
        }

    def step_of(self, arrays: dict[str, NDArray[Any]]) -> int:
        """The clock's; its state must be one, and nothing left to fold."""
        state, t, touched = (int(x) for x in arrays["clock"][:3])
        if not (0 <= state < self.mdp.n_states and touched == 0):
            raise ValueError(f"the clock says {arrays['clock'].tolist()}")
        return t

    def regrets_at(self, i: int) -> dict[str, float]:
        """Those of the base, with mean rewards and gaps counted from visits."""
        pseudo_regret = float(self.checkpoints[i] * self.gain - self.means[i])
        return super().regrets_at(i) | {
            "pseudo_regret": pseudo_regret,
            "expected_regret": float(self.expected_regret[i]),
        }

    def run(self) -> Run:
        """The result, once the run is finished."""
        return Run(
            steps=self.checkpoints,
            rewards=self.rewards,
            regret=self.checkpoints * self.gain - self.rewards,
            pseudo_regret=self.checkpoints * self.gain - self.means,
            gain=self.gain,
            episodes=self.agent.episodes,
            final_state=self.state,
            seed=self.seed,
            planning_seconds=self.planning_seconds,
            acting_seconds=self.acting_seconds,
            vacuous=self.agent.vacuous,
            expected_regret=self.expected_regret,
        )
