"""The compiled loop of agents that learn at every step."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful._compiled import kernel
from gainful.agents.stepwise import decide, learn
from gainful.rng import draw
from gainful.simulation.world import BERNOULLI, TRANSITION


@kernel
def run_learning_steps(
    indptr: Any, indices: Any, threshold: Any, law: int, mean: Any, entry_reward: Any, chance: Any, success: float,
    key: Any, n_actions: int, kind: int, q: Any, target: Any, numbers: Any, allowed: Any, action_key: Any, lived: int,
    remaining: Any, visits: Any, reward_sum: Any, reward_squares: Any, reward_low: float, seen: Any, touched: Any,
    state: Any, t: int, until: int, total: float, total_mean: float,
) -> tuple[Any, int, int, float, float]:  # fmt: skip
    """As `tabular.run_steps`, deciding by and updating the agent's tables at every step."""
    n_touched = 0
    while t < until:
        action = decide(kind, q, numbers, allowed, state, action_key, np.uint64(2 * (lived + t)))
        pair = state * n_actions + action
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
        state = np.int64(indices[j])
        learn(kind, q, target, numbers, n_actions, pair, inner, state, visits[pair])
        t += 1
    return state, t, n_touched, total, total_mean
