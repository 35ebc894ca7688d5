"""Simulation in a finite MDP: one compiled call per episode, the same trace as stepping `act` and `observe`."""

from __future__ import annotations

import hashlib
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodePlan, EpisodicAgent, choose
from gainful.agents.stepwise import StepwiseAgent
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.solve import solve
from gainful.rng import draw
from gainful.simulation.base import ResumableSimulation
from gainful.simulation.counters import (
    MEAN,
    NOT_LOADED,
    RECORD_SHIFT,
    SEEN,
    SQUARES,
    SUM,
    UNLIMITED,
    fold,
    records,
    total_of_means,
)  # fmt: skip
from gainful.simulation.run import Run
from gainful.simulation.stepwise import run_learning_steps
from gainful.simulation.transition_table import (
    BERNOULLI,
    DETERMINISTIC,
    FOUR,
    LOW_BITS,
    ONE,
    TabularStepper,
    TransitionTable,
    below_4,
    below_8,
    search,
)  # fmt: skip


@kernel
def run_steps(
    table: Any, padding: Any, first: Any, indices: Any, bound: Any, laws: Any, entry_reward: Any, chance: Any,
    success: float, key: Any, n_actions: Any, record: Any, real: Any, counter: Any, seen: Any, touched: Any,
    clock: Any, earned: Any, reward_sum: Any, reward_squares: Any, reward_low: float, remaining: Any, visited: Any,
    actions: Any, cumulative: Any, action_key: Any, lived: int, planned: bool, doubling: bool, stop_on_new: bool,
    until: int,
) -> None:  # fmt: skip
    """Step until step `until` or the end of the episode.

    Everything is counted in the records of `counters`, until `fold` gives it to the agent. The agent had `lived` that
    many steps before this run; `planned`: its episode begins at this very step. State, step, number of pairs touched
    and whether a state never visited before ended the episode are in `clock`, the sum of rewards in `earned`: rewards
    are added one by one, wherever the loop pauses. They are arrays because Ctrl-C takes what a kernel would return.
    `padding` and `laws` are tuples, see `TransitionTable.typed_arrays`.
    """
    mixed = cumulative.size > 0
    width, law = np.uint64(len(padding)), len(laws)
    shift = np.uint64(3) if width == FOUR else np.uint64(4)  # a line of the table has 2*width numbers
    state, t, total = np.uint64(clock[0]), clock[1], earned[0]
    clock[3] = False
    while t < until:
        action = np.uint64(actions[state])
        if mixed:
            action = np.uint64(choose(cumulative, np.int64(state), action_key, np.uint64(2 * (lived + t) + planned)))
            planned = False
        pair = state * n_actions + action
        at = pair << RECORD_SHIFT
        left = record[at]
        if left <= 0:
            if left == NOT_LOADED:
                left = remaining[pair] if doubling else UNLIMITED
                record[at], real[at + SUM], real[at + SQUARES] = left, reward_sum[pair], reward_squares[pair]
                touched[clock[2]] = pair
                clock[2] += 1
            if left <= 0:
                break
        bits = draw(key, np.uint64(t))
        u = np.uint32(bits >> np.uint64(32))
        if width:
            line = pair << shift
            j = below_4(table, line, u) if width == FOUR else below_8(table, line, u)
            counter[at + at + SEEN + j] += np.uint32(1)
            to = np.uint64(table[line + width + j])
        else:
            j = search(bound, first[pair], first[pair + ONE], u)
            seen[first[pair] + j] += np.uint32(1)
            to = np.uint64(indices[first[pair] + j])
        if law == DETERMINISTIC:
            reward = real[at + MEAN]
        elif law == BERNOULLI:
            reward = success if (bits & LOW_BITS) < chance[pair] else 0.0
        else:
            reward = entry_reward[first[pair] + j]
        record[at] = left - 1
        inner = reward - reward_low
        real[at + SUM] += inner
        real[at + SQUARES] += inner * inner
        total += reward
        t += 1
        if stop_on_new:
            visited[state] = True
            if not visited[to]:
                visited[to] = True
                state = to
                clock[3] = True
                break
        state = to
    clock[0], clock[1], earned[0] = state, t, total


