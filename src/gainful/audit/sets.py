"""The auditor of UCRL2, UCRL2B, SCAL, TUCRL and KL-UCRL: the true model in the set, the plan optimistic.

UCCRL's sets and plans on cells are computed here too, and compared with the true model by `gainful.audit.cell_sets`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from gainful._compiled import kernel
from gainful.agents.episodic import EpisodePlan, EpisodeView
from gainful.agents.extended import ExtendedAgent
from gainful.agents.kl_ucrl import KLUCRL
from gainful.agents.scal import SCAL
from gainful.agents.tucrl import TUCRL
from gainful.agents.uccrl import TabularUCCRL
from gainful.agents.ucrl2 import UCRL2
from gainful.agents.ucrl2b import UCRL2B
from gainful.audit.episodes import (
    EpisodeFactors,
    allowed_episodes,
    episode_count,
    episode_rule,
    execution_limits,
)
from gainful.audit.findings import Finding, Floats, compared, not_applicable
from gainful.audit.kl_rows import PairValues, SetsInUse, optimistic_values
from gainful.audit.rows import ANCHOR, TrueRows, counted_rows
from gainful.audit.seen import Seen
from gainful.audit.set_plans import (
    NO_STATE,
    EntryBounds,
    PairRows,
    PlanCheck,
    ball_maxima,
    check_plan,
    interval_maxima,
)
from gainful.audit.tightness import optimism_gap
from gainful.audit.truth import Truth
from gainful.errors import InvalidArgumentError
from gainful.planning.confidence import Intervals
from gainful.theory.sets import (
    kl_ucrl_radius,
    kl_ucrl_reward_width,
    scal_floor,
    scal_width,
    tucrl_radius,
    tucrl_truncated,
    uccrl_radius,
    uccrl_reward_width,
    ucrl2_radius,
    ucrl2_reward_width,
    ucrl2b_width,
)

SHOWN = 60
"""Episodes, at most, whose operator is compared with the true one: each costs a sweep."""
EVERYTHING = 2.0  # no two distributions are farther apart in ℓ₁
UNBOUNDED = 1e300  # in place of an infinite radius, which cannot be subtracted


class Widths(NamedTuple):
    """The widths that the equations give for the visited pairs; at other pairs the numbers have no meaning."""

    rewards: Floats
    """(S*A,) |r̃ − r̄| is at most this."""
    radius: Floats
    """(S*A,) of the ball of rows; empty for intervals."""
    entries: Floats
    """|p̃(s') − p̄(s')| is at most this, for each entry of p̄; empty for balls that are not made of intervals."""
    unseen: Floats
    """(S*A,) the same for a next state never seen; empty likewise."""


def widths_of(agent: ExtendedAgent, seen: Seen, t: int, widening: float = 0.0) -> Widths:
    """The equations of `gainful.theory.sets` for this agent's set, times its `width_scale`; UCCRL's has L·m^{-α}."""
    S, A, r_max, delta = agent.n_states, agent.n_actions, agent.reward_range, agent.delta
    N, scale, none = seen.visits, agent.width_scale, np.empty(0)
    if isinstance(agent, UCRL2):
        r, radius = ucrl2_reward_width(N, t, S, A, delta, r_max), ucrl2_radius(N, t, S, A, delta)
        return Widths(scale * r, scale * radius, none, none)
    if isinstance(agent, TabularUCCRL):
        given: dict[str, Any] = {"widening": widening, "delta": delta, "scale": scale}
        radius = uccrl_radius(N, t, S, A, **given)
        return Widths(uccrl_reward_width(N, t, S, A, reward_max=r_max, **given), radius, none, none)
    if isinstance(agent, KLUCRL):
        T = agent.horizon
        r, radius = kl_ucrl_reward_width(N, T, S, A, delta, r_max), kl_ucrl_radius(N, T, S, A, delta)
        return Widths(scale * r, scale * radius, none, none)
    spread = seen.p * (1.0 - seen.p)
    if isinstance(agent, UCRL2B) and not _is_published_tucrl(agent):
        r = ucrl2b_width(N, seen.variance, S, A, delta, r_max)
        entries = ucrl2b_width(N[seen.pair], spread, S, A, delta)
        return Widths(scale * r, none, scale * entries, scale * ucrl2b_width(N, 0.0, S, A, delta))
    if isinstance(agent, SCAL) or _is_published_tucrl(agent):
        r = scale * scal_width(N, seen.variance, t, S, A, delta, r_max)
        entries = scale * scal_width(N[seen.pair], spread, t, S, A, delta)
        unseen = scale * scal_width(N, 0.0, t, S, A, delta)
        relaxed = not isinstance(agent, SCAL) and not seen.states(S).all()
        return Widths(r, tucrl_radius(entries, seen.pair, unseen, S) if relaxed else none, entries, unseen)
    name = type(agent).__name__
    raise InvalidArgumentError("agent", name, problem=f"{name} has no confidence set that is audited")


def _is_published_tucrl(agent: ExtendedAgent) -> bool:
    return isinstance(agent, TUCRL) and agent.bounds == "published"


# ---------------------------------------------------------------------- the set in use against the equations


def formula_errors(agent: ExtendedAgent, plan: EpisodePlan, seen: Seen, widths: Widths, t: int) -> Floats:
    """(S*A,) how far the set and the rewards in use are from the equations, relative to 1 + the number; inf: not alike.

    A pair never visited may go anywhere for reward r_max; radii, bounds and rewards are cut at 2, [0, 1] and r_max.
    SCAL's lower bounds are the equation's unless they leave less than η_k for s̄: then those of other states are
    smaller by a common factor, and leave just that. TUCRL truncates the well-visited pairs, and every pair once all
    those of visited states are; while states are left that were never visited, it plans over the ball of radius Σβ.
    """
    possible = agent.allowed.reshape(-1)
    visited, r_max = seen.visits > 0, agent.reward_range
    used, rows, r = plan.details["confidence"], plan.details["rows"], plan.details["rewards"].reshape(-1)
    wrong = off(r, np.where(visited, np.minimum(r_max, seen.mean + widths.rewards), r_max))
    here = np.repeat(visited, np.diff(rows.indptr))  # the entries that were seen; other rows are fillers
    alike = np.array_equal(rows.indices[here], seen.next_state)
    if not alike or not np.array_equal(np.diff(rows.indptr)[visited], np.diff(seen.ptr)[visited]):
        return np.where(possible, np.inf, 0.0)
    np.maximum.at(wrong, seen.pair, off(rows.p[here], seen.p))
    if isinstance(used, Intervals) == bool(widths.radius.size):
        return np.where(possible, np.inf, 0.0)
    if widths.radius.size:
        everything = UNBOUNDED if isinstance(agent, KLUCRL) else EVERYTHING
        expected = np.where(visited, np.minimum(everything, widths.radius), everything)
        wrong = np.maximum(wrong, off(np.minimum(used.radius.reshape(-1), UNBOUNDED), expected))
    else:
        wrong = np.maximum(wrong, interval_errors(agent, plan, seen, widths, t))
    if isinstance(agent, TUCRL):
        truncated, known = truncation(agent, seen, t)
        wrong = np.maximum(wrong, used.truncated.reshape(-1) != truncated)
        wrong = np.maximum(wrong, np.repeat(used.reachable != known, agent.n_actions))
    return np.where(possible, wrong, 0.0)


def truncation(agent: ExtendedAgent, seen: Seen, t: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(S*A,) the pairs that TUCRL truncates, and (S,) the states that they may move to; other agents: none, all."""
    S, A = agent.n_states, agent.n_actions
    known = seen.states(S)
    if not isinstance(agent, TUCRL) or not known.any():
        return np.zeros(S * A, dtype=bool), np.ones(S, dtype=bool)
    truncated = tucrl_truncated(seen.visits, t, S, A)
    if truncated[np.repeat(known, A) & agent.allowed.reshape(-1)].all():
        truncated[:] = True
    return truncated, known


