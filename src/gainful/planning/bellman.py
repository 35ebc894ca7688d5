"""Compiled Bellman sweeps over sparse rows: the loops every planner is made of.

`v` and `w` are float64 (S,), `act` int64 (S,). States `first` … `last`-1 are swept, so that threads can share a sweep:
w is a function of v alone and no result depends on how the states were divided.
Unsigned integers spare the wrap-around test of every access; four partial sums hide the latency of additions.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.mdp.model import MDP

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Indices: TypeAlias = NDArray[np.uint32]
Unsigned: TypeAlias = Any  # np.uint64: to a type checker it is not an int, and arithmetic with one is not np.uint64


class SparseModel(NamedTuple):
    """An MDP as the sweeps read it: CSR rows over pairs s*A + a, empty if a state does not have an action."""

    indptr: Any
    """uint64 (S*A+1,)."""
    indices: Any
    """uint32, the next state of each transition."""
    probabilities: Any
    """float64, one per transition."""
    rewards: Any
    """float64 (S*A,)."""
    n_actions: Any
    """uint64."""


class IncumbentRows(NamedTuple):
    """The rows of one action per state, side by side, each with room for any row of its state."""

    begin: Any
    length: Any
    indices: Any
    probabilities: Any
    rewards: Any


class Elimination(NamedTuple):
    """What `lazy_sweep` keeps about pairs that it has not read for a while."""

    keys: Any
    """(S*A,) the last value of each pair, less what v had risen by then."""
    runner_up: Any
    """(S,) the largest key of the actions that are not the incumbent."""
    risen: Any
    """The sum over all changes of v so far of max_s Δv(s)."""
    margin: Any
    """What rounding may add."""


class StoppingRule(NamedTuple):
    """How a loop of damped sweeps steps, v <- v + damping·(Tv - v), and when it stops."""

    damping: Any
    target: Any
    """The width of the bracket, rounding included, at which to stop."""
    roundoff: Any
    """Times (max|v| + max|r|), the rounding slack: see `rounding.slack_at`."""
    max_reward: Any
    """max|r|."""
    max_sweeps: Any


def sparse_model(mdp: MDP, rewards: Floats | None = None) -> SparseModel:
    """The rows of `mdp` with its own internal rewards, or with others (S*A,)."""
    r = mdp.pair_rewards if rewards is None else rewards
    return SparseModel(mdp.indptr.view(np.uint64), mdp.indices, mdp.probabilities, r, np.uint64(mdp.n_actions))


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
def sweep(model: SparseModel, v: Floats, first: Unsigned, last: Unsigned, w: Floats, act: Ints) -> tuple[float, float]:
    """W = Lv and its greedy actions (ties to the lowest); returns the range of Lv - v.

    Lv(s) = max_a { r(s,a) + p(·|s,a)·v } over the actions whose row is not empty.
    """
    ptr, idx, p, r, n_actions = model
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
    model: SparseModel, v: Floats, first: Unsigned, last: Unsigned, w: Floats, act: Ints, known: Elimination
) -> tuple[float, float]:
    """`sweep` that also leaves behind what `lazy_sweep` needs to know of each pair."""
    ptr, idx, p, r, n_actions = model
    keys, runner_up, risen, _ = known
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
    model: SparseModel,
    v: Floats,
    s: Unsigned,
    act: Ints,
    own: IncumbentRows,
    known: Elimination,
    own_value: float,
) -> float:
    """Lv(s), reading the rows that may beat the incumbent of value `own_value`; a new one's row is put in place."""
    ptr, idx, p, r, n_actions = model
    keys, runner_up, risen, margin = known
    one = np.uint64(1)
    base = s * n_actions
    incumbent = np.uint64(act[s])
    best = own_value
    best_action: Unsigned = incumbent
    for a in range(n_actions):
        k = base + a
        if a == incumbent or keys[k] + risen + margin < own_value:
            continue
        begin, end = ptr[k], ptr[k + one]
        if begin == end:
            keys[k] = -np.inf
            continue
        q = r[k] + row_dot(p, idx, v, begin, end)
        keys[k] = q - risen
        if q > best or (q == best and a < best_action):
            best, best_action = q, a
    keys[base + incumbent] = own_value - risen
    second = -np.inf
    for a in range(n_actions):
        if a != best_action:
            second = max(second, keys[base + a])
    runner_up[s] = second
    if best_action != incumbent:
        act[s] = best_action
        _put_in_place(model, s, base + best_action, own)
    return best


@inlined
def _put_in_place(model: SparseModel, s: Unsigned, k: Unsigned, own: IncumbentRows) -> None:
    """Copy row k to the place of state s."""
    begin, to = model.indptr[k], own.begin[s]
    own.length[s] = model.indptr[k + np.uint64(1)] - begin
    own.rewards[s] = model.rewards[k]
    for j in range(own.length[s]):
        own.indices[to + j], own.probabilities[to + j] = model.indices[begin + j], model.probabilities[begin + j]


@kernel
def lazy_sweep(
    model: SparseModel,
    v: Floats,
    first: Unsigned,
    last: Unsigned,
    w: Floats,
    act: Ints,
    own: IncumbentRows,
    known: Elimination,
) -> tuple[float, float]:
    """`sweep`, passing over pairs proven not to be the best (temporary action elimination).

    Let `risen` be the sum over all changes of v so far of max_s Δv(s). A pair computed once as q, when the sum stood
    at u, is at most q - u + risen now (p sums to 1), and keys[k] = q - u. If that is below the value of the
    incumbent action, less a `margin` for rounding, the row need not be read: w, act and the range returned are
    those of `sweep`. `runner_up[s]` is the largest key of the other actions, so that one test per state decides.
    The incumbents' rows lie side by side in `own`, so that a sweep
    in which nothing changes reads them in order and nothing else. Needs a `keyed_sweep` before, and the rows of `act`
    in place (`own_rows`); pays when few states are contested, since a contest is a branch the processor cannot foresee.
    Cf. Hastings 1976, Puterman 1994 sec. 8.5.6.
    """
    begin, length, idx, p, r = own
    runner_up, risen, margin = known.runner_up, known.risen, known.margin
    low, high = np.inf, -np.inf
    for s in range(first, last):
        best = r[s] + row_dot(p, idx, v, begin[s], begin[s] + length[s])
        if runner_up[s] + risen + margin >= best:
            best = _contest(model, v, s, act, own, known, best)
        w[s] = best
        gap = best - v[s]
        low, high = min(low, gap), max(high, gap)
    return low, high


@kernel
def own_rows(model: SparseModel, act: Ints, own: IncumbentRows) -> None:
    """Copy the rows of the actions `act` into the places that `own.begin` gives them."""
    for s in range(np.uint64(act.size)):
        _put_in_place(model, s, s * model.n_actions + np.uint64(act[s]), own)


@kernel
def policy_sweep(own: IncumbentRows, v: Floats, first: Unsigned, last: Unsigned, gaps: Floats) -> tuple[float, float]:
    """Gaps = r_π + P_π v - v for rows laid out by `own_rows`; returns its range."""
    begin, length, idx, p, r = own
    low, high = np.inf, -np.inf
    for s in range(first, last):
        gap = r[s] + row_dot(p, idx, v, begin[s], begin[s] + length[s]) - v[s]
        gaps[s] = gap
        low, high = min(low, gap), max(high, gap)
    return low, high
