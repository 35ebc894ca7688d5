"""Discounted value iteration with certified bounds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful._compiled import kernel
from gainful.errors import InvalidArgumentError, NotConvergedError, PrecisionError
from gainful.mdp.model import MDP
from gainful.planning.arguments import checked_damping
from gainful.planning.backup import backup
from gainful.planning.batches import resumed_sweeps
from gainful.planning.bellman import SparseModel, sparse_model
from gainful.planning.rewards import replaced_rewards
from gainful.planning.rounding import LARGEST_VALUE, reward_scale, roundoff, slack_at
from gainful.planning.value_plan import ValuePlan


def discounted_value_iteration(
    mdp: MDP,
    discount: float,
    *,
    precision: float = 1e-8,
    max_sweeps: int = 1_000_000,
    damping: float = 0.9,
    rewards: ArrayLike | None = None,
    start_values: ArrayLike | None = None,
) -> ValuePlan:
    r"""Optimal values of Σ discount^t r_t, by value iteration with MacQueen's bounds.

    Tv(s) = max_a [r(s,a) + γ p(·|s,a)·v]. For any v, with m and M the least and largest of Tv - v,
    Tv + γ/(1-γ)·m <= v* <= Tv + γ/(1-γ)·M, and the greedy policy's value lies between them too
    (MacQueen 1966; Puterman 1994, sec. 6.6). Stops when these bounds, with rounding, are `precision` apart or less.
    The step is v <- v + damping·(Tv - v), moved by a constant to the middle of the bounds. The bounds close at the
    rate of mixing, not of γ.

    Parameters
    ----------
    mdp : MDP
        The process.
    discount : float
        γ in [0, 1), per step.
    precision : float
        How far apart the bounds of a value may be.
    max_sweeps : int
        Sweeps after which to give up.
    damping : float
        Weight of the new value in (0, 1]; below 1 the bounds close fast for periodic chains too.
    rewards : array_like, shape (S, A), optional
        Replace the MDP's own, in the units of `mdp.rewards` (MBIE-EB's bonus).
    start_values : array_like, shape (S,), optional
        Where to start, in the units of `values`.

    Returns
    -------
    ValuePlan
        Values with their bounds, in the user's units (costs positive, an offset of the reward counted 1/(1-γ) times),
        and the greedy policy.

    Raises
    ------
    NotConvergedError
        After `max_sweeps`; it carries the partial plan.
    PrecisionError
        If float64 cannot certify the precision; it carries the partial plan.

    Examples
    --------
    >>> mdp = MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [0.0]])
    >>> discounted_value_iteration(mdp, 0.5).values.round(6)
    array([1.333333, 0.666667])
    """
    if not 0.0 <= discount < 1.0:
        raise InvalidArgumentError("discount", discount, "a number in [0, 1)")
    if not precision > 0.0:
        raise InvalidArgumentError("precision", precision, "a number > 0")
    if max_sweeps < 1:
        raise InvalidArgumentError("max_sweeps", max_sweeps, "at least 1")
    checked_damping(damping)
    units, S = mdp.units, mdp.n_states
    shift = units.offset / (1.0 - discount)  # user's values = sign·(internal + shift)
    r = replaced_rewards(mdp, rewards)
    v = np.zeros(S)
    if start_values is not None:
        v = np.array(start_values, dtype=np.float64)
        if v.shape != (S,) or not np.all(np.abs(v) <= LARGEST_VALUE / 4):
            raise InvalidArgumentError(
                "start_values", start_values, f"({S},) finite numbers", problem=f"start_values have shape {v.shape}"
            )
        v = units.sign * v - shift
    best, actions = np.empty(S), np.zeros(S, dtype=np.int64)
    model = sparse_model(mdp, r)
    unit = roundoff(int(np.diff(mdp.indptr).max()))
    scale = reward_scale(mdp) if rewards is None else float(np.abs(r).max())
    batch = resumed_sweeps(mdp.n_transitions + S)
    # leave room for the rounding of the last step, to the user's units
    wanted = precision - 2.0**-49 * (abs(shift) + scale / (1.0 - discount))
    sweeps, converged = 0, False
    low, high, slack = -np.inf, np.inf, 0.0
    while not converged and sweeps < max_sweeps:
        number = min(batch, max_sweeps - sweeps)
        limits = _DiscountedLimits(damping, wanted, unit, scale, number, sweeps > 0)
        n, low, high, slack, converged = _sweeps(model, discount, v, best, actions, limits)
        sweeps += n
        if not converged and 2.0 * slack > wanted and _width(low, high, discount) <= precision + 4.0 * slack:
            break
    factor = discount / (1.0 - discount)
    widened = slack + 2.0**-52 * (abs(shift) + float(np.abs(best).max()) + factor * max(abs(low), abs(high)))
    lower, upper = best + factor * low - widened + shift, best + factor * high + widened + shift
    bounds = (lower, upper) if units.sign > 0 else (0.0 - upper, 0.0 - lower)
    values = bounds[0] + (bounds[1] - bounds[0]) / 2
    for array in (values, *bounds, actions):
        array.flags.writeable = False
    plan = ValuePlan(values, bounds, actions, float(discount), sweeps, "discounted value iteration", mdp)
    if converged:
        return plan
    if 2.0 * slack > wanted:
        raise PrecisionError(
            f"rounding alone may move the bounds by {2.0 * widened:.1e} here, and the precision asked for is "
            f"{precision:.1e}",
            plan,
            name="precision",
            found=precision,
            hint=f"ask for {4.0 * widened:.1e} or more",
        )
    raise NotConvergedError(
        f"bounds {_width(low, high, discount) + 2.0 * slack:.1e} apart after {sweeps} sweeps (wanted {precision:.1e})",
        plan,
        name="max_sweeps",
        found=max_sweeps,
        hint="raise max_sweeps",
    )


def _width(low: float, high: float, discount: float) -> float:
    return discount / (1.0 - discount) * (high - low)


class _DiscountedLimits(NamedTuple):
    """How to step, and when to stop."""

    damping: Any
    precision: Any
    slack_scale: Any
    reward_scale: Any
    sweeps: Any
    resume: Any
    """Whether v and best = Tv belong together already, so that the first thing to do is a step."""


@kernel
def _sweeps(
    model: SparseModel,
    discount: float,
    v: NDArray[Any],
    best: NDArray[Any],
    actions: NDArray[Any],
    limits: _DiscountedLimits,
) -> tuple[int, float, float, float, bool]:
    """Up to `limits.sweeps` sweeps; returns their number, the range of Tv - v, the bounds' slack, whether to stop.

    v and best = Tv belong together on return.
    """
    damping, precision, slack_scale, reward_scale, sweeps, resume = limits
    factor = discount / (1.0 - discount)
    low, high, slack = -np.inf, np.inf, 0.0
    if resume:
        low, high = (best - v).min(), (best - v).max()
    for n in range(sweeps):
        if resume or n > 0:
            middle = low + 0.5 * (high - low)
            for s in range(v.size):
                v[s] += damping * ((best[s] - v[s]) - middle) + middle / (1.0 - discount)
        backup(model, discount, np.inf, v, best, actions)
        low, high, size = np.inf, -np.inf, 0.0
        for s in range(v.size):
            low = min(low, best[s] - v[s])
            high = max(high, best[s] - v[s])
            size = max(size, abs(v[s]))
        # an error of one slack in Tv - v moves v* by at most 1/(1-γ) of it
        slack = slack_at(slack_scale, size, reward_scale) / (1.0 - discount)
        if 0.0 <= factor * (high - low) + 2.0 * slack <= precision:  # False if v has left the range of float64
            return n + 1, low, high, slack, True
    return sweeps, low, high, slack, False