def interval_errors(agent: ExtendedAgent, plan: EpisodePlan, seen: Seen, widths: Widths, t: int) -> Floats:
    """(S*A,) how far the bounds in use are from the equations, relative to 1 + the number."""
    visited, used, rows = seen.visits > 0, plan.details["confidence"], plan.details["rows"]
    here = np.repeat(visited, np.diff(rows.indptr))
    wrong = np.asarray(off(used.unseen.reshape(-1), np.where(visited, np.minimum(1.0, widths.unseen), 1.0)))
    filler = np.repeat(np.arange(visited.size), np.diff(rows.indptr))[~here]
    np.maximum.at(wrong, filler, off(used.lower[~here], 0.0) + off(used.upper[~here], 1.0))
    np.maximum.at(wrong, seen.pair, off(used.upper[here], np.minimum(1.0, seen.p + widths.entries)))
    bounds = entry_bounds(agent, seen, widths, t)
    if isinstance(agent, SCAL):
        wrong = np.maximum(wrong, off(used.floor, bounds.floor) + (used.floor_state != bounds.floor_state))
    np.maximum.at(wrong, seen.pair, off(used.lower[here], bounds.lower))
    return wrong


def entry_bounds(agent: ExtendedAgent, seen: Seen, widths: Widths, t: int) -> EntryBounds:
    """The intervals of the equations: p̄ ± widths in [0, 1], and SCAL's η_k on s̄ with the room that it needs."""
    lower, upper = np.maximum(0.0, seen.p - widths.entries), np.minimum(1.0, seen.p + widths.entries)
    unseen = np.minimum(1.0, widths.unseen)
    if not isinstance(agent, SCAL):
        return EntryBounds(lower, upper, unseen, 0.0, NO_STATE)
    eta = scal_floor(t, agent.span, agent.reward_range)
    others = np.where(seen.next_state != ANCHOR, lower, 0.0)
    sums = np.bincount(seen.pair, weights=others, minlength=seen.visits.size)
    room = np.where(sums > 1.0 - eta, (1.0 - eta) / np.maximum(sums, 1e-300), 1.0)  # 1: left as they are
    lower = np.where(seen.next_state != ANCHOR, lower * room[seen.pair], lower)
    return EntryBounds(lower, upper, unseen, eta, ANCHOR)


