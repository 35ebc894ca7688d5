"""The constrained-greedy policy: where the truncated operator cuts, two pairs are mixed to meet the cut exactly."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Mixture: TypeAlias = Literal["copy", "min-action"]
"""What the greedy action is mixed with where T_c cuts: its own copy of reward 0, or the worst of all copies."""


class ConstrainedGreedy(NamedTuple):
    """A policy on actions and their copies of reward 0."""

    weights: NDArray[np.float64]
    """(S,2A) probabilities on the A actions, then on their copies."""
    projected: NDArray[np.float64]
    """(S,A) probabilities once a copy counts as its action."""
    deterministic: bool
    """Whether the projected policy plays one action in every state."""


def ceiling_at(best: NDArray[np.float64], span: float) -> float:
    """Min Lv + c, where T_c cuts, given best = Lv and c = `span`."""
    return float(best.min()) + span


def constrained_greedy(
    best: NDArray[np.float64],
    ceiling: float,
    greedy: NDArray[np.int64],
    partner: NDArray[np.int64],
    partner_value: NDArray[np.float64],
    n_actions: int,
) -> ConstrainedGreedy:
    """The policy that is worth min{best(s), ceiling} in every state.

    A state with best(s) ≤ th = `ceiling` plays `greedy`; another one mixes it with column `partner` (of 2A), of value
    m ≤ th, with weights (th-m)/(best-m) and (best-th)/(best-m), so that the mixture is worth th
    (Fruit et al. 2018). Rounding may leave m above th: then the partner alone is played.
    """
    states = np.arange(best.size)
    cut = best > ceiling
    gap = best - partner_value
    kept = np.where(cut, 0.0, 1.0)
    np.divide(ceiling - partner_value, gap, out=kept, where=cut & (gap > 0.0))
    kept = np.clip(kept, 0.0, 1.0)
    weights = np.zeros((best.size, 2 * n_actions))
    weights[states, greedy] = kept
    weights[states[cut], partner[cut]] += 1.0 - kept[cut]
    projected = weights[:, :n_actions] + weights[:, n_actions:]
    return ConstrainedGreedy(weights, projected, bool(np.all(projected.max(axis=1) == 1.0)))
