"""The plans of agents with confidence sets, computed again from the definition of the sets.

r̃ + max p·v over the set of a pair is written down here from the counts and the equations' widths alone. Nothing is
taken from the planner but its values, its actions and its bracket.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.audit.findings import Floats

NO_STATE = -1


class PairRows(NamedTuple):
    """The empirical rows p̄, CSR over pairs, and the next states that each pair may have."""

    indptr: Any
    next_state: Any
    p: Any
    visits: Any
    truncated: Any
    """(S*A,) whether the pair may not leave `reachable`."""
    reachable: Any
    """(S,) the next states of truncated pairs."""


class EntryBounds(NamedTuple):
    """lower ≤ p(s') ≤ upper for every entry of p̄, p(s') ≤ unseen for other states, p(s̄) ≥ floor."""

    lower: Any
    upper: Any
    unseen: Any
    floor: float
    floor_state: int
    """s̄, or -1 if no state keeps mass."""


@inlined
def best_next_state(rows: PairRows, k: int, order: Any) -> int:
    """The most valuable state that pair k may move to; `order` lists the states by falling value."""
    for s in order:
        if rows.reachable[s] or not rows.truncated[k]:
            return int(s)
    return int(order[0])


@kernel
def ball_maxima(rows: PairRows, radius: Any, values: Any, order: Any, out: Any) -> None:
    """Fill out[k] with max p·v over ‖p - p̄‖₁ ≤ radius: half the radius moves to the best state, from the worst ones.

    A pair never visited goes to the best state.
    """
    rows = PairRows(*rows)
    for k in range(rows.visits.size):
        best = best_next_state(rows, k, order)
        if rows.visits[k] == 0:
            out[k] = values[best]
            continue
        begin, end = rows.indptr[k], rows.indptr[k + 1]
        p, v = rows.p[begin:end].copy(), values[rows.next_state[begin:end]]
        moved, total = 0.5 * radius[k], 0.0
        here = 0.0
        for i in range(p.size):
            if rows.next_state[begin + i] == best:
                here = p[i]
        moved = min(moved, 1.0 - here)
        left = moved
        for i in np.argsort(v):
            taken = 0.0 if rows.next_state[begin + i] == best else min(p[i], left)
            left -= taken
            total += (p[i] - taken) * v[i]
        out[k] = total + (moved - max(left, 0.0)) * values[best]


@kernel
def interval_maxima(rows: PairRows, bounds: EntryBounds, values: Any, order: Any, out: Any) -> None:
    """Fill out[k] with max p·v over the intervals: every state has its lower bound, the best ones get the rest."""
    rows, bounds = PairRows(*rows), EntryBounds(*bounds)
    least, most = np.zeros(values.size), np.zeros(values.size)
    for k in range(rows.visits.size):
        least[:] = 0.0
        most[:] = bounds.unseen[k]
        if rows.visits[k] == 0:
            most[:] = 1.0
        else:
            for j in range(rows.indptr[k], rows.indptr[k + 1]):
                least[rows.next_state[j]], most[rows.next_state[j]] = bounds.lower[j], bounds.upper[j]
        if bounds.floor_state >= 0:
            s = bounds.floor_state
            least[s], most[s] = max(least[s], bounds.floor), max(most[s], bounds.floor)
        rest, total = 1.0 - least.sum(), (least * values).sum()
        for s in order:
            if rest <= 0.0:
                break
            if rows.reachable[s] or not rows.truncated[k]:
                more = min(most[s] - least[s], rest)
                total += more * values[s]
                rest -= more
        out[k] = total


class PlanCheck(NamedTuple):
    """Tv - v of a plan, computed again, and what its actions are worth; all relative to `reward_min`."""

    least: float
    """min (Tv - v), from above where it is known as a bracket only."""
    most: float
    """max (Tv - v), from below where it is known as a bracket only."""
    optimistic: float
    """max (Tv - v) from above: the optimistic gain is at most this."""
    played: float
    """The least, over states, of what the action played is worth less v(s)."""
    state: int
    action: int
    """Where that is."""


def check_plan(
    q_low: Floats, q_high: Floats, values: Floats, actions: NDArray[np.int64], span: float = np.inf
) -> PlanCheck:
    """Compare a plan with brackets (S, A) of r̃ + max p·v; -inf where an action is not allowed.

    T_c v = min{Lv, min Lv + c} if there is a span constraint c.
    """
    from_below, from_above = q_low.max(axis=1), q_high.max(axis=1)
    below = np.minimum(from_below, from_below.min() + span) - values
    above = np.minimum(from_above, from_above.min() + span) - values
    played = q_high[np.arange(values.size), actions] - values
    s = int(played.argmin())
    return PlanCheck(float(above.min()), float(below.max()), float(above.max()), float(played[s]), s, int(actions[s]))
