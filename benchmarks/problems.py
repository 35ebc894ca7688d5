"""The problems the planning benchmarks share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import gainful as gf


def slowly_mixing(
    n_states: int = 10_000, n_actions: int = 4, branching: int = 8, reach: int = 200, instance: int = 0
) -> gf.MDP:
    """Random MDP whose next states lie within `reach` of the state: news travels slowly, value iteration too."""
    rng = np.random.default_rng(instance)
    pairs = n_states * n_actions
    state = np.repeat(np.arange(n_states), n_actions)[:, None]
    low, high = np.maximum(state - reach, 0), np.minimum(state + reach, n_states - 1)
    to = low + (rng.random((pairs, branching)) * (high - low + 1)).astype(np.int64)
    cuts = np.sort(rng.random((pairs, branching - 1)), axis=1)
    p = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    return gf.MDP.from_rows(
        np.arange(pairs + 1) * branching, to.reshape(-1), p.reshape(-1), rng.random((n_states, n_actions)),
        name=f"slowly mixing, instance {instance}",
    )  # fmt: skip


def dense(n_states: int = 1000, n_actions: int = 4, instance: int = 0) -> gf.MDP:
    """Every next state possible from every pair."""
    rng = np.random.default_rng(instance)
    P = rng.random((n_states, n_actions, n_states))
    P /= P.sum(axis=2, keepdims=True)
    return gf.MDP(P, rng.random((n_states, n_actions)), name="dense")


def rows_of_garnet(
    n_states: int, n_actions: int = 4, branching: int = 8, instance: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float64], NDArray[np.float64]]:
    """The arrays a user with a large problem would hold: indptr, indices, probabilities, rewards."""
    mdp = gf.environments.garnet(n_states, n_actions, branching, instance=instance)
    return mdp.indptr, mdp.indices, mdp.probabilities, mdp.rewards
