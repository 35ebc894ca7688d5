"""Extended value iteration over Kullback-Leibler balls around counted rows, as KL-SCAL+ plans.

Lv(s) = max_a [r̃(s,a) + max{q·v : KL(p̄(·|s,a)‖q) ≤ ρ(s,a)}] and Tv = min{Lv, min Lv + c}, iterated with damping,
v ← v + θ(Tv - v). The sweeps use upper bounds of L (`planning.kl_dual`). A pair is evaluated only if it may be the best
of its state: after v has risen by at most `rise` anywhere, its value has risen by no more. These keys, like the dual
variables x, stay valid from plan to plan for pairs that have not been visited since, because their balls stay the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.errors import NotConvergedError
from gainful.planning.batches import resumed_sweeps
from gainful.planning.estimated import TransitionCounts
from gainful.planning.kl_dual import (
    LOG_BLOCK,
    DualLimits,
    DualRows,
    DualSpace,
    KLPairs,
    dual_slack,
    measure,
    rounding_of,
    solve_pairs,
)
from gainful.planning.rounding import UNIT_ROUNDOFF
from gainful.planning.truncation import ceiling_of, truncate, truncated_range

KL_DAMPING = 0.9
"""θ. Undamped, the iteration may oscillate for ever: the best laws may be as periodic as the rows."""
TOLERANCE_SHARE = 0.02
"""How much above its maximum a pair may be evaluated, in parts of the precision."""
MARGIN_SHARE = 0.05
"""How far apart the two bounds of a certified pair may be, in parts of the precision."""
TRIAL_SHARE = 1.0 - 4.0 * TOLERANCE_SHARE
"""The width, in parts of the precision, from which a bracket by upper bounds alone is worth certifying."""
GIVE_UP_SHARE = 0.25
"""The distance of a certified pair's bounds, in parts of the precision, from which rounding forbids the precision."""
ROUNDING_CHECK = 64
"""Sweeps after which it is checked whether rounding forbids the precision."""
WORK_PER_ENTRY = 16
"""Rough cost of one transition, in those of a plain sweep."""


class KLState(NamedTuple):
    """What a plan starts from and leaves."""

    values: Any
    """(S,) v, its least value 0."""
    best: Any
    """(S,) Lv from above."""
    lower: Any
    """(S,) Lv from below."""
    actions: Any
    """(S,) the greedy actions."""
    reachable: Any
    """(S,) where pairs of level 1 may move to."""
    rise: Any
    """(1,) how much v has risen since the keys were last renewed, at most."""


class KLProblem(NamedTuple):
    """The shape of the problem and what is asked for."""

    n_actions: Any
    span: Any
    """c, or inf."""
    precision: Any
    damping: Any


class KLPlan(NamedTuple):
    """What was found: the growth rate of T lies in [low, high], which is no wider than asked for."""

    values: NDArray[np.float64]
    actions: NDArray[np.int64]
    low: float
    high: float
    sweeps: int
    span: float
    """sp(values)."""


@inlined
def least_of(values: Any) -> float:
    """The least value, in a loop that compiles sooner than NumPy's."""
    least = np.inf
    for s in range(values.size):
        least = min(least, values[s])
    return least


@inlined
def listed_greedy(space: DualSpace, state: KLState, n_actions: int) -> int:
    """List the pairs of the present greedy actions."""
    for s in range(state.values.size):
        space.todo[s] = s * n_actions + state.actions[s]
    return int(state.values.size)


@inlined
def may_be_best(pairs: KLPairs, k: int, rise: float, rival: float) -> bool:
    """Whether pair k may be worth as much as its rival; `rival` is its value."""
    room = 8.0 * UNIT_ROUNDOFF * (abs(rival) + rise)
    return bool(pairs.rewards[k] > -np.inf and pairs.key[k] + rise + room >= rival)


@kernel
def listed_rivals(pairs: KLPairs, space: DualSpace, state: KLState, n_actions: int) -> int:
    """List the other pairs that may be the best of their states."""
    n: Any = np.int64(0)
    for s in range(state.values.size):
        mine = s * n_actions + state.actions[s]
        for k in range(s * n_actions, (s + 1) * n_actions):
            if k != mine and may_be_best(pairs, k, state.rise[0], pairs.value[mine]):
                space.todo[n] = k
                n += 1
    return int(n)


@kernel
def choose_best(pairs: KLPairs, state: KLState, n_actions: int) -> None:
    """Lv and the greedy actions from the pairs evaluated in this sweep, ties to the lowest action."""
    for s in range(state.values.size):
        rival = pairs.value[s * n_actions + state.actions[s]]
        best, action = -np.inf, 0
        for a in range(n_actions):
            k = s * n_actions + a
            if may_be_best(pairs, k, state.rise[0], rival) and pairs.value[k] > best:
                best, action = pairs.value[k], a
        state.best[s], state.actions[s] = best, action


