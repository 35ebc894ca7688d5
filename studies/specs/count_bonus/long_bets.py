"""Bets that take long to pay: a problem in which a bonus has to grow with the span, and nothing else changes."""

from __future__ import annotations

import numpy as np

import gainful as gf

COIN, BET = 0, 1
WIN = 0.6


def long_bets(wait: float = 16.0, tables: int = 14) -> gf.MDP:
    """At each table a fair coin (action 0), or a bet that wins with probability 0.6 (action 1).

    A win leads to a state that earns 1 per step, a loss to one that earns nothing. Both are left with probability
    1/wait per step, for a table drawn at random. So sp(h*) = h*(win) - h*(loss) = wait, the gain is
    0.6·wait/(1 + wait), and always tossing the coin loses 0.1·wait/(1 + wait) per step, of which each table has its
    share. With 14 tables there are 16 states: a grid of 4 x 4 whose last two cells are the win and the loss.
    """
    S, won, lost = tables + 2, tables, tables + 1
    P, R = np.zeros((S, 2, S)), np.zeros((S, 2))
    for action, p in ((COIN, 0.5), (BET, WIN)):
        P[:tables, action, won], P[:tables, action, lost] = p, 1.0 - p
    P[tables:, :, :tables] = 1.0 / (wait * tables)
    for s in (won, lost):
        P[s, :, s] = 1.0 - 1.0 / wait
    R[won] = 1.0
    return gf.MDP(P, R)
