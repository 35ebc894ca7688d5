r"""ScOpt with a bonus that depends on the values: the empirical Bernstein bonus of SCAL+, on counts.

With p̂ = (n·p̄ + 1_s̄)/(n+1) and x = ι_n/(n-1), on {sp(v) ≤ c} (docs/kl_scal_plus.md, section 6)

    f(v) = p̂·v + min{c, max{κ₁·sqrt(Var_p̄(v)·x), κ₂·c·x} + c/(n+1)},  κ₁ = 3/√2,  κ₂ = 7;   p̂·v + c for n < 2.

The plug-in bonus sqrt(Var·x) alone is not monotone in v. Here it is: where the variance rules, its derivative in v(y)
is at least -(κ₁²/κ₂)·p̄(y), and p̂(y) ≥ n/(n+1)·p̄(y), so κ₁² ≤ κ₂·n/(n+1) is enough; n ≥ 2 gives 4.5 ≤ 14/3. The
derivatives sum to 1 and are at least 1/(n+1) at s̄, so T_c contracts. The smaller of two such functions, f and p̂·v + c,
is one too. To cut f at max v instead would lose the common state s̄ and with it the contraction.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel
from gainful.planning.estimated import EstimatedMDP, TransitionCounts, estimated_mdp
from gainful.planning.mixture import Mixture
from gainful.planning.rounding import counts_slack
from gainful.planning.scopt_on_counts import FullScOpt, cut_to_span, move, reward_and_support
from gainful.planning.truncation import ceiling_of, truncated_range

KAPPA_VARIANCE, KAPPA_RANGE = 3.0 / math.sqrt(2.0), 7.0
"""κ₁ ≥ √2/θ and κ₂ ≥ (7/3)/(1-θ) for θ = 2/3: then max{x, y} ≥ θx + (1-θ)y gives the inequality of Maurer & Pontil."""
NO_VARIANCE_FROM = (KAPPA_VARIANCE / (2.0 * KAPPA_RANGE)) ** 2
"""From this x on the second term of the maximum is the larger one, because Var ≤ c²/4."""


class BernsteinOptimism(Protocol):
    """The rewards and the levels of the bonus that a learner plans with at one step."""

    @property
    def t(self) -> int:
        """The step."""

    def write_all(self, rewards: NDArray[np.float64], levels: NDArray[np.float64]) -> None:
        """Set the reward, -inf where the state does not have the action, and x = ι_n/(n-1) of all pairs."""


class BernsteinSweeps(NamedTuple):
    """How to sweep, and when to stop."""

    levels: Any
    """(S*A,) x = ι_n/(n-1); inf for n < 2."""
    span: Any
    """c."""
    damping: Any
    target: Any
    """The precision."""
    max_sweeps: Any


@inlined
def bernstein_value(model: EstimatedMDP, level: float, span: float, v: Any, k: int) -> tuple[float, float]:
    """p̂·v and the bonus f(v) - p̂·v of pair k, x = `level`; the variance in two passes, around p̄·v."""
    n = model.visits[k]
    total = 0.0
    first = np.uint64(model.begin[k])
    last = first + np.uint64(model.length[k])
    for j in range(first, last):
        total += model.count[j] * v[model.next_state[j]]
    expected = (total + v[model.attractive]) / (n + 1)
    share = KAPPA_RANGE * level
    if level < NO_VARIANCE_FROM and span > 0.0:
        mean, squares = total / n, 0.0
        for j in range(first, last):
            gap = v[model.next_state[j]] - mean
            squares += model.count[j] * gap * gap
        share = max(share, KAPPA_VARIANCE * math.sqrt(squares / n * level) / span)
    return expected, span * min(1.0, share + 1.0 / (n + 1))


@kernel
def bernstein_scopt(
    model: EstimatedMDP, how: BernsteinSweeps, v: NDArray[Any], w: NDArray[Any], act: NDArray[Any]
) -> tuple[int, float, float, float, bool]:
    """Iterate v ← (1-θ)v + θT_c v from v, first cut to span c; what `scopt_on_counts` does, with f(v) for p̂·v.

    Returns sweeps, the range of T_c v - v, its rounding slack, and whether the range, widened by the slack, is at most
    the target; v is the vector of that test, w = Lv not yet cut, act its greedy actions (lowest first).
    """
    model, how = EstimatedMDP(*model), BernsteinSweeps(*how)
    max_reward, support = reward_and_support(model)
    return bernstein_sweeps(model, how, v, w, act, max_reward, support)


@inlined
def bernstein_sweeps(
    model: EstimatedMDP, how: BernsteinSweeps, v: Any, w: Any, act: Any, max_reward: float, support: int
) -> tuple[int, float, float, float, bool]:
    """The sweeps of `bernstein_scopt`, for a model whose largest reward and longest row are known."""
    n_actions, rewards, span = model.n_actions, model.rewards, how.span
    cut_to_span(v, span)
    done, met = 0, False
    low, high, slack = np.inf, -np.inf, 0.0
    while True:
        least, largest = np.inf, 0.0
        for s in range(v.size):
            best, best_action = -np.inf, 0
            for a in range(n_actions):
                k = s * n_actions + a
                if rewards[k] > -np.inf:
                    expected, bonus = bernstein_value(model, how.levels[k], span, v, k)
                    q = rewards[k] + bonus + expected
                    if q > best:
                        best, best_action = q, a
            w[s], act[s] = best, best_action
            least = min(least, best)
            largest = max(largest, abs(v[s]))
        done += 1
        ceiling = ceiling_of(least, span)
        low, high = truncated_range(w, v, ceiling)
        slack = counts_slack(support + 6, largest + span, max_reward)  # the bonus is at most c, and rounds like it
        met = high - low + 2.0 * slack <= how.target
        if met or done >= how.max_sweeps or high - low <= 2.0 * slack:
            break
        move(v, w, ceiling, how.damping, model.attractive)
    return done, low, high, slack, met


@kernel
def bernstein_bonuses(
    model: EstimatedMDP, levels: NDArray[Any], span: float, v: NDArray[Any], out: NDArray[Any]
) -> None:
    """The bonus f(v) - p̂·v of every pair."""
    model = EstimatedMDP(*model)
    for k in range(out.size):
        _, out[k] = bernstein_value(model, levels[k], span, v, k)


class BernsteinScOpt(FullScOpt):
    """ScOpt with the Bernstein bonus, which sweeps the whole model in every plan.

    Parameters
    ----------
    n_states, n_actions : int
        The size of the model.
    span : float
        The bound c on the span of the values.
    allowed : ndarray of bool, shape (S, A)
        The actions that each state has.
    mixture : {"copy", "min-action"}
        What the greedy action is mixed with where T_c cuts.
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
        super().__init__(n_states, n_actions, span, allowed, mixture, damping)
        self._levels = np.empty(n_states * n_actions)

    def write_rewards(self, optimism: Any) -> None:
        """Take r̃ and the levels of the bonus."""
        optimism.write_all(self.rewards, self._levels)

    def sweep(
        self, model: EstimatedMDP, precision: float, batch: int, *vectors: NDArray[Any]
    ) -> tuple[int, float, float, float, bool]:
        """Up to `batch` sweeps over the model."""
        how = (self._levels, self.span, self.damping, precision, batch)
        found: tuple[int, float, float, float, bool] = bernstein_scopt(tuple(model), how, *vectors)
        return found

    def optimistic_rewards(self, counts: TransitionCounts, optimism: BernsteinOptimism) -> NDArray[np.float64]:
        """(S*A,) r̃ and the bonus at the values of the last plan together; -inf where there is no action."""
        rewards, levels = np.empty(self.rewards.size), np.empty(self.rewards.size)
        optimism.write_all(rewards, levels)
        bonus = np.empty(rewards.size)
        bernstein_bonuses(tuple(estimated_mdp(counts, rewards)), levels, self.span, self.values, bonus)
        return np.asarray(rewards + bonus)


def always_capped(optimism: BernsteinOptimism, possible: NDArray[np.bool_], visits: NDArray[np.int64]) -> bool:
    """Whether the bonus of every possible pair is c, its cap, for all values."""
    rewards, levels = np.empty(visits.size), np.empty(visits.size)
    optimism.write_all(rewards, levels)
    return bool(np.all((KAPPA_RANGE * levels + 1.0 / (visits + 1.0))[possible] >= 1.0))
