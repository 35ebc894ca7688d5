"""Planning in an MDP drawn from the posterior, of which only as much is drawn as the plan needs.

Row k of the sample is Dirichlet(α + counts). The next states seen and the total of all others are drawn at once: a
Gamma variable each, and one of shape α·u for the u states never seen. That total, `rest`, is divided among the u states
only where it matters. A random one of them takes the share Beta(1 + α, α(u-1)) of it, another one its share of what is
then left, and so on: states in size-biased order, whose shares together are Dirichlet(α, …, α) (Pitman 1996). While
mass is left undivided, p·v is known up to rest·sp(v), so a plan is certified for every way of dividing it; rows are
divided until the plan is as precise as asked for. Draws are addressed by pair and number, so that what is drawn does
not depend on when.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined, kernel
from gainful.planning.rounding import counts_slack
from gainful.rng import draw
from gainful.variates import beta, first_share, gamma_from_one, log_gamma, open_uniform

SHARED_UP_TO = 3.0
"""α·u up to which the rest is divided share by share; above, all of it at once."""
SMALL_PRIOR = 0.5
"""The largest α for which it is."""
SAMPLE_DAMPING = 0.9
UNDIVIDED = 0.125
"""The part of the precision that mass not yet divided may take."""
POLICY_SWEEPS = 60
"""Sweeps of one policy between two maxima over actions, at most."""
POLICY_GOAL = 0.1
"""They end when the bracket of the policy is this part of that of the last maximum."""


class PosteriorCounts(NamedTuple):
    """What was observed: pair k has `length[k]` next states from `begin[k]` on."""

    begin: Any
    length: Any
    next_state: Any
    count: Any
    visits: Any
    reward_sum: Any
    allowed: Any
    """(S*A,)"""


class PosteriorLaw(NamedTuple):
    """The prior, and the stream of the sample."""

    n_states: int
    n_actions: int
    prior: float
    """α of the Dirichlet rows."""
    reward_prior: float
    reward_max: float
    key: Any


class DrawnModel(NamedTuple):
    """What has been drawn of the sample; row k has room for all S states, from k·S on."""

    state: Any
    """(S*A*S,) the next states of each row that have their probability."""
    p: Any
    """(S*A*S,) these probabilities."""
    size: Any
    """(S*A,) their number."""
    rest: Any
    """(S*A,) the probability not yet divided among the other states."""
    next_draw: Any
    """(S*A,) the number of the next draw of each pair."""
    rewards: Any
    """(S*A,) -inf for a pair that is not allowed."""


def empty_model(n_states: int, n_actions: int) -> DrawnModel:
    """Room for a model. Pages of memory that rows do not need are never touched."""
    pairs = n_states * n_actions
    return DrawnModel(
        np.empty(pairs * n_states, dtype=np.uint32),
        np.empty(pairs * n_states),
        np.empty(pairs, dtype=np.uint64),
        np.empty(pairs),
        np.empty(pairs, dtype=np.uint64),
        np.empty(pairs),
    )


@inlined
def _draw_pair(counts: PosteriorCounts, law: PosteriorLaw, k: int, model: DrawnModel) -> None:
    """The mean reward of pair k, the probabilities of the next states seen, and the rest."""
    n, at = np.uint64(k) << np.uint64(32), np.uint64(k * law.n_states)
    seen, rest, total = counts.length[k], 1.0, 0.0
    if counts.allowed[k]:
        wins = min(counts.reward_sum[k] / law.reward_max, float(counts.visits[k]))
        mean, n = beta(law.reward_prior + wins, law.reward_prior + counts.visits[k] - wins, law.key, n)
        model.rewards[k] = law.reward_max * mean
    else:
        model.rewards[k] = -np.inf
        rest = 0.0
    for j in range(seen):
        from_here = counts.begin[k] + j
        g, n = gamma_from_one(law.prior + counts.count[from_here], law.key, n)
        model.state[at + np.uint64(j)], model.p[at + np.uint64(j)] = counts.next_state[from_here], g
        total += g
    if seen == law.n_states:
        rest = 0.0
    elif seen > 0:
        log, n = log_gamma(law.prior * (law.n_states - seen), law.key, n)
        rest = math.exp(log)
    scale = 1.0 / (total + rest) if total + rest > 0.0 else 0.0
    for j in range(seen):
        model.p[at + np.uint64(j)] *= scale
    model.size[k], model.rest[k], model.next_draw[k] = seen, rest * scale, n


@inlined
def _contains(states: Any, first: Any, end: Any, state: Any) -> bool:
    """Whether `state` is among states[first:end]."""
    found = False
    for j in range(first, end):
        found |= states[j] == state
    return found


@inlined
def _divide_at_once(law: PosteriorLaw, k: int, model: DrawnModel) -> None:
    """Divide all of the rest of pair k by one Gamma variable, in logarithms, for each state not yet listed."""
    n, first = model.next_draw[k], np.uint64(k * law.n_states)
    listed = first + model.size[k]
    end, top = listed, -np.inf
    for state in range(law.n_states):
        if not _contains(model.state, first, listed, state):
            log, n = log_gamma(law.prior, law.key, n)
            model.p[end], model.state[end] = log, state
            top = max(top, log)
            end += np.uint64(1)
    total = 0.0
    for j in range(listed, end):
        model.p[j] = math.exp(model.p[j] - top)
        total += model.p[j]
    for j in range(listed, end):
        model.p[j] *= model.rest[k] / total
    model.size[k], model.rest[k], model.next_draw[k] = end - first, 0.0, n


@inlined
def _divide(counts: PosteriorCounts, law: PosteriorLaw, k: int, model: DrawnModel) -> None:
    """Give a random state that pair k does not list its share of the rest, or all such states theirs."""
    left = law.n_states - np.int64(model.size[k])
    fresh = np.int64(model.size[k]) == counts.length[k]
    if fresh and left > 1 and (law.prior > SMALL_PRIOR or law.prior * left > SHARED_UP_TO):
        _divide_at_once(law, k, model)
    else:
        n, rest, first, share = model.next_draw[k], model.rest[k], np.uint64(k * law.n_states), 1.0
        end = first + model.size[k]
        if left > 1:
            share, n = first_share(law.prior, law.prior * (left - 1), law.key, n)
        state, searching = np.uint32(0), True
        while searching:
            state = np.uint32(open_uniform(draw(law.key, n)) * law.n_states)
            n += np.uint64(1)
            searching = _contains(model.state, first, end, state)
        model.state[end], model.p[end], model.size[k] = state, share * rest, end + np.uint64(1) - first
        model.rest[k], model.next_draw[k] = (1.0 - share) * rest, n


@inlined
def _expected(states: Any, p: Any, first: Any, size: Any, v: Any) -> float:
    """p·v of one row."""
    total = 0.0
    for j in range(first, first + size):
        total += p[j] * v[states[j]]
    return total


@inlined
def _largest(q: Any) -> int:
    """The first index of the largest number."""
    at = 0
    for a in range(1, q.size):
        if q[a] > q[at]:
            at = a
    return at


@kernel
def write_rows(law: PosteriorLaw, model: DrawnModel, rows: Any) -> None:
    """Draw what is still missing of a model, and write its rows, (S*A, S); 0 for pairs that are not allowed."""
    law, model = PosteriorLaw(*law), DrawnModel(*model)
    rows[:] = 0.0
    for k in range(rows.shape[0]):
        if model.rest[k] > 0.0:
            _divide_at_once(law, k, model)
        first = np.uint64(k * law.n_states)
        for j in range(first, first + model.size[k]):
            rows[k, model.state[j]] = model.p[j]


@inlined
def _sweep_policy(law: PosteriorLaw, model: DrawnModel, goal: float, v: Any, actions: Any, out: Any) -> int:
    """Sweeps of the policy alone until its bracket is no wider than `goal`; their number."""
    sweeps, narrow = 0, False
    while sweeps < POLICY_SWEEPS and not narrow:
        most, least = -np.inf, np.inf
        for s in range(law.n_states):
            k = s * law.n_actions + actions[s]
            first = np.uint64(k * law.n_states)
            gain = model.rewards[k] - v[s] + _expected(model.state, model.p, first, model.size[k], v)
            out[s] = gain
            most, least = max(most, gain), min(least, gain)
        narrow = most - least <= goal
        if not narrow:
            for s in range(law.n_states):
                v[s] += SAMPLE_DAMPING * out[s]
        sweeps += 1
    return sweeps


@kernel
def plan_on_sample(
    counts: PosteriorCounts, law: PosteriorLaw, precision: float, max_sweeps: int, model: DrawnModel, v: Any, act: Any
) -> tuple[float, float, int, bool]:
    """Draw a model and plan in it from v on, to `precision`; the bracket of its gain, sweeps, and whether it is narrow.

    Modified policy iteration: Lv(s) = max_a { r + p·v }, mass not yet divided where v is largest, and then sweeps of
    the policy found. v and `act` are those of the last maximum.
    """
    counts, law, model = PosteriorCounts(*counts), PosteriorLaw(*law), DrawnModel(*model)
    S, A = law.n_states, law.n_actions
    best, q = np.empty(S), np.empty(A)
    for k in range(S * A):
        _draw_pair(counts, law, k, model)
    low, high, sweeps, narrow = -np.inf, np.inf, 0, False
    while sweeps < max_sweeps and not narrow:
        least = v.min()
        for s in range(S):
            v[s] -= least
        top = v.max()
        enough = UNDIVIDED * precision / max(top, 1e-300)
        low, high = np.inf, -np.inf
        for s in range(S):
            for a in range(A):
                k = s * A + a
                own = _expected(model.state, model.p, np.uint64(k * S), model.size[k], v)
                q[a] = model.rewards[k] + own + model.rest[k] * top
            a = _largest(q)
            k = s * A + a
            while model.rest[k] > enough:
                _divide(counts, law, k, model)
                own = _expected(model.state, model.p, np.uint64(k * S), model.size[k], v)
                q[a] = model.rewards[k] + own + model.rest[k] * top
                a = _largest(q)
                k = s * A + a
            best[s], act[s] = q[a], a
            high, low = max(high, q[a] - v[s]), min(low, q[a] - v[s] - model.rest[k] * top)
        sweeps += 1
        slack = counts_slack(S, top, law.reward_max)
        low, high = low - slack, high + slack
        narrow = high - low <= precision
        if not narrow:
            for s in range(S):
                v[s] += SAMPLE_DAMPING * (best[s] - v[s])
            goal = max(POLICY_GOAL * (high - low), 0.5 * precision)
            sweeps += _sweep_policy(law, model, goal, v, act, best)
    return low, high, sweeps, narrow
