"""The sweeps of SCAL+'s plans on a GPU: each thread of a block computes Lv(s) for some of the states."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful._compiled import inlined
from gainful.cuda_device import block_min_max, cuda, device_function, fast_max, fast_min
from gainful.planning.bernstein_scopt import bernstein_value
from gainful.planning.estimated import EstimatedMDP, counted_values
from gainful.planning.rounding import counts_slack
from gainful.planning.scopt_on_counts import damped
from gainful.planning.truncation import ceiling_of, truncate
from gainful.simulation.device.episodes import SWEEPS_PER_LAUNCH
from gainful.simulation.device.runs import MAX_UINT16
from gainful.simulation.device.scal_plus_space import (
    BERNSTEIN,
    ActionMajorRows,
    BlockArrays,
    DevicePlanConstants,
    count_of_actions,
    pitch_of,
    ratio,
    row_width,
    visits_at,
)


@inlined
def pair_model(c: DevicePlanConstants, rows: ActionMajorRows, block: BlockArrays, k: int) -> EstimatedMDP:
    """The pair of slot k of the estimated MDP, as the only pair of a model."""
    one, width = slice(k, k + 1), np.int64(rows.width)
    at, last = k * np.int64(pitch_of(c, block)), np.int64(visits_at(c, block, k))
    return EstimatedMDP(
        rows.first,
        rows.length[one],
        rows.next_state[k * width : k * width + width],
        block.counts[at : at + width],
        block.counts[last : last + 1],
        block.rewards[one],
        1,
        0,
    )


@inlined
def weighted_sum(c: DevicePlanConstants, rows: ActionMajorRows, block: BlockArrays, k: Any) -> Any:
    """The sum of N(s')·v(s') for slot k, plus v of the attractive state: the sum that `counted_values` computes."""
    v, n_pairs, one, at = block.v, np.uint64(block.rewards.size), np.uint64(1), k * pitch_of(c, block)
    if len(c.quads) == 0:
        to = k * np.uint64(row_width(c, rows))
        return counted_values(block.counts, at, rows.next_state, to, rows.length[k], one, v, v[0])
    total, word = v[0], k
    for _ in range(len(c.quads)):
        quad = rows.next_state_quads[word]
        for _ in range(4):  # counts beyond the end of a row are 0
            total += block.counts[at] * v[quad & np.uint64(MAX_UINT16)]
            quad >>= np.uint64(16)
            at += one
        word += n_pairs
    return total


@inlined
def expected_return(c: DevicePlanConstants, block: BlockArrays, k: Any, total: float) -> Any:
    """r̂ + p̂·v for slot k, from its `weighted_sum`."""
    n = np.float64(block.counts[visits_at(c, block, k)])
    return block.rewards[k] + ratio(c, total, n + 1.0, block.inverse[k])


@inlined
def bernstein_backup(c: DevicePlanConstants, rows: ActionMajorRows, block: BlockArrays, k: int) -> Any:
    """r̂ + p̂·v + b for slot k, where b is the Bernstein bonus."""
    if block.rewards[k] == -np.inf:
        return -np.inf
    model = pair_model(c, rows, block, k)
    expected, bonus = bernstein_value(model, block.levels[k], c.span, block.v, 0)
    return block.rewards[k] + bonus + expected


@inlined
def best_with_two_more(
    c: DevicePlanConstants, rows: ActionMajorRows, block: BlockArrays, k: Any, a: Any, best: Any
) -> Any:
    """The best of `best`, a value and its action, and of actions a and a + 1, whose slots are k and k + S.

    With two actions at a time, a thread computes one while it waits for the loads of the other.
    """
    k_next = k + np.uint64(block.v.size)
    first, second = weighted_sum(c, rows, block, k), weighted_sum(c, rows, block, k_next)
    first, second = expected_return(c, block, k, first), expected_return(c, block, k_next, second)
    if first > best[0]:
        best = first, a
    if second > best[0]:
        best = second, np.uint32(a + np.uint32(1))
    return best


@device_function
def best_action(c: DevicePlanConstants, rows: ActionMajorRows, block: BlockArrays, s: Any) -> Any:
    """Lv(s) and the greedy action, the lowest of several."""
    k, a, n_states, n_actions = s, np.uint32(0), np.uint64(block.v.size), count_of_actions(c, block)
    best = (-np.inf, a)
    if len(c.kind) != BERNSTEIN:
        for _ in range(len(c.actions) // 2):
            best = best_with_two_more(c, rows, block, k, a, best)
            a, k = np.uint32(a + np.uint32(2)), k + n_states + n_states
    while a < n_actions:
        if len(c.kind) == BERNSTEIN:
            value = bernstein_backup(c, rows, block, int(k))
        else:
            value = expected_return(c, block, k, weighted_sum(c, rows, block, k))
        if value > best[0]:
            best = value, a
        a = np.uint32(a + np.uint32(1))
        k += n_states
    return best


@device_function
def sweeps(
    c: DevicePlanConstants, rows: ActionMajorRows, block: BlockArrays, target: float, scale: Any, act: Any
) -> tuple[int, float, float, float, bool]:
    """Sweep as `scopt_on_counts` does, with all threads of a block, for at most `SWEEPS_PER_LAUNCH` sweeps.

    `scale` has the largest reward, the longest row and the sweeps that were already made for this plan. The greedy
    actions of the last sweep are written to `act`. Returns the number of all sweeps, the range of T_c v - v, its
    rounding slack, and whether the plan is finished; if not, the next launch continues from v.
    """
    thread, n_threads, v, w = np.uint64(cuda.threadIdx.x), np.uint64(cuda.blockDim.x), block.v, block.w
    n_states, span = np.uint64(v.size), c.span
    if scale[2] == 0:
        truncate_values(block, span)
    done, finished = scale[2], False
    low, high, slack = np.inf, -np.inf, 0.0
    while done < scale[2] + SWEEPS_PER_LAUNCH:
        cuda.syncthreads()
        least, largest = np.inf, 0.0
        s = thread
        while s < n_states:
            w[s], act[s] = best_action(c, rows, block, s)
            least, largest = fast_min(least, w[s]), fast_max(largest, abs(v[s]))
            s += n_threads
        least, largest = block_min_max(least, largest, block.scratch, 0)
        ceiling = ceiling_of(least, span)
        pin = damped(v[0], truncate(w[0], ceiling), c.damping)
        low, high = np.inf, -np.inf
        s = thread
        while s < n_states:
            gap = truncate(w[s], ceiling) - v[s]
            low, high = fast_min(low, gap), fast_max(high, gap)
            s += n_threads
        low, high = block_min_max(low, high, block.scratch, 1)
        if len(c.kind) == BERNSTEIN:
            slack = counts_slack(scale[1] + 6, largest + span, scale[0])
        else:
            slack = counts_slack(scale[1], largest, scale[0])
        done += 1
        finished = high - low + 2.0 * slack <= target or high - low <= 2.0 * slack
        if finished:
            break
        s = thread
        while s < n_states:
            v[s] = damped(v[s], truncate(w[s], ceiling), c.damping) - pin
            s += n_threads
    cuda.syncthreads()
    return done, low, high, slack, finished


@device_function
def truncate_values(block: BlockArrays, span: float) -> None:
    """Truncate v to span c above its least value."""
    v, n_threads = block.v, cuda.blockDim.x
    least = np.inf
    s = cuda.threadIdx.x
    while s < v.size:
        least = min(least, v[s])
        s += n_threads
    least, _ = block_min_max(least, 0.0, block.scratch, 0)
    s = cuda.threadIdx.x
    while s < v.size:
        v[s] = truncate(v[s], ceiling_of(least, span))
        s += n_threads


@device_function
def block_span(v: Any, scratch: Any) -> float:
    """The span of v."""
    low, high = np.inf, -np.inf
    s = cuda.threadIdx.x
    while s < v.size:
        low, high = min(low, v[s]), max(high, v[s])
        s += cuda.blockDim.x
    low, high = block_min_max(low, high, scratch, 0)
    return high - low
