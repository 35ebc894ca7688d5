"""One MDP made ready for sweeps: sparse or dense kernels, lazy pairs, threads where they pay."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gainful.mdp.model import DENSE_LIMIT_BYTES, MDP
from gainful.planning import bellman, dense
from gainful.planning.plan import UNIT_ROUNDOFF, rounding_slack

THREADS_FROM_TRANSITIONS = 1_000_000
"""Below this a sweep is so short that handing half of it to a thread costs more than it saves."""
DENSE_FROM_DENSITY = 0.5

Floats = NDArray[np.float64]


class PolicyOperator(Protocol):
    """h -> r_π + P_π h - h for one deterministic policy."""

    def gaps(self, h: Floats, out: Floats) -> tuple[float, float]:
        """Fill `out` with r_π + P_π h - h and return its range."""
        ...


def available_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        return os.cpu_count() or 1


class Sweeper:
    """Bellman sweeps of one MDP; `w` and `act` hold the last one's Lv and greedy actions.

    `bellman(v)` gives exactly what a full sweep gives, but passes over pairs proven not to be the best
    (see `bellman.lazy_sweep`). `threads=None` uses all cores on large problems; no result depends on it.
    """

    def __init__(self, mdp: MDP, threads: int | None = None) -> None:
        self.mdp = mdp
        self.w: Floats = np.empty(mdp.n_states)
        self.act = np.argmax(mdp.allowed, axis=1).astype(np.int64)  # the lowest allowed
        self.max_reward = float(np.abs(mdp.pair_rewards).max())
        self.max_support = int(np.diff(mdp.indptr).max())
        self.sweeps = 0
        self._keys: Floats = np.full(mdp.n_states * mdp.n_actions, np.inf)
        self._last: Floats | None = None
        self._risen = 0.0
        self._largest = 0.0  # max|v| over all sweeps
        if threads is None:
            threads = available_cores() if mdp.n_transitions >= THREADS_FROM_TRANSITIONS else 1
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        edges = np.linspace(0, mdp.n_states, threads + 1).astype(np.uint64)
        self._parts = list(zip(edges[:-1], edges[1:], strict=True))
        self._rows = (mdp.indptr.view(np.uint64), mdp.indices, mdp.probabilities, mdp.pair_rewards, np.uint64(mdp.n_actions))
        self._dense = _dense_matrix(mdp)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def slack(self, v: Floats) -> float:
        """The rounding of one sweep at v."""
        return rounding_slack(self.max_support, float(np.abs(v).max()), self.max_reward)

    def bellman(self, v: Floats) -> tuple[float, float]:
        """Set w = Lv and act to its greedy actions (ties to the lowest); return the range of Lv - v."""
        if self._last is None:
            self._last = v.copy()
        else:
            self._risen += float(np.max(v - self._last))
            self._last[:] = v
        self._largest = max(self._largest, float(np.abs(v).max()))
        self.sweeps += 1
        # rounding of both values compared, and of the sum `risen`
        margin = 4 * rounding_slack(self.max_support, self._largest, self.max_reward)
        margin += 2 * UNIT_ROUNDOFF * (self.sweeps + 2) * (abs(self._risen) + self._largest)
        tail = (self.w, self.act, self._keys, self._risen, margin)
        if self._dense is not None:
            run = dense.lazy_sweep
            head: tuple[Any, ...] = (self._dense, self.mdp.pair_rewards, self.mdp.allowed.reshape(-1), self.mdp.n_actions, v)
        else:
            run = bellman.lazy_sweep
            head = (*self._rows, v)
        return self._in_parts(lambda first, last: run(*head, first, last, *tail))

    def full_sweep(self, v: Floats) -> tuple[float, float]:
        """Like `bellman`, reading every row (what the lazy sweep is checked against and timed against)."""
        self.sweeps += 1
        return self._in_parts(lambda first, last: bellman.sweep(*self._rows, v, first, last, self.w, self.act))

    def policy(self, actions: NDArray[np.int64]) -> PolicyOperator:
        """The operator of one deterministic policy."""
        if self._dense is not None:
            return _DensePolicy(self._dense, self.mdp, actions, self._in_parts)
        return _SparsePolicy(self._rows, self.mdp, actions, self._in_parts)

    def _in_parts(self, part: Callable[[Any, Any], tuple[float, float]]) -> tuple[float, float]:
        if self._pool is None:
            return part(*self._parts[0])
        ranges = list(self._pool.map(lambda ends: part(*ends), self._parts))
        return min(low for low, _ in ranges), max(high for _, high in ranges)


def _dense_matrix(mdp: MDP) -> Floats | None:
    """(S*A, S), when most of it is filled: no copy when all of it is."""
    cells = mdp.n_states**2 * mdp.n_actions
    if mdp.is_full:
        return mdp.probabilities.reshape(-1, mdp.n_states)
    if mdp.n_states >= 32 and 8 * cells <= DENSE_LIMIT_BYTES and mdp.n_transitions >= DENSE_FROM_DENSITY * cells:
        return np.ascontiguousarray(mdp.matrix().toarray())
    return None


_Parts = Callable[[Callable[[Any, Any], tuple[float, float]]], tuple[float, float]]


class _SparsePolicy:
    def __init__(self, rows: tuple[Any, ...], mdp: MDP, actions: NDArray[np.int64], in_parts: _Parts) -> None:
        k = np.arange(mdp.n_states) * mdp.n_actions + actions
        size = int((mdp.indptr[k + 1] - mdp.indptr[k]).sum())
        self._rows = (np.empty(mdp.n_states + 1, np.uint64), np.empty(size, np.uint32), np.empty(size), np.empty(mdp.n_states))
        bellman.policy_rows(*rows, actions, *self._rows)
        self._in_parts = in_parts

    def gaps(self, h: Floats, out: Floats) -> tuple[float, float]:
        return self._in_parts(lambda first, last: bellman.policy_sweep(*self._rows, h, first, last, out))


class _DensePolicy:
    def __init__(self, matrix: Floats, mdp: MDP, actions: NDArray[np.int64], in_parts: _Parts) -> None:
        self._matrix, self._k = matrix, np.arange(mdp.n_states) * mdp.n_actions + actions
        self._rewards, self._in_parts = mdp.pair_rewards[self._k], in_parts

    def gaps(self, h: Floats, out: Floats) -> tuple[float, float]:
        return self._in_parts(
            lambda first, last: dense.policy_sweep(self._matrix, self._rewards, self._k, h, first, last, out)
        )
