"""The problems that MBIE-EB, UCBVI and optimistic Q-learning solve in place of the average reward, solved exactly.

Discounted values are those of one policy, found by policy iteration; V^π ≤ V*, so that a value which is at least V* is
at least what stands here, whatever rounding did to the choice of π.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, identity
from scipy.sparse.linalg import spsolve

from gainful.audit.findings import Floats
from gainful.audit.truth import Truth

MOST_IMPROVEMENTS = 1_000


def true_rows(truth: Truth) -> csr_matrix:
    """(S*A, S) the transition matrix."""
    ptr, idx, p = truth.rows
    return csr_matrix((p, idx.astype(np.int64), ptr), shape=(ptr.size - 1, truth.mdp.n_states))


def discounted_values(truth: Truth, rewards: Floats, discount: float) -> tuple[Floats, Floats]:
    """(S,) V and (S*A,) Q of Σ γ^t r_t for `rewards` (S*A,), -inf in Q where an action is not allowed.

    Examples
    --------
    >>> from gainful.environments.two_state_toy import two_state_toy
    >>> truth = Truth.of(two_state_toy())
    >>> discounted_values(truth, truth.rewards, 0.5)[0].tolist()
    [1.0, 2.0]
    """
    S, P = truth.mdp.n_states, true_rows(truth)
    r = np.where(truth.mdp.allowed.reshape(-1), rewards, -np.inf)
    pairs = np.arange(S) * truth.mdp.n_actions
    actions = r.reshape(S, -1).argmax(axis=1)
    for _ in range(MOST_IMPROVEMENTS):
        chosen = pairs + actions
        values = np.asarray(spsolve((identity(S, format="csc") - discount * P[chosen].tocsc()), r[chosen])).reshape(S)
        q = r + discount * (P @ values)
        table = q.reshape(S, -1)
        better = table.argmax(axis=1)
        gain = table[np.arange(S), better] - table[np.arange(S), actions]
        if np.all(gain <= 1e-12 * (1.0 + np.abs(values))):
            break
        actions = np.where(gain > 1e-12 * (1.0 + np.abs(values)), better, actions)
    return values, q


def block_values(truth: Truth, rewards: Floats, length: int) -> Floats:
    """(H+1, S) V*_h of blocks of H = `length` steps for `rewards` (S*A,): V*_H = 0, V*_h = max_a r + p·V*_{h+1}.

    Examples
    --------
    >>> from gainful.environments.two_state_toy import two_state_toy
    >>> truth = Truth.of(two_state_toy())
    >>> block_values(truth, truth.rewards, 2).tolist()
    [[1.0, 2.0], [0.5, 1.0], [0.0, 0.0]]
    """
    S, P = truth.mdp.n_states, true_rows(truth)
    r = np.where(truth.mdp.allowed.reshape(-1), rewards, -np.inf)
    values = np.zeros((length + 1, S))
    for h in range(length - 1, -1, -1):
        values[h] = (r + P @ values[h + 1]).reshape(S, -1).max(axis=1)
    return values
