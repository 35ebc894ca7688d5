"""Compiled Bellman sweeps over sparse rows: the loops every planner is made of.

Arrays: `ptr` uint64 (S*A+1), `idx` uint32 and `p` float64 per transition, `r` float64 (S*A), `v` and `w` float64 (S),
`act` int64 (S). States `first` … `last`-1 are swept, so that threads can share a sweep: w is a function of v alone
and no result depends on how the states were divided.
Unsigned integers spare the wrap-around test of every access; four partial sums hide the latency of additions.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Pointers: TypeAlias = NDArray[np.uint64]
Indices: TypeAlias = NDArray[np.uint32]
Unsigned: TypeAlias = Any  # np.uint64: to a type checker it is not an int, and arithmetic with one is not np.uint64


@inlined
def row_dot(p: Floats, idx: Indices, v: Floats, begin: Unsigned, end: Unsigned) -> float:
    """p(·|s,a)·v for the row that occupies entries `begin` … `end`-1."""
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    sum0: Any = 0.0
    sum1, sum2, sum3 = 0.0, 0.0, 0.0
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
    total: float = (sum0 + sum1) + (sum2 + sum3)
    return total


@kernel
def sweep(
    ptr: Pointers,
    idx: Indices,
    p: Floats,
    r: Floats,
    n_actions: Unsigned,
    v: Floats,
    first: Unsigned,
    last: Unsigned,
    w: Floats,
    act: Ints,
) -> tuple[float, float]:
    """W = Lv and its greedy actions (ties to the lowest); returns the range of Lv - v.

    Lv(s) = max_a { r(s,a) + p(·|s,a)·v } over the actions whose row is not empty.
    """
    low, high = np.inf, -np.inf
    q = np.empty(n_actions)
    end = ptr[first * n_actions]
    for s in range(first, last):
        for a in range(n_actions):
            k = s * n_actions + a
            begin = end
            end = ptr[k + np.uint64(1)]
            q[a] = r[k] + row_dot(p, idx, v, begin, end) if begin < end else -np.inf
        best, best_action = q[0], np.int64(0)
        for a in range(np.uint64(1), n_actions):  # without a branch: which action is best cannot be foreseen
            best_action += np.int64(q[a] > best) * (np.int64(a) - best_action)
            best = max(best, q[a])
        w[s], act[s] = best, best_action
        gap = best - v[s]
        low, high = min(low, gap), max(high, gap)
    return low, high


@kernel
def keyed_sweep(
    ptr: Pointers, idx: Indices, p: Floats, r: Floats, n_actions: Unsigned, v: Floats,
    first: Unsigned, last: Unsigned, w: Floats, act: Ints,
    keys: Floats, runner_up: Floats, risen: float,
) -> tuple[float, float]:  # fmt: skip
    """`sweep` that also leaves behind what `lazy_sweep` needs to know of each pair."""
    low, high = np.inf, -np.inf
    end = ptr[first * n_actions]
    for s in range(first, last):
        best, second = -np.inf, -np.inf
        best_action: Unsigned = np.uint64(0)
        for a in range(n_actions):
            k = s * n_actions + a
            begin = end
            end = ptr[k + np.uint64(1)]
            q = r[k] + row_dot(p, idx, v, begin, end)
            if begin == end:
                q = -np.inf
            keys[k] = q - risen
            second = max(second, min(q, best))
            if q > best:
                best, best_action = q, a
        w[s], act[s], runner_up[s] = best, best_action, second - risen
        gap = best - v[s]
        low, high = min(low, gap), max(high, gap)
    return low, high


@inlined
def _contest(
    ptr: Pointers, idx: Indices, p: Floats, r: Floats, n_actions: Unsigned, v: Floats, s: Unsigned, act: Ints,
    own_ptr: Pointers, own_len: Pointers, own_idx: Indices, own_p: Floats, own_r: Floats,
    keys: Floats, runner_up: Floats, risen: float, margin: float, own: float,
) -> float:  # fmt: skip
    """Lv(s), reading the rows that may beat the incumbent of value `own`; a new incumbent's row is put in place."""
    one = np.uint64(1)
    base = s * n_actions
    incumbent = np.uint64(act[s])
    best = own
    best_action: Unsigned = incumbent
    for a in range(n_actions):
        k = base + a
        if a == incumbent or keys[k] + risen + margin < own:
            continue
        begin, end = ptr[k], ptr[k + one]
        if begin == end:
            keys[k] = -np.inf
            continue
        q = r[k] + row_dot(p, idx, v, begin, end)
        keys[k] = q - risen
        if q > best or (q == best and a < best_action):
            best, best_action = q, a
    keys[base + incumbent] = own - risen
    second = -np.inf
    for a in range(n_actions):
        if a != best_action:
            second = max(second, keys[base + a])
    runner_up[s] = second
    if best_action != incumbent:
        k = base + best_action
        act[s], own_r[s] = best_action, r[k]
        begin, to = ptr[k], own_ptr[s]
        own_len[s] = ptr[k + one] - begin
        for j in range(own_len[s]):
            own_idx[to + j], own_p[to + j] = idx[begin + j], p[begin + j]
    return best