# ---------------------------------------------------------------------- the plan against the set


def pair_brackets(agent: ExtendedAgent, view: EpisodeView, seen: Seen, widths: Widths) -> tuple[Floats, Floats]:
    """(S*A,) r̃ + max p·v over the equations' sets, from below and from above; -inf where an action is not allowed."""
    S, A, r_max, t = agent.n_states, agent.n_actions, agent.reward_range, view.step
    v, possible = view.plan.values, agent.allowed.reshape(-1)
    rewards = np.where(seen.visits > 0, np.minimum(r_max, seen.mean + widths.rewards), r_max)
    low, high = np.empty(S * A), np.empty(S * A)
    if isinstance(agent, KLUCRL):
        sets = SetsInUse(rewards, np.where(seen.visits > 0, widths.radius, np.inf), possible)
        found = PairValues(low, high, np.zeros(S * A))
        optimistic_values(tuple(counted_rows(view.statistics)), tuple(sets), v, view.plan.actions, tuple(found))
    else:
        rows = PairRows(seen.ptr, seen.next_state, seen.p, seen.visits, *truncation(agent, seen, t))
        order = np.argsort(-v)
        if widths.radius.size:
            ball_maxima(tuple(rows), widths.radius, v, order, low)
        else:
            interval_maxima(tuple(rows), tuple(entry_bounds(agent, seen, widths, t)), v, order, low)
        low = high = np.where(possible, rewards + low, -np.inf)
    return low, high


def planned_again(agent: ExtendedAgent, view: EpisodeView, seen: Seen, widths: Widths) -> PlanCheck:
    """The plan of an episode, checked with r̃ + max p·v of the equations' sets."""
    S, A, v = agent.n_states, agent.n_actions, view.plan.values
    low, high = pair_brackets(agent, view, seen, widths)
    span = agent.span if isinstance(agent, (SCAL, TabularUCCRL)) else np.inf
    return check_plan(low.reshape(S, A), high.reshape(S, A), v, view.plan.actions, span)


def off(used: Any, expected: Any) -> Floats:
    """|used − expected|/(1 + expected)."""
    return np.asarray(np.abs(used - expected) / (1.0 + expected))


