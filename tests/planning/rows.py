"""Random sparse rows and a linear programme, shared by the tests of the inner maxima."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from gainful.mdp.model import MDP
from gainful.planning.confidence import Confidence
from gainful.planning.inner_maximum import inner_maximum
from gainful.planning.optimistic_rows import OptimisticRows

Array = NDArray[np.float64]


def random_mdp(rng: np.random.Generator, n_states: int, n_actions: int, support: int) -> MDP:
    P = np.zeros((n_states, n_actions, n_states))
    for s in range(n_states):
        for a in range(n_actions):
            size = int(rng.integers(1, min(support, n_states) + 1))
            P[s, a, rng.choice(n_states, size, replace=False)] = rng.dirichlet(np.ones(size))
    return MDP(P, rng.random((n_states, n_actions)))


def random_values(rng: np.random.Generator, n_states: int) -> Array:
    """Half of the time with many ties."""
    return rng.random(n_states) if rng.random() < 0.5 else rng.integers(0, 3, n_states).astype(np.float64)


def maxima(mdp: MDP, confidence: Confidence, v: Array) -> tuple[Array, OptimisticRows]:
    """max p·v of every pair (S*A,), and the rows that reach it."""
    inner = inner_maximum(mdp, confidence)
    n = mdp.n_states * mdp.n_actions
    q = np.empty(n)
    inner.values(v, np.zeros(n), q)
    return q, inner.rows(v, np.arange(n))


def dense(rows: OptimisticRows, k: int, n_states: int) -> Array:
    p = np.zeros(n_states)
    entries = slice(rows.indptr[k], rows.indptr[k + 1])
    assert np.unique(rows.indices[entries]).size == rows.indices[entries].size
    p[rows.indices[entries]] = rows.probabilities[entries]
    return p


def linear_maximum(v: Array, bounds: list[tuple[float, float]], A_ub: Any = None, b_ub: Any = None) -> float:
    """max x·(v, 0) subject to Σ of the first S being 1."""
    n = len(bounds)
    cost = np.concatenate([-v, np.zeros(n - v.size)])
    one = np.concatenate([np.ones(v.size), np.zeros(n - v.size)])[None, :]
    found = linprog(cost, A_ub=A_ub, b_ub=b_ub, A_eq=one, b_eq=[1.0], bounds=bounds, method="highs")
    assert found.status == 0
    assert found.fun is not None
    return -float(found.fun)
