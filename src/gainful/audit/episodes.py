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