def check_fit(agent: EpisodicAgent, mdp: MDP) -> None:
    """An error unless the agent was made for an MDP of this shape, with these actions and rewards."""
    if not isinstance(agent, EpisodicAgent):
        points = getattr(agent, "dim", 0) > 0
        raise InvalidArgumentError(
            f"{type(agent).__name__} is an agent on points, and the MDP has {mdp.n_states} states; take a tabular agent"
            if points
            else f"the agent is {agent!r}, expected an agent such as gf.SCALPlus(n_states=6, n_actions=2, span=7.0)"
        )
    if (agent.n_states, agent.n_actions) != (mdp.n_states, mdp.n_actions):
        raise InvalidArgumentError(
            f"the agent has {agent.n_states} states and {agent.n_actions} actions, "
            f"the MDP {mdp.n_states} and {mdp.n_actions}"
        )
    if np.any(agent.allowed & ~mdp.allowed):
        s, a = (int(i) for i in np.argwhere(agent.allowed & ~mdp.allowed)[0])
        raise InvalidArgumentError(
            f"state {mdp.state_name(s)} does not have the action {mdp.action_name(a)}, which the agent may choose; "
            "make it with allowed=mdp.allowed"
        )
    low, high = mdp.reward_range
    if low < agent.reward_min or high > agent.reward_max:
        raise InvalidArgumentError(
            f"rewards of this MDP lie in [{low:g}, {high:g}], the agent was told "
            f"[{agent.reward_min:g}, {agent.reward_max:g}]; give it mdp.reward_min and mdp.reward_max"
        )


def optimal_gain(mdp: MDP) -> float:
    """g* per step, to be maximised, in the units of `mdp.rewards`."""
    low, high = mdp.reward_range
    best = solve(mdp, precision=1e-9 * max(1.0, high - low) / mdp.units.step_duration)
    return mdp.units.sign * best.gain * mdp.units.step_duration


