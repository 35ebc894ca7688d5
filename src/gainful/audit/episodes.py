"""The rule that ends episodes, compared with how often each pair was executed in them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.audit.findings import Finding, Floats, compared


def episode_rule(
    steps: Floats,
    ratio: Floats,
    pairs: NDArray[Any],
    full: NDArray[Any],
    n_actions: int,
    new_states: ArrayLike | None = None,
) -> Finding:
    """No pair is executed more than max{1, N_k} times in an episode, and one pair reaches that number.

    Arrays have one entry per episode: `ratio` is the largest ν_k/max{1, N_k}, `pairs` where it is, `full` whether some
    pair reached 1. The last episode was ended by the horizon and needs no such pair. TUCRL also ends an episode at a
    state never visited before: then `new_states` counts those that each episode reached, at most one, and one is enough
    to end it.
    """
    found = compared(ratio, 1.0, steps, states=pairs // n_actions, actions=pairs % n_actions, rounding=1e-12)
    ended = np.asarray(full)
    if new_states is not None:
        reached = np.asarray(new_states, dtype=np.float64)
        if found.failures == 0:
            several = compared(reached, 1.0, steps)
            found = several if several.failures else found
        ended = np.maximum(ended, reached > 0)
    if found.failures == 0 and len(steps) > 1:
        found = compared(1.0 - ended[:-1], 0.0, steps[:-1], rounding=1e-12)
    return found


def growing_episode_rule(
    steps: Floats,
    ratio: Floats,
    pairs: NDArray[Any],
    full: NDArray[Any],
    made: NDArray[Any],
    n_actions: int,
) -> Finding:
    """The rule of TSDE: that of doubling, and no episode is more than one step longer than the one before (T_0 = 1).

    `made` are the steps of each episode. One that is one step longer than the one before needs no doubled pair.
    """
    longest = np.concatenate([[1], made[:-1]]) + 1
    found = compared(made, longest, steps)
    return found if found.failures else episode_rule(steps, ratio, pairs, full | (made == longest), n_actions)


def block_rule(steps: Floats, made: NDArray[Any], length: int) -> Finding:
    """Every episode but the last has `length` steps, and the last no more."""
    off = np.abs(np.asarray(made, dtype=np.float64) - length)
    off[-1:] = np.maximum(made[-1:] - length, 0)
    return compared(off, 0.0, steps)
