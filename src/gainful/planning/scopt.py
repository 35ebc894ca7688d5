"""ScOpt: the best gain under a bound on the span of the bias."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.errors import InfeasibleSpanError, InvalidArgumentError, NotConvergedError
from gainful.mdp.model import MDP, require_mdp
from gainful.mdp.structure import recurrent_classes
from gainful.planning.arguments import (
    checked_damping,
    checked_precision,
    checked_span,
    positive_cap,
    precision_error,
    start_vector,
)
from gainful.planning.batches import sweeps_per_batch
from gainful.planning.bellman import Floats, Ints, SparseModel, StoppingRule, sparse_model, sweep
from gainful.planning.evaluation import chain_of
from gainful.planning.improvement import project
from gainful.planning.mixture import Mixture, ceiling_at, constrained_greedy
from gainful.planning.plan import Plan, make_plan
from gainful.planning.rounding import is_narrow, reward_scale, roundoff, slack_at
from gainful.planning.truncation import ceiling_of, truncate, truncated_range

Stopping: TypeAlias = Literal["span", "strict"]


@kernel
def truncated_sweeps(
    model: SparseModel, v: Floats, w: Floats, act: Ints, span: float, reference: int, rule: StoppingRule
) -> tuple[int, float, float, float, bool]:
    """Iterate T_c v = min{Lv, min Lv + c} until the range of T_c v - v is narrow enough; w is then Lv, not truncated.

    v must have span ≤ c on entry and keeps it. Returns sweeps, range, slack, and whether the target was met.
    """
    n = v.size
    damping, target, unit, max_reward, max_sweeps = rule
    done = 0
    while True:
        sweep(model, v, np.uint64(0), np.uint64(n), w, act)
        done += 1
        least, largest = w[0], 0.0
        for s in range(n):
            least = min(least, w[s])
            largest = max(largest, abs(v[s]))
        ceiling = ceiling_of(least, span)
        low, high = truncated_range(w, v, ceiling)
        slack = slack_at(unit, largest, max_reward)
        if is_narrow(low, high, slack, target):
            return done, low, high, slack, True
        if done == max_sweeps or not high - low > 2.0 * slack:
            return done, low, high, slack, False
        pin = v[reference] + damping * (truncate(w[reference], ceiling) - v[reference])
        for s in range(n):
            v[s] += damping * (truncate(w[s], ceiling) - v[s]) - pin


def contraction_bound(mdp: MDP) -> float:
    """γ = 1 - Σ_x min_{s,a} p(x|s,a): an upper bound on L's span-contraction coefficient (Doeblin)."""
    lowest = np.full(mdp.n_states, np.inf)
    seen = np.zeros(mdp.n_states, dtype=np.int64)
    P = mdp.matrix().copy()
    P.sum_duplicates()
    np.minimum.at(lowest, P.indices, P.data)
    np.add.at(seen, P.indices, 1)
    common = seen == mdp.n_pairs
    return max(0.0, float(1.0 - lowest[common].sum()))


