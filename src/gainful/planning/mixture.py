"""The constrained-greedy policy: where the truncated operator cuts, two pairs are mixed to meet the cut exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def constrained_greedy(
    best: NDArray[np.float64],
    cut_at: float,
    greedy: NDArray[np.int64],
    partner: NDArray[np.int64],
    partner_value: NDArray[np.float64],
    n_actions: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], bool]:
    """Weights (S,2A) on actions and their reward-0 copies, their projection (S,A), and whether that is deterministic.

    A state with best(s) ≤ th = `cut_at` plays `greedy`; another one mixes it with column `partner` (of 2A), of value
    m ≤ th, with weights (th-m)/(best-m) and (best-th)/(best-m), so that the mixture is worth th
    (Fruit et al. 2018). Rounding may leave m above th: then the partner alone is played.
    """
    states = np.arange(best.size)
    cut = best > cut_at
    gap = best - partner_value
    kept = np.where(cut, 0.0, 1.0)
    np.divide(cut_at - partner_value, gap, out=kept, where=cut & (gap > 0.0))
    kept = np.clip(kept, 0.0, 1.0)
    weights = np.zeros((best.size, 2 * n_actions))
    weights[states, greedy] = kept
    weights[states[cut], partner[cut]] += 1.0 - kept[cut]
    projected = weights[:, :n_actions] + weights[:, n_actions:]
    return weights, projected, bool(np.all(projected.max(axis=1) == 1.0))
