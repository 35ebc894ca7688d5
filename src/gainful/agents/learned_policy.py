"""The policy that an agent has learned, and how sure its data make each choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from gainful.agents.episodic import EpisodicAgent
from gainful.agents.statistics import Statistics
from gainful.errors import InvalidArgumentError, MultichainError, PlanningError, describe
from gainful.mdp.model import MDP
from gainful.planning.solve import solve

Floats = NDArray[np.float64]

ESTIMATE_PRECISION = 1e-6
"""Width of the bracket on the gain of the estimated model, as a share of the range of the rewards."""
ESTIMATE_SWEEPS, ESTIMATE_WORK = 100_000, 10**9
"""Sweeps, and transitions looked at in all of them, after which the estimated model counts as unsolved."""
JUMP = 1e-4
"""Where parts of the estimated model do not reach each other: the probability of a jump to the most visited state."""


@dataclass(frozen=True)
class LearnedPolicy:
    r"""The present policy of an agent, state by state, and how sure its data make each choice.

    With r̂ and p̂ the observed averages, ĥ the optimal bias of the model that they make, and
    Q(s,a) = r̂(s,a) + p̂(·|s,a)·ĥ, the action a of a state is compared with every other action b that was tried there: ::

        lead = min_b Q(s,a) - Q(s,b),    sure = min_b Φ((Q(s,a) - Q(s,b)) / sqrt(σ²(s,a)/N(s,a) + σ²(s,b)/N(s,b)))

    where σ is the standard deviation of the reward plus that of ĥ(s'), which bounds that of their sum, with one more
    observation of the largest variance possible, (r_max + sp(ĥ))²/4. It is a normal approximation with ĥ held fixed:
    a guide to what is settled, not a confidence bound.

    Attributes
    ----------
    actions : ndarray of int, shape (S,)
        The most probable action of the present policy.
    probabilities : ndarray, shape (S, A)
        The present policy.
    visits : ndarray of int, shape (S, A)
        How often each pair was observed.
    untried : ndarray of int, shape (S,)
        How many of the state's actions were never observed.
    lead : ndarray, shape (S,)
        By how much the action is ahead of the best other one that was tried: negative if the data favour another
        action; NaN where the action, or every other one, was never tried; infinite if the state has one action.
    sure : ndarray, shape (S,)
        The probability that the action is better than every other one tried; NaN where `lead` is, and 1 if the state
        has one action.
    favoured : ndarray of int, shape (S,)
        The action with the largest Q among those tried, the policy's own at a tie; -1 where none was tried, or the
        estimated model has no answer.

    Examples
    --------
    >>> import gainful as gf
    >>> agent = gf.UCRL2(n_states=1, n_actions=2)
    >>> for _ in range(50):
    ...     agent.observe(0, 0, 0.4, 0)
    ...     agent.observe(0, 1, 0.6, 0)
    >>> gf.learned_policy(agent).favoured
    array([1])
    """

    actions: NDArray[np.int64]
    probabilities: Floats
    visits: NDArray[np.int64]
    untried: NDArray[np.int64]
    lead: Floats
    sure: Floats
    favoured: NDArray[np.int64]

    @property
    def state_visits(self) -> NDArray[np.int64]:
        """(S,) how often each state was left."""
        total: NDArray[np.int64] = self.visits.sum(axis=1)
        return total


def learned_policy(agent: Any) -> LearnedPolicy:
    """Show the present policy of an agent, and how sure its data make each choice.

    Parameters
    ----------
    agent : agent
        A tabular agent, or one on points, whose states are then the cells.

    Returns
    -------
    LearnedPolicy
        By state.

    Examples
    --------
    >>> import gainful as gf
    >>> agent, mdp = gf.KLSCALPlus(n_states=6, n_actions=2), gf.environments.riverswim(6)
    >>> run = gf.simulate(agent, mdp, horizon=100_000)
    >>> learned = gf.learned_policy(agent)
    >>> learned.actions.tolist(), bool(learned.sure[4] > 0.95)
    ([1, 1, 1, 1, 1, 1], True)
    """
    core: EpisodicAgent | None = getattr(agent, "core", None)
    if core is None:
        raise InvalidArgumentError(
            "agent",
            agent,
            "an agent of gainful, such as gf.KLSCALPlus(6, 2)",
            "agent.policy() is the policy of a durable one",
            problem=f"the agent is {describe(agent)}",
        )
    allowed, shape = core.allowed, core.allowed.shape
    visits = core.statistics.visits.reshape(shape).copy()
    policy = core.policy_at(np.arange(core.n_states))
    actions = policy.argmax(axis=1)
    tried = (visits > 0) & allowed
    lead = np.full(core.n_states, np.nan)
    sure = np.full(core.n_states, np.nan)
    favoured = np.full(core.n_states, -1, dtype=np.int64)
    estimate = _estimate(core)
    if estimate is not None:
        lead, sure = _compare(actions, tried, estimate, visits)
        best = np.where(tried, estimate.values, -np.inf).argmax(axis=1)
        keeps = tried[np.arange(core.n_states), actions] & ~(lead < 0.0)
        favoured = np.where(tried.any(axis=1), np.where(keeps, actions, best), -1)
    alone = allowed.sum(axis=1) == 1
    lead[alone], sure[alone] = np.inf, 1.0
    return LearnedPolicy(actions, policy, visits, (allowed & ~tried).sum(axis=1), lead, sure, favoured)


class _Estimate(NamedTuple):
    """(S, A) the action values of the estimated model, and the variance of one observation of each."""

    values: Floats
    variance: Floats


def _compare(
    actions: NDArray[np.int64], tried: NDArray[np.bool_], estimate: _Estimate, visits: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """(S,) by how much the actions are ahead of the best other one that was tried, and how sure that is."""
    states = np.arange(actions.size)
    others = tried.copy()
    others[states, actions] = False
    comparable = others.any(axis=1) & tried[states, actions]
    spread = estimate.variance / np.maximum(visits, 1)
    ahead = estimate.values[states, actions][:, None] - estimate.values
    error = np.sqrt(spread[states, actions][:, None] + spread)
    score = np.divide(ahead, error, out=np.zeros_like(ahead), where=error > 0.0)
    lead = np.where(comparable, np.where(others, ahead, np.inf).min(axis=1), np.nan)
    sure = np.where(comparable, special.ndtr(np.where(others, score, np.inf).min(axis=1)), np.nan)
    return lead, sure


def _estimate(core: EpisodicAgent) -> _Estimate | None:
    """The action values of the model that the observed averages make; None if nothing was seen or it has no answer."""
    arrays = core.statistics.to_arrays()
    if not arrays["visits"].any():
        return None
    bias = _estimated_bias(core, arrays)
    if bias is None:
        return None
    visits = np.maximum(arrays["visits"], 1)
    reward, squares = arrays["reward_sum"] / visits, arrays["reward_squares"] / visits
    rows = np.repeat(np.arange(visits.size), arrays["length"])
    p = arrays["count"] / visits[rows]
    h = bias[arrays["next_state"]]
    future = np.bincount(rows, weights=p * h, minlength=visits.size)
    scatter = np.bincount(rows, weights=p * (h - future[rows]) ** 2, minlength=visits.size)
    deviation = np.sqrt(np.maximum(squares - reward * reward, 0.0)) + np.sqrt(scatter)
    largest = 0.25 * (core.reward_range + float(np.ptp(bias))) ** 2
    variance = (visits * deviation**2 + largest) / (visits + 1)
    return _Estimate((reward + future).reshape(core.allowed.shape), variance.reshape(core.allowed.shape))


def _estimated_bias(core: EpisodicAgent, arrays: dict[str, NDArray[Any]]) -> Floats | None:
    """(S,) the optimal bias of the estimated model; 0 for states that were never left, None if it cannot be solved."""
    left = np.flatnonzero(core.statistics.visits.reshape(core.allowed.shape).any(axis=1))
    for jump in (0.0, JUMP):
        try:
            model = estimated_model(core.statistics, arrays, left, jump)
            sweeps = max(min(ESTIMATE_SWEEPS, ESTIMATE_WORK // model.n_transitions), 1)
            plan = solve(model, precision=ESTIMATE_PRECISION * core.reward_range, max_sweeps=sweeps)
        except MultichainError:
            continue
        except PlanningError:
            return None
        bias = np.zeros(core.n_states)
        bias[left] = plan.bias
        return bias
    return None


def estimated_model(
    statistics: Statistics, arrays: dict[str, NDArray[Any]], left: NDArray[np.int64], jump: float
) -> MDP:
    """The observed averages as an MDP over the states that were `left`, with the pairs that were tried.

    A state that was reached and never left counts as the most visited one. Every row jumps there with the probability
    `jump`.
    """
    n_actions = statistics.n_actions
    visits = arrays["visits"]
    hub = int(np.argmax(visits.reshape(-1, n_actions)[left].sum(axis=1)))
    number = np.full(statistics.n_states, hub, dtype=np.int64)
    number[left] = np.arange(left.size)
    pairs = (left[:, None] * n_actions + np.arange(n_actions)).reshape(-1)
    ends = np.cumsum(arrays["length"])
    length = arrays["length"][pairs]
    where = np.repeat(ends[pairs] - length - (np.cumsum(length) - length), length) + np.arange(int(length.sum()))
    rows = np.repeat(np.arange(pairs.size), length)
    p = (1.0 - jump) * arrays["count"][where] / visits[pairs][rows]
    to = number[arrays["next_state"][where]]
    if jump > 0.0:
        full = np.flatnonzero(length > 0)
        rows = np.concatenate([rows, full])
        order = np.argsort(rows, kind="stable")
        rows, p, to = (
            rows[order],
            np.concatenate([p, np.full(full.size, jump)])[order],
            np.concatenate([to, np.full(full.size, hub)])[order],
        )
    indptr = np.searchsorted(rows, np.arange(pairs.size + 1))
    rewards = arrays["reward_sum"][pairs] / np.maximum(visits[pairs], 1)
    return MDP.from_rows(indptr, to, p, rewards.reshape(left.size, n_actions))