@kernel
def lazy_sweep(
    ptr: Pointers, idx: Indices, p: Floats, r: Floats, n_actions: Unsigned, v: Floats,
    first: Unsigned, last: Unsigned, w: Floats, act: Ints,
    own_ptr: Pointers, own_len: Pointers, own_idx: Indices, own_p: Floats, own_r: Floats,
    keys: Floats, runner_up: Floats, risen: float, margin: float,
) -> tuple[float, float]:  # fmt: skip
    """`sweep`, passing over pairs proven not to be the best (temporary action elimination).

    Let `risen` be the sum over all changes of v so far of max_s Δv(s). A pair computed once as q, when the sum stood
    at u, is at most q - u + risen now (p sums to 1), and keys[k] = q - u. If that is below the value of the
    incumbent action, less a `margin` for rounding, the row need not be read: w, act and the range returned are
    those of `sweep`. `runner_up[s]` is the largest key of the other actions, so that one test per state decides.
    The incumbents' rows lie side by side in own_ptr … own_r, each with room for any row of its state, so that a sweep
    in which nothing changes reads them in order and nothing else. Needs a `keyed_sweep` before, and the rows of `act`
    in place (`own_rows`); pays when few states are contested, since a contest is a branch the processor cannot foresee.
    Cf. Hastings 1976, Puterman 1994 sec. 8.5.6.
    """
    low, high = np.inf, -np.inf
    for s in range(first, last):
        begin = own_ptr[s]
        best = own_r[s] + row_dot(own_p, own_idx, v, begin, begin + own_len[s])
        if runner_up[s] + risen + margin >= best:
            best = _contest(
                ptr, idx, p, r, n_actions, v, s, act, own_ptr, own_len, own_idx, own_p, own_r,
                keys, runner_up, risen, margin, best,
            )  # fmt: skip
        w[s] = best
        gap = best - v[s]
        low, high = min(low, gap), max(high, gap)
    return low, high


@kernel
def own_rows(
    ptr: Pointers, idx: Indices, p: Floats, r: Floats, n_actions: Unsigned, act: Ints,
    own_ptr: Pointers, own_len: Pointers, own_idx: Indices, own_p: Floats, own_r: Floats,
) -> None:  # fmt: skip
    """Copy the rows of the actions `act` into the places that own_ptr gives them."""
    one = np.uint64(1)
    for s in range(np.uint64(act.size)):
        k = s * n_actions + np.uint64(act[s])
        begin, to = ptr[k], own_ptr[s]
        own_len[s] = ptr[k + one] - begin
        own_r[s] = r[k]
        for j in range(own_len[s]):
            own_idx[to + j], own_p[to + j] = idx[begin + j], p[begin + j]


@kernel
def policy_sweep(
    own_ptr: Pointers, own_len: Pointers, own_idx: Indices, own_p: Floats, own_r: Floats,
    v: Floats, first: Unsigned, last: Unsigned, gaps: Floats,
) -> tuple[float, float]:  # fmt: skip
    """Gaps = r_π + P_π v - v for rows laid out by `own_rows`; returns its range."""
    low, high = np.inf, -np.inf
    for s in range(first, last):
        begin = own_ptr[s]
        gap = own_r[s] + row_dot(own_p, own_idx, v, begin, begin + own_len[s]) - v[s]
        gaps[s] = gap
        low, high = min(low, gap), max(high, gap)
    return low, high