class TabularSimulation(ResumableSimulation):
    """One agent's run in an MDP: where it is, and what it has earned at each checkpoint."""

    agent: EpisodicAgent

    def __init__(
        self, agent: EpisodicAgent, mdp: MDP, seed: int, grid: NDArray[np.int64], gain: float,
        dynamics: TransitionTable | None = None,
    ) -> None:  # fmt: skip
        super().__init__(agent, seed, grid)
        self.mdp, self.gain, self.means = mdp, gain, np.zeros(grid.size)
        self.world = TabularStepper(mdp, seed, dynamics)
        self.dynamics = self.world.dynamics
        self._seen = np.zeros(0 if self.dynamics.width else mdp.n_transitions, dtype=np.uint32)
        self._visits_before = agent.statistics.visits.copy()
        clock = np.array([self.world.first_state, 0, 0, False], dtype=np.int64)
        touched = np.empty(mdp.n_states * mdp.n_actions, dtype=np.int64)
        self.keep_in(records(self.dynamics.mean)[0], touched, clock, np.zeros(1))

    def keep_in(
        self, record: NDArray[np.int64], touched: NDArray[np.int64], clock: NDArray[np.int64],
        earned: NDArray[np.float64],
    ) -> None:  # fmt: skip
        """Count in these arrays from now on; nothing is loaded now."""
        self._record, self._touched, self.clock, self.earned = record, touched, clock, earned
        statistics, agent = self.agent.statistics, self.agent
        by_step = isinstance(agent, StepwiseAgent)
        self._to_run = (
            *(self.dynamics.arrays if by_step else self.dynamics.typed_arrays), self.world.key,
            np.uint64(self.mdp.n_actions), record, record.view(np.float64), record.view(np.uint32), self._seen,
            touched, clock, earned, statistics.reward_sum, statistics.reward_squares, agent.reward_min,
            *((statistics.visits,) if by_step else (agent.remaining, agent.visited)),
        )  # fmt: skip
        self._to_fold = (
            *self.dynamics.arrays[1:4], np.uint64(self.mdp.n_actions), record, record.view(np.float64),
            record.view(np.uint32), self._seen, touched, clock, agent.visited, agent.remaining, statistics.visits,
            statistics.reward_sum, statistics.reward_squares,
        )  # fmt: skip

    @property
    def state(self) -> int:
        """Where the agent is."""
        return int(self.clock[0])

    @property
    def t(self) -> int:
        """Steps made in this run."""
        return int(self.clock[1])

    @property
    def total(self) -> float:
        """The sum of rewards so far."""
        return float(self.earned[0])

    def prepare(self) -> EpisodePlan:
        """Let the agent decide, and so plan where a new episode is due; the plan in force."""
        before = time.process_time()
        self.agent.act(int(self.clock[0]))
        self.planning_seconds += time.process_time() - before
        plan = self.agent.current
        assert plan is not None
        return plan

    def settle(self) -> None:
        """Give the agent all that has been counted."""
        statistics = self.agent.statistics
        while not fold(*self._to_fold, *statistics.arena, *statistics.changes):
            statistics.enlarge()
        self.agent.t = self.lived + int(self.clock[1])

    def note(self) -> None:
        """Once settled: what has been earned, if this is a checkpoint."""
        if self.over or self.clock[1] != self.grid[self.passed]:
            return
        self.rewards[self.passed] = self.means[self.passed] = self.earned[0]
        if self.dynamics.law != DETERMINISTIC:
            visits = self.agent.statistics.visits
            self.means[self.passed] = total_of_means(visits, self._visits_before, self.dynamics.mean)
        self.passed += 1

    def advance(self, target: int) -> None:
        """One kernel call: to step `target`, or to the end of the episode."""
        agent, plan = self.agent, self.prepare()
        began = time.thread_time()
        until = min(target, plan.last_step - self.lived)
        try:
            if isinstance(agent, StepwiseAgent):
                run_learning_steps(
                    *self._to_run, agent.kind, agent.q, agent.target, agent.numbers, agent.allowed, agent.key,
                    self.lived, until,
                )  # fmt: skip
            else:
                run_steps(
                    *self._to_run, plan.actions, plan.cumulative, agent.key, self.lived, agent.planned_at == agent.t,
                    plan.doubling, plan.stop_on_new_state, until,
                )  # fmt: skip
        finally:  # whatever happens, Ctrl-C too: what was lived is known to the agent
            self.settle()
            agent.interrupted = bool(self.clock[3])
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

    def kept(self) -> dict[str, NDArray[Any]]:
        """Clock, rewards, and the visits from which mean rewards count."""
        return {
            "clock": self.clock, "earned": self.earned, "rewards": self.rewards, "means": self.means,
            "visits_before": self._visits_before,
        }  # fmt: skip

    def step_in(self, arrays: dict[str, NDArray[Any]]) -> int:
        """The clock's; its state must be one, and nothing left to fold."""
        state, t, touched = (int(x) for x in arrays["clock"][:3])
        if not (0 <= state < self.mdp.n_states and touched == 0):
            raise ValueError(f"the clock says {arrays['clock'].tolist()}")
        return t

    def run(self) -> Run:
        """The result, once over."""
        return Run(
            steps=self.grid, rewards=self.rewards, regret=self.grid * self.gain - self.rewards,
            pseudo_regret=self.grid * self.gain - self.means, gain=self.gain, episodes=self.agent.episodes,
            final_state=self.state, seed=self.seed, planning_seconds=self.planning_seconds,
            acting_seconds=self.acting_seconds, vacuous=self.agent.vacuous,
        )  # fmt: skip
