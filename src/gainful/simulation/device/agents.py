"""Agents after a run on a GPU: their counts and their last plan are copied into the agents of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.episodic import EpisodePlan
from gainful.agents.scal_plus import SCALPlus
from gainful.simulation.device.batch import BatchResult, LearnedCounts


def fill_agent(agent: Any, lists: NDArray[np.int64], counts: LearnedCounts, found: BatchResult, i: int) -> None:
    """Give a new agent the counts and the last plan of run i of a batch.

    `lists` (pairs, width) has the next state of each transition counter, -1 for none.
    """
    core = agent.core
    core.statistics.from_arrays(_statistics(lists, counts, i))
    core.t = int(found.steps_made)
    record = found.episodes(i)
    if isinstance(core, SCALPlus):
        core.restore({"values": counts.values[i].copy()})
    last = record[-1]
    core.current = EpisodePlan(
        actions=counts.actions[i].astype(np.int64),
        gain_bounds=(float(last["gain_low"]), float(last["gain_high"])),
        values=counts.values[i].copy(),
        sweeps=int(last["sweeps"]),
        span=float(last["span"]),
    )


def _statistics(lists: NDArray[np.int64], counts: LearnedCounts, i: int) -> dict[str, NDArray[Any]]:
    """The arrays of `Statistics.to_arrays`; next states that the world lists several times are merged."""
    n_pairs = lists.shape[0]
    transitions = counts.transitions[i].reshape(n_pairs, -1).astype(np.int64)
    pair, rank = np.nonzero(transitions)
    to, n = lists[pair, rank], transitions[pair, rank]
    new = np.ones(to.size, dtype=bool)
    new[1:] = (to[1:] != to[:-1]) | (pair[1:] != pair[:-1])
    first = np.flatnonzero(new)
    squares = counts.reward_squares[i] if counts.reward_squares.shape[1] else np.zeros(n_pairs)
    return {
        "visits": counts.visits[i].astype(np.int64),
        "reward_sum": counts.reward_sum[i].copy(),
        "reward_squares": squares.copy(),
        "length": np.bincount(pair[first], minlength=n_pairs).astype(np.int64),
        "next_state": to[first].astype(np.uint32),
        "count": np.add.reduceat(n, first) if first.size else n,
    }
