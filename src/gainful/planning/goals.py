"""A first policy for policy iteration: go where the largest reward is."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gainful.errors import PrecisionError
from gainful.mdp.model import MDP
from gainful.planning.distances import moves_from
from gainful.planning.evaluation import chain_of, evaluate_chain


def towards_the_largest_reward(mdp: MDP, otherwise: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pair with the largest reward at its state; elsewhere the action that comes closest to it, in expected moves.

    States that cannot reach it play `otherwise`.

    >>> import gainful as gf
    >>> river = gf.environments.riverswim(6)
    >>> towards_the_largest_reward(river, np.zeros(6, dtype=np.int64)).tolist()
    [1, 1, 1, 1, 1, 1]
    """
    S, A = mdp.n_states, mdp.n_actions
    rewards = np.where(mdp.allowed.reshape(-1), mdp.pair_rewards, -np.inf)
    goal, action = divmod(int(rewards.argmax()), A)
    states = np.repeat(np.arange(S * A) // A, np.diff(mdp.indptr))
    reversed_moves = sp.csr_array((np.ones(states.size), (mdp.indices.view(np.int32), states)), shape=(S, S))
    moves = moves_from(reversed_moves, goal)
    away = np.where(moves >= 0, moves, S).astype(np.float64)  # farther than any that can be reached
    expected = np.where(mdp.allowed, (mdp.matrix() @ away).reshape(S, A), np.inf)
    actions = np.where(moves >= 0, expected.argmin(axis=1), otherwise)
    actions[goal] = action
    return actions.astype(np.int64)


def better_policy(mdp: MDP, first: NDArray[np.int64], second: NDArray[np.int64], *, local: bool) -> NDArray[np.int64]:
    """The one with the larger gain, on average over the states; the first if the second cannot be evaluated."""
    try:
        gains = [evaluate_chain(*chain_of(mdp, d), stationary=False, local=local).gain for d in (first, second)]
    except PrecisionError:
        return first
    return second if gains[1].mean() > gains[0].mean() else first
