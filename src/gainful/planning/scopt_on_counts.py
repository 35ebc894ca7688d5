"""ScOpt on an MDP estimated from counts, as SCAL+ plans: no copy of the model, no allocation, one compiled call."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.planning.plan import UNIT_ROUNDOFF


@kernel
def scopt_on_counts(
    begin: NDArray[Any], length: NDArray[Any], next_state: NDArray[Any], count: NDArray[Any], visits: NDArray[Any],
    r: NDArray[Any], n_actions: int, attractive: int, span: float, target: float, max_sweeps: int,
    v: NDArray[Any], w: NDArray[Any], act: NDArray[Any],
) -> tuple[int, float, float, float, bool]:  # fmt: skip
    """Iterate T_c on p̂(s'|s,a) = (N(s,a,s') + 1{s' = s̄}) / (N(s,a) + 1) with rewards r ≥ 0, from v.

    v is first cut to span c. The iteration is undamped, v ← T_c v - (T_c v)(s̄): p̂ moves to s̄ = `attractive` from
    everywhere, so T_c contracts. Returns sweeps, the range of T_c v - v, its rounding slack, and whether the range,
    widened by the slack, is at most `target`; v is the vector of that test, w = Lv not yet cut, act its greedy actions
    (lowest first).
    """
    n = v.size
    lowest, max_reward, support = v[0], 0.0, 0
    for s in range(n):
        lowest = min(lowest, v[s])
    for s in range(n):
        v[s] = min(v[s], lowest + span)
    for k in range(r.size):
        if r[k] > -np.inf:  # else the state does not have this action
            max_reward = max(max_reward, abs(r[k]))
        support = max(support, length[k])
    done = 0
    while True:
        lowest, largest = np.inf, 0.0
        for s in range(n):
            best, best_action = -np.inf, 0
            for a in range(n_actions):
                k = s * n_actions + a
                total = v[attractive]
                first = np.uint64(begin[k])
                for j in range(first, first + np.uint64(length[k])):
                    total += count[j] * v[next_state[j]]
                q = r[k] + total / (visits[k] + 1)
                if q > best:
                    best, best_action = q, a
            w[s], act[s] = best, best_action
            lowest = min(lowest, best)
            largest = max(largest, abs(v[s]))
        done += 1
        ceiling = lowest + span
        low, high = np.inf, -np.inf
        for s in range(n):
            gap = min(w[s], ceiling) - v[s]
            low, high = min(low, gap), max(high, gap)
        slack = 2.0 * (support + 6) * UNIT_ROUNDOFF * (largest + max_reward)
        met = high - low + 2.0 * slack <= target
        if met or done >= max_sweeps or high - low <= 2.0 * slack:
            return done, low, high, slack, met
        pin = min(w[attractive], ceiling)
        for s in range(n):
            v[s] = min(w[s], ceiling) - pin


@kernel
def expected_values(
    begin: NDArray[Any], length: NDArray[Any], next_state: NDArray[Any], count: NDArray[Any], visits: NDArray[Any],
    attractive: int, v: NDArray[Any], out: NDArray[Any],
) -> None:  # fmt: skip
    """p̂(·|s,a)·v of every pair: what the copies with reward 0 are worth."""
    for k in range(visits.size):
        total = v[attractive]
        for j in range(begin[k], begin[k] + length[k]):
            total += count[j] * v[next_state[j]]
        out[k] = total / (visits[k] + 1)
