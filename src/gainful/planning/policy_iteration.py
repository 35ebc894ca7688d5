"""Policy iteration: few policies, each evaluated exactly."""

from __future__ import annotations

import hashlib

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError, MultichainError, NotConvergedError, PrecisionError
from gainful.mdp.model import MDP, require_mdp
from gainful.mdp.structure import structure
from gainful.planning.evaluation import ChainValues, chain_of, checked_policy, evaluate_chain
from gainful.planning.plan import Plan, make_plan
from gainful.planning.rounding import UNIT_ROUNDOFF, reward_scale, rounding_slack

EXACT_UP_TO = 3000
"""States up to which the other planners fall back on policy iteration: its linear systems may be dense."""


def policy_iteration(
    mdp: MDP, *, precision: float = 1e-8, max_policies: int = 1000, start_actions: ArrayLike | None = None
) -> Plan:
    r"""Optimal gain and bias by Howard's policy iteration in its multichain form.

    Each policy d is evaluated exactly: g = P_d g, g + h = r_d + P_d h (see `evaluate`). It is improved first in gain,
    max_a p(·|s,a)·g, and where no state can gain, in bias, max_a [r(s,a) + p(·|s,a)·h] over the actions that keep the
    gain; an action is kept unless another is better by more than rounding (Puterman 1994, sec. 9.2). It ends with a
    policy that cannot be improved, which is accepted if the bracket min(Lh - h) <= g* <= max(Lh - h), widened for
    rounding, is at most `precision` wide.

    Parameters
    ----------
    mdp : MDP
        Any process; the bracket closes when the optimal gain is the same from every state, as in a weakly
        communicating one.
    precision : float
        Width of the certified bracket on the gain, in the units of the rewards.
    max_policies : int
        Policies after which to give up.
    start_actions : array_like, shape (S,), optional
        The first policy, as indices or labels; by default the largest reward of one step.

    Returns
    -------
    Plan
        Gain with its bracket, bias, policy; `sweeps` is the number of policies.

    Raises
    ------
    MultichainError
        If the gain depends on the start; it names the classes and what each of them earns.
    NotConvergedError
        After `max_policies`; it carries the partial plan.
    PrecisionError
        If `precision` is finer than rounding allows; it carries the partial plan.

    Examples
    --------
    >>> import gainful as gf
    >>> round(gf.policy_iteration(gf.environments.riverswim(6)).gain, 6)
    0.428622
    """
    require_mdp(mdp)
    if not precision > 0.0:
        raise InvalidArgumentError("precision", precision, "a number > 0", problem=f"precision {precision}")
    if max_policies < 1:
        raise InvalidArgumentError("max_policies", max_policies, "at least 1", problem=f"max_policies {max_policies}")
    S, A = mdp.n_states, mdp.n_actions
    r = np.where(mdp.allowed, mdp.pair_rewards.reshape(S, A), -np.inf)
    P = mdp.matrix()
    actions = r.argmax(axis=1) if start_actions is None else _deterministic(mdp, start_actions)
    support = int(np.diff(mdp.indptr).max())
    largest = reward_scale(mdp)
    stable = False
    policies = 0
    seen: set[bytes] = set()
    while True:
        policies += 1
        value = evaluate_chain(*chain_of(mdp, actions), stationary=False)
        h = value.bias - (value.bias.max() + value.bias.min()) / 2  # the smallest max|h|
        slack = rounding_slack(support, float(np.abs(h).max()), largest)
        q = r + (P @ h).reshape(S, A)
        better = _improved(actions, value, q, P, slack, support, mdp)
        seen.add(hashlib.blake2b(actions.tobytes(), digest_size=16).digest())
        # a policy that comes back means differences at the level of rounding: the bracket decides
        stable = hashlib.blake2b(better.tobytes(), digest_size=16).digest() in seen
        if stable or policies == max_policies:
            break
        actions = better
    residual = q.max(axis=1) - h
    low, high = float(residual.min()) - slack, float(residual.max()) + slack
    wanted = mdp.units.internal_precision(precision)
    if not stable:  # the actions that the lower end of the bracket speaks about
        actions = q.argmax(axis=1)
    plan = make_plan(
        mdp,
        low=low,
        high=high,
        values=h,
        actions=actions,
        sweeps=policies,
        method="policy iteration",
        details={
            "policies": policies,
            "unichain": len(value.classes) == 1,
            "residual": value.residual,
        },
    )
    if high - low <= wanted:
        return plan
    width = (high - low) / mdp.units.step_duration
    if not stable:
        raise NotConvergedError(
            f"bracket {width:.3g} wide after {policies} policies (wanted {precision:g})",
            plan,
            name="max_policies",
            found=max_policies,
            hint="raise max_policies",
        )
    kind = structure(mdp)
    if kind == "multichain":
        gains = [mdp.units.gain(float(value.gain[c[0]])) for c in kind.classes]
        raise MultichainError(
            "the optimal gain depends on the start\n"
            + kind.describe(gains)
            + "\nsolve the part you start in: mdp.restricted(states)",
            kind.classes,
            found=gains,
        )
    raise PrecisionError(
        f"bracket {width:.3g} wide with an optimal policy (wanted {precision:g}); rounding allows no less than about "
        f"{2 * slack / mdp.units.step_duration:.3g} here",
        plan,
        name="precision",
        found=precision,
        hint="ask for a coarser precision",
    )


def _improved(
    actions: NDArray[np.int64],
    value: ChainValues,
    q: NDArray[np.float64],
    P: sp.csr_array,
    slack: float,
    support: int,
    mdp: MDP,
) -> NDArray[np.int64]:
    """The next policy of Howard's iteration, `actions` itself when nothing is better beyond rounding."""
    S, A = mdp.n_states, mdp.n_actions
    states = np.arange(S)
    g = value.gain
    if g.max() - g.min() > _gain_tolerance(value, support):
        next_gain = np.where(mdp.allowed, (P @ g).reshape(S, A), -np.inf)
        tolerance = _gain_tolerance(value, support)
        best = next_gain.max(axis=1)
        gains_more = best > next_gain[states, actions] + tolerance
        if gains_more.any():
            return np.where(gains_more, next_gain.argmax(axis=1), actions)
        q = np.where(next_gain >= best[:, None] - tolerance, q, -np.inf)
    worth_it = q.max(axis=1) > q[states, actions] + 2 * slack + 2 * value.residual
    return np.where(worth_it, q.argmax(axis=1), actions)


def _gain_tolerance(value: ChainValues, support: int) -> float:
    """What rounding may do to a gain or to p·g: the solution's own residual and a dot product."""
    largest = float(np.abs(value.gain).max())
    return 4 * value.residual + 8 * (support + 4) * UNIT_ROUNDOFF * largest


def _deterministic(mdp: MDP, actions: ArrayLike) -> NDArray[np.int64]:
    checked = checked_policy(mdp, actions)
    if checked.ndim != 1:
        raise InvalidArgumentError(
            "start_actions",
            checked.shape,
            f"({mdp.n_states},) actions",
            problem=f"start_actions has shape {checked.shape}",
        )
    return checked.astype(np.int64)
