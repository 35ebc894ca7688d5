"""The Bayesian bootstrap over trajectories: models of the log with other weights on its trajectories or blocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gainful.estimation.counts import LogCounts
from gainful.estimation.log_table import Integers, NumberedLog
from gainful.mdp.model import MDP

Values = NDArray[np.float64]

ENOUGH_UNITS = 20
"""Trajectories from which on whole ones are resampled; fewer are cut into blocks."""
_NUMBERS_AT_ONCE = 1 << 22


def clusters_of(log: NumberedLog) -> tuple[Integers, str]:
    """The cluster of each row of the log, and what a cluster is, in words.

    Rows of one trajectory depend on each other, so they are resampled together: whole trajectories where there are at
    least 20, otherwise blocks of about n^(1/3) consecutive rows of a trajectory of n rows, the order that balances bias
    and variance (Hall, Horowitz & Jing 1995). A row holds its next state, so a cut invents no transition.
    """
    if log.n_units >= ENOUGH_UNITS:
        return log.unit, f"{log.n_units:,} trajectories"
    lengths = np.bincount(log.unit, minlength=log.n_units)
    order = np.argsort(log.unit, kind="stable")
    within = np.empty(log.unit.size, dtype=np.int64)
    first = np.cumsum(lengths) - lengths
    within[order] = np.arange(log.unit.size) - first[log.unit[order]]
    size = np.maximum(1, np.ceil(np.cbrt(lengths))).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(-(-lengths // size))])
    cluster = before[log.unit] + within // size[log.unit]
    rows = "row" if size.max() == 1 else "rows"
    span = f"{size.max()}" if size.min() == size.max() else f"{size.min()} to {size.max()}"
    return cluster, f"{before[-1]:,} blocks of {span} consecutive {rows}"


def resampled_models(counts: LogCounts, cluster: Integers, start: Values, replicates: int, seed: int) -> Iterator[MDP]:
    """Models of the log with independent exponential weights on its clusters (Rubin 1981, The Bayesian bootstrap).

    Every weight is positive, so each model has exactly the transitions that were seen. The usual bootstrap leaves some
    out and with them, where counts are small, the only action of a state.
    """
    of_entries, of_rewards = counts.by_cluster(cluster)
    n = of_entries.shape[0]
    rng = np.random.default_rng(seed)
    size = max(1, min(replicates, _NUMBERS_AT_ONCE // max(n, of_entries.shape[1])))
    for begin in range(0, replicates, size):
        weights = rng.standard_exponential((n, min(size, replicates - begin)))
        count, rewards = of_entries.T @ weights, of_rewards.T @ weights
        for i in range(weights.shape[1]):
            yield counts.model(np.ascontiguousarray(count[:, i]), np.ascontiguousarray(rewards[:, i]), start)
