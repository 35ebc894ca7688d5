"""Beginning with a prior model: every pair counts as observed a number of times, with the model's frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.stepwise import StepwiseAgent
from gainful.arguments import whole
from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP

MAX_PRIOR_WEIGHT = 10**6


def observe_prior(agent: Any, prior: MDP, weight: Any) -> None:
    """Count `weight` observations of every pair, as the model would have them.

    N(s,a) grows by n = `weight`; the n next states are shared out as n·p(s'|s,a) by largest remainder (ties to the
    lowest state), so that counts stay whole; the rewards are n times the mean r(s,a). The clock t counts them too. They
    are invented, not seen: no theorem covers what is learned from them.
    """
    n, core = whole("config['prior_weight']", weight, 1, MAX_PRIOR_WEIGHT), agent.core
    _check_prior(agent, prior)
    visits, length = np.zeros(core.allowed.size, dtype=np.int64), np.zeros(core.allowed.size, dtype=np.int64)
    to, count = [], []
    for k in np.flatnonzero(core.allowed.ravel()).tolist():
        row = slice(int(prior.indptr[k]), int(prior.indptr[k + 1]))
        if row.start == row.stop:
            continue
        states, counts = _shared_out(n, prior.indices[row], prior.probabilities[row])
        visits[k], length[k] = n, states.size
        to.append(states)
        count.append(counts)
    reward = np.where(visits > 0, prior.pair_rewards - core.reward_min, 0.0)
    core.statistics.from_arrays(
        {
            "visits": visits,
            "reward_sum": n * reward,
            "reward_squares": n * reward * reward,
            "length": length,
            "next_state": np.concatenate(to).astype(np.uint32),
            "count": np.concatenate(count),
        }
    )
    core.reset_limits()
    core.visited[:] = visits.reshape(core.allowed.shape).sum(axis=1) > 0
    core.t = int(visits.sum())


def _shared_out(
    n: int, next_states: NDArray[Any], probabilities: NDArray[np.float64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The next states of n observations of one pair, and how often each occurs."""
    states, where = np.unique(next_states, return_inverse=True)
    share = n * np.bincount(where, weights=probabilities)
    counts = np.floor(share).astype(np.int64)
    order = np.argsort(counts - share, kind="stable")
    counts[order[: n - int(counts.sum())]] += 1
    return states[counts > 0], counts[counts > 0]


def _check_prior(agent: Any, prior: MDP) -> None:
    """Raise an InvalidArgumentError if the agent cannot begin with this prior."""
    core = agent.core
    if isinstance(core, StepwiseAgent) or agent.log is not None:
        raise InvalidArgumentError(
            "config['prior']",
            prior,
            problem=f"{type(agent).__name__} keeps more than counts, and cannot begin with a prior",
        )
    if (prior.n_states, prior.n_actions) != (core.n_states, core.n_actions):
        raise InvalidArgumentError(
            "config['prior']",
            (prior.n_states, prior.n_actions),
            f"the agent's {core.n_states} and {core.n_actions}",
            problem=f"the prior has {prior.n_states} states and {prior.n_actions} actions",
        )
    low, high = prior.reward_min, prior.reward_max
    if low < core.reward_min or high > core.reward_max:
        raise InvalidArgumentError(
            "config['prior']",
            (low, high),
            f"rewards in the agent's [{core.reward_min:g}, {core.reward_max:g}]",
            "give the agent a range that holds both",
            problem=f"the prior's rewards are in [{low:g}, {high:g}]",
        )
