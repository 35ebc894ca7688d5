"""What a run in an MDP is measured against: the optimal gain and the optimality gaps, solved once per MDP."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gainful.errors import MultichainError, PlanningError
from gainful.mdp.model import MDP
from gainful.planning.optimality_gaps import optimality_gaps
from gainful.planning.solve import solve

T = TypeVar("T")


def once_per_mdp(function: Callable[[MDP], T]) -> Callable[[MDP], T]:
    """Keep the result of `function` as long as its MDP lives: an MDP never changes, so neither does the result."""
    results: dict[int, tuple[weakref.ref[MDP], T]] = {}

    def forget(reference: weakref.ref[MDP], key: int) -> None:
        if key in results and results[key][0] is reference:
            del results[key]

    @wraps(function)
    def remembered(mdp: MDP) -> T:
        key = id(mdp)
        known = results.get(key)
        if known is not None and known[0]() is mdp:
            return known[1]
        value = function(mdp)
        results[key] = (weakref.ref(mdp, lambda gone: forget(gone, key)), value)
        return value

    return remembered


@once_per_mdp
def optimal_gain(mdp: MDP) -> float:
    """g* per step, to be maximised, in the units of `mdp.rewards`."""
    low, high = mdp.reward_range
    best = solve(mdp, precision=1e-9 * max(1.0, high - low) / mdp.units.step_duration)
    return mdp.units.sign * best.gain * mdp.units.step_duration


@once_per_mdp
def known_gaps(mdp: MDP) -> NDArray[np.float64]:
    """(S*A,) the optimality gaps of all pairs, from which expected regret counts; NaN if they are unknown."""
    try:
        gaps = optimality_gaps(mdp).reshape(-1)
    except (MultichainError, PlanningError):
        gaps = np.full(mdp.n_states * mdp.n_actions, np.nan)
    gaps.flags.writeable = False
    return gaps