def scopt(
    mdp: MDP,
    span: float,
    *,
    precision: float = 1e-8,
    stopping: Stopping = "span",
    augmented: bool = False,
    mixture: Mixture | None = None,
    damping: float = 0.5,
    reference: int | str | None = None,
    max_sweeps: int = 1_000_000,
    start_values: ArrayLike | None = None,
    contraction: float | None = None,
) -> Plan:
    r"""Best gain among policies whose bias has span at most c (ScOpt, Fruit et al. 2018, sec. 4).

    Iterates T_c v(s) = min{ Lv(s), min_x Lv(x) + c }, relative to one state, from a v of span ≤ c. The growth rate g_T
    of T_c lies inside `gain_bounds`, and so do the gains of the policy returned. Always g*_c ≤ g_T. They are equal when
    the policy is unichain, which `plan.details["unichain"]` tells; otherwise only the upper end of `gain_bounds`
    bounds g*_c.

    The policy is greedy where Lv(s) ≤ th := min Lv + c; elsewhere it mixes the best pair and one of value m(s) ≤ th
    with weights (th-m)/(Lv-m) and (Lv-th)/(Lv-m).

    Parameters
    ----------
    mdp : MDP
        The process.
    span : float
        c, the bound on the span of the bias.
    precision : float
        Width of the certified bracket, in the units of the rewards.
    stopping : {"span", "strict"}
        "span" stops when the range of T_c v - v, widened for rounding, is at most `precision`. "strict" is the
        published rule sp(v₁' - v') + (2γⁿ/(1-γ))·sp(v₁ - v₀) ≤ ε, which is far slower.
    augmented : bool
        Whether each action has a copy of the same transitions and reward 0 (the least reward, where some are
        negative), as in SCAL and SCAL+. `plan.augmented` then holds the weights on the 2A actions and `plan.policy`
        their projection on A; on the true MDP the projected policy may exceed the span.
    mixture : {"copy", "min-action"}, optional
        The pair to mix in: the greedy action's own copy, so that the projected policy is deterministic (the default
        with `augmented`), or the worst pair of the state (the default without).
    damping : float
        Weight of the new value in (0, 1].
    reference : int or str, optional
        The state relative to which values are kept; the first one by default.
    max_sweeps : int
        Sweeps after which to give up.
    start_values : array_like, shape (S,), optional
        Where to start, for example the bias of an earlier plan.
    contraction : float, optional
        γ of the strict rule; `contraction_bound(mdp)` by default.

    Returns
    -------
    Plan
        Gain with its bracket, bias, policy, sweeps.

    Raises
    ------
    InfeasibleSpanError
        If m(s) > th for every pair of a state, which it names.
    NotConvergedError
        After `max_sweeps`; it carries the partial plan.
    PrecisionError
        If float64 cannot certify the precision.

    Examples
    --------
    >>> import gainful as gf
    >>> plan = gf.scopt(gf.environments.riverswim(6), 2.0, precision=1e-6, augmented=True)
    >>> plan.span <= 2.0
    True
    """
    checked_span(span)
    if stopping not in ("span", "strict"):
        raise InvalidArgumentError("stopping", stopping, "'span' or 'strict'")
    if mixture not in (None, "copy", "min-action"):
        raise InvalidArgumentError("mixture", mixture, "'copy' or 'min-action'")
    if mixture == "copy" and not augmented:
        raise InvalidArgumentError(
            "mixture",
            mixture,
            hint="a known MDP has no copies of its actions",
            problem="mixture='copy' needs augmented=True",
        )
    checked_damping(damping)
    positive_cap("max_sweeps", max_sweeps)
    pinned = 0 if reference is None else mdp.state_index(reference)
    require_mdp(mdp)
    if augmented and mdp.pair_rewards.min() < 0.0:
        mdp = mdp.normalised()  # the copies have reward 0, which must be the least there is
    target = checked_precision(mdp, precision)
    v = start_vector(mdp, start_values)
    project(v, span)
    planner = _ScOpt(mdp, span, damping, pinned, target, precision, max_sweeps)
    if stopping == "strict":
        gamma = contraction_bound(mdp) if contraction is None else contraction
        planner.run_strict(v, gamma)
    else:
        planner.run(v)
    return planner.plan(augmented, mixture or ("copy" if augmented else "min-action"))


