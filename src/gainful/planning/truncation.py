"""T_c v = min{Lv, min Lv + c}, the operator of ScOpt (Fruit et al. 2018): the one place where it cuts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful._compiled import inlined


@inlined
def ceiling_of(least: float, span: float) -> float:
    """Where T_c cuts, given `least` = min Lv and c = `span`."""
    return least + span


@inlined
def truncate(value: float, ceiling: float) -> float:
    """T_c v(s), given Lv(s)."""
    return min(value, ceiling)


@inlined
def truncated_range(w: Any, v: Any, ceiling: float) -> tuple[float, float]:
    """The least and the largest of T_c v - v, given w = Lv."""
    low, high = np.inf, -np.inf
    for s in range(v.size):
        gap = truncate(w[s], ceiling) - v[s]
        low, high = min(low, gap), max(high, gap)
    return low, high