@inlined
def limits_of(state: KLState, precision: float, span: float, certify: bool) -> DualLimits:
    """How well to solve for this precision."""
    return DualLimits(
        span, rounding_of(span), TOLERANCE_SHARE * precision, MARGIN_SHARE * precision, certify, state.rise[0]
    )


@kernel
def sweep(rows: DualRows, pairs: KLPairs, space: DualSpace, state: KLState, problem: KLProblem) -> float:
    """Lv from above, and its greedy actions; returns sp(v)."""
    span: float = measure(state.values, state.reachable, space)
    limits = limits_of(state, problem.precision, span, False)
    solve_pairs(rows, pairs, space, limits, listed_greedy(space, state, problem.n_actions))
    solve_pairs(rows, pairs, space, limits, listed_rivals(pairs, space, state, problem.n_actions))
    choose_best(pairs, state, problem.n_actions)
    return span


@inlined
def lower_values(
    rows: DualRows, pairs: KLPairs, space: DualSpace, state: KLState, problem: KLProblem, span: float
) -> float:
    """Lv from below, by laws in the balls of the greedy pairs; returns the largest slack among them."""
    limits = limits_of(state, problem.precision, span, True)
    n: Any = np.int64(0)
    for s in range(state.values.size):
        k = s * problem.n_actions + state.actions[s]
        if pairs.gap[k] > limits.margin:
            space.todo[n] = k
            n += 1
    solve_pairs(rows, pairs, space, limits, n)
    widest = 0.0
    for s in range(state.values.size):
        k = s * problem.n_actions + state.actions[s]
        state.lower[s] = pairs.value[k] - pairs.gap[k]
        widest = max(widest, pairs.gap[k])
    return widest


@kernel
def certified_low(
    rows: DualRows, pairs: KLPairs, space: DualSpace, state: KLState, problem: KLProblem, span: float
) -> tuple[float, float]:
    """min(Tv - v) from below, and the largest slack among the greedy pairs."""
    widest = lower_values(rows, pairs, space, state, problem, span)
    low, _ = truncated_range(state.lower, state.values, ceiling_of(least_of(state.lower), problem.span))
    return low, widest


@kernel
def largest_slack(rows: DualRows, pairs: KLPairs, state: KLState, problem: KLProblem, span: float) -> float:
    """By how much rounding widens the two bounds of a greedy pair, at most."""
    limits = limits_of(state, problem.precision, span, True)
    most = 0.0
    for s in range(state.values.size):
        k = s * problem.n_actions + state.actions[s]
        most = max(most, 5.0 * dual_slack(rows.length[k], pairs.x[k], limits))
    return most


@kernel
def step(state: KLState, damping: float, ceiling: float) -> None:
    """Set v ← v + θ(Tv - v), shifted so that its least value is 0; keeps account of its rise."""
    v = state.values
    least, most = np.inf, -np.inf
    for s in range(v.size):
        new = v[s] + damping * (truncate(state.best[s], ceiling) - v[s])
        most = max(most, new - v[s])
        least = min(least, new)
        v[s] = new
    for s in range(v.size):
        v[s] -= least
    state.rise[0] = (state.rise[0] + max(most - least, 0.0) + 4.0 * UNIT_ROUNDOFF * abs(least)) * (1.0 + 1e-15)


@kernel
def kl_sweeps(
    rows: DualRows, pairs: KLPairs, space: DualSpace, state: KLState, problem: KLProblem, max_sweeps: int
) -> tuple[int, float, float, float, bool]:
    """Sweep until the certified bracket is at most `problem.precision` wide.

    Returns sweeps, the bracket, sp(v), and whether it is narrow enough; if not, v has moved on, unless rounding is in
    the way: then the number of sweeps is negative.
    """
    rows, pairs, space, state = DualRows(*rows), KLPairs(*pairs), DualSpace(*space), KLState(*state)
    problem = KLProblem(*problem)
    low, high, span = -np.inf, np.inf, 0.0
    for n in range(max_sweeps):
        span = sweep(rows, pairs, space, state, problem)
        ceiling = ceiling_of(least_of(state.best), problem.span)
        low, high = truncated_range(state.best, state.values, ceiling)
        rounding = 8.0 * UNIT_ROUNDOFF * (span + 2.0)
        if high - low <= TRIAL_SHARE * problem.precision:
            low, widest = certified_low(rows, pairs, space, state, problem, span)
            low, high = low - rounding, high + rounding
            if high - low <= problem.precision:
                return n + 1, low, high, span, True
            if widest > GIVE_UP_SHARE * problem.precision:
                return -n - 1, low, high, span, False
        elif n == ROUNDING_CHECK and largest_slack(rows, pairs, state, problem, span) > problem.precision:
            return -n - 1, low, high, span, False
        step(state, problem.damping, ceiling)
    return max_sweeps, low, high, span, False