class _ScOpt:
    """The iteration and, from its last sweep, the policy."""

    def __init__(
        self, mdp: MDP, span: float, damping: float, pinned: int, target: float, precision: float, max_sweeps: int
    ) -> None:
        self.mdp, self.span, self.damping, self.pinned = mdp, span, damping, pinned
        self.target, self.precision, self.max_sweeps = target, precision, max_sweeps
        self.w, self.act = np.empty(mdp.n_states), np.zeros(mdp.n_states, dtype=np.int64)
        self.v: NDArray[np.float64] = np.zeros(mdp.n_states)
        self.low, self.high, self.slack, self.sweeps = -np.inf, np.inf, 0.0, 0
        self.model = sparse_model(mdp)
        self.max_support, self.max_reward = int(np.diff(mdp.indptr).max()), reward_scale(mdp)

    def _advance(self, v: NDArray[np.float64], damping: float, target: float, number: int) -> bool:
        rule = StoppingRule(damping, target, roundoff(self.max_support), self.max_reward, number)
        done, self.low, self.high, self.slack, met = truncated_sweeps(
            self.model, v, self.w, self.act, self.span, self.pinned, rule
        )
        self.sweeps += done
        self.v = v
        return bool(met)

    def run(self, v: NDArray[np.float64]) -> None:
        """Until the bracket is narrow enough."""
        batch = sweeps_per_batch(self.mdp.n_transitions)
        while not self._advance(v, self.damping, self.target, min(batch, self.max_sweeps - self.sweeps)):
            if not self.high - self.low > 2 * self.slack:
                raise precision_error(self.mdp, self.precision, self.slack, self._partial())
            if self.sweeps >= self.max_sweeps:
                raise self._not_converged(self.high - self.low)

    def run_strict(self, v: NDArray[np.float64], gamma: float) -> None:
        """Until sp(v_{n+1} - v_n) + (2γⁿ/(1-γ))·sp(v_1 - v_0) ≤ ε, undamped as published."""
        if not 0.0 <= gamma < 1.0:
            raise InvalidArgumentError(
                "contraction",
                gamma,
                hint="give contraction= or use stopping='span'",
                problem=(
                    f"stopping='strict' needs a contraction coefficient in [0, 1), found {gamma:g}: no state "
                    "is reached from every pair in one step"
                ),
            )
        first: float | None = None
        n = 0
        while True:
            self._advance(v, 1.0, -1.0, 1)
            width = self.high - self.low
            first = width if first is None else first
            remainder = 2.0 * gamma**n / (1.0 - gamma) * first
            if 0.0 <= (self.high + self.slack) - (self.low - self.slack) + remainder <= self.target:
                return
            if not width > 2 * self.slack and 2 * self.slack > self.target:
                raise precision_error(self.mdp, self.precision, self.slack, self._partial())
            if self.sweeps >= self.max_sweeps:
                raise self._not_converged(width + remainder)
            n += 1
            truncated = np.minimum(self.w, ceiling_at(self.w, self.span))
            v[:] = truncated - truncated[self.pinned]

    def _partial(self) -> Plan:
        return make_plan(
            self.mdp,
            low=self.low - self.slack,
            high=self.high + self.slack,
            values=self.v,
            actions=self.act.copy(),
            sweeps=self.sweeps,
            method="ScOpt (partial)",
        )

    def _not_converged(self, reached: float) -> NotConvergedError:
        return NotConvergedError(
            f"ScOpt: {reached / self.mdp.units.step_duration:.1e} after {self.sweeps} sweeps "
            f"(wanted {self.precision:.1e})",
            self._partial(),
            name="max_sweeps",
            found=self.max_sweeps,
            hint="raise max_sweeps or accept the partial plan, which this error carries",
        )

    def plan(self, augmented: bool, mixture: Mixture) -> Plan:
        """The constrained-greedy policy for the v of the stop test."""
        mdp, v, w = self.mdp, self.v, self.w
        S, A = mdp.n_states, mdp.n_actions
        ceiling = ceiling_at(w, self.span)
        truncated = np.flatnonzero(w > ceiling)
        values = (mdp.matrix() @ v).reshape(S, A)
        if not augmented:  # a copy has reward 0
            values += mdp.pair_rewards.reshape(S, A)
        values[~mdp.allowed] = np.inf
        partner = self.act if mixture == "copy" else values.argmin(axis=1)
        m = values[np.arange(S), partner]
        infeasible = truncated[m[truncated] > ceiling + 2 * self.slack]
        if infeasible.size:
            s = int(infeasible[0])
            raise InfeasibleSpanError(
                f"the span constraint {self.span:g} cannot be met greedily: in state {mdp.state_name(s)} every action "
                f"is worth at least {m[s] - float(w.min()):.6g} more than the worst state ({infeasible.size} of {S} "
                "states so)",
                s,
                self._partial(),
                name="span",
                found=self.span,
                hint="raise span, or give the state an action of less reward",
            )
        v = _within_span(v, self.span)
        columns = A + partner if augmented else partner
        weights, policy, deterministic = constrained_greedy(w, ceiling, self.act, columns, m, A)
        classes, _ = recurrent_classes(chain_of(mdp, policy)[0])
        return make_plan(
            mdp,
            low=self.low - self.slack,
            high=self.high + self.slack,
            values=v,
            actions=policy.argmax(axis=1) if deterministic else None,
            stochastic=None if deterministic else policy,
            augmented=weights if augmented else None,
            sweeps=self.sweeps,
            method="ScOpt",
            details={"unichain": len(classes) == 1, "span_bound": self.span, "truncated": truncated},
        )


def _within_span(v: NDArray[np.float64], span: float) -> NDArray[np.float64]:
    """`v`, or values next to it in float64, such that v - v[0] has at most this span: subtracting rounds."""
    for _ in range(4):  # mostly it is off by an ulp
        if np.ptp(v - v[0]) > span:
            v = v.min() + (v - v.min()) * (1.0 - 2.0**-52)
    less = 2.0**-52
    while np.ptp(v - v[0]) > span:  # by more if the values are larger than their span
        v = (v - v.min()) * (1.0 - less)
        less *= 2.0
    return v