# ---------------------------------------------------------------------- the true rows against the set


class RowDistances(NamedTuple):
    """How far true rows are from p̄, (S*A,) each; 0 for pairs never visited."""

    l1: Any
    """‖p - p̄‖₁."""
    kl: Any
    """KL(p̄, p)."""
    found: Any
    allowed: Any
    """The |p(s') - p̄(s')| that is largest against its width, and that width."""


@kernel
def distances(seen: Seen, widths: Widths, true: TrueRows, out: RowDistances) -> None:
    """Fill `out` for every pair.

    Both rows are sorted by next state, each listed once, and merged. A next state never seen has the width `unseen`.
    """
    nowhere = np.iinfo(np.int64).max
    for k in range(seen.visits.size):
        out.l1[k] = out.kl[k] = out.found[k] = 0.0
        out.allowed[k] = 1.0
        if seen.visits[k] == 0:
            continue
        worst = -1.0
        i, i_end, j, j_end = seen.ptr[k], seen.ptr[k + 1], true.indptr[k], true.indptr[k + 1]
        while i < i_end or j < j_end:
            x = np.int64(seen.next_state[i]) if i < i_end else nowhere
            y = np.int64(true.indices[j]) if j < j_end else nowhere
            q, p, bound = 0.0, 0.0, 0.0
            if widths.unseen.size:
                bound = widths.unseen[k]
            if x <= y:
                q = seen.p[i]
                if widths.entries.size:
                    bound = widths.entries[i]
                i += 1
            if y <= x:
                p = true.probabilities[j]
                j += 1
            away = abs(q - p)
            out.l1[k] += away
            if q > 0.0:
                out.kl[k] += q * np.log(q / p) if p > 0.0 else np.inf
            if bound > 0.0 and away / bound > worst:
                worst = away / bound
                out.found[k], out.allowed[k] = away, bound


def within_reach(
    state: int, rows: TrueRows | tuple[NDArray[Any], ...], n_states: int, n_actions: int
) -> NDArray[np.bool_]:
    """(S,) the states that the true MDP can ever be in, from `state` on."""
    ptr, idx, p = rows
    origin = np.repeat(np.arange(ptr.size - 1), np.diff(ptr)) // n_actions
    ways = (p > 0.0).astype(np.float64)
    graph = csr_matrix((ways, (origin, idx.astype(np.int64))), shape=(n_states, n_states))
    reached = np.zeros(n_states, dtype=bool)
    reached[breadth_first_order(graph, state, return_predecessors=False)] = True
    return reached


# ---------------------------------------------------------------------- the auditor


class Nearest(NamedTuple):
    """The pair of an episode where found/allowed is largest; -1 if there is none."""

    found: float
    allowed: float
    pair: int
    least: float = 0.0
    """The least that is allowed at any pair visited."""


@dataclass(frozen=True)
class SetRecord:
    """What was found as an episode began."""

    step: int
    low: float
    high: float
    """The planner's bracket of the gain."""
    span: float
    """sp(v_k)."""
    plan: PlanCheck
    """Tv_k - v_k and the actions' values, computed again."""
    formula: Nearest
    """The largest error of the set in use."""
    reward: Nearest
    """The true mean reward that is nearest to the edge of its interval."""
    row: Nearest
    """The true row that is nearest to the edge of its set."""
    truncates: bool
    """Whether TUCRL forbids a transition that the true MDP has."""


class ExecutionRecord(NamedTuple):
    """What an episode executed."""

    ratio: float
    """The largest ν/max{1, N}."""
    pair: int
    full: bool
    """Whether some pair was executed max{1, N} times."""
    steps: int
    new_states: int
    """States reached for the first time; one that was left again counts twice."""


