"""The sweeps of PMEVI over any confidence set: v ← v + θ(Γ𝓛v - v), 𝓛 mitigated by β (Boone & Zhang 2024).

𝓛v(s) = max_a [r̃ + min{max_{p in set} p·v, p̄·v + β}]. Where neither Γ nor β changes anything, the bits are those of
`planning.set_sweeps`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.planning.improvement import improve, relax
from gainful.planning.order_projection import BiasConstraint, mitigated, project_onto
from gainful.planning.rounding import is_narrow, slack_at
from gainful.planning.set_sweeps import ConfidenceSet, SweepLimits, values
from gainful.planning.truncation import truncated_range


@kernel
def mitigate_all(within: BiasConstraint, rewards: Any, v: Any, q: Any) -> None:
    """Cut the value of every pair at r̃ + p̄·v + β."""
    within = BiasConstraint(*within)
    for k in range(q.size):
        q[k] = min(q[k], mitigated(within, rewards, v, k))


@kernel
def projected_set_sweeps(
    sets: ConfidenceSet,
    within: BiasConstraint,
    v: NDArray[Any],
    q: NDArray[Any],
    best: NDArray[Any],
    rewards: NDArray[Any],
    limits: Any,
    batch: tuple[int, bool],
) -> tuple[int, float, float, float, bool]:
    """`set_sweeps` with Γ and β; `batch` is the number of sweeps, and whether v and q belong together already."""
    limits, within = SweepLimits(*limits), BiasConstraint(*within)
    max_sweeps, resume = batch
    space = np.empty(v.size)
    low, high, slack = -np.inf, np.inf, 0.0
    for n in range(max_sweeps):
        if resume or n > 0:
            relax(v, best, np.inf, limits.damping, np.inf)
        values(sets, v, rewards, q)
        mitigate_all(within, rewards, v, q)
        improve(q, v, limits.n_actions, np.inf, best)
        project_onto(best, within.differences, space)
        low, high = truncated_range(best, v, np.inf)
        slack = slack_at(limits.slack_scale, v.max(), limits.reward_scale)
        if is_narrow(low, high, slack, limits.precision):
            return n + 1, low, high, slack, True
    return max_sweeps, low, high, slack, False
