"""Counts of a log: rows over pairs in CSR form, and the sums of rewards, by cluster of rows for resampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gainful.estimation.log_table import Integers, NumberedLog
from gainful.mdp.model import MDP, RewardLaw

Values = NDArray[np.float64]


@dataclass(frozen=True)
class LogCounts:
    """What a log says of each pair and transition; entries are sorted by pair and next state."""

    log: NumberedLog
    indptr: Integers
    """Rows over pairs s*A + a; a pair that was never tried is an empty row."""
    next_state: Integers
    count: Integers
    """How often each entry was seen."""
    entry: Integers
    """The entry of each row of the log."""
    visits: Integers
    """How often each pair was tried."""
    reward_sum: Values
    reward_variance: Values
    """Of the rewards of each pair, with the divisor n - 1; 0 for a single one."""
    reward_law: RewardLaw
    entry_reward: Values | None
    """The reward of each entry, where it is a function of state, action and next state."""

    @property
    def entry_pair(self) -> Integers:
        """The pair of each entry."""
        return np.repeat(np.arange(self.visits.size), np.diff(self.indptr))

    def model(self, count: Values, reward_sum: Values, start: Values, name: str | None = None) -> MDP:
        """The MDP with these counts of entries (weighted or not) and sums of rewards."""
        filled = np.flatnonzero(self.visits)
        n = np.ones(self.visits.size)
        n[filled] = np.add.reduceat(count, self.indptr[filled])
        S, A = self.log.n_states, self.log.n_actions
        rewards = (reward_sum / n).reshape(S, A) if self.entry_reward is None else self.entry_reward
        if self.reward_law == "bernoulli":
            rewards = np.clip(rewards, 0.0, 1.0)  # a weighted mean of zeros and ones may round to more than 1
        return MDP.from_rows(
            self.indptr,
            self.next_state,
            count / np.repeat(n, np.diff(self.indptr)),
            rewards,
            n_actions=A,
            reward_law=self.reward_law,
            start=start,
            state_labels=self.log.state_labels,
            action_labels=self.log.action_labels,
            objective=self.log.objective,
            name=name,
        )

    def by_cluster(self, cluster: Integers) -> tuple[sp.csr_array, sp.csr_array]:
        """The counts of entries and the sums of rewards of pairs, one row for each cluster of rows of the log."""
        n = int(cluster.max()) + 1
        ones = np.ones(cluster.size)
        counts = sp.csr_array((ones, (cluster, self.entry)), shape=(n, self.next_state.size))
        sums = sp.csr_array((self.log.reward, (cluster, self.log.pair)), shape=(n, self.visits.size))
        return counts, sums


def count_log(log: NumberedLog) -> LogCounts:
    """Count the transitions of a log."""
    S, A, pair = log.n_states, log.n_actions, log.pair
    keys, entry, count = np.unique(pair * S + log.next_state, return_inverse=True, return_counts=True)
    entry_pair, next_state = np.divmod(keys, S)
    visits = np.bincount(pair, minlength=S * A)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(entry_pair, minlength=S * A))])
    total: Values = np.bincount(pair, weights=log.reward, minlength=S * A).astype(np.float64)
    mean = total / np.maximum(visits, 1)
    squares: Values = np.bincount(pair, weights=(log.reward - mean[pair]) ** 2, minlength=S * A).astype(np.float64)
    law, entry_reward = _law_of_rewards(log, entry.reshape(-1), keys.size, squares)
    return LogCounts(
        log=log,
        indptr=indptr,
        next_state=next_state,
        count=count.astype(np.int64),
        entry=entry.reshape(-1),
        visits=visits.astype(np.int64),
        reward_sum=total,
        reward_variance=squares / np.maximum(visits - 1, 1),
        reward_law=law,
        entry_reward=entry_reward,
    )


def _law_of_rewards(
    log: NumberedLog, entry: Integers, n_entries: int, squares: Values
) -> tuple[RewardLaw, Values | None]:
    """How rewards come about: fixed for each pair, fixed for each transition, 0 or 1, or else only a mean is known."""
    first = np.zeros(n_entries)
    first[entry] = log.reward
    if not squares.any():
        return "deterministic", None
    if bool(np.all(first[entry] == log.reward)) and entry.size > n_entries:
        return "transition", first
    if bool(np.all((log.reward == 0.0) | (log.reward == 1.0))):
        return "bernoulli", None
    return "deterministic", None
