"""A random problem with one better state above it that nothing leads to."""

from __future__ import annotations

import numpy as np

import gainful as gf


def garnet_below(instance: int = 0) -> gf.MDP:
    """Garnet(10, 2, 3) with rewards of 0 or 1, and an eleventh state: every step there earns 1 and falls down."""
    below = gf.environments.garnet(10, 2, 3, instance=instance)
    S, A = below.n_states + 1, below.n_actions
    P, R = np.zeros((S, A, S)), np.ones((S, A))
    P[:-1, :, :-1] = below.matrix().toarray().reshape(S - 1, A, S - 1)
    R[:-1] = below.pair_rewards.reshape(S - 1, A)
    P[-1, :, 0] = 1.0
    return gf.MDP(P, R, reward_law="bernoulli")
