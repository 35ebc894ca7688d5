"""`simulate` for a finite MDP: one compiled call per episode, the same trace as stepping `act` and `observe`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodicAgent, choose
from gainful.agents.statistics import add, mark
from gainful.agents.stepwise import StepwiseAgent
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.solve import solve
from gainful.rng import draw
from gainful.simulation.run import Run, checked_checkpoints, checked_horizon
from gainful.simulation.stepwise import run_learning_steps
from gainful.simulation.world import BERNOULLI, TRANSITION, World

PAUSE = 1 << 24
"""Steps after which a kernel returns to Python at the latest: Ctrl-C and progress."""


@kernel
def run_steps(
    indptr: Any, indices: Any, threshold: Any, law: int, mean: Any, entry_reward: Any, chance: Any, success: float,
    key: Any, n_actions: int, actions: Any, cumulative: Any, action_key: Any, lived: int, planned: bool, doubling: bool,
    remaining: Any, visits: Any, reward_sum: Any, reward_squares: Any, reward_low: float, stop_on_new: bool,
    visited: Any, seen: Any, touched: Any, n_touched: int, state: Any, t: int, until: int, total: float,
    total_mean: float,
) -> tuple[Any, int, int, float, float, bool]:  # fmt: skip
    """Step from `state` until step `until` or the end of the episode.

    Transitions are counted in `seen`, one counter per entry of the MDP, and the entries listed in `touched`: finding a
    next state among those the agent has seen is left to `fold`. The agent had `lived` that many steps before this run;
    `planned`: its episode begins at this very step. `total` and `total_mean` go on: rewards are added one by one,
    wherever the loop pauses. Returns state, step, number touched, the sums of rewards and of mean rewards, and whether
    a state never visited before ended the episode.
    """
    mixed = cumulative.size > 0
    while t < until:
        action = actions[state]
        if mixed:
            action = choose(cumulative, state, action_key, np.uint64(2 * (lived + t) + planned))
            planned = False
        pair = state * n_actions + action
        if doubling and remaining[pair] <= 0:
            break
        bits = draw(key, np.uint64(t))
        j = indptr[pair]
        while (bits >> np.uint64(32)) >= threshold[j]:
            j += 1
        reward = mean[pair]
        if law == BERNOULLI:
            reward = success if (bits & np.uint64(0xFFFFFFFF)) < chance[pair] else 0.0
        elif law == TRANSITION:
            reward = entry_reward[j]
        if seen[j] == 0:
            touched[n_touched] = j
            n_touched += 1
        seen[j] += 1
        remaining[pair] -= 1
        visits[pair] += 1
        inner = reward - reward_low
        reward_sum[pair] += inner
        reward_squares[pair] += inner * inner
        total += reward
        total_mean += mean[pair]
        if stop_on_new:
            visited[state] = True
        state = np.int64(indices[j])
        t += 1
        if stop_on_new and not visited[state]:
            visited[state] = True
            return state, t, n_touched, total, total_mean, True
    return state, t, n_touched, total, total_mean, False


@kernel
def fold(
    indptr: Any, indices: Any, n_actions: int, visited: Any, seen: Any, touched: Any, n_touched: int,
    begin: Any, length: Any, room: Any, used: Any, next_state: Any, count: Any, is_changed: Any, changed: Any,
    n_changed: Any,
) -> int:  # fmt: skip
    """Move the counters of `seen` into the agent's arena, from the end of the list; returns how many are left."""
    while n_touched > 0:
        j = touched[n_touched - 1]
        pair = np.searchsorted(indptr, j, side="right") - 1
        if not add(begin, length, room, used, next_state, count, pair, np.int64(indices[j]), seen[j]):
            return n_touched
        mark(is_changed, changed, n_changed, pair)
        visited[pair // n_actions] = visited[indices[j]] = True
        seen[j] = 0
        n_touched -= 1
    return 0


def check_fit(agent: EpisodicAgent, mdp: MDP) -> None:
    """An error unless the agent was made for an MDP of this shape, with these actions and rewards."""
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


class Life:
    """One agent's run: where it is, and what it has earned at each checkpoint."""

    def __init__(self, agent: EpisodicAgent, mdp: MDP, seed: int, grid: NDArray[np.int64], gain: float) -> None:
        self.agent, self.mdp, self.seed, self.grid, self.gain = agent, mdp, seed, grid, gain
        self.world = World(mdp, seed)
        self.state, self.t, self.lived = self.world.first_state, 0, agent.t
        self.passed = 0  # checkpoints
        self.total = self.total_mean = self.planning_seconds = self.acting_seconds = 0.0
        self.rewards, self.means = np.zeros(grid.size), np.zeros(grid.size)

    @property
    def over(self) -> bool:
        """Whether the last checkpoint has been passed."""
        return self.passed == self.grid.size

    @property
    def next_checkpoint(self) -> int:
        """The step of the next checkpoint."""
        return int(self.grid[self.passed])

    def prepare(self) -> None:
        """Let the agent decide, and so plan where a new episode is due."""
        before = time.process_time()
        self.agent.act(self.state)
        self.planning_seconds += time.process_time() - before

    def fold(self, seen: NDArray[np.int64], touched: NDArray[np.int64], n_touched: int) -> None:
        """Give the agent the transitions counted."""
        statistics, mdp = self.agent.statistics, self.mdp
        while n_touched:
            n_touched = fold(
                mdp.indptr, mdp.indices, mdp.n_actions, self.agent.visited, seen, touched, n_touched, *statistics.arena,
                *statistics.changes,
            )  # fmt: skip
            if n_touched:
                statistics.enlarge()

    def advance(self, state: int, t: int, total: float, total_mean: float) -> None:
        """Take over where a kernel stopped."""
        self.state, self.t, self.total, self.total_mean = state, t, total, total_mean
        self.agent.t = self.lived + t
        if t == self.next_checkpoint:
            self.rewards[self.passed], self.means[self.passed] = total, total_mean
            self.passed += 1

    def finish(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Run to the last checkpoint."""
        agent, mdp, statistics = self.agent, self.mdp, self.agent.statistics
        seen = np.zeros(mdp.n_transitions, dtype=np.int64)
        touched = np.empty(mdp.n_transitions, dtype=np.int64)
        while not self.over:
            self.prepare()
            plan = agent.current
            assert plan is not None
            began = time.process_time()
            until = min(self.next_checkpoint, self.t + PAUSE, plan.last_step - self.lived)
            if isinstance(agent, StepwiseAgent):
                state, t, n_touched, total, total_mean = run_learning_steps(
                    *self.world.arrays, self.world.key, mdp.n_actions, agent.kind, agent.q, agent.target, agent.numbers,
                    agent.allowed, agent.key, self.lived, agent.remaining, statistics.visits, statistics.reward_sum,
                    statistics.reward_squares, agent.reward_min, seen, touched, self.state, self.t, until, self.total,
                    self.total_mean,
                )  # fmt: skip
            else:
                state, t, n_touched, total, total_mean, agent.interrupted = run_steps(
                    *self.world.arrays, self.world.key, mdp.n_actions, plan.actions, plan.cumulative, agent.key,
                    self.lived, agent.planned_at == agent.t, plan.doubling, agent.remaining, statistics.visits,
                    statistics.reward_sum, statistics.reward_squares, agent.reward_min, plan.stop_on_new_state,
                    agent.visited, seen, touched, 0, self.state, self.t, until, self.total, self.total_mean,
                )  # fmt: skip
            self.fold(seen, touched, n_touched)
            self.acting_seconds += time.process_time() - began
            self.advance(int(state), t, total, total_mean)
            if progress is not None:
                progress(self.t, int(self.grid[-1]))

    def run(self) -> Run:
        """The result, once over."""
        return Run(
            steps=self.grid, rewards=self.rewards, regret=self.grid * self.gain - self.rewards,
            pseudo_regret=self.grid * self.gain - self.means, gain=self.gain, episodes=self.agent.episodes,
            final_state=self.state, seed=self.seed, planning_seconds=self.planning_seconds,
            acting_seconds=self.acting_seconds,
        )  # fmt: skip


def simulate(
    agent: EpisodicAgent, mdp: MDP, horizon: float, seed: int = 0, *, checkpoints: ArrayLike | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Run:  # fmt: skip
    """Let `agent` live in `mdp` for `horizon` steps and measure its regret against the optimal gain.

    The trace is that of stepping `agent.act`, `World.step` and `agent.observe`, to the bit; an agent that has lived
    before goes on learning. Checkpoints are about 20 per decade unless given. `progress(step, horizon)` is called now
    and then.
    """
    steps = checked_horizon(horizon)
    check_fit(agent, mdp)
    life = Life(agent, mdp, seed, checked_checkpoints(checkpoints, steps), optimal_gain(mdp))
    life.finish(progress)
    return life.run()
