"""The sweeps of extended value iteration, written once for every kind of confidence set.

`values` is overloaded on the type of the set, so Numba compiles one `set_sweeps` for each of them, with the set's own
loop over pairs in line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.planning.improvement import improve, relax
from gainful.planning.intervals import IntervalSet, interval_values
from gainful.planning.kl import KLSet, kl_values
from gainful.planning.l1 import L1Set, l1_values
from gainful.planning.near_optimistic import NearOptimisticSet, near_optimistic_values
from gainful.planning.rounding import is_narrow, slack_at
from gainful.planning.truncation import ceiling_of

ConfidenceSet: TypeAlias = L1Set | IntervalSet | NearOptimisticSet | KLSet

VALUES: dict[type, Callable[..., None]] = {
    L1Set: l1_values,
    IntervalSet: interval_values,
    NearOptimisticSet: near_optimistic_values,
    KLSet: kl_values,
}


class SweepLimits(NamedTuple):
    """How to step, and when to stop."""

    n_actions: Any
    damping: Any
    span: Any
    """c of the truncated operator; inf for none."""
    precision: Any
    slack_scale: Any
    """Times (max v + reward_scale), the rounding slack."""
    reward_scale: Any


def values(sets: ConfidenceSet, v: Any, rewards: Any, q: Any) -> None:
    """Write r + max p·v of every pair into q: the loop of `VALUES` for the type of `sets`."""
    VALUES[type(sets)](sets, v, rewards, q)


@overload(values)  # type: ignore[untyped-decorator]
def _values_of_type(sets: Any, v: Any, rewards: Any, q: Any) -> Callable[..., None]:  # noqa: ARG001
    return VALUES[sets.instance_class]


@kernel
def set_values(sets: ConfidenceSet, v: NDArray[Any], rewards: NDArray[Any], q: NDArray[Any]) -> None:
    """Write r + max p·v of every pair into q."""
    values(sets, v, rewards, q)


@kernel
def set_sweeps(
    sets: ConfidenceSet,
    v: NDArray[Any],
    q: NDArray[Any],
    best: NDArray[Any],
    rewards: NDArray[Any],
    limits: Any,
    max_sweeps: int,
    resume: bool,
) -> tuple[int, float, float, float, bool]:
    """Up to `max_sweeps` sweeps; returns their number, the bracket, the slack and whether it is narrow enough.

    `limits` is a SweepLimits as a plain tuple, which is quicker to hand over from Python. With `resume`, v and q belong
    together already, so that the first thing to do is a step; on return they do.
    """
    limits = SweepLimits(*limits)
    low, high, slack = -np.inf, np.inf, 0.0
    ceiling = ceiling_of(best.min(), limits.span)
    for n in range(max_sweeps):
        if resume or n > 0:
            relax(v, best, ceiling, limits.damping, limits.span)
        values(sets, v, rewards, q)
        low, high, ceiling = improve(q, v, limits.n_actions, limits.span, best)
        slack = slack_at(limits.slack_scale, v.max(), limits.reward_scale)
        if is_narrow(low, high, slack, limits.precision):
            return n + 1, low, high, slack, True
    return max_sweeps, low, high, slack, False
