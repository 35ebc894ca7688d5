"""`simulate_many`: several seeds side by side in one thread, so that one's wait for memory is another's work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodicAgent
from gainful.agents.stepwise import StepwiseAgent
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.sweeper import available_cores
from gainful.rng import draw
from gainful.simulation.run import Run, checked_checkpoints, checked_horizon
from gainful.simulation.tabular import Life, check_fit, optimal_gain
from gainful.simulation.world import BERNOULLI, TRANSITION

LANES = 8
"""Runs stepped in turn by one thread."""
PAUSE = 1 << 22


@kernel
def run_lanes(
    indptr: Any, indices: Any, threshold: Any, law: int, mean: Any, entry_reward: Any, chance: Any, success: float,
    n_actions: int, keys: Any, actions: Any, remaining: Any, visits: Any, reward_sum: Any, reward_squares: Any,
    reward_low: Any, seen: Any, touched: Any, n_touched: Any, state: Any, t: Any, until: Any, total: Any,
    total_mean: Any, lanes: int, pause: int,
) -> None:  # fmt: skip
    """One step of each of the first `lanes` runs in turn, until one of them ends its episode or reaches its `until`.

    Each run's arrays are a row of the arrays here; its steps are exactly those of `tabular.run_steps`.
    """
    for _ in range(pause):
        stopped = False
        for i in range(lanes):
            s = state[i]
            pair = s * n_actions + actions[i, s]
            if remaining[i, pair] <= 0 or t[i] >= until[i]:
                stopped = True
                continue
            bits = draw(keys[i], np.uint64(t[i]))
            j = indptr[pair]
            while (bits >> np.uint64(32)) >= threshold[j]:
                j += 1
            reward = mean[pair]
            if law == BERNOULLI:
                reward = success if (bits & np.uint64(0xFFFFFFFF)) < chance[pair] else 0.0
            elif law == TRANSITION:
                reward = entry_reward[j]
            if seen[i, j] == 0:
                touched[i, n_touched[i]] = j
                n_touched[i] += 1
            seen[i, j] += 1
            remaining[i, pair] -= 1
            visits[i, pair] += 1
            inner = reward - reward_low[i]
            reward_sum[i, pair] += inner
            reward_squares[i, pair] += inner * inner
            total[i] += reward
            total_mean[i] += mean[pair]
            state[i] = np.int64(indices[j])
            t[i] += 1
        if stopped:
            return


def simulate_many(
    agent_factory: Callable[[int], EpisodicAgent], mdp: MDP, horizon: float, seeds: Iterable[int], *,
    checkpoints: ArrayLike | None = None, threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Run]:  # fmt: skip
    """One run per seed, each equal to `simulate(agent_factory(seed), mdp, horizon, seed)`.

    Seeds are dealt to all cores (`threads`), and each core steps up to 8 runs in turn. `progress(steps, total)` counts
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
    gain = optimal_gain(mdp)
    lives = [Life(agent, mdp, seed, grid, gain) for agent, seed in zip(agents, numbers, strict=True)]
    cores = min(threads or available_cores(), max(1, len(lives)))
    size = min(LANES, -(-len(lives) // cores)) if lives else 1
    groups = [lives[i : i + size] for i in range(0, len(lives), size)]
    done = [0]

    def work(group: list[Life]) -> None:
        for count in _together(group, mdp):
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


def _together(group: list[Life], mdp: MDP) -> Iterable[int]:
    """Advance all runs of a group to their end, yielding the number of steps made each time."""
    n, pairs, entries = len(group), mdp.n_states * mdp.n_actions, mdp.n_transitions
    remaining, visits = np.empty((n, pairs), np.int64), np.empty((n, pairs), np.int64)
    sums, squares = np.empty((n, pairs)), np.empty((n, pairs))
    seen, touched = np.zeros((n, entries), np.int64), np.empty((n, entries), np.int64)
    actions = np.empty((n, mdp.n_states), np.int64)
    n_touched, state, t, until = (np.zeros(n, np.int64) for _ in range(4))
    total, total_mean, low = np.zeros(n), np.zeros(n), np.zeros(n)
    keys = np.empty(n, np.uint64)
    order: list[Life] = []

    def place(i: int, life: Life) -> None:
        """Put a run into row i: its arrays become views of the rows, so that agent and kernel share them."""
        agent, statistics = life.agent, life.agent.statistics
        for rows, array in (
            (remaining, agent.remaining), (visits, statistics.visits), (sums, statistics.reward_sum),
            (squares, statistics.reward_squares),
        ):  # fmt: skip
            rows[i] = array
        agent.remaining, statistics.visits = remaining[i], visits[i]
        statistics.reward_sum, statistics.reward_squares = sums[i], squares[i]
        keys[i], low[i], state[i], t[i] = life.world.key, agent.reward_min, life.state, life.t
        total[i], total_mean[i] = life.total, life.total_mean

    together = []
    for life in group:
        life.prepare()
        plan = life.agent.current
        assert plan is not None
        if (
            not isinstance(life.agent, StepwiseAgent)
            and plan.probabilities is None
            and plan.doubling
            and not plan.stop_on_new_state
        ):
            together.append(life)
        else:  # a rule the side-by-side loop does not know
            before = life.t
            life.finish()
            yield life.t - before
    for i, life in enumerate(together):
        place(i, life)
        order.append(life)
    while order:
        m = len(order)
        for i, life in enumerate(order):
            life.prepare()
            plan = life.agent.current
            assert plan is not None
            actions[i] = plan.actions
            until[i] = min(life.next_checkpoint, plan.last_step - life.lived)
        earlier = t[:m].copy()
        began = time.process_time()
        run_lanes(
            *order[0].world.arrays, mdp.n_actions, keys, actions, remaining, visits, sums, squares, low, seen, touched,
            n_touched, state, t, until, total, total_mean, m, PAUSE,
        )  # fmt: skip
        spent = (time.process_time() - began) / m
        for i, life in enumerate(order):
            life.acting_seconds += spent
            life.fold(seen[i], touched[i], int(n_touched[i]))
            n_touched[i] = 0
            life.advance(int(state[i]), int(t[i]), float(total[i]), float(total_mean[i]))
        yield int((t[:m] - earlier).sum())
        left = [life for life in order if not life.over]
        if len(left) < m:
            for life in order:  # own arrays again, before rows are dealt anew
                agent, statistics = life.agent, life.agent.statistics
                agent.remaining, statistics.visits = agent.remaining.copy(), statistics.visits.copy()
                statistics.reward_sum = statistics.reward_sum.copy()
                statistics.reward_squares = statistics.reward_squares.copy()
            order = left
            for i, life in enumerate(order):
                place(i, life)
