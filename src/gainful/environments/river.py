"""What all versions of RiverSwim share: the banks, the two actions, and where the rewards are."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gainful.mdp.model import MDP

RIVER_BYTES = 500.0
"""What building a river takes for each state and action, in bytes (measured)."""


def certain_left(n_states: int) -> Any:
    """(S, S) swimming left always succeeds; at the left bank it stays."""
    left = sp.lil_array((n_states, n_states))
    for s in range(n_states):
        left[s, max(s - 1, 0)] = 1.0
    return left


def against_the_current(
    n_states: int, first: tuple[float, float], inside: tuple[float, float, float], last: tuple[float, float]
) -> Any:
    """(S, S) swimming right: probabilities of (stay, right), then of (left, stay, right), then of (left, stay)."""
    right = sp.lil_array((n_states, n_states))
    right[0, 0], right[0, 1] = first
    for s in range(1, n_states - 1):
        right[s, s - 1], right[s, s], right[s, s + 1] = inside
    right[n_states - 1, n_states - 2], right[n_states - 1, n_states - 1] = last
    return right


def river(name: str, left: Any, right: Any, small_reward: float, reward_law: str) -> MDP:
    """The MDP: `small_reward` for left at the left bank, 1 for right at the right bank."""
    n_states = left.shape[0]
    rewards = np.zeros((n_states, 2))
    rewards[0, 0], rewards[n_states - 1, 1] = small_reward, 1.0
    return MDP(
        [left, right],
        rewards,
        reward_law="bernoulli" if reward_law == "bernoulli" else "deterministic",
        state_labels=["left bank", *(f"river {s}" for s in range(1, n_states - 1)), "right bank"],
        action_labels=("left", "right"),
        name=name,
    )
