"""The best row of a Kullback-Leibler ball.

max { p·v : Σ p̄ ln(p̄/p) <= ρ } (Filippi, Cappé & Garivier 2010, alg. 2). With ν above every value of the row and
f(ν) = Σ p̄ ln(ν - v) + ln Σ p̄/(ν - v), decreasing, the best row is p(s) = (1-r) (p̄(s)/(ν-v(s))) / Σ p̄/(ν-v):
- if a state outside the row has the largest value v* of all and f(v*) < ρ, then ν = v* and it receives
  r = 1 - exp(f(v*) - ρ);
- otherwise r = 0 and f(ν) = ρ.

Every sum is written in u = (v̄ - v)/(ν - v̄), v̄ = p̄·v, so that a small ρ (large ν) loses nothing to cancellation:
f = Σ p̄ [ln(1+u) - u] + ln(1 + Σ p̄ u²/(1+u)). The root is found by Newton steps in ln(ν - max v) inside a bracket.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.planning.optimistic_rows import OptimisticRows
from gainful.planning.ordering import best_state

LOG_SMALLEST = -690.0  # ν - max v below exp(this)·(max v - v̄): the value is max v to the last bit
MAX_STEPS = 100


class KLSet(NamedTuple):
    """Kullback-Leibler balls around CSR rows."""

    indptr: Any
    indices: Any
    probabilities: Any
    radius: Any
    """(S*A,)."""
    roots: Any
    """(S*A,) where each search ended, NaN at first: the next one starts there."""
    mask: Any
    """(levels, S) sets of next states."""
    level: Any
    """(S*A,): pair k may move to mask[level[k]]."""


@kernel
def _curve(
    v: NDArray[Any], indices: NDArray[Any], p: NDArray[Any], begin: int, end: int, top: float, unit: float, x: float
) -> tuple[float, float, float]:
    """At ν = top + x·unit: f, its derivative in ln x, and top - p·v for the tilted row p̄/(ν - v), in `unit`s.

    `unit` is top - p̄·v > 0, so that distances from the top average 1.
    """
    y = 1.0 + x
    logs, squares, tilt, tilt2 = 0.0, 0.0, 0.0, 0.0
    weight, distance = 0.0, 0.0
    for j in range(begin, end):
        if p[j] <= 0.0:
            continue
        d = (top - v[indices[j]]) / unit
        t = (x + d) / y  # 1 + u
        u = (d - 1.0) / y
        if abs(u) < 0.5:
            logs += p[j] * (math.log1p(u) - u)
        else:
            logs += p[j] * (math.log(t) - u)
        z = u / t
        squares += p[j] * u * z
        tilt += p[j] * z
        tilt2 += p[j] * z * z
        weight += p[j] / t
        distance += p[j] / t * d
    f = logs + math.log1p(squares)
    slope = -(x / y) * (tilt2 - tilt * tilt) / weight
    return f, slope, distance / weight


@kernel
def kl_best(
    v: NDArray[Any],
    highest: float,
    indices: NDArray[Any],
    p: NDArray[Any],
    begin: int,
    end: int,
    radius: float,
    guess: float,
) -> tuple[float, float, float, float, float]:
    """Value, ln(1-r), ν - top, top - p̄·v and ln x of the best row, x = (ν - top)/(top - p̄·v), top = max v in the row.

    `highest` is the largest v of all, `guess` an earlier ln x or NaN.
    """
    top = -np.inf
    for j in range(begin, end):
        if p[j] > 0.0:
            top = max(top, v[indices[j]])
    gap = highest - top
    if radius == np.inf:
        return highest, -np.inf, 0.0, 0.0, guess
    unit, mass = 0.0, 0.0
    for j in range(begin, end):
        unit += p[j] * (top - v[indices[j]])
        mass += p[j]
    unit /= mass
    if unit <= 0.0:  # all values of the row are equal
        kept = -radius if gap > 0.0 else 0.0
        return top - math.expm1(kept) * gap, kept, 1.0, 0.0, guess
    if radius == 0.0:
        return top - unit, 0.0, np.inf, unit, guess
    lowest = LOG_SMALLEST
    if gap > 0.0:
        f, slope, distance = _curve(v, indices, p, begin, end, top, unit, gap / unit)
        if f < radius:
            moved, kept = -math.expm1(f - radius), math.exp(f - radius)
            return top + (moved * gap - kept * (distance * unit)), f - radius, gap, unit, guess
        lowest = math.log(gap / unit)
    variance = 0.0
    for j in range(begin, end):
        d = (top - v[indices[j]]) / unit - 1.0
        variance += p[j] * d * d
    # f <= variance/(x(1+x)), which gives an x with f(x) <= radius
    ratio = variance / radius
    x = 2.0 * ratio / (1.0 + math.sqrt(1.0 + 4.0 * ratio)) * (1.0 + 1e-12)
    if not x < 1e300:  # so small a radius changes nothing
        return top - unit, 0.0, np.inf, unit, guess
    largest = math.log(x) if x > 0.0 else lowest
    if largest <= lowest:
        largest = lowest
    at = guess if lowest < guess < largest else largest
    enough = 1e-9 + 1e-15 / math.sqrt(radius)
    for _ in range(MAX_STEPS):
        f, slope, distance = _curve(v, indices, p, begin, end, top, unit, math.exp(at))
        if f > radius:
            lowest = at
        else:
            largest = at
        step = (f - radius) / -slope if slope < 0.0 else np.inf
        if abs(step) <= enough:
            at += step
            break
        if lowest < at + step < largest:
            at += step
        else:
            at = 0.5 * (lowest + largest)
        if largest - lowest <= 1e-15 * max(1.0, abs(at)):
            break
    f, slope, distance = _curve(v, indices, p, begin, end, top, unit, math.exp(at))
    return top - distance * unit, 0.0, math.exp(at) * unit, unit, at


def kl_values(sets: Any, v: Any, rewards: Any, q: Any) -> None:
    """q[k] = rewards[k] + max over the ball of p·v, -inf for an empty row."""
    indptr, indices, p, radius, roots, mask, level = sets
    tops = np.empty(mask.shape[0])
    for m in range(mask.shape[0]):
        tops[m] = v[best_state(v, mask[m])]
    for k in range(indptr.size - 1):
        begin, end = indptr[k], indptr[k + 1]
        if begin == end:
            q[k] = -np.inf
            continue
        value, _, _, _, root = kl_best(v, tops[level[k]], indices, p, begin, end, radius[k], roots[k])
        roots[k] = root
        q[k] = rewards[k] + value


@kernel
def kl_rows(sets: KLSet, v: NDArray[Any], pairs: NDArray[Any], out: OptimisticRows) -> int:
    """The best row of each of `pairs` (-1: none), as CSR; returns the size needed, writing what fits."""
    indptr, indices, p, radius, roots, mask, level = sets
    starts, to, given = out
    size = 0
    for row in range(pairs.size):
        starts[row] = size
        k = pairs[row]
        if k < 0:
            continue
        begin, end = indptr[k], indptr[k + 1]
        best = best_state(v, mask[level[k]])
        _, kept, x, unit, _ = kl_best(v, v[best], indices, p, begin, end, radius[k], roots[k])
        top = -np.inf
        for j in range(begin, end):
            if p[j] > 0.0:
                top = max(top, v[indices[j]])
        weight = 0.0
        for j in range(begin, end):
            if p[j] > 0.0 and kept > -np.inf:
                weight += p[j] if unit == 0.0 or x == np.inf else p[j] * (unit / (x + (top - v[indices[j]])))
        for j in range(begin, end):
            if p[j] > 0.0 and kept > -np.inf:
                share = p[j] if unit == 0.0 or x == np.inf else p[j] * (unit / (x + (top - v[indices[j]])))
                if size < to.size:
                    to[size], given[size] = indices[j], math.exp(kept) * (share / weight)
                size += 1
        if kept < 0.0:
            if size < to.size:
                to[size], given[size] = best, -math.expm1(kept)
            size += 1
    starts[pairs.size] = size
    return size
