"""Extended value iteration: the best policy of the most favourable MDP in a confidence set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError, NotConvergedError
from gainful.mdp.model import MDP
from gainful.planning.arguments import checked_precision, positive_cap, precision_error, start_vector
from gainful.planning.confidence import Confidence, Intervals, KLBall, L1Ball
from gainful.planning.improvement import project
from gainful.planning.intervals import interval_rows, interval_sweeps, interval_values
from gainful.planning.kl import kl_rows, kl_sweeps, kl_values
from gainful.planning.l1 import l1_rows, l1_sweeps, l1_values
from gainful.planning.mixture import Mixture, constrained_greedy
from gainful.planning.plan import Plan, make_plan
from gainful.planning.rewards import replaced_rewards
from gainful.planning.rounding import UNIT_ROUNDOFF, rounding_slack

BATCH_ENTRIES = 1 << 22  # transitions read by one call of a kernel, between two chances for Ctrl-C


class OptimisticRows(NamedTuple):
    """One transition row per state, as CSR: the member of the confidence set that the operator chose."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    probabilities: NDArray[np.float64]


def extended_value_iteration(
    mdp: MDP,
    confidence: Confidence,
    *,
    precision: float = 1e-8,
    max_sweeps: int = 100_000,
    damping: float = 0.9,
    span: float | None = None,
    mixture: Mixture = "copy",
    rewards: ArrayLike | None = None,
    start_values: ArrayLike | None = None,
) -> Plan:
    r"""The optimal gain over all policies and all MDPs with rows in `confidence`.

    Lv(s) = max_a { r(s,a) + max_{p in set(s,a)} p·v }, iterated as v <- v + damping·(Lv - v). Stops when
    [min(Lv - v), max(Lv - v)], widened for rounding, is no wider than `precision`: the growth rate of L, which is
    the optimistic gain, lies inside `gain_bounds` (Puterman 1994, sec. 8.5; Jaksch, Ortner & Auer 2010, sec. 3.1.2).
    Needs an extended MDP whose optimal gain is constant: positive radii, or positive widths with a positive `unseen`,
    make every state reachable from every other; a positive `floor` is enough too.
    `damping` < 1 is for periodic chains: where the sets are nearly points the extended MDP is as periodic as
    the empirical one. 0.9 costs an aperiodic problem about 1/0.9 times the sweeps.

    `span=c` truncates: T_c v = min{Lv, min Lv + c}, on v first cut to span c, with rewards >= 0 (SCAL,
    Fruit et al. 2018). The bracket then is of the growth rate of T_c. Where T_c cuts, at th = min Lv + c, the policy
    mixes the best pair, of value Lv(s), and a pair of reward 0 and value m <= th, with weights (th-m)/(Lv-m)
    and (Lv-th)/(Lv-m): with `mixture="copy"` the copy of the best action itself, so that `actions` is deterministic;
    with "min-action" the copy of argmin_a min_p p·v. `augmented` has the weights on actions and copies.

    `rewards` (S,A), in the units of `mdp.rewards`, replaces the MDP's own (optimistic rewards). Ties go to the
    lowest index. `details["rows"]` are the rows chosen for the best actions, `details["copy_rows"]` those of the
    reward-0 copies where they have weight, `details["truncated"]` the states where T_c cuts.

    Raises NotConvergedError and PrecisionError, which carry the partial plan.

    >>> mdp = MDP([[[0.9, 0.1]], [[0.5, 0.5]]], [[1.0], [0.0]])
    >>> round(extended_value_iteration(mdp, L1Ball(np.full((2, 1), 0.2))).gain, 6)
    1.0
    """
    S, A = mdp.n_states, mdp.n_actions
    wanted = checked_precision(mdp, precision)
    max_sweeps = positive_cap("max_sweeps", max_sweeps)
    if not 0.0 < damping <= 1.0:
        raise InvalidArgumentError(f"damping is {damping}, expected a number in (0, 1]")
    if span is not None and not 0.0 <= span < np.inf:
        raise InvalidArgumentError(f"span is {span}, expected a finite number >= 0")
    if mixture not in ("copy", "min-action"):
        raise InvalidArgumentError(f"mixture is {mixture!r}, expected 'copy' or 'min-action'")
    cut = np.inf if span is None else float(span)
    r = _rewards(mdp, rewards, span is not None)  # (S*A,)
    v = start_vector(mdp, start_values)
    project(v, cut)
    inner = inner_maximum(mdp, confidence)
    q, best = np.empty(S * A), np.zeros(S)
    reward_scale = float(np.abs(r).max())
    scale = rounding_slack(inner.n_terms, 1.0, 0.0)
    batch = max(1, BATCH_ENTRIES // (inner.cost * (mdp.n_transitions + S)))
    sweeps, converged = 0, False
    low, high, slack = -np.inf, np.inf, 0.0
    while not converged and sweeps < max_sweeps:
        limits = (A, damping, cut, wanted, scale, reward_scale, min(batch, max_sweeps - sweeps), sweeps > 0)
        n, low, high, slack, converged = inner.sweeps(v, q, best, r, limits)
        sweeps += n
        if not converged and 2.0 * slack > wanted and high - low <= wanted + 4.0 * slack:
            break
    method = "extended value iteration" if span is None else "span-constrained extended value iteration"
    plan = _plan(mdp, inner, v, q, best, r, low, high, slack, sweeps, method, span, mixture)
    if converged:
        return plan
    if 2.0 * slack > wanted:
        raise precision_error(mdp, precision, slack, plan)
    width = plan.gain_bounds[1] - plan.gain_bounds[0]
    raise NotConvergedError(
        f"bracket {width:.1e} wide after {sweeps} sweeps (wanted {precision:.1e}); raise max_sweeps", plan
    )


# ---------------------------------------------------------------------- one object per kind of set


class InnerMaximum(Protocol):
    """The inner maximum of one kind of set, with its working arrays."""

    @property
    def n_terms(self) -> int:
        """Terms in the longest sum behind one value, for the rounding slack."""

    @property
    def cost(self) -> int:
        """Rough cost of one transition, in those of a plain sweep."""

    def sweeps(
        self, v: NDArray[Any], q: NDArray[Any], best: NDArray[Any], r: NDArray[Any], limits: tuple[Any, ...]
    ) -> tuple[int, float, float, float, bool]:
        """As `l1_sweeps`: number of sweeps, bracket, slack, whether converged."""

    def values(self, v: NDArray[Any], r: NDArray[Any], q: NDArray[Any]) -> None:
        """Write r + max p·v of every pair into q."""

    def rows(self, v: NDArray[Any], pairs: NDArray[Any]) -> OptimisticRows:
        """The maximising rows of `pairs`; an empty row for -1."""


@dataclass
class _Rows:
    """Working copy of the MDP's rows, a next state listed once."""

    indptr: NDArray[np.uint64]
    indices: NDArray[np.uint32]
    probabilities: NDArray[np.float64]
    first: NDArray[np.int64]  # where each merged entry starts among the MDP's entries

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of entries of each row."""
        begin = self.indptr.astype(np.int64)
        return begin[1:] - begin[:-1]


class _L1Maximum:
    cost = 4

    def __init__(self, mdp: MDP, ball: L1Ball) -> None:
        rows = _merged(mdp)
        _same_shape(mdp, "radius", ball.radius)
        mask, level = _levels(mdp, rows, ball.reachable, ball.truncated)
        p = rows.probabilities.reshape(-1, 1)
        self.arrays = (rows.indptr, rows.indices, p, ball.radius.flatten(), mask, level)
        self.n_terms = 2 * (int(rows.lengths.max()) + 1)

    def sweeps(
        self, v: NDArray[Any], q: NDArray[Any], best: NDArray[Any], r: NDArray[Any], limits: tuple[Any, ...]
    ) -> tuple[int, float, float, float, bool]:
        found: tuple[int, float, float, float, bool] = l1_sweeps(v, q, best, *self.arrays, r, *limits)
        return found

    def values(self, v: NDArray[Any], r: NDArray[Any], q: NDArray[Any]) -> None:
        l1_values(v, *self.arrays, r, q)

    def rows(self, v: NDArray[Any], pairs: NDArray[Any]) -> OptimisticRows:
        return _collected(lambda *out: l1_rows(v, pairs, *self.arrays, *out), pairs.size)


class _IntervalMaximum:
    cost = 8

    def __init__(self, mdp: MDP, intervals: Intervals) -> None:
        S = mdp.n_states
        rows = _merged(mdp)
        _same_shape(mdp, "unseen", intervals.unseen)
        if intervals.lower.size != mdp.n_transitions:
            raise InvalidArgumentError(
                f"{intervals.lower.size} lower bounds for {mdp.n_transitions} stored transitions, expected one for each"
            )
        lower = np.add.reduceat(intervals.lower, rows.first)
        upper = np.minimum(np.add.reduceat(intervals.upper, rows.first), 1.0)
        unseen = intervals.unseen.flatten()
        mask, level = _levels(mdp, rows, intervals.reachable, intervals.truncated)
        if intervals.floor > 0.0 and intervals.floor_state is not None:
            rows, lower, upper = _with_floor(rows, lower, upper, unseen, intervals.floor_state, intervals.floor)
        lengths = rows.lengths
        filled = lengths > 0
        begin = rows.indptr[:-1][filled].view(np.int64)
        least, most = np.zeros(lengths.size), np.zeros(lengths.size)
        least[filled] = np.add.reduceat(lower, begin)
        most[filled] = np.add.reduceat(upper, begin)
        most += unseen * (mask.sum(axis=1)[level] - lengths)
        rounding = 4.0 * (lengths + 4) * UNIT_ROUNDOFF
        wrong = np.flatnonzero(filled & ((least > 1.0 + rounding) | (most < 1.0 - rounding)))
        if wrong.size:
            s, a = divmod(int(wrong[0]), mdp.n_actions)
            raise InvalidArgumentError(
                f"no distribution lies in the intervals of state {mdp.state_name(s)}, action {mdp.action_name(a)}: "
                f"lower bounds sum to {least[wrong[0]]:.10g}, upper bounds to {most[wrong[0]]:.10g}, "
                f"expected 1 between them; {wrong.size} of {mdp.n_pairs} pairs"
            )
        load = np.stack([lower, upper - lower], axis=1)
        order = np.arange(S, dtype=np.uint32)
        free = np.maximum(1.0 - least, 0.0)
        self.arrays = (order, rows.indptr, rows.indices, load, free, unseen, mask, level)
        self.n_terms = 4 * (int(lengths.max()) + 2)

    def sweeps(
        self, v: NDArray[Any], q: NDArray[Any], best: NDArray[Any], r: NDArray[Any], limits: tuple[Any, ...]
    ) -> tuple[int, float, float, float, bool]:
        found: tuple[int, float, float, float, bool] = interval_sweeps(v, q, best, *self.arrays, r, *limits)
        return found

    def values(self, v: NDArray[Any], r: NDArray[Any], q: NDArray[Any]) -> None:
        interval_values(v, *self.arrays, r, q)

    def rows(self, v: NDArray[Any], pairs: NDArray[Any]) -> OptimisticRows:
        return _collected(lambda *out: interval_rows(v, pairs, *self.arrays, *out), pairs.size)


class _KLMaximum:
    cost = 64

    def __init__(self, mdp: MDP, ball: KLBall) -> None:
        rows = _merged(mdp)
        _same_shape(mdp, "radius", ball.radius)
        self.roots = np.full(ball.radius.size, np.nan)
        self.arrays = (rows.indptr, rows.indices, rows.probabilities, ball.radius.flatten(), self.roots)
        self.n_terms = 8 * (int(rows.lengths.max()) + 4)

    def sweeps(
        self, v: NDArray[Any], q: NDArray[Any], best: NDArray[Any], r: NDArray[Any], limits: tuple[Any, ...]
    ) -> tuple[int, float, float, float, bool]:
        found: tuple[int, float, float, float, bool] = kl_sweeps(v, q, best, *self.arrays, r, *limits)
        return found

    def values(self, v: NDArray[Any], r: NDArray[Any], q: NDArray[Any]) -> None:
        kl_values(v, *self.arrays, r, q)

    def rows(self, v: NDArray[Any], pairs: NDArray[Any]) -> OptimisticRows:
        return _collected(lambda *out: kl_rows(v, pairs, *self.arrays, *out), pairs.size)


def inner_maximum(mdp: MDP, confidence: Confidence) -> InnerMaximum:
    """The inner maximum over `confidence` on the rows of `mdp`, with working arrays of its own."""
    if isinstance(confidence, L1Ball):
        return _L1Maximum(mdp, confidence)
    if isinstance(confidence, Intervals):
        return _IntervalMaximum(mdp, confidence)
    if isinstance(confidence, KLBall):
        return _KLMaximum(mdp, confidence)
    raise InvalidArgumentError(
        f"confidence is a {type(confidence).__name__}, expected an L1Ball, Intervals or a KLBall"
    )


# ---------------------------------------------------------------------- input


def _same_shape(mdp: MDP, name: str, values: NDArray[Any]) -> None:
    if values.shape != (mdp.n_states, mdp.n_actions):
        expected = (mdp.n_states, mdp.n_actions)
        raise InvalidArgumentError(f"{name} has shape {values.shape}, expected (S, A) = {expected}")


def _rewards(mdp: MDP, rewards: ArrayLike | None, truncated: bool) -> NDArray[np.float64]:
    """Internal rewards (S*A,), 0 where not allowed; not negative under a span constraint."""
    r = replaced_rewards(mdp, rewards).copy()
    if truncated and r.min() < 0.0:
        s, a = divmod(int(np.argmin(r)), mdp.n_actions)
        raise InvalidArgumentError(
            f"the reward of state {mdp.state_name(s)}, action {mdp.action_name(a)} is {r.min():g}; "
            "a span constraint needs rewards >= 0: plan on mdp.normalised()"
        )
    return r


def _merged(mdp: MDP) -> _Rows:
    """The rows to work on (they are reordered in place); next states listed with several rewards are merged.

    All copies are writable: read-only arrays are another type to Numba, and compiled a second time.
    """
    rows = np.repeat(np.arange(mdp.indptr.size - 1), np.diff(mdp.indptr))
    new = np.ones(mdp.n_transitions, dtype=bool)
    new[1:] = (mdp.indices[1:] != mdp.indices[:-1]) | (rows[1:] != rows[:-1])
    first = np.flatnonzero(new)
    if first.size == mdp.n_transitions:
        return _Rows(mdp.indptr.astype(np.uint64), mdp.indices.copy(), mdp.probabilities.copy(), first)
    lengths = np.bincount(rows[first], minlength=mdp.indptr.size - 1)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    return _Rows(indptr, mdp.indices[first], np.add.reduceat(mdp.probabilities, first), first)


def _levels(
    mdp: MDP, rows: _Rows, reachable: NDArray[np.bool_] | None, truncated: NDArray[np.bool_] | None
) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """A mask (levels, S) of next states, and the level of each pair: 0 all states, 1 the reachable ones."""
    everything = np.ones((1, mdp.n_states), dtype=bool)
    if reachable is None or truncated is None:
        return everything, np.zeros(mdp.indptr.size - 1, dtype=np.uint8)
    level = truncated.reshape(-1).astype(np.uint8)
    wrong = ~reachable[rows.indices] & np.repeat(truncated.reshape(-1), rows.lengths)
    if np.any(wrong):
        j = int(np.flatnonzero(wrong)[0])
        s, a = divmod(int(np.searchsorted(rows.indptr, j, side="right")) - 1, mdp.n_actions)
        raise InvalidArgumentError(
            f"state {mdp.state_name(s)}, action {mdp.action_name(a)} is truncated, but its row lists "
            f"{mdp.state_name(int(rows.indices[j]))}, which is not reachable"
        )
    return np.concatenate([everything, reachable[None, :]]), level


def _with_floor(
    rows: _Rows,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    unseen: NDArray[np.float64],
    state: int,
    floor: float,
) -> tuple[_Rows, NDArray[np.float64], NDArray[np.float64]]:
    """Rows that all list `state`, with at least `floor` on it."""
    begin = rows.indptr.view(np.int64)
    lengths = np.diff(begin)
    here = rows.indices == state
    lower, upper = np.where(here, np.maximum(lower, floor), lower), np.where(here, np.maximum(upper, floor), upper)
    pair = np.repeat(np.arange(lengths.size), lengths)
    missing = lengths > 0
    missing[pair[here]] = False
    at = begin[:-1][missing]
    indptr = np.concatenate([[0], np.cumsum(lengths + missing)]).astype(np.uint64)
    indices = np.insert(rows.indices, at, np.uint32(state))
    new = _Rows(indptr, indices, np.insert(rows.probabilities, at, 0.0), rows.first)
    return new, np.insert(lower, at, floor), np.insert(upper, at, np.maximum(unseen[missing], floor))


# ---------------------------------------------------------------------- output


def _collected(fill: Callable[..., int], n_rows: int) -> OptimisticRows:
    """Call `fill` twice: to learn the size, then to write."""
    indptr = np.empty(n_rows + 1, dtype=np.int64)
    size = fill(indptr, np.empty(0, dtype=np.uint32), np.empty(0))
    indices, probabilities = np.empty(size, dtype=np.uint32), np.empty(size)
    fill(indptr, indices, probabilities)
    for array in (indptr, indices, probabilities):
        array.flags.writeable = False
    return OptimisticRows(indptr, indices, probabilities)


def _plan(
    mdp: MDP,
    inner: InnerMaximum,
    v: NDArray[np.float64],
    q: NDArray[np.float64],
    best: NDArray[np.float64],
    r: NDArray[np.float64],
    low: float,
    high: float,
    slack: float,
    sweeps: int,
    method: str,
    span: float | None,
    mixture: Mixture,
) -> Plan:
    """The greedy (or constrained-greedy) policy at v, with the rows behind it."""
    S, A = mdp.n_states, mdp.n_actions
    states = np.arange(S)
    actions = q.reshape(S, A).argmax(axis=1)
    rows = inner.rows(v, states * A + actions)
    details: dict[str, Any] = {"rows": rows, "greedy": actions, "slack": slack}
    if span is None:
        return make_plan(
            mdp, low=low - slack, high=high + slack, values=v, actions=actions, sweeps=sweeps, method=method,
            details=details,
        )  # fmt: skip
    threshold = float(best.min()) + span
    cut = best > threshold
    copies = actions.copy()
    least = best - r[states * A + actions]  # p·v of the best pair: the value of its copy
    copy_rows = rows
    if mixture == "min-action" and np.any(cut):
        lowest = np.empty(S * A)
        inner.values(-v, np.zeros(S * A), lowest)  # -min p·v; -inf where not allowed
        copies = lowest.reshape(S, A).argmax(axis=1)
        least = -lowest[states * A + copies]
        copy_rows = inner.rows(-v, np.where(cut, states * A + copies, -1))
    augmented, projected, deterministic = constrained_greedy(best, threshold, actions, A + copies, least, A)
    details |= {"copy_rows": copy_rows, "copies": copies, "truncated": np.flatnonzero(cut), "span_bound": span}
    return make_plan(
        mdp, low=low - slack, high=high + slack, values=v, actions=actions if deterministic else None, sweeps=sweeps,
        method=method, stochastic=None if deterministic else projected, augmented=augmented, details=details,
    )  # fmt: skip
