"""A random problem whose S, A and Γ are changed one at a time, with the same gain, bias and gaps."""

from __future__ import annotations

import numpy as np

import gainful as gf

STATES, ACTIONS, BRANCHING = 5, 2, 2
"""Of the random problem that is lifted."""


def lifted_garnet(copies: int = 1, twins: int = 1, spread: int = 1, instance: int = 0) -> gf.MDP:
    """Garnet(5, 2, 2) with rewards of 0 or 1, every state in `copies`, every action in `twins`, and Γ = 2·`spread`.

    From copy j, the move s → s' by a leads to the copies j + f + i modulo `copies`, i = 0 … spread - 1, with equal
    probabilities; f is drawn once for each (s, a, s'). Copies of a state differ in nothing but their number, so that
    the gain, the span and the gaps of the pairs are those of the small problem, whatever S = 5·copies, A = 2·twins and
    Γ are.
    """
    small = gf.environments.garnet(STATES, ACTIONS, BRANCHING, instance=instance)
    p = small.matrix().toarray().reshape(STATES, ACTIONS, STATES)
    shift = np.random.default_rng(instance).integers(0, 2**31, p.shape) % copies
    P = np.zeros((STATES, copies, ACTIONS, STATES, copies))
    for s, a, following in zip(*np.nonzero(p), strict=True):
        for i in range(spread):
            there = (np.arange(copies) + shift[s, a, following] + i) % copies
            P[s, np.arange(copies), a, following, there] += p[s, a, following] / spread
    S = STATES * copies
    P = np.repeat(P.reshape(S, ACTIONS, S), twins, axis=1)
    R = np.repeat(np.repeat(small.pair_rewards.reshape(STATES, ACTIONS), copies, axis=0), twins, axis=1)
    return gf.MDP(P, R, reward_law="bernoulli")
