"""Compiled Bellman sweeps over sparse rows: the loops every planner is made of.

Arrays: `ptr` uint64 (S*A+1), `idx` uint32 and `p` float64 per transition, `r` float64 (S*A), `v` and `w` float64 (S),
`act` int64 (S). States `first` … `last`-1 are swept, so that threads can share a sweep: w is a function of v alone
and no result depends on how the states were divided.
Unsigned integers spare the wrap-around test of every access; four partial sums hide the latency of additions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Pointers = NDArray[np.uint64]
Indices = NDArray[np.uint32]


@inlined
def row_dot(p: Floats, idx: Indices, v: Floats, begin: int, end: int) -> float:
    """p(·|s,a)·v for the row that occupies entries `begin` … `end`-1."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    sum0, sum1, sum2, sum3 = 0.0, 0.0, 0.0, 0.0
    j = begin
    while j + four <= end:
        sum0 += p[j] * v[idx[j]]
        sum1 += p[j + one] * v[idx[j + one]]
        sum2 += p[j + two] * v[idx[j + two]]
        sum3 += p[j + three] * v[idx[j + three]]
        j += four
    while j < end:
        sum0 += p[j] * v[idx[j]]
        j += one
    return (sum0 + sum1) + (sum2 + sum3)


@kernel
def sweep(
    ptr: Pointers, idx: Indices, p: Floats, r: Floats, n_actions: int, v: Floats, first: int, last: int, w: Floats, act: Ints
) -> tuple[float, float]:
    """w = Lv and its greedy actions (ties to the lowest); returns the range of Lv - v.

    Lv(s) = max_a { r(s,a) + p(·|s,a)·v } over the actions whose row is not empty.
    """
    low, high = np.inf, -np.inf
    end = ptr[first * n_actions]
    for s in range(first, last):
        best, best_action = -np.inf, np.uint64(0)
        for a in range(n_actions):
            k = s * n_actions + a
            begin = end
            end = ptr[k + np.uint64(1)]
            q = r[k] + row_dot(p, idx, v, begin, end)
            if q > best and begin < end:
                best, best_action = q, a
        w[s], act[s] = best, best_action
        gap = best - v[s]
        low, high = min(low, gap), max(high, gap)
    return low, high


@kernel
def lazy_sweep(
    ptr: Pointers, idx: Indices, p: Floats, r: Floats, n_actions: int, v: Floats, first: int, last: int, w: Floats, act: Ints,
    keys: Floats, risen: float, margin: float,
) -> tuple[float, float]:  # fmt: skip
    """`sweep`, passing over pairs proven not to be the best (temporary action elimination).

    Let `risen` be the sum over all changes of v so far of max_s Δv(s). A pair computed once as q, when the sum stood
    at u, is at most q - u + risen now (p sums to 1), and keys[k] = q - u. If that is below the value of the
    incumbent action, less a `margin` for rounding, the row need not be read: w, act and the range returned are
    those of `sweep`. Start with keys = inf; the incumbent's own key is kept at -inf, so that one test per state
    decides. Cf. Hastings 1976, Puterman 1994 sec. 8.5.6.
    """
    low, high = np.inf, -np.inf
    one = np.uint64(1)
    for s in range(first, last):
        base = s * n_actions
        incumbent = np.uint64(act[s])
        k = base + incumbent
        best = r[k] + row_dot(p, idx, v, ptr[k], ptr[k + one])
        keys[k] = -np.inf
        highest = -np.inf
        for a in range(n_actions):
            highest = max(highest, keys[base + a])
        if highest + risen + margin >= best:
            own, best_action = best, incumbent
            for a in range(n_actions):
                k = base + a
                if keys[k] + risen + margin < own:
                    continue
                begin, end = ptr[k], ptr[k + one]
                if begin == end:
                    keys[k] = -np.inf
                    continue
                q = r[k] + row_dot(p, idx, v, begin, end)
                keys[k] = q - risen
                if q > best or (q == best and a < best_action):
                    best, best_action = q, a
            if best_action != incumbent:
                keys[base + incumbent] = own - risen
                act[s] = best_action
        w[s] = best
        gap = best - v[s]
        low, high = min(low, gap), max(high, gap)
    return low, high


@kernel
def policy_rows(
    ptr: Pointers, idx: Indices, p: Floats, r: Floats, n_actions: int, act: Ints, ptr_out: Pointers, idx_out: Indices, p_out: Floats, r_out: Floats
) -> None:  # fmt: skip
    """Copy the rows of one action per state side by side, so that evaluating the policy reads nothing else."""
    to = np.uint64(0)
    one = np.uint64(1)
    for s in range(np.uint64(act.size)):
        k = s * n_actions + np.uint64(act[s])
        ptr_out[s] = to
        r_out[s] = r[k]
        for j in range(ptr[k], ptr[k + one]):
            idx_out[to], p_out[to] = idx[j], p[j]
            to += one
    ptr_out[act.size] = to


@kernel
def policy_sweep(
    ptr: Pointers, idx: Indices, p: Floats, r: Floats, v: Floats, first: int, last: int, gaps: Floats
) -> tuple[float, float]:
    """gaps = r_π + P_π v - v for compact policy rows; returns its range."""
    low, high = np.inf, -np.inf
    end = ptr[first]
    for s in range(first, last):
        begin = end
        end = ptr[s + np.uint64(1)]
        gap = r[s] + row_dot(p, idx, v, begin, end) - v[s]
        gaps[s] = gap
        low, high = min(low, gap), max(high, gap)
    return low, high
