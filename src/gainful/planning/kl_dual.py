"""The maximum of q·v over a Kullback-Leibler ball around counted rows, from above, by its dual.

With M = max v and d = x + M - v, for every x > 0

    max{q·v : KL(p̄‖q) ≤ ρ} ≤ U(x) = M + x - E(x),  E(x) = exp(Σ p̄ ln d - ρ)

by Jensen's inequality, with equality at the best x ≥ 0. U is convex, U' = 1 - W·E and U'' = E·(W₂ - W²), W = Σ p̄/d,
W₂ = Σ p̄/d². Where U' ≥ 0, the law p̄·E/d with the rest of the mass, U', on a state of value M lies in the ball and is
worth U - U'·x. So one pass over a row gives an upper bound whatever x is, a lower bound, and a Newton step. Each pair
keeps its x between sweeps and between plans: mostly one pass is enough.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined, kernel
from gainful.planning.rounding import UNIT_ROUNDOFF

LOG_BLOCK = 512
"""Entries of rows whose logarithms are taken in one loop, short enough for the first cache."""
LEAST_X, MOST_X = 1e-9, 1e12
"""The range of x, in units of sp(v). Below it x moves a value by less than 1e-9·sp(v)."""
LOG_RANGE = 36.0
"""At least |ln(d/sp(v))| for x in that range."""
SMALLEST_SPAN = 1e-250
"""A span below which all values count as equal."""
NEWTON_ROUNDS = 60
"""Newton steps after which a pair is bisected."""
BISECTIONS = 200
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
"""The bits of sqrt(1/2): mantissas are taken between it and sqrt(2)."""


class DualRows(NamedTuple):
    """Rows of counts: pair k has `length[k]` next states from `begin[k]` on, `visits[k]` in all."""

    begin: Any
    length: Any
    next_state: Any
    count: Any
    visits: Any


class KLPairs(NamedTuple):
    """The ball of every pair, and what its last evaluation left; all (S*A,)."""

    rewards: Any
    """The optimistic rewards; -inf if the state does not have the action."""
    radius: Any
    """ρ; inf for a pair never visited."""
    level: Any
    """0 if the pair may move to all states, 1 if only to reachable ones."""
    x: Any
    """Where U was last improved; 0 if it never was."""
    key: Any
    """A bound on the value for the values v of the last evaluation, less the rise of v until then."""
    value: Any
    """The upper bound of the last evaluation."""
    gap: Any
    """value - gap is attained by a law in the ball; inf if no such law is known."""


class DualSpace(NamedTuple):
    """Working space."""

    distance: Any
    """(2, S) M - v, with M over all states and over the reachable ones."""
    highest: Any
    """(2,) those two M."""
    d: Any
    logs: Any
    inverses: Any
    todo: Any
    """(S*A,) the pairs to evaluate."""


class DualLimits(NamedTuple):
    """How well to solve."""

    span: Any
    """sp(v)."""
    rounding: Any
    """The relative error of an exponential of a mean of logarithms, for each term: `rounding_of(span)`."""
    tolerance: Any
    """How much above the maximum an upper bound may be."""
    margin: Any
    """How far apart the two bounds of a certified pair may be."""
    certify: Any
    """Whether both bounds are wanted."""
    rise: Any
    """How much v has risen at most, in the units of `KLPairs.key`."""


@inlined
def log_and_inverse(x: Any) -> tuple[Any, Any]:
    """Compute ln x and 1/x of a positive normal number, to about two units in the last place, with one division.

    There is no branch, so that loops over it are vectorised, and the bits are the same on every machine.
    """
    bits = np.float64(x).view(np.int64)
    k = (bits - np.int64(SQRT_HALF_BITS)) >> np.int64(52)
    m = np.int64(bits - (k << np.int64(52))).view(np.float64)  # x = m·2^k
    both = 1.0 / (x * (m + 1.0))
    s = (m - 1.0) * (x * both)
    z = s * s
    tail = 1.0 / 15.0 + z * (1.0 / 17.0 + z * (1.0 / 19.0 + z * (1.0 / 21.0)))
    series = 1.0 / 3.0 + z * (
        1.0 / 5.0 + z * (1.0 / 7.0 + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * (1.0 / 13.0 + z * tail))))
    )
    return k * LN2_HIGH + (2.0 * s + (2.0 * s * z * series + k * LN2_LOW)), (m + 1.0) * both


@kernel
def logs_and_inverses(d: Any, logs: Any, inverses: Any, n: int) -> None:
    """The same of the first n entries of d."""
    for i in range(n):
        logs[i], inverses[i] = log_and_inverse(d[i])


@inlined
def rounding_of(span: float) -> float:
    """4·2⁻⁵³ times the most that |ln d| can be, with d in units of reward."""
    return 4.0 * UNIT_ROUNDOFF * (LOG_RANGE + abs(math.log(max(span, SMALLEST_SPAN))))


@inlined
def dual_slack(length: int, x: float, limits: DualLimits) -> float:
    """How far rounding may move U, or U'·x, of a row of this length: E is at most x + sp(v)."""
    slack: float = (length + 16) * limits.rounding * (x + limits.span)
    return slack


