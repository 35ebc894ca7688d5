"""Policy iteration: few policies, each evaluated exactly."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError, MultichainError, NotConvergedError, PrecisionError
from gainful.mdp.model import MDP, require_mdp
from gainful.mdp.structure import structure
from gainful.planning.arguments import checked_precision
from gainful.planning.differences import pair_gains
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
    search = HowardSearch(mdp, precision, start_actions)
    while not search.step():
        if search.policies == max_policies:
            raise search.not_converged()
    return search.accepted()


class HowardSearch:
    """The policies tried so far, and the bracket at the bias of the last one.

    Parameters
    ----------
    mdp : MDP
        The process.
    precision : float
        The width of the bracket, in the user's units.
    start_actions : array_like, shape (S,), optional
        The first policy.
    local : bool
        Whether each state leads to near ones only, so that large systems are factored.
    """

    def __init__(
        self, mdp: MDP, precision: float, start_actions: ArrayLike | None = None, *, local: bool = False
    ) -> None:
        S, A = mdp.n_states, mdp.n_actions
        self.mdp, self.precision, self.local = mdp, precision, local
        self.target = checked_precision(mdp, precision)
        self.support, self.max_reward = int(np.diff(mdp.indptr).max()), reward_scale(mdp)
        self.rewards = np.where(mdp.allowed, mdp.pair_rewards.reshape(S, A), -np.inf)
        self.matrix = mdp.matrix()
        self.actions = self.rewards.argmax(axis=1) if start_actions is None else _deterministic(mdp, start_actions)
        self.policies = 0
        self.by_differences = False
        """Whether the usual bracket is too wide for rounding alone, so that the sharper one is used."""
        self._seen: set[bytes] = set()

    def step(self) -> bool:
        """Evaluate a policy and improve it; True once that is not possible any more.

        A policy that comes back means differences at the level of rounding: the bracket decides.
        """
        self.policies += 1
        self.value = evaluate_chain(*chain_of(self.mdp, self.actions), stationary=False, local=self.local)
        better = self._better_by_differences() if self.by_differences else self._better()
        self._seen.add(_digest(self.actions))
        if _digest(better) not in self._seen:
            self.actions = better
            return False
        if self.high - self.low > self.target and not self.by_differences:
            self.by_differences = True
            self._seen.clear()
            self.policies -= 1
            return self.step()
        return True

    def _better(self) -> NDArray[np.int64]:
        """The bracket at the bias, centred to make max|h| small, and the next policy."""
        S, A = self.mdp.n_states, self.mdp.n_actions
        bias = self.value.bias
        self.h = bias - (bias.max() + bias.min()) / 2
        self.slack = rounding_slack(self.support, float(np.abs(self.h).max()), self.max_reward)
        q = self.rewards + (self.matrix @ self.h).reshape(S, A)
        self.greedy = q.argmax(axis=1)
        residual = q.max(axis=1) - self.h
        self.low, self.high = float(residual.min()) - self.slack, float(residual.max()) + self.slack
        return self._improved(q, 2 * self.slack + 2 * self.value.residual)

    def _better_by_differences(self) -> NDArray[np.int64]:
        """The same from differences of the bias, whose rounding is that of the pairs compared."""
        states = np.arange(self.mdp.n_states)
        self.h = self.value.bias
        q, slack = found = pair_gains(self.mdp, self.h)
        self.greedy = q.argmax(axis=1)
        self.low, self.high = found.bracket()
        self.slack = float(slack[states, self.greedy].max())
        own = np.abs(q[states, self.actions] - self.value.gain)
        return self._improved(q, slack[states, self.greedy] + slack[states, self.actions] + 2 * float(own.max()))

    def _improved(self, q: NDArray[np.float64], tolerance: float | NDArray[np.float64]) -> NDArray[np.int64]:
        """The next policy of Howard's iteration, `actions` itself when nothing is better beyond rounding."""
        mdp, actions, value = self.mdp, self.actions, self.value
        S, A = mdp.n_states, mdp.n_actions
        states = np.arange(S)
        g = value.gain
        if g.max() - g.min() > _gain_tolerance(value, self.support):
            next_gain = np.where(mdp.allowed, (self.matrix @ g).reshape(S, A), -np.inf)
            tied = _gain_tolerance(value, self.support)
            best = next_gain.max(axis=1)
            gains_more = best > next_gain[states, actions] + tied
            if gains_more.any():
                return np.where(gains_more, next_gain.argmax(axis=1), actions)
            q = np.where(next_gain >= best[:, None] - tied, q, -np.inf)
        worth_it = q.max(axis=1) > q[states, actions] + tolerance
        return np.where(worth_it, q.argmax(axis=1), actions)

    @property
    def rounding_only(self) -> bool:
        """Whether nothing but rounding keeps the bracket open."""
        return self.high - self.low <= 8 * self.slack

    def plan(self, actions: NDArray[np.int64]) -> Plan:
        """The bracket so far with a policy."""
        return make_plan(
            self.mdp,
            low=self.low,
            high=self.high,
            values=self.h,
            actions=actions,
            sweeps=self.policies,
            method="policy iteration",
            details={
                "policies": self.policies,
                "unichain": len(self.value.classes) == 1,
                "residual": self.value.residual,
            },
        )

    @property
    def _width(self) -> float:
        return (self.high - self.low) / self.mdp.units.step_duration

    def not_converged(self) -> NotConvergedError:
        """The error after too many policies; its plan has the actions that the lower end of the bracket speaks of."""
        return NotConvergedError(
            f"bracket {self._width:.3g} wide after {self.policies} policies (wanted {self.precision:g})",
            self.plan(self.greedy),
            name="max_policies",
            found=self.policies,
            hint="raise max_policies",
        )

    def accepted(self) -> Plan:
        """The plan of a policy that cannot be improved, or the error that says why its bracket is too wide."""
        mdp, plan = self.mdp, self.plan(self.actions)
        if 0.0 <= self.high - self.low <= self.target:
            return plan
        kind = structure(mdp)
        if kind == "multichain":
            gains = [mdp.units.gain(float(self.value.gain[c[0]])) for c in kind.classes]
            raise MultichainError(
                "the optimal gain depends on the start\n"
                + kind.describe(gains)
                + "\nsolve the part you start in: mdp.restricted(states)",
                kind.classes,
                found=gains,
            )
        raise PrecisionError(
            f"bracket {self._width:.3g} wide with an optimal policy (wanted {self.precision:g}); rounding allows no "
            f"less than about {2 * self.slack / mdp.units.step_duration:.3g} here",
            plan,
            name="precision",
            found=self.precision,
            hint="ask for a coarser precision",
        )


def _digest(actions: NDArray[np.int64]) -> bytes:
    return hashlib.blake2b(actions.tobytes(), digest_size=16).digest()


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
