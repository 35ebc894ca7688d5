"""Whether every policy visits every state for ever: what asymptotic lower bounds and index policies assume."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.errors import TooLargeError
from gainful.mdp.model import MDP, require_mdp
from gainful.mdp.structure import PredecessorLists, predecessors

MAX_WORK = 20_000_000_000
"""Transitions that the search may read: S times the transitions of the MDP."""


def is_ergodic(mdp: MDP) -> bool:
    """Tell whether an MDP is ergodic: every stationary policy visits every state again and again.

    It is so exactly if no state x can be avoided: if the largest set of states without x that some policy can stay in
    for ever is empty. That set is what is left after repeatedly removing states all of whose actions may leave it. A
    policy that is not irreducible has a recurrent class without some state x, and stays in it for ever; conversely, a
    policy that stays in a set without x never visits x from there.

    Parameters
    ----------
    mdp : MDP
        The decision process; only its graph matters.

    Returns
    -------
    bool
        False for RiverSwim, where swimming left stays at the left bank.

    Raises
    ------
    TooLargeError
        If S times the number of transitions is above 2e10, which would take minutes.

    Examples
    --------
    >>> import gainful as gf
    >>> is_ergodic(gf.environments.riverswim(6)), is_ergodic(gf.environments.riverswim_ergodic(6))
    (False, True)
    """
    return avoidable_state(mdp) is None


def avoidable_state(mdp: MDP) -> int | None:
    """The first state that some policy, from some state, never visits; None if the MDP is ergodic.

    Parameters
    ----------
    mdp : MDP
        The decision process.

    Returns
    -------
    int or None

    Raises
    ------
    TooLargeError
        If S times the number of transitions is above 2e10.

    Examples
    --------
    >>> import gainful as gf
    >>> mdp = gf.environments.riverswim(6)
    >>> mdp.state_name(avoidable_state(mdp))  # from the right bank, always swimming right may keep you there
    'river 1'
    """
    require_mdp(mdp)
    if mdp.n_states * mdp.n_transitions > MAX_WORK:
        raise TooLargeError(
            f"whether an MDP of {mdp.n_states:,} states and {mdp.n_transitions:,} transitions is ergodic would take "
            "minutes to find out",
            name="mdp",
            found=mdp.n_states * mdp.n_transitions,
            expected=f"at most {MAX_WORK} states times transitions",
            hint="ask for a smaller instance of the same process",
        )
    count = mdp.allowed.sum(axis=1).astype(np.int32)
    found = _first_avoidable(predecessors(mdp), mdp.allowed.reshape(-1), count, mdp.n_actions)
    return None if found < 0 else int(found)


@kernel
def _first_avoidable(
    before: PredecessorLists, allowed: NDArray[np.bool_], count: NDArray[np.int32], n_actions: int
) -> int:
    """The first x that can be avoided for ever, or -1; `count` has the number of allowed actions of each state."""
    pointers, leading = before
    S = count.size
    stack = np.empty(S, dtype=np.int32)
    for x in range(S):
        alive, left = allowed.copy(), count.copy()
        left[x] = 0
        stack[0] = x
        depth, removed = 1, 0
        while depth > 0:
            depth -= 1
            removed += 1
            t = stack[depth]
            for j in range(pointers[t], pointers[t + 1]):
                k = np.int64(leading[j])
                s = k // n_actions
                if alive[k] and left[s] > 0:
                    alive[k] = False
                    left[s] -= 1
                    if left[s] == 0:
                        stack[depth] = s
                        depth += 1
        if removed < S:
            return x
    return -1
