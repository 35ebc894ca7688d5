"""The baseline: compiled simulators that follow a fixed policy and count, but do not learn.

Each draws the next state with `gainful.rng.draw`, and counts visits of pairs, transitions and sums of rewards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gainful as gf
from gainful._compiled import inlined, kernel
from gainful.rng import Role, draw, stream_key
from gainful.simulation.transition_table import RewardLaw, TransitionTable


@kernel
def separate_arrays(
    first: Any, indices: Any, bound: Any, mean: Any, n_actions: int, actions: Any, key: Any, visits: Any, seen: Any,
    reward_sum: Any, state: Any, steps: int,
) -> Any:  # fmt: skip
    """One array per quantity, a row searched from its beginning: the loop one writes first."""
    for t in range(steps):
        pair = state * n_actions + actions[state]
        u = np.uint32(draw(key, np.uint64(t)) >> np.uint64(32))
        j = first[pair]
        while u > bound[j]:
            j += 1
        visits[pair] += 1
        seen[j] += 1
        reward_sum[pair] += mean[pair]
        state = np.int64(indices[j])
    return state


@inlined
def _below(table: Any, at: Any, u: Any, n: int) -> Any:
    j = np.uint64(0)
    for i in range(n):
        j += np.uint64(u > table[at + np.uint64(i)])
    return j


@kernel
def packed_4(
    table: Any, record: Any, real: Any, counter: Any, n_actions: Any, actions: Any, key: Any, state: Any, steps: int
) -> Any:
    """One line of memory with bounds and next states, one with all counters, no branch: rows of up to 4 next states.

    The counters of a pair: visits, sum of rewards, mean reward, one word free, 32-bit counters of transitions.
    """
    for t in range(steps):
        pair = state * n_actions + np.uint64(actions[state])
        u = np.uint32(draw(key, np.uint64(t)) >> np.uint64(32))
        at = pair << np.uint64(3)
        j = _below(table, at, u, 3)
        counter[at + at + np.uint64(8) + j] += np.uint32(1)
        record[at] += 1
        real[at + np.uint64(1)] += real[at + np.uint64(2)]
        state = np.uint64(table[at + np.uint64(4) + j])
    return state


@kernel
def packed_8(
    table: Any, record: Any, real: Any, counter: Any, n_actions: Any, actions: Any, key: Any, state: Any, steps: int
) -> Any:
    """As `packed_4`, for rows of up to 8 next states."""
    for t in range(steps):
        pair = state * n_actions + np.uint64(actions[state])
        u = np.uint32(draw(key, np.uint64(t)) >> np.uint64(32))
        at = pair << np.uint64(3)
        line = pair << np.uint64(4)
        j = _below(table, line, u, 7)
        counter[line + np.uint64(8) + j] += np.uint32(1)
        record[at] += 1
        real[at + np.uint64(1)] += real[at + np.uint64(2)]
        state = np.uint64(table[line + np.uint64(8) + j])
    return state


def bare_loops(mdp: gf.MDP, steps: int) -> dict[str, Callable[[], Any]]:
    """The loops, ready to be timed, on the optimal policy of a model with at most 8 next states per pair."""
    table, means, pairs = TransitionTable.of(mdp), RewardLaw.of(mdp).means, mdp.n_states * mdp.n_actions
    width, key = len(table.padding), stream_key(0, Role.ENVIRONMENT)
    actions = np.ascontiguousarray(gf.solve(mdp, precision=1e-6).actions, dtype=np.int64)
    filled = np.arange(width) < np.diff(mdp.indptr)[:, None]
    bound = table.lines.reshape(pairs, 2, width)[:, 0][filled].copy()
    visits, seen, sums = np.zeros(pairs, np.int64), np.zeros(mdp.n_transitions, np.int64), np.zeros(pairs)
    raw: NDArray[np.int64] = np.zeros(8 * pairs + 8, dtype=np.int64)
    skip = (-raw.ctypes.data // 8) % 8  # records aligned to lines of memory
    record = raw[skip : skip + 8 * pairs]
    real, counter = record.view(np.float64), record.view(np.uint32)
    real[2::8] = means
    packed = packed_4 if width == 4 else packed_8
    return {
        "bare, separate arrays": lambda: separate_arrays(
            mdp.indptr, mdp.indices, bound, means, mdp.n_actions, actions, key, visits, seen, sums, 0, steps
        ),
        "bare, packed": lambda: packed(
            table.lines, record, real, counter, np.uint64(mdp.n_actions), actions, key, np.uint64(0), steps
        ),
    }
