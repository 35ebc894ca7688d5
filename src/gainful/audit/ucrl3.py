"""The auditors of UCRL3, in an MDP and on cells: its intervals are not symmetric, and its plans leave states out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.agents.episodic import EpisodePlan, EpisodeView
from gainful.agents.ucrl3 import UCRL3
from gainful.audit.cell_sets import CellSetsAuditor
from gainful.audit.findings import Finding, Floats, compared
from gainful.audit.rows import TrueRows
from gainful.audit.seen import Seen
from gainful.audit.set_plans import NO_STATE, EntryBounds, PairRows, PlanCheck, check_plan, interval_maxima
from gainful.audit.sets import Nearest, SetsAuditor, Widths, nearest, off
from gainful.planning.confidence import NearOptimistic
from gainful.theory.ucrl3 import ucrl3_bounds, ucrl3_level, ucrl3_reward_width

SHRINKING_SWEEPS = 100
"""Sweeps of a plan after which its supports only grow."""


class SupportValues(NamedTuple):
    """What the supports of a plan are worth, (S*A,) each."""

    inside: Any
    """F(support): the most that a row between the bounds can earn there, values counted from min v."""
    missing: Any
    """F(outside) − min{κ, F(support)}: above 0, a state is missing; −inf if all states are in."""
    idle: Any
    """min{κ, F} − F(outside) of the support without its last state: above 0, that state was not needed; −inf: none."""


# ---------------------------------------------------------------------- the equations


def ucrl3_widths(agent: UCRL3, seen: Seen, bounds: EntryBounds) -> Widths:
    """The width of rewards; that of an entry, on its wider side, is only for a look at how wide intervals are."""
    level = ucrl3_level(agent.n_states, agent.n_actions, agent.delta)
    rewards = ucrl3_reward_width(seen.visits, seen.variance, level, agent.reward_range, agent.width_scale)
    return Widths(rewards, np.empty(0), np.maximum(bounds.upper - seen.p, seen.p - bounds.lower), bounds.unseen)


def ucrl3_entry_bounds(agent: UCRL3, seen: Seen) -> EntryBounds:
    """The bounds of every entry of p̄, and of a next state never seen."""
    level = ucrl3_level(agent.n_states, agent.n_actions, agent.delta)
    given: dict[str, Any] = {"scale": agent.width_scale, "tails": agent.tails}
    n = seen.visits[seen.pair]
    lower, upper = ucrl3_bounds(seen.p, n, level, **given)
    if agent.published_code:
        lower = np.where(seen.p == 1.0, np.maximum(lower, 0.5 ** (1.0 / n)), lower)
    _, unseen = ucrl3_bounds(np.zeros(seen.visits.size), seen.visits, level, **given)
    return EntryBounds(lower, upper, unseen, 0.0, NO_STATE)


def ucrl3_tolerance(seen: Seen) -> Floats:
    """(S*A,) κ/sp(v) = 10·|supp p̄|/max{1, max N}^{2/3}."""
    return np.asarray(10.0 * np.diff(seen.ptr) / max(1, int(seen.visits.max())) ** (2.0 / 3.0))


def ucrl3_errors(agent: UCRL3, plan: EpisodePlan, seen: Seen, rewards: Floats, bounds: EntryBounds) -> Floats:
    """(S*A,) how far the set and the rewards in use are from the equations, relative to 1 + the number; inf: not alike.

    A pair never visited may go anywhere for reward r_max.
    """
    possible, visited, r_max = agent.allowed.reshape(-1), seen.visits > 0, agent.reward_range
    used, rows, r = plan.details["confidence"], plan.details["rows"], plan.details["rewards"].reshape(-1)
    here = np.repeat(visited, np.diff(rows.indptr))  # the entries that were seen; other rows are fillers
    alike = isinstance(used, NearOptimistic) and np.array_equal(rows.indices[here], seen.next_state)
    if not alike or not np.array_equal(np.diff(rows.indptr)[visited], np.diff(seen.ptr)[visited]):
        return np.where(possible, np.inf, 0.0)
    wrong = off(r, np.where(visited, np.minimum(r_max, seen.mean + rewards), r_max))
    wrong = np.maximum(wrong, off(used.unseen.reshape(-1), np.where(visited, bounds.unseen, 1.0)))
    wrong = np.maximum(wrong, off(used.tolerance.reshape(-1), ucrl3_tolerance(seen)))
    filler = np.repeat(np.arange(visited.size), np.diff(rows.indptr))[~here]
    np.maximum.at(wrong, filler, off(used.lower[~here], 0.0) + off(used.upper[~here], 1.0))
    for found, expected in ((rows.p, seen.p), (used.lower, bounds.lower), (used.upper, bounds.upper)):
        np.maximum.at(wrong, seen.pair, off(found[here], expected))
    return np.where(possible, wrong, 0.0)


# ---------------------------------------------------------------------- supports and plans


@kernel
def support_values(
    rows: PairRows, bounds: EntryBounds, kept: Any, kappa: Any, u: Any, order: Any, out: SupportValues
) -> None:
    """Fill `out` for every pair: it may move to what it has seen, and to the `kept` best other states.

    `order` lists the states by falling value, and u is v - min v.
    """
    rows, bounds, out = PairRows(*rows), EntryBounds(*bounds), SupportValues(*out)
    least, most = np.zeros(u.size), np.zeros(u.size)
    listed = np.zeros(u.size, dtype=np.bool_)
    for k in range(rows.visits.size):
        least[:], most[:], listed[:] = 0.0, bounds.unseen[k] if rows.visits[k] > 0 else 1.0, False
        for j in range(rows.indptr[k], rows.indptr[k + 1]):
            s = rows.next_state[j]
            least[s], most[s], listed[s] = bounds.lower[j], bounds.upper[j], True
        others = u.size - int(rows.indptr[k + 1] - rows.indptr[k])
        inside, outside = both_sides(least, most, listed, u, order, kept[k])
        out.inside[k] = inside
        out.missing[k] = outside - min(kappa[k], inside) if kept[k] < others else -np.inf
        out.idle[k] = -np.inf
        fewest = 0 if listed[order[0]] else 1  # the best state belongs to every support
        if kept[k] < fewest:
            out.missing[k] = np.inf
        if kept[k] > fewest:
            inside, outside = both_sides(least, most, listed, u, order, kept[k] - 1)
            out.idle[k] = min(kappa[k], inside) - outside


@inlined
def both_sides(least: Any, most: Any, listed: Any, u: Any, order: Any, kept: int) -> tuple[float, float]:
    """F(support) and F(outside), with the `kept` best states that are not listed in the support."""
    inside, outside, left = 0.0, 0.0, 1.0
    for s in range(u.size):
        inside += least[s] * u[s]
        left -= least[s]
    free, n_others = 1.0, 0
    for s in order:
        if listed[s] or n_others < kept:
            more = min(most[s] - least[s], max(left, 0.0))
            inside += more * u[s]
            left -= more
        else:
            more = min(most[s], max(free, 0.0))
            outside += more * u[s]
            free -= more
        if not listed[s]:
            n_others += 1
    return inside, outside


class UCRL3Checks(SetsAuditor):
    """What differs from other agents with sets: the equations, the supports, and what optimism is judged by.

    T, the operator on supports, is less than κ below L, that over the whole sets. Where the sets hold the true model,
    max (Lv - v) ≥ g* for every v, because L is monotone and Lh* ≥ h* + g*; `optimism` is judged by L, and `support`
    says that T is not more than κ below.
    """

    agent: UCRL3

    def __init__(self, agent: Any, truth: Any, simulation: Any) -> None:
        super().__init__(agent, truth, simulation)
        at = self.names.index("certificate")
        self.names = (*self.names[:at], "support", *self.names[at:])
        self._supports: list[Nearest] = []
        self._bounds = EntryBounds(np.empty(0), np.empty(0), np.empty(0), 0.0, NO_STATE)

    def widths(self, seen: Seen, t: int) -> Widths:  # noqa: ARG002
        """Those of the equations; the bounds are kept for what else is asked of this episode."""
        self._bounds = ucrl3_entry_bounds(self.agent, seen)
        return ucrl3_widths(self.agent, seen, self._bounds)

    def formula_errors(self, plan: EpisodePlan, seen: Seen, widths: Widths, t: int) -> Floats:  # noqa: ARG002
        """How far the set in use is from the equations."""
        return ucrl3_errors(self.agent, plan, seen, widths.rewards, self._bounds)

    def planned_again(self, view: EpisodeView, seen: Seen, widths: Widths) -> PlanCheck:
        """The plan, checked with r̃ + min v + F(support); and its supports."""
        agent, plan = self.agent, view.plan
        S, A, r_max, v = agent.n_states, agent.n_actions, agent.reward_range, view.plan.values
        possible = agent.allowed.reshape(-1)
        everywhere = np.zeros(S * A, dtype=bool), np.ones(S, dtype=bool)
        rows = PairRows(seen.ptr, seen.next_state, seen.p, seen.visits, *everywhere)
        bounds = tuple(self._bounds)
        u, order = v - v.min(), np.argsort(-v, kind="stable")
        kappa, kept = np.ptp(v) * ucrl3_tolerance(seen), plan.details["kept"]
        found, full = SupportValues(*(np.empty(S * A) for _ in SupportValues._fields)), np.empty(S * A)
        support_values(tuple(rows), bounds, kept, kappa, u, order, tuple(found))
        interval_maxima(tuple(rows), bounds, v, order, full)
        self._supports.append(self._wrong_support(found, kappa > 0.0, plan.sweeps))
        rewards = np.where(seen.visits > 0, np.minimum(r_max, seen.mean + widths.rewards), r_max)
        near = np.where(possible, rewards + (v.min() + found.inside), -np.inf).reshape(S, A)
        whole = np.where(possible, rewards + full, -np.inf).reshape(S, A)
        check = check_plan(near, near, v, plan.actions)
        return check._replace(optimistic=float((whole.max(axis=1) - v).max()))

    def _wrong_support(self, found: SupportValues, matters: NDArray[np.bool_], sweeps: int) -> Nearest:
        """By how much the rule for supports is broken, and where; with κ = 0 all states may be in."""
        broken = found.missing.copy()
        if sweeps <= SHRINKING_SWEEPS:
            broken = np.maximum(broken, np.where(matters, found.idle, -np.inf))
        broken = np.where(self.agent.allowed.reshape(-1), broken, -np.inf)
        k = int(np.argmax(broken))
        return Nearest(max(float(broken[k]), -1e300), 0.0, k)

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, that on supports among them."""
        names, self.names = self.names, tuple(name for name in self.names if name != "support")
        found, shown = super().findings()
        self.names = names
        broken, _, pair, _ = np.array(self._supports).T
        step = [record.step for record in self._records]
        places = {"states": pair // self.agent.n_actions, "actions": pair % self.agent.n_actions}
        found["support"] = compared(broken, 0.0, step, rounding=self._rounding(), **places)
        return {name: found[name] for name in names}, shown


class UCRL3Auditor(UCRL3Checks):
    """Checks every episode of one UCRL3 agent in one MDP.

    Parameters
    ----------
    agent : UCRL3
        A new agent.
    truth : Truth
        The MDP, solved.
    simulation : TabularSimulation
        The run that is about to begin.
    """

    def nearest_row(self, seen: Seen, widths: Widths) -> Nearest:  # noqa: ARG002
        """The true probability that is nearest to an end of its interval, on its own side."""
        away, allowed = distances_to_ends(seen, self._bounds, self._rows, self.agent.n_states)
        return nearest(away, allowed, seen.visits > 0)


class DiscretizedUCRL3Auditor(UCRL3Checks, CellSetsAuditor):
    """Checks the sets, plans and episodes of UCRL3 on cells.

    Parameters
    ----------
    agent : Discretized
        A new agent.
    truth : CellsTruth
        The environment, solved as far as its law is known.
    simulation : ContinuousSimulation
        The run that is about to begin.
    """


def distances_to_ends(seen: Seen, bounds: EntryBounds, true: TrueRows, n_states: int) -> tuple[Floats, Floats]:
    """(S*A,) |p − p̄| of the next state that is nearest to its end, and how far that end is from p̄.

    Entries that were seen come first, then true ones that were not, which have p̄ = 0.
    """
    key = seen.pair * n_states + seen.next_state
    pair = np.repeat(np.arange(true.indptr.size - 1), np.diff(true.indptr))
    true_key = pair * n_states + true.indices
    order = np.argsort(true_key)
    at = np.minimum(np.searchsorted(true_key[order], key), true_key.size - 1)
    p = np.where(true_key[order][at] == key, true.probabilities[order][at], 0.0)
    new = ~np.isin(true_key, key) & (seen.visits[pair] > 0)
    away = np.concatenate([np.abs(p - seen.p), true.probabilities[new]])
    own = np.where(p > seen.p, bounds.upper - seen.p, seen.p - bounds.lower)
    ends = np.concatenate([own, bounds.unseen[pair[new]]])
    pairs = np.concatenate([seen.pair, pair[new]])
    ratio = away / np.maximum(ends, 1e-300)
    worst = np.lexsort((ratio, pairs))
    last = np.flatnonzero(np.diff(pairs[worst], append=-1))  # the largest ratio of each pair
    found, allowed = np.zeros(seen.visits.size), np.ones(seen.visits.size)
    found[pairs[worst][last]], allowed[pairs[worst][last]] = away[worst][last], ends[worst][last]
    return found, allowed
