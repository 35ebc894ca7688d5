"""ScOpt on an MDP estimated from counts, as SCAL+ plans: no copy of the model, no allocation, one compiled call."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.errors import NotConvergedError
from gainful.planning.batches import sweeps_per_batch
from gainful.planning.estimated import EstimatedMDP, TransitionCounts, estimated_mdp, expected_value, expected_values
from gainful.planning.mixture import Mixture, ceiling_at, constrained_greedy
from gainful.planning.rounding import counts_slack
from gainful.planning.truncation import ceiling_of, truncate, truncated_range


class OptimisticRewards(Protocol):
    """The rewards that a learner plans with at one step."""

    @property
    def t(self) -> int:
        """The step."""

    def write(self, pairs: NDArray[np.int64], out: NDArray[np.float64]) -> None:
        """Set out[k] for every k of `pairs`; -inf if the state does not have the action."""

    def growth(self, since: NDArray[np.int64]) -> NDArray[np.float64]:
        """Bounds on how much a reward has grown since step since[j], one for each class j of visit counts.

        Class j holds the pairs with 2^j ≤ max{1, N} < 2^(j+1), and N has not changed since.
        """


class ScOptPlan(NamedTuple):
    """What ScOpt found on counts: the gain of T_c lies in [low, high], which is no wider than asked for."""

    values: NDArray[np.float64]
    actions: NDArray[np.int64]
    low: float
    high: float
    sweeps: int
    span: float
    """sp(values)."""
    probabilities: NDArray[np.float64] | None = None
    """(S,A) if the policy mixes actions."""
    drift: float = 0.0
    """How much larger than the rewards planned with those of this step may be; `high` includes it."""
    repaired: bool = False
    """Whether it is the last plan, repaired where the model changed; else the whole model was swept."""


@inlined
def damped(old: float, new: float, damping: float) -> float:
    """(1-θ)·old + θ·new; exactly the new value if θ = 1."""
    return new if damping == 1.0 else (1.0 - damping) * old + damping * new


@inlined
def cut_to_span(v: Any, span: float) -> None:
    """Cut v to span c, from its least value up."""
    least = v[0]
    for s in range(v.size):
        least = min(least, v[s])
    for s in range(v.size):
        v[s] = truncate(v[s], ceiling_of(least, span))


@inlined
def reward_and_support(model: EstimatedMDP) -> tuple[float, int]:
    """The largest |r̂| of an allowed pair and the longest row, on which rounding depends."""
    max_reward, support = 0.0, 0
    for k in range(model.rewards.size):
        if model.rewards[k] > -np.inf:  # else the state does not have this action
            max_reward = max(max_reward, abs(model.rewards[k]))
        support = max(support, model.length[k])
    return max_reward, support


@inlined
def move(v: Any, w: Any, ceiling: float, damping: float, attractive: int) -> None:
    """Set v ← (1-θ)v + θT_c v, relative to s̄, where w = Lv and T_c v = min{w, ceiling}."""
    pin = damped(v[attractive], truncate(w[attractive], ceiling), damping)
    for s in range(v.size):
        v[s] = damped(v[s], truncate(w[s], ceiling), damping) - pin


class ScOptSweeps(NamedTuple):
    """How to sweep, and when to stop."""

    span: Any
    """c."""
    damping: Any
    target: Any
    """The precision."""
    max_sweeps: Any
    max_reward: Any
    """The largest |r̂| of an allowed pair."""
    support: Any
    """The length of the longest row."""


@kernel
def scopt_on_counts(
    model: EstimatedMDP,
    span: float,
    target: float,
    max_sweeps: int,
    v: NDArray[Any],
    w: NDArray[Any],
    act: NDArray[Any],
    damping: float,
) -> tuple[int, float, float, float, bool]:
    """Iterate T_c on the estimated MDP, whose rewards are at least 0, from v.

    v is first cut to span c. Then v ← T_c v, relative to s̄: p̂ moves to s̄ from everywhere, so T_c contracts, if only by
    1/(N+1) where the MDP is periodic. With θ = `damping` < 1, v ← (1-θ)v + θT_c v, which needs few sweeps there too.
    Returns sweeps, the range of T_c v - v, its rounding slack, and whether the range, widened by the slack,
    is at most `target`; v is the vector of that test, w = Lv not yet cut, act its greedy actions (lowest first).
    """
    model = EstimatedMDP(*model)
    max_reward, support = reward_and_support(model)
    return scopt_sweeps(model, ScOptSweeps(span, damping, target, max_sweeps, max_reward, support), v, w, act)


@inlined
def scopt_sweeps(
    model: EstimatedMDP, how: ScOptSweeps, v: Any, w: Any, act: Any
) -> tuple[int, float, float, float, bool]:
    """The sweeps of `scopt_on_counts`, for a model whose largest reward and longest row are known."""
    n_actions, rewards, span, damping = model.n_actions, model.rewards, how.span, how.damping
    cut_to_span(v, span)
    done, met = 0, False
    low, high, slack = np.inf, -np.inf, 0.0
    while True:
        least, largest = np.inf, 0.0
        for s in range(v.size):
            best, best_action = -np.inf, 0
            for a in range(n_actions):
                k = s * n_actions + a
                q = rewards[k] + expected_value(model, v, k)
                if q > best:
                    best, best_action = q, a
            w[s], act[s] = best, best_action
            least = min(least, best)
            largest = max(largest, abs(v[s]))
        done += 1
        ceiling = ceiling_of(least, span)
        low, high = truncated_range(w, v, ceiling)
        slack = counts_slack(how.support, largest, how.max_reward)
        met = high - low + 2.0 * slack <= how.target
        if met or done >= how.max_sweeps or high - low <= 2.0 * slack:
            break
        move(v, w, ceiling, damping, model.attractive)
    return done, low, high, slack, met


@kernel
def span_of(v: NDArray[Any]) -> float:
    """sp(v), without the microseconds NumPy takes for a small array."""
    low = high = v[0]
    for s in range(1, v.size):
        low, high = min(low, v[s]), max(high, v[s])
    return float(high - low)


def too_precise(precision: float, t: int, rounding: float, span: float) -> NotConvergedError:
    """The error for a precision that rounding does not allow."""
    return NotConvergedError(
        f"SCAL+ cannot plan to {precision:.1e} at step {t}: rounding alone is {rounding:.1e} (span {span:g})",
        name="precision",
        found=precision,
    )


class FullScOpt:
    """ScOpt that sweeps the whole model in every plan, starting from the values of the last one.

    Parameters
    ----------
    n_states, n_actions : int
        The size of the model.
    span : float
        The bound c on the span of the values.
    allowed : ndarray of bool, shape (S, A)
        The actions that each state has.
    mixture : {"copy", "min-action"}
        What the greedy action is mixed with where T_c cuts; see `planning.mixture`.
    damping : float
        The weight of the new value in a sweep.
    """

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        span: float,
        allowed: NDArray[np.bool_],
        mixture: Mixture = "copy",
        damping: float = 1.0,
    ) -> None:
        self.span, self.allowed, self.mixture, self.damping = span, allowed, mixture, damping
        self.values: NDArray[np.float64] = np.zeros(n_states)
        self.rewards: NDArray[np.float64] = np.empty(n_states * n_actions)
        """(S*A,) the rewards of the last plan."""
        self._pairs = np.arange(n_states * n_actions)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What the next plan starts from."""
        return {"values": self.values}

    def restore(self, arrays: dict[str, NDArray[Any]], counts: TransitionCounts) -> None:  # noqa: ARG002
        """Restore what `arrays` returned."""
        self.values = arrays["values"]

    def plan(self, counts: TransitionCounts, rewards: OptimisticRewards, precision: float) -> ScOptPlan:
        """Plan on the MDP estimated from `counts`, to a certified `precision`."""
        self.write_rewards(rewards)
        model, v = estimated_mdp(counts, self.rewards), self.values.copy()
        w, act = np.empty(v.size), np.zeros(v.size, dtype=np.int64)
        batch = sweeps_per_batch(int(counts.used[0]))
        sweeps = 0
        while True:
            done, low, high, slack, met = self.sweep(model, precision, batch, v, w, act)
            sweeps += done
            if met:
                break
            if high - low <= 2 * slack:
                raise too_precise(precision, rewards.t, 2 * slack, self.span)
        self.values = v
        return ScOptPlan(v, act, low - slack, high + slack, sweeps, span_of(v), self._mixed(model, v, w, act))

    def write_rewards(self, rewards: OptimisticRewards) -> None:
        """Take the rewards to plan with."""
        rewards.write(self._pairs, self.rewards)

    def sweep(
        self, model: EstimatedMDP, precision: float, batch: int, *vectors: NDArray[Any]
    ) -> tuple[int, float, float, float, bool]:
        """Up to `batch` sweeps over the model, see `scopt_on_counts`; the vectors are v, w and act."""
        found: tuple[int, float, float, float, bool] = scopt_on_counts(
            tuple(model), self.span, precision, batch, *vectors, self.damping
        )
        return found

    def _mixed(
        self, model: EstimatedMDP, v: NDArray[np.float64], best: NDArray[np.float64], greedy: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        """(S,A) of the min-action mixture; None if the policy is deterministic."""
        if self.mixture == "copy":
            return None
        ceiling = ceiling_at(best, self.span)
        if not np.any(best > ceiling):
            return None
        n_actions = self.allowed.shape[1]
        copies = np.empty(self.rewards.size)
        expected_values(tuple(model), v, copies)
        table = np.where(self.allowed, copies.reshape(self.allowed.shape), np.inf)
        worst = n_actions + table.argmin(axis=1)
        mixed = constrained_greedy(best, ceiling, greedy, worst, table.min(axis=1), n_actions)
        return None if mixed.deterministic else mixed.projected
