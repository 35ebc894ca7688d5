"""The MDP that SCAL+ estimates from counts; rows are computed from the counts without copying them."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel


class TransitionCounts(Protocol):
    """The counts as the planners read them: pair k = s*A + a has `length[k]` next states from `begin[k]` on."""

    n_states: int
    n_actions: int
    visits: NDArray[np.int64]
    begin: NDArray[np.int64]
    length: NDArray[np.int64]
    next_state: NDArray[np.uint32]
    count: NDArray[np.int64]
    used: NDArray[np.int64]
    is_changed: NDArray[np.bool_]
    n_changed: NDArray[np.int64]

    def changed_pairs(self) -> NDArray[np.int64]:
        """The pairs observed since the last plan, in increasing order."""


class EstimatedMDP(NamedTuple):
    """p̂(s'|s,a) = (N(s,a,s') + 1{s' = s̄}) / (N(s,a) + 1) with rewards (S*A,), -inf if an action is not allowed."""

    begin: Any
    length: Any
    next_state: Any
    count: Any
    visits: Any
    rewards: Any
    n_actions: Any
    attractive: Any
    """s̄, the state that every pair may lead to."""


def estimated_mdp(counts: TransitionCounts, rewards: NDArray[np.float64], attractive: int = 0) -> EstimatedMDP:
    """The MDP estimated from `counts`, with these rewards."""
    return EstimatedMDP(
        counts.begin,
        counts.length,
        counts.next_state,
        counts.count,
        counts.visits,
        rewards,
        counts.n_actions,
        attractive,
    )


@inlined
def expected_value(model: EstimatedMDP, v: Any, k: int) -> float:
    """p̂(·|s,a)·v of pair k: Σ (N(s') + 1{s' = s̄})·v(s') / (N + 1)."""
    first = np.uint64(model.begin[k])
    total = counted_values(
        model.count, first, model.next_state, first, model.length[k], np.uint64(1), v, v[model.attractive]
    )
    value: float = total / (model.visits[k] + 1)
    return value


@inlined
def counted_values(count: Any, at: Any, next_state: Any, to: Any, n: int, step: Any, v: Any, total: float) -> float:
    """Add N(s')·v(s') of n next states to `total`; their counts and numbers are `step` apart, from `at` and `to` on."""
    for _ in range(n):
        total += count[at] * v[next_state[to]]
        at += step
        to += step
    return total


@inlined
def best_pair(model: EstimatedMDP, q: Any, s: int) -> tuple[float, int]:
    """max_a q(s,a) and its action, ties to the lowest; q (S*A,)."""
    best, best_action = -np.inf, 0
    for a in range(model.n_actions):
        if q[s * model.n_actions + a] > best:
            best, best_action = q[s * model.n_actions + a], a
    return best, best_action


@kernel
def expected_values(model: EstimatedMDP, v: NDArray[Any], out: NDArray[Any]) -> None:
    """p̂(·|s,a)·v of every pair: what the copies with reward 0 are worth."""
    model = EstimatedMDP(*model)
    for k in range(model.visits.size):
        out[k] = expected_value(model, v, k)
