"""The compiled loop of agents that learn at every step."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful._compiled import kernel
from gainful.agents.stepwise import decide, learn
from gainful.rng import draw
from gainful.simulation.counters import MEAN, NOT_LOADED, RECORD_SHIFT, SEEN, SQUARES, SUM, UNLIMITED
from gainful.simulation.transition_table import BERNOULLI, DETERMINISTIC, FOUR, LOW_BITS, ONE, below_4, below_8, search


@kernel
def run_learning_steps(
    table: Any, width: Any, first: Any, indices: Any, bound: Any, law: int, entry_reward: Any, chance: Any,
    success: float, key: Any, n_actions: Any, record: Any, real: Any, counter: Any, seen: Any, touched: Any,
    clock: Any, earned: Any, reward_sum: Any, reward_squares: Any, reward_low: float, visits: Any, kind: int, q: Any,
    target: Any, numbers: Any, allowed: Any, action_key: Any, lived: int, until: int,
) -> None:  # fmt: skip
    """As `tabular.run_steps`, deciding by and updating the agent's tables at every step."""
    shift = np.uint64(3) if width == FOUR else np.uint64(4)  # a line of the table has 2*width numbers
    state, t, total = np.uint64(clock[0]), clock[1], earned[0]
    clock[3] = False
    while t < until:
        action = decide(kind, q, numbers, allowed, np.int64(state), action_key, np.uint64(2 * (lived + t)))
        pair = state * n_actions + np.uint64(action)
        at = pair << RECORD_SHIFT
        if record[at] == NOT_LOADED:
            record[at], real[at + SUM], real[at + SQUARES] = UNLIMITED, reward_sum[pair], reward_squares[pair]
            touched[clock[2]] = pair
            clock[2] += 1
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
        record[at] -= 1
        inner = reward - reward_low
        real[at + SUM] += inner
        real[at + SQUARES] += inner * inner
        total += reward
        state = to
        learn(
            kind, q, target, numbers, np.int64(n_actions), np.int64(pair), inner, np.int64(state),
            visits[pair] + (UNLIMITED - record[at]),
        )  # fmt: skip
        t += 1
    clock[0], clock[1], earned[0] = state, t, total
