"""The part of a sweep that all extended operators share: maximum over actions, truncation, bracket, damped step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.planning.truncation import ceiling_of, truncate, truncated_range


@kernel
def improve(
    q: NDArray[Any], v: NDArray[Any], n_actions: int, span: float, best: NDArray[Any]
) -> tuple[float, float, float]:
    """best(s) = max_a q(s,a); returns min and max of (Tv - v), T the operator cut at min best + span, and that cut."""
    least = np.inf
    for s in range(v.size):
        top = q[s * n_actions]
        for a in range(1, n_actions):
            top = max(top, q[s * n_actions + a])
        best[s] = top
        least = min(least, top)
    ceiling = ceiling_of(least, span)
    low, high = truncated_range(best, v, ceiling)
    return low, high, ceiling


@kernel
def relax(v: NDArray[Any], best: NDArray[Any], ceiling: float, damping: float, span: float) -> float:
    """V <- v + damping·(Tv - v), then min v = 0 and v <= span; returns max v."""
    for s in range(v.size):
        v[s] = relaxed(v[s], best[s], ceiling, damping)
    top: float = project(v, span)
    return top


@inlined
def relaxed(old: float, best: float, ceiling: float, damping: float) -> float:
    """V(s) + damping·(Tv(s) - v(s)), given Lv(s)."""
    return old + damping * (truncate(best, ceiling) - old)


@kernel
def project(v: NDArray[Any], span: float) -> float:
    """Shift v to min v = 0 and cut it at `span`; returns max v."""
    least = v.min()
    top = 0.0
    for s in range(v.size):
        v[s] = truncate(v[s] - least, span)
        top = max(top, v[s])
    return top