@kernel
def renew_keys(pairs: KLPairs, state: KLState, span: float) -> None:
    """Cut v to span c, and count the rise of the keys from here."""
    pairs, state = KLPairs(*pairs), KLState(*state)
    rise, v = state.rise[0], state.values
    for k in range(pairs.key.size):
        pairs.key[k] += rise + 8.0 * UNIT_ROUNDOFF * (abs(pairs.key[k]) + rise)
    state.rise[0] = 0.0
    ceiling = ceiling_of(least_of(v), span)
    for s in range(v.size):
        v[s] = truncate(v[s], ceiling)


class KLPlanner:
    """Plans on counts, starting from the last plan; rewards in [0, 1], values in the same unit.

    Parameters
    ----------
    n_states, n_actions : int
        The size of the model.
    span : float
        The bound c on the span of the values; inf for none.
    allowed : ndarray of bool, shape (S, A)
        The actions that each state has.
    damping : float
        θ, the weight of the new values; the theorem needs it below 1.
    """

    def __init__(
        self, n_states: int, n_actions: int, span: float, allowed: NDArray[np.bool_], damping: float = KL_DAMPING
    ) -> None:
        pairs = n_states * n_actions
        self.n_actions, self.span, self.damping = n_actions, span, damping
        self.pairs = KLPairs(
            rewards=np.where(allowed.reshape(-1), 1.0, -np.inf),
            radius=np.full(pairs, np.inf),
            level=np.zeros(pairs, dtype=np.uint8),
            x=np.zeros(pairs),
            key=np.full(pairs, np.inf),
            value=np.zeros(pairs),
            gap=np.zeros(pairs),
        )
        self.state = KLState(
            values=np.zeros(n_states),
            best=np.empty(n_states),
            lower=np.empty(n_states),
            actions=allowed.argmax(axis=1).astype(np.int64),
            reachable=np.ones(n_states, dtype=bool),
            rise=np.zeros(1),
        )
        self._space = DualSpace(
            distance=np.empty((2, n_states)),
            highest=np.empty(2),
            d=np.empty(LOG_BLOCK + n_states),
            logs=np.empty(LOG_BLOCK + n_states),
            inverses=np.empty(LOG_BLOCK + n_states),
            todo=np.empty(pairs, dtype=np.int64),
        )

    def begin(self, pairs: tuple[Any, ...], state: tuple[Any, ...]) -> None:
        """Make the last plan what the next one starts from."""
        renew_keys(pairs, state, self.span)

    def sweeps(
        self, rows: tuple[Any, ...], groups: tuple[Any, ...], problem: tuple[Any, ...], max_sweeps: int
    ) -> tuple[int, float, float, float, bool]:
        """Sweep: number of sweeps, bracket, span, whether it is narrow enough."""
        found: tuple[int, float, float, float, bool] = kl_sweeps(rows, *groups, problem, max_sweeps)
        return found

    def plan(self, counts: TransitionCounts, precision: float, max_sweeps: int) -> KLPlan:
        """Plan on the balls of `pairs` around the rows of `counts`, to a certified `precision`.

        Raises
        ------
        NotConvergedError
            If rounding does not allow the precision, or `max_sweeps` do not reach it.
        """
        rows = (counts.begin, counts.length, counts.next_state, counts.count, counts.visits)
        pairs, state, space = tuple(self.pairs), tuple(self.state), tuple(self._space)
        problem = (self.n_actions, self.span, precision, self.damping)
        batch = resumed_sweeps(WORK_PER_ENTRY * (int(counts.used[0]) + counts.n_states))
        self.begin(pairs, state)
        sweeps, met = 0, False
        while not met:
            groups, limit = (pairs, space, state), min(batch, max_sweeps - sweeps)
            done, low, high, span, met = self.sweeps(rows, groups, problem, limit)
            sweeps += abs(done)
            if not met and (done < 0 or sweeps >= max_sweeps):
                raise NotConvergedError(
                    f"bracket {high - low:.1e} wide after {sweeps} sweeps (wanted {precision:.1e})"
                    + (", and rounding allows no less" if done < 0 else ""),
                    name="precision",
                    found=high - low,
                )
        return KLPlan(self.state.values.copy(), self.state.actions.copy(), low, high, sweeps, span)
