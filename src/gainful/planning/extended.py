"""Extended value iteration: the best policy of the most favourable MDP in a confidence set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError, NotConvergedError
from gainful.mdp.model import MDP
from gainful.planning.arguments import (
    checked_damping,
    checked_precision,
    checked_span,
    positive_cap,
    precision_error,
    start_vector,
)
from gainful.planning.batches import resumed_sweeps
from gainful.planning.confidence import Confidence
from gainful.planning.improvement import project
from gainful.planning.inner_maximum import InnerMaximum, inner_maximum
from gainful.planning.mixing import SlowSearch
from gainful.planning.mixture import Mixture, ceiling_at, constrained_greedy
from gainful.planning.order_projection import BiasConstraint, order_projection
from gainful.planning.plan import Plan, make_plan
from gainful.planning.rewards import replaced_rewards
from gainful.planning.rounding import roundoff
from gainful.planning.set_sweeps import SweepLimits

WIDER_SETS = "wider sets (the width_scale of a learner), or a coarser precision, need fewer"
"""What helps where planning over confidence sets is slow."""


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
    within: BiasConstraint | None = None,
) -> Plan:
    r"""The optimal gain over all policies and all MDPs with rows in a confidence set.

    Lv(s) = max_a { r(s,a) + max_{p in set(s,a)} p·v }, iterated as v <- v + damping·(Lv - v). Stops when
    [min(Lv - v), max(Lv - v)], widened for rounding, is no wider than `precision`: the growth rate of L, which is
    the optimistic gain, lies inside `gain_bounds` (Puterman 1994, sec. 8.5; Jaksch, Ortner & Auer 2010, sec. 3.1.2).
    Needs an extended MDP whose optimal gain is constant: positive radii, or positive widths with a positive `unseen`,
    make every state reachable from every other; a positive `floor` is enough too.

    With `span` = c it iterates T_c v = min{Lv, min Lv + c} instead, on v first cut to span c (SCAL, Fruit et al. 2018),
    and the bracket is of the growth rate of T_c. Where T_c cuts, at th = min Lv + c, the policy mixes the best pair, of
    value Lv(s), and a pair of reward 0 and value m <= th, with weights (th-m)/(Lv-m) and (Lv-th)/(Lv-m).

    Parameters
    ----------
    mdp : MDP
        The empirical model, around whose rows the sets lie.
    confidence : L1Ball, Intervals, NearOptimistic or KLBall
        One set of rows for each pair.
    precision : float
        Width of the certified bracket on the gain, in the units of the rewards.
    max_sweeps : int
        Sweeps after which to give up.
    damping : float
        Weight of the new value in (0, 1]. Below 1 it is for periodic chains: where the sets are nearly points the
        extended MDP is as periodic as the empirical one. 0.9 costs an aperiodic problem about 1/0.9 times the sweeps.
    span : float, optional
        c, the bound on the span of the values; needs rewards of at least 0.
    mixture : {"copy", "min-action"}
        The pair of reward 0 that is mixed in: the copy of the best action itself, so that `actions` is deterministic,
        or the copy of argmin_a min_p p·v.
    rewards : array_like, shape (S, A), optional
        Replace the MDP's own, in the units of `mdp.rewards` (optimistic rewards).
    start_values : array_like, shape (S,), optional
        Where to start, for example the bias of an earlier plan.
    within : BiasConstraint, optional
        What is known about the optimal bias, in the units of the rewards: the values are projected onto its differences
        after every sweep, and no pair is worth more than r + p̄·v + β (PMEVI, Boone & Zhang 2024). Not with `span`.

    Returns
    -------
    Plan
        Ties go to the lowest index. `details["rows"]` are the rows chosen for the best actions, `details["copy_rows"]`
        those of the reward-0 copies where they have weight, `details["truncated"]` the states where T_c cuts;
        `augmented` has the weights on actions and copies. `details["kept"]`, for `NearOptimistic`: how many of the
        states that its row does not list each pair may move to.

    Raises
    ------
    NotConvergedError
        After `max_sweeps`; it carries the partial plan.
    PrecisionError
        If rounding does not allow the precision; it carries the partial plan.

    Examples
    --------
    >>> import numpy as np
    >>> from gainful.planning.confidence import L1Ball
    >>> mdp = MDP([[[0.9, 0.1]], [[0.5, 0.5]]], [[1.0], [0.0]])
    >>> round(extended_value_iteration(mdp, L1Ball(np.full((2, 1), 0.2))).gain, 6)
    1.0
    """
    wanted = checked_precision(mdp, precision)
    max_sweeps = positive_cap("max_sweeps", max_sweeps)
    checked_damping(damping)
    cut = np.inf if span is None else checked_span(span)
    if mixture not in ("copy", "min-action"):
        raise InvalidArgumentError("mixture", mixture, "'copy' or 'min-action'")
    if within is not None and span is not None:
        raise InvalidArgumentError(
            "within", problem="span and within are both given", hint="put c into the differences"
        )
    search = _ExtendedSearch(mdp, inner_maximum(mdp, confidence), _rewards(mdp, rewards, span is not None), cut)
    search.v = start_vector(mdp, start_values)
    project(search.v, cut)
    if within is not None:
        search.within, search.v = within, order_projection(search.v, within.differences)
    converged = search.iterate(damping, wanted, max_sweeps)
    plan = search.plan(mixture)
    if converged:
        return plan
    if 2.0 * search.slack > wanted:
        raise precision_error(mdp, precision, search.slack, plan)
    width = plan.gain_bounds[1] - plan.gain_bounds[0]
    raise NotConvergedError(
        f"bracket {width:.1e} wide after {search.sweeps} sweeps (wanted {precision:.1e})",
        plan,
        name="precision",
        found=width,
        hint="raise max_sweeps",
    )


def _rewards(mdp: MDP, rewards: ArrayLike | None, truncated: bool) -> NDArray[np.float64]:
    """Internal rewards (S*A,), 0 if not allowed; not negative under a span constraint."""
    r = replaced_rewards(mdp, rewards).copy()
    if truncated and r.min() < 0.0:
        s, a = divmod(int(np.argmin(r)), mdp.n_actions)
        raise InvalidArgumentError(
            "rewards",
            float(r.min()),
            hint="a span constraint needs rewards >= 0: plan on mdp.normalised()",
            problem=f"the reward of state {mdp.state_name(s)}, action {mdp.action_name(a)} is {r.min():g}",
        )
    return r


@dataclass
class _ExtendedSearch:
    """The iteration and, from its last sweep, the policy."""

    mdp: MDP
    inner: InnerMaximum
    rewards: NDArray[np.float64]
    span: float
    """c, or inf for no constraint."""
    low: float = -np.inf
    high: float = np.inf
    slack: float = 0.0
    sweeps: int = 0
    within: BiasConstraint | None = None

    def __post_init__(self) -> None:
        self.v: NDArray[np.float64] = np.zeros(self.mdp.n_states)
        self.best: NDArray[np.float64] = np.zeros(self.mdp.n_states)
        self.q: NDArray[np.float64] = np.empty(self.mdp.n_states * self.mdp.n_actions)

    def iterate(self, damping: float, wanted: float, max_sweeps: int) -> bool:
        """Sweep until the bracket is as narrow as wanted; False if that did not happen."""
        mdp = self.mdp
        batch = resumed_sweeps(2 * self.inner.cost * (mdp.n_transitions + mdp.n_states))
        limits = SweepLimits(
            n_actions=mdp.n_actions,
            damping=damping,
            span=self.span,
            precision=wanted,
            slack_scale=roundoff(self.inner.n_terms),
            reward_scale=float(np.abs(self.rewards).max()),
        )
        slow = SlowSearch("extended value iteration", mdp, wanted, WIDER_SETS)
        converged = False
        while not converged and self.sweeps < max_sweeps:
            n, self.low, self.high, self.slack, converged = self._sweeps(
                limits, min(batch, max_sweeps - self.sweeps), self.sweeps > 0
            )
            self.sweeps += n
            slow.look(self.sweeps, self.high - self.low + 2.0 * self.slack)
            hopeless = 2.0 * self.slack > wanted and self.high - self.low <= wanted + 4.0 * self.slack
            if not converged and hopeless:
                break
        return converged

    def _sweeps(self, limits: SweepLimits, n: int, resume: bool) -> tuple[int, float, float, float, bool]:
        arrays = self.v, self.q, self.best, self.rewards, limits
        if self.within is None:
            return self.inner.sweeps(*arrays, max_sweeps=n, resume=resume)
        return self.inner.projected_sweeps(self.within, *arrays, max_sweeps=n, resume=resume)

    def plan(self, mixture: Mixture) -> Plan:
        """The greedy (or constrained-greedy) policy at v, with the rows behind it."""
        S, A = self.mdp.n_states, self.mdp.n_actions
        actions = self.q.reshape(S, A).argmax(axis=1)
        rows = self.inner.rows(self.v, np.arange(S) * A + actions)
        details: dict[str, Any] = {"rows": rows, "greedy": actions, "slack": self.slack}
        if self.inner.kept is not None:
            details["kept"] = self.inner.kept
        found: dict[str, Any] = {
            "low": self.low - self.slack,
            "high": self.high + self.slack,
            "values": self.v,
            "sweeps": self.sweeps,
        }
        if self.span == np.inf:
            method = "extended value iteration"
            return make_plan(self.mdp, actions=actions, method=method, details=details, **found)
        ceiling = ceiling_at(self.best, self.span)
        cut = self.best > ceiling
        copies, least, copy_rows = actions.copy(), self._copy_values(actions), rows
        if mixture == "min-action" and np.any(cut):
            lowest = np.empty(S * A)
            self.inner.values(-self.v, np.zeros(S * A), lowest)  # -min p·v; -inf if not allowed
            copies = lowest.reshape(S, A).argmax(axis=1)
            least = -lowest[np.arange(S) * A + copies]
            copy_rows = self.inner.rows(-self.v, np.where(cut, np.arange(S) * A + copies, -1))
        mixed = constrained_greedy(self.best, ceiling, actions, A + copies, least, A)
        truncated = np.flatnonzero(cut)
        details |= {"copy_rows": copy_rows, "copies": copies, "truncated": truncated, "span_bound": self.span}
        return make_plan(
            self.mdp,
            actions=actions if mixed.deterministic else None,
            stochastic=None if mixed.deterministic else mixed.projected,
            augmented=mixed.weights,
            method="span-constrained extended value iteration",
            details=details,
            **found,
        )

    def _copy_values(self, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """p·v of the best pairs: the values of their copies of reward 0."""
        n_states, n_actions = self.mdp.n_states, self.mdp.n_actions
        return np.asarray(self.best - self.rewards[np.arange(n_states) * n_actions + actions])
