"""One MDP made ready for sweeps: sparse or dense kernels, lazy pairs, and threads if they pay off."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gainful.machine import available_cores
from gainful.mdp.model import DENSE_LIMIT_BYTES, MDP
from gainful.planning.arguments import lowest_allowed
from gainful.planning.bellman import (
    Elimination,
    IncumbentRows,
    keyed_sweep,
    lazy_sweep,
    own_rows,
    policy_sweep,
    sparse_model,
    sweep,
)
from gainful.planning.dense import DenseModel, dense_lazy_sweep, dense_policy_sweep
from gainful.planning.rounding import elimination_margin, longest_row, reward_scale, rounding_slack

THREADS_FROM_TRANSITIONS = 1_000_000
"""Below this a sweep is so short that handing half of it to a thread costs more than it saves."""
DENSE_FROM_DENSITY = 0.5
LAZY_UP_TO = 0.1
"""The fraction of contested states up to which the lazy sweep is the faster one."""

Floats = NDArray[np.float64]


class Sweeper:
    """Bellman sweeps of one MDP; `w` and `act` hold the last one's Lv and greedy actions.

    `bellman(v)` gives exactly what a full sweep gives, but passes over pairs proven not to be the best
    (see `bellman.lazy_sweep`). `threads=None` uses all cores on large problems; no result depends on it.
    """

    def __init__(self, mdp: MDP, threads: int | None = None) -> None:
        self.mdp = mdp
        self.w: Floats = np.empty(mdp.n_states)
        self.act = lowest_allowed(mdp)
        self.max_reward = reward_scale(mdp)
        self.max_support = longest_row(mdp)
        self.sweeps = 0
        self._keys: Floats = np.full(mdp.n_states * mdp.n_actions, np.inf)
        self._last: Floats | None = None
        self._risen = 0.0
        self._size, self._largest = 0.0, 0.0  # max|v| of the last sweep, and over all sweeps
        if threads is None:
            threads = available_cores() if mdp.n_transitions >= THREADS_FROM_TRANSITIONS else 1
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        edges = np.linspace(0, mdp.n_states, threads + 1).astype(np.uint64)
        self._parts = list(pairwise(edges))
        self._model = sparse_model(mdp)
        self._dense = _dense_model(mdp)
        self._runner_up: Floats = np.full(mdp.n_states if self._dense is None else 0, np.inf)
        self._own: IncumbentRows | None = None
        self.incumbents_ready = False
        """Whether the incumbents' rows lie side by side, as the lazy sweep reads them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    @property
    def slack(self) -> float:
        """The rounding of the last sweep of `bellman`."""
        return rounding_slack(self.max_support, self._size, self.max_reward)

    def bellman(self, v: Floats) -> tuple[float, float]:
        """Set w = Lv and act to its greedy actions (ties to the lowest); return the range of Lv - v."""
        contested = 1.0  # the fraction of states whose runner-up may have overtaken
        if self._last is None:
            self._last = v.copy()
            if not v.any():
                return self._sweep_at_zero()
        else:
            change = v - self._last
            rise = float(change.max())
            if self._dense is None:
                reach = self._risen + rise - float(change.min())
                contested = float(np.count_nonzero(self.w - self._runner_up < reach)) / v.size
            self._risen += rise
            self._last[:] = v
        self._size = float(np.abs(v).max())
        self._largest = max(self._largest, self._size)
        self.sweeps += 1
        slack = rounding_slack(self.max_support, self._largest, self.max_reward)
        margin = elimination_margin(slack, self._largest, self.sweeps, self._risen)
        known = Elimination(self._keys, self._runner_up, self._risen, margin)
        w, act = self.w, self.act
        if self._dense is not None:
            matrix = self._dense
            return self._in_parts(lambda first, last: dense_lazy_sweep(matrix, v, first, last, w, act, known))
        model = self._model
        if contested > LAZY_UP_TO:
            self.incumbents_ready = False
            return self._in_parts(lambda first, last: keyed_sweep(model, v, first, last, w, act, known))
        own = self._own_rows()
        return self._in_parts(lambda first, last: lazy_sweep(model, v, first, last, w, act, own, known))

    def _own_rows(self) -> IncumbentRows:
        """The rows of the incumbent actions, side by side."""
        if self._own is None:  # each state has room for its longest row
            S, room = self.mdp.n_states, np.diff(self.mdp.indptr).reshape(self.mdp.n_states, -1).max(axis=1)
            size = int(room.sum())
            self._own = IncumbentRows(
                begin=(np.cumsum(room) - room).astype(np.uint64),
                length=np.empty(S, np.uint64),
                indices=np.empty(size, np.uint32),
                probabilities=np.empty(size),
                rewards=np.empty(S),
            )
        if not self.incumbents_ready:
            own_rows(self._model, self.act, self._own)
            self.incumbents_ready = True
        return self._own

    def _sweep_at_zero(self) -> tuple[float, float]:
        """The sweep at v = 0, where q(s,a) = r(s,a): no row need be read."""
        self._keys[:] = np.where(self.mdp.allowed.reshape(-1), self.mdp.pair_rewards, -np.inf)
        q = self._keys.reshape(self.mdp.n_states, self.mdp.n_actions)
        best, second = q[:, 0].copy(), np.full(self.mdp.n_states, -np.inf)
        self.act[:] = 0
        for a in range(1, self.mdp.n_actions):
            np.maximum(second, np.minimum(q[:, a], best), out=second)
            self.act[q[:, a] > best] = a
            np.maximum(best, q[:, a], out=best)
        self.w[:] = best
        if self._dense is None:
            self._runner_up[:] = second
        self.sweeps += 1
        return float(best.min()), float(best.max())

    def full_sweep(self, v: Floats) -> tuple[float, float]:
        """Like `bellman`, reading every row (what the lazy sweep is checked against and timed against)."""
        self.sweeps += 1
        greedy = np.empty_like(self.act)  # the incumbents and their rows stay as they are
        return self._in_parts(lambda first, last: sweep(self._model, v, first, last, self.w, greedy))

    def policy_gaps(self, h: Floats, out: Floats) -> tuple[float, float]:
        """Fill `out` with r_π + P_π h - h for the policy π = `act`, and return its range."""
        if self._dense is None:
            own = self._own_rows()
            return self._in_parts(lambda first, last: policy_sweep(own, h, first, last, out))
        pairs = np.arange(self.mdp.n_states) * self.mdp.n_actions + self.act
        rewards, matrix = self.mdp.pair_rewards[pairs], self._dense.matrix
        return self._in_parts(lambda first, last: dense_policy_sweep(matrix, rewards, pairs, h, first, last, out))

    def _in_parts(self, part: Callable[[Any, Any], tuple[float, float]]) -> tuple[float, float]:
        if self._pool is None:
            return part(*self._parts[0])
        ranges = list(self._pool.map(lambda ends: part(*ends), self._parts))
        return min(low for low, _ in ranges), max(high for _, high in ranges)


def _dense_model(mdp: MDP) -> DenseModel | None:
    """The matrix (S*A, S), when most of it is filled: no copy when all of it is."""
    cells = mdp.n_states**2 * mdp.n_actions
    if mdp.is_full:
        matrix = mdp.probabilities.reshape(-1, mdp.n_states)
    elif mdp.n_states >= 32 and 8 * cells <= DENSE_LIMIT_BYTES and mdp.n_transitions >= DENSE_FROM_DENSITY * cells:
        matrix = np.ascontiguousarray(mdp.matrix().toarray())
    else:
        return None
    return DenseModel(matrix, mdp.pair_rewards, mdp.allowed.reshape(-1), mdp.n_actions)
