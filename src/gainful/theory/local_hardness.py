"""Local diameters and effective supports: what UCRL3's regret depends on (Bourel, Maillard & Talebi 2020)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gainful.mdp.model import MDP


def local_diameters(mdp: MDP, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The time that it takes at most to get from one possible next state of a state to another: D_s.

    Parameters
    ----------
    mdp : MDP
        The process.
    times : ndarray of shape (S, S)
        The least expected time from each state to each other one (`gf.hitting_times`).

    Returns
    -------
    ndarray of shape (S,)

    Examples
    --------
    >>> import gainful as gf
    >>> river = gf.environments.riverswim(6)
    >>> local_diameters(river, gf.hitting_times(river)).round(2)
    array([1.67, 4.76, 6.39, 6.63, 6.66, 3.33])
    """
    A, found = mdp.n_actions, np.zeros(mdp.n_states)
    for s in range(mdp.n_states):
        nexts = np.unique(mdp.indices[mdp.indptr[s * A] : mdp.indptr[(s + 1) * A]])
        found[s] = times[np.ix_(nexts, nexts)].max()
    return found


def effective_supports(mdp: MDP) -> NDArray[np.float64]:
    """How many next states a pair has, certain ones counting little: L(s,a) = (Σ_x sqrt(p(x)(1-p(x))))².

    Parameters
    ----------
    mdp : MDP
        The process.

    Returns
    -------
    ndarray of shape (S, A)
        0 for a pair with one next state, at most the number of next states less 1.

    Examples
    --------
    >>> import gainful as gf
    >>> effective_supports(gf.environments.riverswim(6))[1].round(2)
    array([0. , 1.4])
    """
    spread = mdp.matrix().copy()
    spread.sum_duplicates()  # next states that are listed with several rewards
    spread.data = np.sqrt(spread.data * (1.0 - spread.data))
    return np.asarray(spread.sum(axis=1) ** 2, dtype=np.float64).reshape(mdp.n_states, mdp.n_actions)
