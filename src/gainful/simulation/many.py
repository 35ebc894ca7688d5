"""`simulate_many`: four seeds side by side in one thread, so that one's wait for memory is another's work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gainful._compiled import inlined, kernel
from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from gainful.agents.stepwise import StepwiseAgent
from gainful.errors import InvalidArgumentError
from gainful.machine import available_cores
from gainful.mdp.model import MDP
from gainful.rng import draw
from gainful.simulation.base import PAUSE
from gainful.simulation.counters import MEAN, NOT_LOADED, RECORD_SHIFT, SEEN, SQUARES, SUM, UNLIMITED, records
from gainful.simulation.run import Run, checked_checkpoints, checked_horizon
from gainful.simulation.tabular import TabularSimulation, check_fit, optimal_gain
from gainful.simulation.transition_table import (
    BERNOULLI,
    DETERMINISTIC,
    FOUR,
    LOW_BITS,
    TransitionTable,
    below_4,
    below_8,
)

LANES = 4
"""Runs stepped in turn by one thread (measured: 4 with their numbers in registers are faster than 8)."""
LONG = 2000
"""Steps per episode from which on stepping in turn pays: a run that ends its episode stops the others for a moment."""
BLOCK = 64  # rounds whose random bits are drawn at once


@inlined
def step(
    table: Any, padding: Any, first: Any, laws: Any, entry_reward: Any, chance: Any, success: float, record: Any,
    real: Any, counter: Any, low: float, pair: Any, at: Any, left: int, bits: Any,
) -> tuple[Any, float]:  # fmt: skip
    """One step of `tabular.run_steps` from `pair`, whose record begins at `at`, which leaves `left` executions.

    Returns the next state and the reward. (Its branches depend on types alone. With others in it, Numba would count
    references to the arrays at every call.)
    """
    width, law = np.uint64(len(padding)), len(laws)
    u = np.uint32(bits >> np.uint64(32))
    if width == FOUR:
        line = pair << np.uint64(3)
        j = below_4(table, line, u)
    else:
        line = pair << np.uint64(4)
        j = below_8(table, line, u)
    if law == DETERMINISTIC:
        reward = real[at + MEAN]
    elif law == BERNOULLI:
        reward = success if (bits & LOW_BITS) < chance[pair] else 0.0
    else:
        reward = entry_reward[first[pair] + j]
    counter[at + at + SEEN + j] += np.uint32(1)
    record[at] = left
    inner = reward - low
    real[at + SUM] += inner
    real[at + SQUARES] += inner * inner
    return np.uint64(table[line + width + j]), reward


@kernel
def run_lanes(
    table: Any, padding: Any, first: Any, laws: Any, entry_reward: Any, chance: Any, success: float, keys: Any,
    record: Any, real: Any, counter: Any, touched: Any, clock: Any, earned: Any, remaining: Any, reward_sum: Any,
    reward_squares: Any, low: Any, route: Any, doubling: Any, stopped: Any, until: int,
) -> None:  # fmt: skip
    """One step of each of four runs in turn, until step `until` or until one of them, or more, end their episodes.

    All four are at the same step, and stay so: in the round in which an episode ends none makes a step. Each run's
    arrays are a row of the arrays here (`remaining` and the sums: a tuple), and its steps are exactly those of
    `tabular.run_steps`. `route` has the pair that the policy chooses in each state.
    """
    n_states, words = np.uint64(route.shape[1]), np.uint64(record.size // 4)
    go = route.reshape(-1)
    a1, a2, a3 = n_states, n_states + n_states, n_states + n_states + n_states
    o1, o2, o3 = words, words + words, words + words + words
    s0, s1, s2, s3 = np.uint64(clock[0, 0]), np.uint64(clock[1, 0]), np.uint64(clock[2, 0]), np.uint64(clock[3, 0])
    w0, w1, w2, w3 = earned[0, 0], earned[1, 0], earned[2, 0], earned[3, 0]
    low0, low1, low2, low3 = low[0], low[1], low[2], low[3]
    drawn = np.empty(4 * BLOCK, dtype=np.uint64)
    t, halt = clock[0, 1], False
    while t < until and not halt:
        for i in range(4):
            for k in range(BLOCK):
                drawn[i * BLOCK + k] = draw(keys[i], np.uint64(t + k))
        for k in range(np.uint64(min(BLOCK, until - t))):
            p0, p1, p2, p3 = np.uint64(go[s0]), np.uint64(go[a1 + s1]), np.uint64(go[a2 + s2]), np.uint64(go[a3 + s3])
            at0, at1 = p0 << RECORD_SHIFT, o1 + (p1 << RECORD_SHIFT)
            at2, at3 = o2 + (p2 << RECORD_SHIFT), o3 + (p3 << RECORD_SHIFT)
            left0, left1, left2, left3 = record[at0] - 1, record[at1] - 1, record[at2] - 1, record[at3] - 1
            if left0 | left1 | left2 | left3 < 0:
                for i in range(4):
                    s = s0 if i == 0 else s1 if i == 1 else s2 if i == 2 else s3
                    pair = np.uint64(route[i, s])
                    at = np.uint64(i) * words + (pair << RECORD_SHIFT)
                    if record[at] == NOT_LOADED:
                        record[at] = remaining[i][pair] if doubling[i] else UNLIMITED
                        real[at + SUM], real[at + SQUARES] = reward_sum[i][pair], reward_squares[i][pair]
                        touched[i, clock[i, 2]] = pair
                        clock[i, 2] += 1
                    stopped[i] = record[at] <= 0
                    halt = halt or stopped[i]
                if halt:
                    break
                left0, left1, left2, left3 = record[at0] - 1, record[at1] - 1, record[at2] - 1, record[at3] - 1
            s0, r0 = step(
                table, padding, first, laws, entry_reward, chance, success, record, real, counter, low0, p0, at0, left0,
                drawn[k],
            )  # fmt: skip
            w0 += r0
            s1, r1 = step(
                table, padding, first, laws, entry_reward, chance, success, record, real, counter, low1, p1, at1, left1,
                drawn[k + np.uint64(BLOCK)],
            )  # fmt: skip
            w1 += r1
            s2, r2 = step(
                table, padding, first, laws, entry_reward, chance, success, record, real, counter, low2, p2, at2, left2,
                drawn[k + np.uint64(2 * BLOCK)],
            )  # fmt: skip
            w2 += r2
            s3, r3 = step(
                table, padding, first, laws, entry_reward, chance, success, record, real, counter, low3, p3, at3, left3,
                drawn[k + np.uint64(3 * BLOCK)],
            )  # fmt: skip
            w3 += r3
            t += 1
    for i in range(4):
        clock[i, 1], clock[i, 3] = t, False
    clock[0, 0], clock[1, 0], clock[2, 0], clock[3, 0] = s0, s1, s2, s3
    earned[0, 0], earned[1, 0], earned[2, 0], earned[3, 0] = w0, w1, w2, w3


def simulate_many(
    agent_factory: Callable[[int], EpisodicAgent], mdp: MDP, horizon: float, seeds: Iterable[int], *,
    checkpoints: ArrayLike | None = None, threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Run]:  # fmt: skip
    """One run per seed, each equal to `simulate(agent_factory(seed), mdp, horizon, seed)`.

    Seeds are dealt to all cores (`threads`), and each core steps four runs in turn. `progress(steps, total)` counts
    the steps of all runs.
    """
    steps = checked_horizon(horizon)
    grid = checked_checkpoints(checkpoints, steps)
    numbers = [int(seed) for seed in seeds]
    if len(set(numbers)) != len(numbers):
        raise InvalidArgumentError("a seed occurs twice; each seed is one run")
    agents = [agent_factory(seed) for seed in numbers]
    for agent in agents:
        check_fit(agent, mdp)
    gain, dynamics = optimal_gain(mdp), TransitionTable(mdp)
    lives = [
        TabularSimulation(agent, mdp, seed, grid, gain, dynamics) for agent, seed in zip(agents, numbers, strict=True)
    ]
    cores = min(threads or available_cores(), max(1, len(lives)))
    size = min(LANES, -(-len(lives) // cores)) if lives else 1
    groups = [lives[i : i + size] for i in range(0, len(lives), size)]
    done = [0]

    def work(group: list[TabularSimulation]) -> None:
        for count in _together(group):
            done[0] += count
            if progress is not None:
                progress(done[0], steps * len(lives))

    if cores == 1 or len(groups) == 1:
        for group in groups:
            work(group)
    else:
        with ThreadPoolExecutor(cores) as pool:
            list(pool.map(work, groups))
    return [life.run() for life in lives]


def _together(group: list[TabularSimulation]) -> Iterator[int]:
    """Advance all runs of a group to their end, from one common step to the next; yields the number of steps made."""
    lanes = Lanes(group) if len(group) == LANES and group[0].dynamics.width else None
    long = False
    while not group[0].over:
        t = group[0].t
        target = min(group[0].next_checkpoint, t + PAUSE)
        episodes = sum(len(life.agent.records) for life in group)
        if lanes is not None and long:
            lanes.advance(target)
        for life in group:
            while life.t < target:
                life.advance(target)
            life.note()
        made = len(group) * (target - t)
        long = made >= LONG * (sum(len(life.agent.records) for life in group) - episodes)
        yield made


class Lanes:
    """The rows that four runs share, and the way they go together."""

    def __init__(self, group: list[TabularSimulation]) -> None:
        self.group, self.dynamics = group, group[0].dynamics
        pairs = self.dynamics.mean.size
        n_states, n_actions = group[0].agent.n_states, group[0].agent.n_actions
        self.record = records(self.dynamics.mean, LANES)
        self.touched = np.empty((LANES, pairs), dtype=np.int64)
        self.clock = np.array([life.clock for life in group])
        self.earned = np.array([life.earned for life in group])
        for i, life in enumerate(group):
            life.keep_in(self.record[i], self.touched[i], self.clock[i], self.earned[i])
        self.first_pair = np.arange(n_states) * n_actions
        self.route = np.empty((LANES, n_states), dtype=np.uint32)
        self.doubling, self.stopped = np.ones(LANES, dtype=bool), np.ones(LANES, dtype=bool)
        flat = self.record.reshape(-1)
        agents = [life.agent for life in group]
        table, padding, first, _, _, laws, *rest = self.dynamics.typed_arrays
        self._arrays = (
            table, padding, first, laws, *rest, np.array([life.world.key for life in group]), flat,
            flat.view(np.float64), flat.view(np.uint32), self.touched, self.clock, self.earned,
            tuple(a.remaining for a in agents), tuple(a.statistics.reward_sum for a in agents),
            tuple(a.statistics.reward_squares for a in agents), np.array([a.reward_min for a in agents]), self.route,
            self.doubling, self.stopped,
        )  # fmt: skip

    def advance(self, target: int) -> None:
        """All four to step `target`, or until one of them plans what only it can do: mix actions, or look for news."""
        last_step = np.zeros(LANES, dtype=np.int64)
        self.stopped[:] = True
        try:
            while self.clock[0, 1] < target:
                for i in np.flatnonzero(self.stopped | (last_step == self.clock[0, 1])):
                    life = self.group[i]
                    life.settle()
                    plan = life.prepare()
                    if not _simple(life.agent, plan):
                        return
                    np.add(self.first_pair, plan.actions, out=self.route[i], casting="unsafe")
                    self.doubling[i], last_step[i] = plan.doubling, plan.last_step - life.lived
                self.stopped[:] = False
                began = time.thread_time()
                run_lanes(*self._arrays, min(target, int(last_step.min())))
                spent = (time.thread_time() - began) / LANES
                for life in self.group:
                    life.acting_seconds += spent
        finally:
            for life in self.group:
                life.settle()


def _simple(agent: EpisodicAgent, plan: EpisodePlan) -> bool:
    """Whether the plan is one that `run_lanes` can follow."""
    return not isinstance(agent, StepwiseAgent) and plan.probabilities is None and not plan.stop_on_new_state
