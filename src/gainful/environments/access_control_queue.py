"""The access-control queuing task of Sutton and Barto."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from gainful.arguments import real, reals, whole
from gainful.errors import InvalidArgumentError
from gainful.machine import check_table_size
from gainful.mdp.model import MDP
from gainful.mdp.model_size import DENSE_BYTES


def access_control_queue(
    n_servers: int = 10,
    *,
    priorities: Sequence[float] = (1.0, 2.0, 4.0, 8.0),
    free_probability: float = 0.06,
) -> MDP:
    """Access control: accept or reject customers who pay by priority, with few servers.

    A state is (free servers, priority of the customer at the head of an endless queue). In each step the customer is
    accepted (pays the priority and takes a free server; impossible if none is free) or rejected; then every server that
    is busy at that moment, including the one just taken, becomes free with probability `free_probability`,
    independently; then the next customer's priority is drawn uniformly.
    Source: Sutton & Barto, Reinforcement Learning: An Introduction, 2nd edition (2018), Example 10.2.

    Parameters
    ----------
    n_servers : int
        The number of servers.
    priorities : sequence of float
        What customers pay; distinct numbers.
    free_probability : float
        The probability that a busy server becomes free in a step, in (0, 1].

    Returns
    -------
    MDP
        There is no closed form for the gain, and no exact figure in the book; with the defaults it is 2.747642 per step
        (independent linear programme).

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.solve(gf.environments.access_control_queue()).gain, 6)
    2.747642
    """
    n = whole("n_servers", n_servers, 1)
    pay = reals("priorities", priorities)
    if len(set(pay)) != len(pay):
        raise InvalidArgumentError("priorities", pay, "distinct numbers", problem=f"priorities are {pay}")
    p = real("free_probability", free_probability, 0.0, 1.0, low_open=True)
    m = len(pay)
    S = (n + 1) * m
    check_table_size("n_servers", S, 2, DENSE_BYTES * S, "a dense model")
    after = np.zeros((n + 1, n + 1))  # after[f, g]: g servers free at the end of a step decided with f free
    for f in range(n + 1):
        busy = n - f
        after[f, f:] = [comb(busy, k) * p**k * (1.0 - p) ** (busy - k) for k in range(busy + 1)]
    P = np.zeros((n + 1, m, 2, n + 1, m))
    P[:, :, 0] = after[:, None, :, None] / m
    P[1:, :, 1] = after[:-1, None, :, None] / m
    R = np.zeros((n + 1, m, 2))
    R[:, :, 1] = pay
    allowed = np.ones((n + 1, m, 2), dtype=bool)
    allowed[0, :, 1] = False
    return MDP(
        P.reshape(S, 2, S),
        R.reshape(S, 2),
        allowed=allowed.reshape(S, 2),
        start=np.concatenate([np.zeros(n * m), np.full(m, 1.0 / m)]),
        state_labels=[f"{f} free, priority {w:g}" for f in range(n + 1) for w in pay],
        action_labels=("reject", "accept"),
        name="access-control-queue",
    )
