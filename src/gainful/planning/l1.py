"""The best row of an ℓ₁ ball, and the sweeps of extended value iteration over it.

max { p·v : ‖p - p̄‖₁ <= d } is reached by moving mass d/2 to a state of largest v, taking it from the row's
entries of lowest v (Jaksch, Ortner & Auer 2010, fig. 2). O(Γ) per pair on rows kept in order of v.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.planning.improvement import improve, relax
from gainful.planning.ordering import best_state, sort_rows


@kernel
def l1_values(
    v: NDArray[Any],
    indptr: NDArray[Any],
    indices: NDArray[Any],
    load: NDArray[Any],
    radius: NDArray[Any],
    mask: NDArray[Any],
    level: NDArray[Any],
    rewards: NDArray[Any],
    q: NDArray[Any],
) -> None:
    """q[k] = rewards[k] + max over the ball of p·v, -inf for an empty row.

    `load` (n, 1) are the row's probabilities; rows are reordered in place. Pair k may move to mask[level[k]].
    """
    tops = np.empty(mask.shape[0])
    for m in range(mask.shape[0]):
        tops[m] = v[best_state(v, mask[m])]
    sort_rows(v, indptr, indices, load)
    for k in range(indptr.size - 1):
        begin, end = indptr[k], indptr[k + 1]
        if begin == end:
            q[k] = -np.inf
            continue
        top = tops[level[k]]
        free = 0.5 * radius[k]  # still to be moved
        moved, total = 0.0, 0.0
        j = end
        while j > begin and free > 0.0:  # from the lowest value up
            j -= np.uint64(1)
            value = v[indices[j]]
            if value >= top:
                j += np.uint64(1)
                break
            taken = min(load[j, 0], free)
            free -= taken
            moved += taken
            total += (load[j, 0] - taken) * value
        for i in range(begin, j):
            total += load[i, 0] * v[indices[i]]
        q[k] = rewards[k] + (total + moved * top)


@kernel
def l1_sweeps(
    v: NDArray[Any],
    q: NDArray[Any],
    best: NDArray[Any],
    indptr: NDArray[Any],
    indices: NDArray[Any],
    load: NDArray[Any],
    radius: NDArray[Any],
    mask: NDArray[Any],
    level: NDArray[Any],
    rewards: NDArray[Any],
    n_actions: int,
    damping: float,
    span: float,
    precision: float,
    slack_scale: float,
    reward_scale: float,
    sweeps: int,
    resume: bool,
) -> tuple[int, float, float, float, bool]:
    """Up to `sweeps` sweeps; returns their number, the bracket, the slack and whether it is narrow enough.

    v and q belong together on return; `resume` takes the step from them first.
    """
    low, high, slack = -np.inf, np.inf, 0.0
    threshold = best.min() + span
    for n in range(sweeps):
        if resume or n > 0:
            relax(v, best, threshold, damping, span)
        l1_values(v, indptr, indices, load, radius, mask, level, rewards, q)
        low, high, threshold = improve(q, v, n_actions, span, best)
        slack = slack_scale * (v.max() + reward_scale)
        if high - low + 2.0 * slack <= precision:
            return n + 1, low, high, slack, True
    return sweeps, low, high, slack, False


@kernel
def l1_rows(
    v: NDArray[Any],
    pairs: NDArray[Any],
    indptr: NDArray[Any],
    indices: NDArray[Any],
    load: NDArray[Any],
    radius: NDArray[Any],
    mask: NDArray[Any],
    level: NDArray[Any],
    out_indptr: NDArray[Any],
    out_indices: NDArray[Any],
    out_probabilities: NDArray[Any],
) -> int:
    """The best row of each of `pairs` (-1: none), as CSR; returns the size needed, writing what fits."""
    sort_rows(v, indptr, indices, load)
    room = out_indices.size
    size = 0
    for row in range(pairs.size):
        out_indptr[row] = size
        k = pairs[row]
        if k < 0:
            continue
        begin, end = indptr[k], indptr[k + 1]
        best = best_state(v, mask[level[k]])
        free, moved = 0.5 * radius[k], 0.0
        place = -1  # where the best state stands in the output
        j = end
        while j > begin:
            j -= np.uint64(1)
            p = load[j, 0]
            if free > 0.0 and v[indices[j]] < v[best]:
                taken = min(p, free)
                free -= taken
                moved += taken
                p -= taken
            if p > 0.0:
                if indices[j] == best:
                    place = size
                if size < room:
                    out_indices[size] = indices[j]
                    out_probabilities[size] = p
                size += 1
        if moved > 0.0:
            if place < 0:
                if size < room:
                    out_indices[size] = best
                    out_probabilities[size] = moved
                size += 1
            elif place < room:
                out_probabilities[place] += moved
    out_indptr[pairs.size] = size
    return size