class SetsAuditor:
    """Checks every episode of one agent with confidence sets in one MDP.

    Set `agent.on_episode = auditor.see` before the run, and ask for `findings()` when it is over.

    The true model in the set makes the plan optimistic: then L̃h* ≥ Lh* = h* + g*, and the growth rate of L̃ is at least
    g*. Two sets are not only what the equations say. SCAL's rows keep η_k on s̄: a true row with less there is moved by
    at most η_k, so L̃h* ≥ h* + g* − η_k·sp(h*), and the gain is at most c·η_k ≤ r_max/t_k lower; that much is allowed.
    TUCRL forbids well-visited pairs to move to states never visited. If the true MDP has such a transition, it is not
    in the set, however good the counts, and optimism is not guaranteed in that episode. So TUCRL's optimism is judged
    in the episodes in which no truncated pair of a state that can be reached from the start leads to a state never
    visited. (States that cannot be reached do not matter: those that can are closed, L̃h* ≥ Lh* on them, and so L̃ⁿh* ≥
    h* + n·g*.) KL-UCRL's constants are for T = `horizon` steps, and its guarantee is judged up to there.
    """

    widening = 0.0
    """L·m^{-α}, what UCCRL adds to its widths."""

    def __init__(self, agent: Any, truth: Any, simulation: Any) -> None:
        self.agent: ExtendedAgent = agent.core
        self.truth, self.simulation = truth, simulation
        agent = self.agent
        self.names: tuple[str, ...] = (
            "set-formula",
            "rewards-in-set",
            "rows-in-set",
            "optimism",
            *(("span",) if isinstance(agent, (SCAL, TabularUCCRL)) else ()),
            "certificate",
            "precision",
            "greedy",
            "episode-rule",
            "episode-count",
        )
        pairs = agent.n_states * agent.n_actions
        self._distances = RowDistances(*(np.empty(pairs) for _ in RowDistances._fields))
        self._records: list[SetRecord] = []
        self._executed: list[ExecutionRecord] = []
        self._before = np.zeros(pairs, dtype=np.int64)
        self._factors, self._factor = EpisodeFactors(agent), 1.0
        self._known = np.zeros(agent.n_states, dtype=bool)
        """The states visited before the present episode."""
        self._marks = np.geomspace(1.0, float(max(2, self.simulation.checkpoints[-1])), SHOWN - 1)
        self._last: EpisodeView | None = None
        self._tightness: dict[str, list[Any]] = {"step": [], "mean": [], "largest": []}
        self._entries: tuple[NDArray[Any], NDArray[Any]] | None = None
        """Pair and next state of the true transitions from states within reach (TUCRL)."""
        self.know(truth)

    def know(self, truth: Truth) -> None:
        """Take over the true model."""
        self._true_r = truth.rewards - self.agent.reward_min
        self._rows = TrueRows(*truth.rows)

    def state(self) -> int:
        """The state that the run is in."""
        return int(self.simulation.clock[0])

    def see(self, view: EpisodeView) -> None:
        """Examine an episode that begins, and close the one before."""
        agent, plan, t = self.agent, view.plan, view.step
        seen = Seen.of(view.statistics)
        known = seen.states(agent.n_states)
        known[self.state()] = True
        if self._records:
            self._close(seen.visits, known)
        self._known = known
        self._factor = self._factors.begin(view, seen.visits.size)
        widths = self.widths(seen, t)
        wrong = self.formula_errors(plan, seen, widths, t)
        low, high = plan.gain_bounds
        self._records.append(
            SetRecord(
                step=t,
                low=low,
                high=high,
                span=float(np.ptp(plan.values)),
                plan=self.planned_again(view, seen, widths),
                formula=Nearest(float(wrong.max()), 0.0, int(np.argmax(wrong))),
                reward=self.nearest_reward(seen, widths),
                row=self.nearest_row(seen, widths),
                truncates=self.truncates(plan),
            )
        )
        self._last = view
        if t >= self._marks[0]:
            self._marks = np.append(self._marks[self._marks > t], np.inf)
            self.measure(view)

    def widths(self, seen: Seen, t: int) -> Widths:
        """The widths that the equations give."""
        return widths_of(self.agent, seen, t, self.widening)

    def formula_errors(self, plan: EpisodePlan, seen: Seen, widths: Widths, t: int) -> Floats:
        """(S*A,) how far the set in use is from the equations."""
        return formula_errors(self.agent, plan, seen, widths, t)

    def planned_again(self, view: EpisodeView, seen: Seen, widths: Widths) -> PlanCheck:
        """The plan, checked with r̃ + max p·v of the equations' sets."""
        return planned_again(self.agent, view, seen, widths)

    def nearest_reward(self, seen: Seen, widths: Widths) -> Nearest:
        """The true mean reward that is nearest to the edge of its interval."""
        return nearest(np.abs(self._true_r - seen.mean), widths.rewards, seen.visits > 0)

    def nearest_row(self, seen: Seen, widths: Widths) -> Nearest:
        """The true row that is nearest to the edge of its set."""
        visited, out = seen.visits > 0, self._distances
        distances(seen, widths, self._rows, out)
        if isinstance(self.agent, UCRL2):
            return nearest(out.l1, np.minimum(EVERYTHING, widths.radius), visited)
        if isinstance(self.agent, KLUCRL):
            return nearest(np.maximum(out.kl, 0.0), widths.radius, visited)
        return nearest(out.found, out.allowed, visited)

    def truncates(self, plan: EpisodePlan) -> bool:
        """Whether the set of this plan forbids a transition that the true MDP has."""
        if not isinstance(self.agent, TUCRL):
            return False
        used = plan.details["confidence"]
        if self._entries is None:
            ptr, idx, p = self._rows
            S, A = self.agent.n_states, self.agent.n_actions
            reach = within_reach(int(self.simulation.clock[0]), self._rows, S, A)
            pair = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
            own = reach[pair // A] & (p > 0.0)
            self._entries = pair[own], idx[own]
        pair, to = self._entries
        return bool(np.any(used.truncated.reshape(-1)[pair] & ~used.reachable[to]))

    def measure(self, view: EpisodeView) -> None:
        """How far L̃h* lies above Lh*."""
        gap = optimism_gap(view.plan, view.statistics, self.truth.bias, self.truth.gain - self.agent.reward_min)
        for name, value in (("step", view.step), ("mean", float(gap.mean())), ("largest", float(gap.max()))):
            self._tightness[name].append(value)

    def _close(self, visits: NDArray[np.int64], known: NDArray[np.bool_]) -> None:
        """Record what the finished episode executed."""
        nu = visits - self._before
        ratio = nu / execution_limits(self._before, self._factor)
        at = int(np.argmax(ratio))
        reached = known & ~self._known
        left = reached & (visits.reshape(known.size, -1).sum(axis=1) > 0)  # a new state must end the episode at once
        new = int(reached.sum() + left.sum())
        full = bool(np.any(ratio == 1.0))
        self._executed.append(ExecutionRecord(float(ratio[at]), at, full, int(nu.sum()), new))
        self._before = visits

    # ------------------------------------------------------------------ findings

    def findings(self) -> tuple[dict[str, Finding], dict[str, Any]]:
        """Each statement's finding, and the tightness of optimism over time to show."""
        agent = self.agent
        if len(self._executed) < len(self._records):
            seen = Seen.of(agent.statistics)
            known = seen.states(agent.n_states)
            known[self.state()] = True
            self._close(seen.visits, known)
        if self._last is not None and self._tightness["step"][-1:] != [self._last.step]:
            self.measure(self._last)
        step = np.array([record.step for record in self._records], dtype=np.float64)
        promised = step <= agent.horizon if isinstance(agent, KLUCRL) else np.ones(step.size, dtype=bool)
        r_max, records = agent.reward_range, self._records
        width = [record.high - record.low for record in records]
        found = {
            "set-formula": self._at_pairs([record.formula for record in records], step > 0, step, 1e-12),
            "rewards-in-set": self._at_pairs(
                [record.reward for record in records], promised, step, 1e-12 * r_max, most=r_max
            ),
            "rows-in-set": self._at_pairs(
                [record.row for record in records], promised, step, 1e-12, most=self._farthest_row
            ),
            "optimism": self._optimism(promised, step),
            "precision": compared(width, r_max / np.sqrt(step), step, rounding=1e-12 * r_max),
            **self._plans(step),
            **self._episodes(step),
        }
        if isinstance(agent, (SCAL, TabularUCCRL)):
            spans = [record.span for record in records]
            found["span"] = compared(spans, agent.span, step, rounding=1e-12 * (agent.span + r_max))
        shown = {"tightness": self._tightness} if self._tightness["step"] else {}
        return {name: found[name] for name in self.names}, shown

    @property
    def _farthest_row(self) -> float:
        """No row is farther from p̄ than this, in the distance of the set: ℓ₁, KL(p̄, p) or that of one entry."""
        balls = isinstance(self.agent, (UCRL2, TabularUCCRL))
        return EVERYTHING if balls else np.inf if isinstance(self.agent, KLUCRL) else 1.0

    def _at_pairs(
        self, cases: list[Nearest], which: NDArray[np.bool_], step: Floats, rounding: float, most: float = np.inf
    ) -> Finding:
        """Compare found, never above `most`, with allowed in some of the episodes, where a pair was visited."""
        left, right, pair, least = np.array(cases).T
        at, A = np.flatnonzero(which & (pair >= 0)), self.agent.n_actions
        places = {"states": pair[at] // A, "actions": pair[at] % A}
        certain = least[at] >= most
        return compared(left[at], right[at], step[at], episodes=at + 1, rounding=rounding, certain=certain, **places)

    def _optimism(self, promised: NDArray[np.bool_], step: Floats) -> Finding:
        """The planned gain is at least g*, in the episodes in which that is guaranteed."""
        agent, truth = self.agent, self.truth
        truncates = np.array([record.truncates for record in self._records])
        if isinstance(agent, (SCAL, TabularUCCRL)) and truth.span > agent.span * (1.0 + 1e-9):
            return not_applicable(
                f"the optimal bias has span {truth.span:.6g}, more than c = {agent.span:g}: the theorem does not apply"
            )
        if truncates.all():
            return not_applicable("in every episode truncation forbids a transition that the true MDP has")
        high = np.array([record.plan.optimistic for record in self._records]) + agent.reward_min
        if isinstance(agent, SCAL):
            high = high + np.minimum(agent.span, agent.reward_range / step)
        at = np.flatnonzero(promised & ~truncates)
        gain = np.full(at.size, truth.gain_low)
        return compared(gain, high[at], step[at], episodes=at + 1, rounding=self._rounding()[at])

    def _rounding(self) -> Floats:
        """Of one application of the operator, computed twice."""
        return np.array([1e-9 * (self.agent.reward_range + record.span) for record in self._records])

    def _plans(self, step: Floats) -> dict[str, Finding]:
        """The planner's bracket against Tv - v, and the actions played against the best ones."""
        records, base = self._records, self.agent.reward_min
        outside = [max(r.low - base - r.plan.least, r.plan.most - (r.high - base)) for r in records]
        lost = [r.plan.most - r.plan.played for r in records]
        places = {"states": [r.plan.state for r in records], "actions": [r.plan.action for r in records]}
        epsilon, rounding = self.agent.reward_range / np.sqrt(step), self._rounding()
        return {
            "certificate": compared(outside, 0.0, step, rounding=rounding),
            "greedy": compared(lost, epsilon, step, rounding=rounding, **places),
        }

    def _episodes(self, step: Floats) -> dict[str, Finding]:
        """The rule that ends episodes, and their number."""
        agent = self.agent
        tucrl, pairs = isinstance(agent, TUCRL), agent.n_states * agent.n_actions
        ratio, pair, full, steps, new = np.array(self._executed, dtype=np.float64).T
        most = allowed_episodes(self._factors.rule, steps, pairs)
        if tucrl:
            most = most + agent.n_states - 1  # each state but the first is new once
        return {
            "episode-rule": episode_rule(step, ratio, pair, full, agent.n_actions, new if tucrl else None),
            "episode-count": episode_count(step, steps, most),
        }


def nearest(found: Floats, allowed: Floats, which: NDArray[np.bool_]) -> Nearest:
    """Where found/allowed is largest among some pairs."""
    if not which.any():
        return Nearest(0.0, 1.0, -1, np.inf)
    k = int(np.argmax(np.where(which, found / np.maximum(allowed, 1e-300), -1.0)))
    return Nearest(float(found[k]), float(allowed[k]), k, float(allowed[which].min()))
