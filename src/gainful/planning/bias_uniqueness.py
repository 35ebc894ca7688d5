"""Whether the optimality equation has one solution, up to constants."""

from __future__ import annotations

import numpy as np

from gainful.mdp.model import MDP
from gainful.mdp.structure import recurrent_classes
from gainful.planning.evaluation import chain_of
from gainful.planning.optimality_gaps import optimality_gaps


def bias_is_unique(mdp: MDP) -> bool:
    """Tell whether all solutions h* of the optimality equation g* + h = max_a [r + p·h] differ by constants.

    They do if, and only if, the policy that plays all optimal actions has a single recurrent class (Schweitzer &
    Federgruen 1978, the functional equations of undiscounted Markov renewal programming).

    Parameters
    ----------
    mdp : MDP
        A process whose optimal gain does not depend on the start.

    Returns
    -------
    bool

    Raises
    ------
    MultichainError
        If the optimal gain depends on the start.

    Examples
    --------
    >>> import gainful as gf
    >>> bias_is_unique(gf.environments.riverswim(6))
    True
    >>> stay_or_go = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    >>> bias_is_unique(gf.MDP(stay_or_go, [[1.0, 0.0], [1.0, 0.0]]))  # staying is optimal in both states
    False
    """
    optimal = np.nan_to_num(optimality_gaps(mdp), nan=np.inf) == 0.0
    chain, _ = chain_of(mdp, optimal / optimal.sum(axis=1, keepdims=True))
    return len(recurrent_classes(chain)[0]) == 1
