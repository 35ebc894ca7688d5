"""Models drawn from a posterior, row by row: their shares for the calibration, and what their pairs are worth.

The rows are those of `gainful.agents.posterior_planning.DrawnModel`: the next states seen come first, in the order of
the counts, then as many of the others as were told apart; `rest` is the mass of those that were not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.agents.posterior_planning import SHARED_UP_TO, SMALL_PRIOR, DrawnModel
from gainful.audit.calibration import JUDGED_APART_BELOW, SEEN_SHARE, UNSEEN_RANK, UNSEEN_SHARE, UNSEEN_TOTAL
from gainful.audit.findings import Floats
from gainful.audit.rows import CountedRows

MIXED, BY_RULE, AT_ONCE = range(3)
"""How the mass of states never seen was divided: in both ways, as the prior says, or among all of them at once."""


class ShareDraws(NamedTuple):
    """What `broken_sticks` fills: shares one/(one + others) of parameters a and b, and ranks among numbers."""

    one: Any
    others: Any
    a: Any
    b: Any
    group: Any
    rank: Any
    among: Any
    rank_group: Any


def room_for(pairs: int, entries: int) -> ShareDraws:
    """Arrays with room for the shares of `pairs` rows with so many counted entries."""
    n = entries + 2 * pairs
    floats, ints = (np.empty(n) for _ in range(4)), (np.empty(n, dtype=np.int64) for _ in range(4))
    return ShareDraws(*floats, *ints)


@kernel
def broken_sticks(
    rows: CountedRows, model: DrawnModel, possible: Any, prior: float, division: int, out: ShareDraws
) -> tuple[int, int]:
    """Break the rows of a sample into shares; the number of shares and of ranks.

    Row k is Dirichlet(prior + counts). The mass of the u states never seen is Beta(u·prior, m·prior + N) of the whole;
    the share of each state seen in what is left of their mass is Beta(prior + n, the rest of it). Of the states never
    seen, the first that was told apart is, if it was drawn by size, any of them with equal probability and takes a
    Beta(1 + prior, prior·(u - 1)) share (Pitman 1996); if all were drawn at once it is the lowest, and takes
    Beta(prior, prior·(u - 1)). Where `division` is MIXED, both may have happened in one row, and it is left out.
    """
    rows, model, out = CountedRows(*rows), DrawnModel(*model), ShareDraws(*out)
    S = model.state.size // max(1, rows.visits.size)
    n, n_ranks = 0, 0
    for k in range(rows.visits.size):
        if not possible[k]:
            continue
        few, first = np.int64(rows.visits[k] >= JUDGED_APART_BELOW), k * S
        m, size = np.int64(rows.length[k]), np.int64(model.size[k])
        unseen, seen = float(model.rest[k]), 0.0
        for j in range(m, size):
            unseen += model.p[first + j]
        for j in range(m):
            seen += model.p[first + j]
        u, weight = S - m, 0.0
        for j in range(m):
            weight += prior + rows.count[rows.begin[k] + j]
        if m > 0 and u > 0:
            out.one[n], out.others[n], out.a[n], out.b[n] = unseen, seen, u * prior, weight
            out.group[n] = 2 * UNSEEN_TOTAL + few
            n += 1
        left = 0.0
        for j in range(m - 1, 0, -1):
            i = j - 1
            left += model.p[first + j]
            out.one[n + i], out.others[n + i] = model.p[first + i], left
        for i in range(m - 1):
            a = prior + rows.count[rows.begin[k] + i]
            weight -= a
            out.a[n + i], out.b[n + i], out.group[n + i] = a, weight, 2 * SEEN_SHARE + few
        if m > 1:
            n += int(m) - 1
        if division != MIXED and u > 1 and size > m and unseen > 0.0:
            at_once = division == AT_ONCE or prior > SMALL_PRIOR or prior * u > SHARED_UP_TO
            one, others = model.p[first + m], float(model.rest[k])
            for j in range(m + 1, size):
                others += model.p[first + j]
            out.one[n], out.others[n] = one, others
            out.a[n], out.b[n], out.group[n] = (
                (prior if at_once else 1.0 + prior),
                prior * (u - 1),
                2 * UNSEEN_SHARE + few,
            )
            n += 1
            if not at_once:
                rank = np.int64(model.state[first + m])
                for j in range(m):
                    rank -= rows.next_state[rows.begin[k] + j] < model.state[first + m]
                out.rank[n_ranks], out.among[n_ranks], out.rank_group[n_ranks] = rank, u, 2 * UNSEEN_RANK + few
                n_ranks += 1
    return n, n_ranks


@kernel
def sample_errors(rows: CountedRows, model: DrawnModel, possible: Any, reward_max: float, out: Any) -> None:
    """Fill out[k]: how far row k is from a distribution, and its reward from [0, r_max]; inf if states are wrong.

    The states seen come first, in the order of the counts, every state is listed once, and all mass adds up to 1.
    """
    rows, model = CountedRows(*rows), DrawnModel(*model)
    S = model.state.size // max(1, rows.visits.size)
    listed = np.full(S, -1, dtype=np.int64)
    for k in range(rows.visits.size):
        out[k] = 0.0
        if not possible[k]:
            continue
        first, total = k * S, float(model.rest[k])
        wrong = max(-total, 0.0)
        for j in range(np.int64(model.size[k])):
            s, p = np.int64(model.state[first + j]), model.p[first + j]
            if s >= S or listed[s] == k or (j < rows.length[k] and s != rows.next_state[rows.begin[k] + j]):
                wrong = np.inf
            else:
                listed[s] = k
            total += p
            wrong = max(wrong, -p)
        if model.size[k] < rows.length[k]:
            wrong = np.inf
        r = model.rewards[k] / reward_max
        out[k] = max(max(wrong, abs(total - 1.0)), max(-r, r - 1.0))


@kernel
def sampled_values(model: DrawnModel, possible: Any, values: Any, low: Any, high: Any) -> None:
    """R + p·v of every pair; mass not told apart lies where v is least, or where it is largest."""
    model = DrawnModel(*model)
    S, least, most = values.size, values.min(), values.max()
    for k in range(possible.size):
        low[k] = high[k] = -np.inf
        if possible[k]:
            total = model.rewards[k]
            for j in range(k * S, k * S + np.int64(model.size[k])):
                total += model.p[j] * values[model.state[j]]
            low[k], high[k] = total + model.rest[k] * least, total + model.rest[k] * most


def as_drawn(
    transitions: Floats, rewards: Floats, counts: NDArray[np.bool_], possible: NDArray[np.bool_]
) -> DrawnModel:
    """A complete model, rows (S*A, S), in the form of one drawn in parts; `counts` tells which states were seen."""
    order = np.argsort(~counts, axis=1, kind="stable")
    pairs, S = transitions.shape
    return DrawnModel(
        state=order.astype(np.uint32).reshape(-1),
        p=np.take_along_axis(transitions, order, axis=1).reshape(-1),
        size=np.full(pairs, S, dtype=np.uint64),
        rest=np.zeros(pairs),
        next_draw=np.zeros(pairs, dtype=np.uint64),
        rewards=np.where(possible, rewards, -np.inf),
    )
