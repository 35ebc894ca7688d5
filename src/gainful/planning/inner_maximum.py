"""The inner maximum of extended value iteration, max p·v over a confidence set, on the rows of one MDP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.confidence import Confidence, Intervals, KLBall, L1Ball, NearOptimistic
from gainful.planning.intervals import IntervalSet, interval_rows
from gainful.planning.kl import KLSet, kl_rows
from gainful.planning.l1 import L1Set, l1_rows
from gainful.planning.near_optimistic import NearOptimisticSet, near_optimistic_rows
from gainful.planning.optimistic_rows import OptimisticRows
from gainful.planning.order_projection import BiasConstraint
from gainful.planning.projected_sweeps import projected_set_sweeps
from gainful.planning.rounding import UNIT_ROUNDOFF
from gainful.planning.set_sweeps import ConfidenceSet, SweepLimits, set_sweeps, set_values

ROWS: dict[type, Callable[..., int]] = {
    L1Set: l1_rows,
    IntervalSet: interval_rows,
    NearOptimisticSet: near_optimistic_rows,
    KLSet: kl_rows,
}
COST: dict[type, int] = {L1Set: 4, IntervalSet: 8, NearOptimisticSet: 32, KLSet: 64}
"""Rough cost of one transition, in those of a plain sweep."""


@dataclass(frozen=True)
class InnerMaximum:
    """The inner maximum over one confidence set, with working arrays of its own."""

    sets: ConfidenceSet
    n_terms: int
    """Terms in the longest sum behind one value, for the rounding slack."""

    @property
    def cost(self) -> int:
        """Rough cost of one transition, in those of a plain sweep."""
        return COST[type(self.sets)]

    @property
    def kept(self) -> NDArray[np.int64] | None:
        """(S*A,) how many states outside its row a pair may move to; None if it may move to all of them."""
        return self.sets.kept if isinstance(self.sets, NearOptimisticSet) else None

    def sweeps(
        self,
        v: NDArray[Any],
        q: NDArray[Any],
        best: NDArray[Any],
        r: NDArray[Any],
        limits: SweepLimits,
        max_sweeps: int,
        resume: bool,
    ) -> tuple[int, float, float, float, bool]:
        """Sweep as `limits` say: number of sweeps, bracket, slack, whether converged."""
        found: tuple[int, float, float, float, bool] = set_sweeps(
            self.sets, v, q, best, r, tuple(limits), max_sweeps, resume
        )
        return found

    def projected_sweeps(
        self,
        within: BiasConstraint,
        v: NDArray[Any],
        q: NDArray[Any],
        best: NDArray[Any],
        r: NDArray[Any],
        limits: SweepLimits,
        max_sweeps: int,
        resume: bool,
    ) -> tuple[int, float, float, float, bool]:
        """The same within a constraint on the bias."""
        found: tuple[int, float, float, float, bool] = projected_set_sweeps(
            self.sets, tuple(within), v, q, best, r, tuple(limits), (max_sweeps, resume)
        )
        return found

    def values(self, v: NDArray[Any], r: NDArray[Any], q: NDArray[Any]) -> None:
        """Write r + max p·v of every pair into q; -inf if the state does not have the action."""
        set_values(self.sets, v, r, q)

    def rows(self, v: NDArray[Any], pairs: NDArray[Any]) -> OptimisticRows:
        """The maximising rows of `pairs`; an empty row for -1."""
        write, sets = ROWS[type(self.sets)], tuple(self.sets)  # plain tuples are quicker to hand over
        indptr = np.empty(pairs.size + 1, dtype=np.int64)
        size = write(sets, v, pairs, (indptr, np.empty(0, dtype=np.uint32), np.empty(0)))
        rows = OptimisticRows(indptr, np.empty(size, dtype=np.uint32), np.empty(size))
        write(sets, v, pairs, tuple(rows))
        for array in rows:
            array.flags.writeable = False
        return rows


def inner_maximum(mdp: MDP, confidence: Confidence) -> InnerMaximum:
    """The inner maximum over `confidence` on the rows of `mdp`."""
    if isinstance(confidence, L1Ball):
        return _over_l1_ball(mdp, confidence)
    if isinstance(confidence, NearOptimistic):
        return _over_near_optimistic_supports(mdp, confidence)
    if isinstance(confidence, Intervals):
        return _over_intervals(mdp, confidence)
    if isinstance(confidence, KLBall):
        return _over_kl_ball(mdp, confidence)
    raise InvalidArgumentError(
        "confidence",
        confidence,
        "an L1Ball, Intervals or a KLBall",
        problem=f"confidence is a {type(confidence).__name__}",
    )


def _over_l1_ball(mdp: MDP, ball: L1Ball) -> InnerMaximum:
    rows = _merged(mdp)
    _check_shape(mdp, "radius", ball.radius)
    mask, level = _levels(mdp, rows, ball.reachable, ball.truncated)
    load = rows.probabilities.reshape(-1, 1)
    sets = L1Set(rows.indptr, rows.indices, load, ball.radius.flatten(), mask, level)
    return InnerMaximum(sets, n_terms=2 * (int(rows.lengths.max()) + 1))


def _over_kl_ball(mdp: MDP, ball: KLBall) -> InnerMaximum:
    rows = _merged(mdp)
    _check_shape(mdp, "radius", ball.radius)
    mask, level = _levels(mdp, rows, ball.reachable, ball.truncated)
    roots = np.full(ball.radius.size, np.nan)
    sets = KLSet(rows.indptr, rows.indices, rows.probabilities, ball.radius.flatten(), roots, mask, level)
    return InnerMaximum(sets, n_terms=8 * (int(rows.lengths.max()) + 4))


def _over_intervals(mdp: MDP, intervals: Intervals) -> InnerMaximum:
    rows = _merged(mdp)
    _check_shape(mdp, "unseen", intervals.unseen)
    if intervals.lower.size != mdp.n_transitions:
        raise InvalidArgumentError(
            "lower",
            intervals.lower.size,
            "one for each",
            problem=f"{intervals.lower.size} lower bounds for {mdp.n_transitions} stored transitions",
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
        raise _empty_intervals(mdp, wrong, float(least[wrong[0]]), float(most[wrong[0]]))
    sets = IntervalSet(
        order=np.arange(mdp.n_states, dtype=np.uint32),
        indptr=rows.indptr,
        indices=rows.indices,
        load=np.stack([lower, upper - lower], axis=1),
        free_mass=np.maximum(1.0 - least, 0.0),
        unseen=unseen,
        mask=mask,
        level=level,
    )
    return InnerMaximum(sets, n_terms=4 * (int(lengths.max()) + 2))


def _over_near_optimistic_supports(mdp: MDP, confidence: NearOptimistic) -> InnerMaximum:
    inner = _over_intervals(mdp, confidence)
    own = {
        "tolerance": confidence.tolerance.flatten(),
        "kept": np.zeros(mdp.indptr.size - 1, dtype=np.int64),
        "sweeps": np.zeros(1, dtype=np.int64),
    }
    return replace(inner, sets=NearOptimisticSet(**inner.sets._asdict(), **own))


def _empty_intervals(mdp: MDP, pairs: NDArray[np.int64], least: float, most: float) -> InvalidArgumentError:
    """The error for intervals that hold no distribution, naming the first pair."""
    s, a = divmod(int(pairs[0]), mdp.n_actions)
    return InvalidArgumentError(
        "confidence",
        (least, most),
        "1 between them",
        f"{pairs.size} of {mdp.n_pairs} pairs fail",
        problem=(
            f"no distribution lies in the intervals of state {mdp.state_name(s)}, action {mdp.action_name(a)}: "
            f"the lower bounds sum to {least:.10g}, the upper bounds to {most:.10g}"
        ),
    )


# ---------------------------------------------------------------------- rows


@dataclass
class _WorkingRows:
    """A copy of the MDP's rows, a next state listed once."""

    indptr: NDArray[np.uint64]
    indices: NDArray[np.uint32]
    probabilities: NDArray[np.float64]
    first: NDArray[np.int64]  # where each merged entry starts among the MDP's entries

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of entries of each row."""
        begin = self.indptr.astype(np.int64)
        return begin[1:] - begin[:-1]


def _check_shape(mdp: MDP, name: str, array: NDArray[Any]) -> None:
    if array.shape != (mdp.n_states, mdp.n_actions):
        raise InvalidArgumentError(
            name,
            array.shape,
            f"(S, A) = {(mdp.n_states, mdp.n_actions)}",
            problem=f"{name} has shape {array.shape}",
        )


def _merged(mdp: MDP) -> _WorkingRows:
    """The rows to work on (they are reordered in place); next states listed with several rewards are merged.

    All copies are writable: read-only arrays are another type to Numba, and compiled a second time.
    """
    rows = np.repeat(np.arange(mdp.indptr.size - 1), np.diff(mdp.indptr))
    new = np.ones(mdp.n_transitions, dtype=bool)
    new[1:] = (mdp.indices[1:] != mdp.indices[:-1]) | (rows[1:] != rows[:-1])
    first = np.flatnonzero(new)
    if first.size == mdp.n_transitions:
        return _WorkingRows(mdp.indptr.astype(np.uint64), mdp.indices.copy(), mdp.probabilities.copy(), first)
    lengths = np.bincount(rows[first], minlength=mdp.indptr.size - 1)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    return _WorkingRows(indptr, mdp.indices[first], np.add.reduceat(mdp.probabilities, first), first)


def _levels(
    mdp: MDP, rows: _WorkingRows, reachable: NDArray[np.bool_] | None, truncated: NDArray[np.bool_] | None
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
            "truncated",
            (s, a),
            problem=(
                f"state {mdp.state_name(s)}, action {mdp.action_name(a)} is truncated, but its row lists "
                f"{mdp.state_name(int(rows.indices[j]))}, which is not reachable"
            ),
        )
    return np.concatenate([everything, reachable[None, :]]), level


def _with_floor(
    rows: _WorkingRows,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    unseen: NDArray[np.float64],
    state: int,
    floor: float,
) -> tuple[_WorkingRows, NDArray[np.float64], NDArray[np.float64]]:
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
    new = _WorkingRows(indptr, indices, np.insert(rows.probabilities, at, 0.0), rows.first)
    return new, np.insert(lower, at, floor), np.insert(upper, at, np.maximum(unseen[missing], floor))
