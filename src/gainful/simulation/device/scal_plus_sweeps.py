"""The sweeps of SCAL+'s plans on a GPU: a thread of a block computes Lv(s) of its states, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful._compiled import inlined
from gainful.cuda_device import cuda, device_function, larger, lesser, together
from gainful.planning.bernstein_scopt import bernstein_value
from gainful.planning.estimated import EstimatedMDP, counted_values
from gainful.planning.rounding import counts_slack
from gainful.planning.scopt_on_counts import damped
from gainful.planning.truncation import ceiling_of, truncate
from gainful.simulation.device.runs import MOST_HALF
from gainful.simulation.device.scal_plus_space import (
    BERNSTEIN,
    DevicePlanConstants,
    PlacedRows,
    TeamSpace,
    count_of_actions,
    pitch_of,
    ratio,
    row_width,
    visits_at,
)
from gainful.simulation.device.teams import SWEEPS_PER_LAUNCH


@inlined
def pair_model(c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, k: int) -> EstimatedMDP:
    """The pair at place k of the estimated MDP, as pair 0 of a model of its own."""
    one, width = slice(k, k + 1), np.int64(rows.width)
    at, last = k * np.int64(pitch_of(c, space)), np.int64(visits_at(c, space, k))
    return EstimatedMDP(
        rows.first,
        rows.length[one],
        rows.next_state[k * width : k * width + width],
        space.counts[at : at + width],
        space.counts[last : last + 1],
        space.rewards[one],
        1,
        0,
    )


@inlined
def total_of(c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, k: Any) -> Any:
    """Σ N(s')·v(s') of the pair at place k, and v of the attractive state: what `counted_values` adds up."""
    v, n_pairs, one, at = space.v, np.uint64(space.rewards.size), np.uint64(1), k * pitch_of(c, space)
    if len(c.quarters) == 0:
        to = k * np.uint64(row_width(c, rows))
        return counted_values(space.counts, at, rows.next_state, to, rows.length[k], one, v, v[0])
    total, word = v[0], k
    for _ in range(len(c.quarters)):
        four = rows.fours[word]
        for _ in range(4):  # what is beyond the end of a row has counts of 0
            total += space.counts[at] * v[four & np.uint64(MOST_HALF)]
            four >>= np.uint64(16)
            at += one
        word += n_pairs
    return total


@inlined
def divided(c: DevicePlanConstants, space: TeamSpace, k: Any, total: float) -> Any:
    """r̂ + p̂·v of the pair at place k, from `total_of` it."""
    n = np.float64(space.counts[visits_at(c, space, k)])
    return space.rewards[k] + ratio(c, total, n + 1.0, space.inverse[k])


@inlined
def bernstein_backup(c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, k: int) -> Any:
    """r̂ + p̂·v + b of the pair at place k, b the Bernstein bonus."""
    if space.rewards[k] == -np.inf:
        return -np.inf
    model = pair_model(c, rows, space, k)
    expected, bonus = bernstein_value(model, space.levels[k], c.span, space.v, 0)
    return space.rewards[k] + bonus + expected


@inlined
def better_of_two(c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, k: Any, a: Any, best: Any) -> Any:
    """The better of `best`, a value and its action, and actions a and a + 1 of the pairs from place k on.

    Two at a time, so that a thread has other work while it waits.
    """
    next_place = k + np.uint64(space.v.size)
    here, there = total_of(c, rows, space, k), total_of(c, rows, space, next_place)
    here, there = divided(c, space, k, here), divided(c, space, next_place, there)
    if here > best[0]:
        best = here, a
    if there > best[0]:
        best = there, np.uint32(a + np.uint32(1))
    return best


@device_function
def best_action(c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, s: Any) -> Any:
    """Lv(s) and its greedy action, ties to the lowest."""
    k, a, n_states, n_actions = s, np.uint32(0), np.uint64(space.v.size), count_of_actions(c, space)
    best = (-np.inf, a)
    if len(c.kind) != BERNSTEIN:
        for _ in range(len(c.actions) // 2):
            best = better_of_two(c, rows, space, k, a, best)
            a, k = np.uint32(a + np.uint32(2)), k + n_states + n_states
    while a < n_actions:
        if len(c.kind) == BERNSTEIN:
            here = bernstein_backup(c, rows, space, int(k))
        else:
            here = divided(c, space, k, total_of(c, rows, space, k))
        if here > best[0]:
            best = here, a
        a = np.uint32(a + np.uint32(1))
        k += n_states
    return best


@device_function
def sweeps(
    c: DevicePlanConstants, rows: PlacedRows, space: TeamSpace, target: float, scale: Any, act: Any
) -> tuple[int, float, float, float, bool]:
    """What `scopt_on_counts` does, by a block of threads, from sweep `scale[2]` on and for some sweeps at most.

    `scale` also has the largest reward and the longest row. The greedy actions of the last sweep go to `act`. Returns
    the sweeps made in all, the range of T_c v - v, its slack, and whether the plan is finished; if not, v is where the
    next sweep begins.
    """
    x, team, v, w = np.uint64(cuda.threadIdx.x), np.uint64(cuda.blockDim.x), space.v, space.w
    n_states, span = np.uint64(v.size), c.span
    if scale[2] == 0:
        cut_by_team(space, span)
    done, finished = scale[2], False
    low, high, slack = np.inf, -np.inf, 0.0
    while done < scale[2] + SWEEPS_PER_LAUNCH:
        cuda.syncthreads()
        least, largest = np.inf, 0.0
        s = x
        while s < n_states:
            w[s], act[s] = best_action(c, rows, space, s)
            least, largest = lesser(least, w[s]), larger(largest, abs(v[s]))
            s += team
        least, largest = together(least, largest, space.parts, 0)
        ceiling = ceiling_of(least, span)
        pin = damped(v[0], truncate(w[0], ceiling), c.damping)
        low, high = np.inf, -np.inf
        s = x
        while s < n_states:
            gap = truncate(w[s], ceiling) - v[s]
            low, high = lesser(low, gap), larger(high, gap)
            s += team
        low, high = together(low, high, space.parts, 1)
        if len(c.kind) == BERNSTEIN:
            slack = counts_slack(scale[1] + 6, largest + span, scale[0])
        else:
            slack = counts_slack(scale[1], largest, scale[0])
        done += 1
        finished = high - low + 2.0 * slack <= target or high - low <= 2.0 * slack
        if finished:
            break
        s = x
        while s < n_states:
            v[s] = damped(v[s], truncate(w[s], ceiling), c.damping) - pin
            s += team
    cuda.syncthreads()
    return done, low, high, slack, finished


@device_function
def cut_by_team(space: TeamSpace, span: float) -> None:
    """Cut v to span c, from its least value up."""
    v, team = space.v, cuda.blockDim.x
    least = np.inf
    s = cuda.threadIdx.x
    while s < v.size:
        least = min(least, v[s])
        s += team
    least, _ = together(least, 0.0, space.parts, 0)
    s = cuda.threadIdx.x
    while s < v.size:
        v[s] = truncate(v[s], ceiling_of(least, span))
        s += team


@device_function
def span_by_team(v: Any, parts: Any) -> float:
    """sp(v)."""
    low, high = np.inf, -np.inf
    s = cuda.threadIdx.x
    while s < v.size:
        low, high = min(low, v[s]), max(high, v[s])
        s += cuda.blockDim.x
    low, high = together(low, high, parts, 0)
    return high - low
