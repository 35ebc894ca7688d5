"""The amount by which rounding may move a Bellman residual; every certified bracket is widened by it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined
from gainful.mdp.model import MDP

UNIT_ROUNDOFF = 2.0**-53
UNDERFLOW = 2.0**-969
"""Added to the sizes that slack is relative to, so that it covers products too small for float64.

Each of them is off by less than 2⁻¹⁰²², the smallest number of full precision, and 2⁻⁵³·2⁻⁹⁶⁹ is that number.
"""
LARGEST_VALUE = 1e300
"""The largest |v| at which a Bellman sweep cannot overflow; no bracket is certified beyond it."""
ROWS_AT_ONCE = 1 << 16
"""Rows whose lengths are compared at a time: few enough for a cache."""


def reward_scale(mdp: MDP) -> float:
    """The largest internal reward of a pair or of a transition: means of transitions are rounded relative to these."""
    return max(_largest(mdp.pair_rewards), transition_reward_scale(mdp))


def transition_reward_scale(mdp: MDP) -> float:
    """The largest internal reward of a transition, 0 if rewards belong to pairs."""
    return 0.0 if mdp.entry_rewards is None else _largest(mdp.entry_rewards)


def _largest(rewards: NDArray[np.float64]) -> float:
    """max|r|, without the array of all |r|."""
    return max(float(rewards.max()), -float(rewards.min()))


def longest_row(mdp: MDP) -> int:
    """The most entries of a row, part by part: the array of all lengths would be as large as that of the rewards."""
    ends = mdp.indptr
    return max(int(np.diff(ends[i : i + ROWS_AT_ONCE + 1]).max()) for i in range(0, ends.size - 1, ROWS_AT_ONCE))


def roundoff(max_support: int) -> float:
    """2(Γ+4)·2⁻⁵³: times max|v| + max|r| + UNDERFLOW, the rounding slack."""
    return 2 * (max_support + 4) * UNIT_ROUNDOFF


def rounding_slack(max_support: int, max_value: float, max_reward: float) -> float:
    """How far a computed (Tv - v)(s) may be from the exact one: 2(Γ+4)·2⁻⁵³·(max|v| + max|r|), and never 0.

    Half of it is the rounding of a Γ-term dot product and of r + p·v - v; the other half covers stored rows,
    which sum to 1 only up to Γ+2 roundings. Infinite beyond `LARGEST_VALUE`, where sums may overflow.
    """
    return roundoff(max_support) * (max_value + max_reward + UNDERFLOW) if max_value <= LARGEST_VALUE else np.inf


def elimination_margin(slack: float, size: float, sweeps: int, risen: float) -> float:
    """What rounding may add to a pair that `bellman.lazy_sweep` has not read for some sweeps.

    That of both values compared, `slack` each, and of the sum `risen` of the rises of v, |v| ≤ `size`, in that many
    sweeps.
    """
    return 4 * slack + 2 * UNIT_ROUNDOFF * (sweeps + 2) * (abs(risen) + size)


@inlined
def slack_at(unit: float, max_value: float, max_reward: float) -> float:
    """`rounding_slack` in a kernel, `unit` being `roundoff(Γ)`."""
    return unit * (max_value + max_reward + UNDERFLOW) if max_value <= LARGEST_VALUE else np.inf


@inlined
def counts_slack(max_support: int, max_value: float, max_reward: float) -> float:
    """The same for rows p̂ read off counts, which have one entry more and a division: Γ+6 for Γ+4."""
    return 2.0 * (max_support + 6) * UNIT_ROUNDOFF * (max_value + max_reward + UNDERFLOW)


@inlined
def is_narrow(low: float, high: float, slack: float, target: float) -> bool:
    """Whether the bracket [low - slack, high + slack] is at most `target` wide; False if an end is not a number.

    The ends are rounded here as they will be in the bracket, so that it is no wider than was tested.
    """
    width = (high + slack) - (low - slack)
    return bool(0.0 <= width <= target)
