"""Whether every policy visits every state: what a model says, and what the transitions observed prove."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gainful.agents.statistics import Statistics
from gainful.errors import TooLargeError
from gainful.mdp.ergodicity import avoidable_state, is_ergodic
from gainful.mdp.model import MDP

MOST_WORK = 100_000_000
"""States times transitions up to which an agent tests whether its MDP is ergodic: about a second."""


def observed_avoidable_state(statistics: Statistics, allowed: NDArray[np.bool_]) -> tuple[int | None, str]:
    """A state that some policy might never visit, by what was observed; None if the MDP is certainly ergodic.

    Every transition that was observed exists, and more of them only make it harder to avoid a state. So if no state can
    be avoided in the graph of those observed, none can be in the MDP.

    Parameters
    ----------
    statistics : Statistics
        What has been seen so far.
    allowed : ndarray of bool, shape (S, A)
        The actions that each state has.

    Returns
    -------
    state : int or None
        The first such state.
    reason : str
        Why that is not known, in place of a state; empty if it is.
    """
    visits = statistics.visits.reshape(allowed.shape)
    untried = int(np.count_nonzero((visits == 0) & allowed))
    if untried:
        return None, f"{untried:,} pair{' was' if untried == 1 else 's were'} never tried"
    seen = statistics.to_arrays()
    if statistics.n_states * seen["next_state"].size > MOST_WORK:
        return None, "there are too many states to test it"
    rows = np.repeat(np.arange(statistics.visits.size), seen["length"])
    p = seen["count"] / statistics.visits[rows]
    indptr = np.concatenate([[0], np.cumsum(seen["length"])])
    model = MDP.from_rows(indptr, seen["next_state"], p, np.zeros(allowed.shape))
    return avoidable_state(model), ""


def known_to_be_ergodic(mdp: MDP) -> bool | None:
    """Whether a model is ergodic; None if it is too large to find out.

    Parameters
    ----------
    mdp : MDP
        The model.

    Returns
    -------
    bool or None
    """
    try:
        return is_ergodic(mdp)
    except TooLargeError:
        return None