@inlined
def next_x(x: float, slope: float, curve: float, limits: DualLimits) -> tuple[float, bool]:
    """A Newton step of U', and whether x itself was good enough.

    The step ends a little to the right of the root, where the lower bound exists.
    """
    if not (curve > 0.0 and abs(slope) < 0.5):
        return (0.3 * x if slope > 0.0 else 3.0 * x), False
    step = slope / curve
    good = not limits.certify and abs(slope * step) <= limits.tolerance
    aside = min(0.4 * limits.margin / (curve * x), 0.05 * x)
    return min(max(x - step + aside, 0.2 * x), 5.0 * x), good


@inlined
def write_bounds(pairs: KLPairs, k: int, bound: float, slope: float, slack: float, rise: float) -> None:
    """Keep what an evaluation at x[k] found: U, not yet widened by the slack, and U'."""
    pairs.value[k] = pairs.rewards[k] + (bound + slack)
    pairs.key[k] = pairs.value[k] - rise
    pairs.gap[k] = slope * pairs.x[k] + 4.0 * slack if slope >= 0.0 else np.inf


@inlined
def gather(rows: DualRows, pairs: KLPairs, space: DualSpace, first: int, n: int) -> tuple[int, Any]:
    """Write d of as many pairs from number `first` on as fit into one block; the number after them, and the size."""
    last, size = first, np.uint64(0)
    while last < n:
        k = space.todo[last]
        if last > first and size + np.uint64(rows.length[k]) > np.uint64(LOG_BLOCK):
            break
        begin = np.uint64(rows.begin[k])
        x, level = pairs.x[k], pairs.level[k]
        for j in range(begin, begin + np.uint64(rows.length[k])):
            space.d[size] = x + space.distance[level, rows.next_state[j]]
            size += np.uint64(1)
        last += 1
    return last, size


@kernel
def evaluate_pairs(rows: DualRows, pairs: KLPairs, space: DualSpace, limits: DualLimits, n: int) -> int:
    """Evaluate the first n pairs of `space.todo` at their x, and move x by a Newton step.

    Leaves those that are not good enough yet at the beginning of `space.todo`, and returns their number.
    """
    n_again = 0
    first: Any = np.int64(0)  # a plain 0 would be a type of its own, and compile its callees twice
    least = LEAST_X * limits.span
    while first < n:
        last, size = gather(rows, pairs, space, first, n)
        logs_and_inverses(space.d, space.logs, space.inverses, size)
        at = np.uint64(0)
        for i in range(first, last):
            k = space.todo[i]
            x, begin = pairs.x[k], np.uint64(rows.begin[k])
            log_sum, w, w2 = 0.0, 0.0, 0.0
            for j in range(begin, begin + np.uint64(rows.length[k])):
                count = np.float64(rows.count[j])
                log_sum += count * space.logs[at]
                term = count * space.inverses[at]
                w += term
                w2 += term * space.inverses[at]
                at += np.uint64(1)
            share = 1.0 / rows.visits[k]
            w *= share
            w2 *= share
            e = math.exp(log_sum * share - pairs.radius[k])
            slope = 1.0 - w * e
            slack = dual_slack(rows.length[k], x, limits)
            write_bounds(pairs, k, space.highest[pairs.level[k]] + (x - e), slope, slack, limits.rise)
            done = pairs.gap[k] <= max(limits.margin, 8.0 * slack)
            if slope >= 0.0 and (x <= least or (done and limits.certify)):
                continue
            new, good = next_x(x, slope, e * (w2 - w * w), limits)
            pairs.x[k] = min(max(new, least), MOST_X * limits.span)
            if not (done or good) and pairs.x[k] != x:
                space.todo[n_again] = k
                n_again += 1
        first = last
    return n_again


@kernel
def dual_slope(rows: DualRows, pairs: KLPairs, space: DualSpace, k: int, x: float) -> tuple[float, float]:
    """U(x) and U'(x) of one pair."""
    log_sum, w = 0.0, 0.0
    level, begin = pairs.level[k], np.uint64(rows.begin[k])
    for j in range(begin, begin + np.uint64(rows.length[k])):
        log, inverse = log_and_inverse(x + space.distance[level, rows.next_state[j]])
        log_sum += rows.count[j] * log
        w += rows.count[j] * inverse
    share = 1.0 / rows.visits[k]
    e = math.exp(log_sum * share - pairs.radius[k])
    return space.highest[level] + (x - e), 1.0 - w * share * e


@kernel
def bisect(rows: DualRows, pairs: KLPairs, space: DualSpace, limits: DualLimits, k: int) -> None:
    """Evaluate one pair where Newton's method did not settle: halve ln x where U' changes its sign."""
    low, high = LEAST_X * limits.span, limits.span
    bound, slope = dual_slope(rows, pairs, space, k, low)
    if slope >= 0.0:
        high = low
    else:
        bound, slope = dual_slope(rows, pairs, space, k, high)
        while slope < 0.0 and high < MOST_X * limits.span:
            low, high = high, 8.0 * high
            bound, slope = dual_slope(rows, pairs, space, k, high)
    for _ in range(BISECTIONS):
        if high <= low * (1.0 + 1e-15) or (slope >= 0.0 and slope * high <= 0.5 * limits.margin):
            break
        middle = math.sqrt(low) * math.sqrt(high)
        middle_bound, middle_slope = dual_slope(rows, pairs, space, k, middle)
        if middle_slope >= 0.0:
            high, bound, slope = middle, middle_bound, middle_slope
        else:
            low = middle
    pairs.x[k] = high
    write_bounds(pairs, k, bound, slope, dual_slack(rows.length[k], high, limits), limits.rise)


@kernel
def solve_pairs(rows: DualRows, pairs: KLPairs, space: DualSpace, limits: DualLimits, n: int) -> None:
    """Evaluate the first n pairs of `space.todo` until each is good enough."""
    hard: Any = np.int64(0)
    for i in range(n):
        k = space.todo[i]
        if pairs.radius[k] == np.inf or limits.span < SMALLEST_SPAN:
            write_bounds(pairs, k, space.highest[pairs.level[k]], 0.0, 0.0, limits.rise)
            continue
        if not pairs.x[k] > 0.0:  # where x is for a small ball and a standard deviation of sp(v)
            pairs.x[k] = limits.span * (0.5 + 0.7 / math.sqrt(pairs.radius[k]))
        pairs.x[k] = min(max(pairs.x[k], LEAST_X * limits.span), MOST_X * limits.span)
        space.todo[hard] = k
        hard += 1
    for _ in range(NEWTON_ROUNDS):
        if hard == 0:
            return
        hard = evaluate_pairs(rows, pairs, space, limits, hard)
    for i in range(hard):
        bisect(rows, pairs, space, limits, space.todo[i])


@kernel
def measure(v: Any, reachable: Any, space: DualSpace) -> float:
    """Write M - v for both kinds of pairs; returns sp(v)."""
    lowest, highest, highest_reachable = np.inf, -np.inf, -np.inf
    for s in range(v.size):
        lowest, highest = min(lowest, v[s]), max(highest, v[s])
        if reachable[s]:
            highest_reachable = max(highest_reachable, v[s])
    space.highest[0], space.highest[1] = highest, highest_reachable
    for s in range(v.size):
        space.distance[0, s] = highest - v[s]
        space.distance[1, s] = highest_reachable - v[s]
    return float(highest - lowest)
