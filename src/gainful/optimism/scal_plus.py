"""SCAL+'s exploration bonus and its optimistic rewards (Qian, Fruit, Pirotta & Lazaric, sec. 3)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel

MAIN_TEXT, APPENDIX, AUTHORS = 0, 1, 2
AUTHORS_SCALE, AUTHORS_CAP = 0.5, 3.0
"""α of the bonus that the authors' experiments used, and the most that a reward may be, in units of c + r_max."""


class BonusConstants(NamedTuple):
    """Everything but the step and the visits on which the bonus depends."""

    n_states: int
    n_actions: int
    delta: float
    scale: float
    """Multiplies β; 1 is the theorem's."""
    span: float
    """The bound c on sp(h*)."""
    reward_max: float
    variant: int
    """`MAIN_TEXT`, `APPENDIX` or `AUTHORS`."""
    model_error: float = 0.0
    """Added to every bonus: the error of a model of cells (C-SCAL+'s Hölder term)."""


@inlined
def confidence_log(n_states: int, n_actions: int, t: int, delta: float) -> float:
    """ℓ = ln(2·S·A·t_k/δ)."""
    return math.log(2.0 * n_states * n_actions * t / delta)


@inlined
def deviation(log_term: float, visits: int, scale: float) -> float:
    """β = scale·sqrt(7·ln(2SAt_k/δ) / max{1,N}); scale 1 is the theorem's."""
    return scale * math.sqrt(7.0 * log_term / max(1, visits))


@inlined
def authors_log(n_states: int, n_actions: int, t: int) -> float:
    """ln(S·A·sqrt(t_k + 1)), of the bonus in the authors' experiments."""
    return math.log(n_states * n_actions * math.sqrt(t + 1.0))


@inlined
def log_at(c: BonusConstants, t: int) -> float:
    """The logarithm of the variant's bonus at step t."""
    if c.variant == AUTHORS:
        return authors_log(c.n_states, c.n_actions, t)
    return confidence_log(c.n_states, c.n_actions, t, c.delta)


@inlined
def authors_bonus(log_term: float, visits: Any, c: BonusConstants) -> float:
    """α·(c + r_max)·sqrt(ln(S·A·sqrt(t_k + 1)) / max{1,N}), α = 1/2; there is no c/(N+1)."""
    return AUTHORS_SCALE * c.scale * (c.span + c.reward_max) * math.sqrt(log_term / max(1, visits))


@inlined
def bonus(variant: int, beta: float, visits: int, span: float, reward_max: float) -> float:
    """b_k(s,a), with c = `span`.

    Main text: (c + r_max)·β + c/(N+1).
    Appendix (tighter, same proof): c·min{β + 1/(N+1), 2} + r_max·min{β, 1}.
    """
    if variant == MAIN_TEXT:
        return (span + reward_max) * beta + span / (visits + 1)
    return span * min(beta + 1.0 / (visits + 1), 2.0) + reward_max * min(beta, 1.0)


@inlined
def bonus_of(c: BonusConstants, log_term: float, visits: int) -> float:
    """b_k of one pair, to which the authors' bonus has still to add the error of the model."""
    if c.variant == AUTHORS:
        return authors_bonus(log_term, visits, c)
    beta = deviation(log_term, visits, c.scale)
    return bonus(c.variant, beta, visits, c.span, c.reward_max) + c.model_error


@inlined
def with_bonus(c: BonusConstants, mean: float, b: float) -> float:
    """r̂ = r̄ + b_k, b from `bonus_of`; with the authors' bonus at most 3(c + r_max)."""
    if c.variant == AUTHORS:
        return min(mean + b, AUTHORS_CAP * (c.span + c.reward_max)) + c.model_error
    return mean + b


@inlined
def optimistic_reward(c: BonusConstants, log_term: float, visits: int, reward_sum: float) -> float:
    """r̂ = r̄ + b_k of one pair, r̄ = 0 if N = 0."""
    return with_bonus(c, reward_sum / max(1, visits), bonus_of(c, log_term, visits))


@kernel
def optimistic_rewards(
    pairs: NDArray[Any],
    visits: NDArray[Any],
    reward_sum: NDArray[Any],
    allowed: NDArray[Any],
    t: int,
    constants: BonusConstants,
    out: NDArray[Any],
) -> None:
    """r̂ = r̄ + b_k of each of `pairs`, r̄ = 0 if N = 0; -inf if an action is not allowed."""
    c = BonusConstants(*constants)
    log_term = log_at(c, t)
    for i in range(pairs.size):
        k = pairs[i]
        out[k] = optimistic_reward(c, log_term, visits[k], reward_sum[k]) if allowed[k] else -np.inf


@kernel
def bonus_growth(since: NDArray[Any], t: int, constants: BonusConstants, out: NDArray[Any]) -> None:
    """For each class of counts a bound on b_t(N) - b_u(N), for every u ≥ since[j] and 2^j ≤ max{1,N} < 2^(j+1).

    The logarithm grows, so b does. A term of the appendix's bonus that was at its cap stays there; below it,
    β_t(N) - β_u(N) falls with N, so the smallest count of the class that was below the cap bounds it: for the term in c
    that is N > 7ℓ·scale²/4 at least (β < 2), for the one in r_max N > 7ℓ·scale² (β < 1).
    """
    c = BonusConstants(*constants)
    now = log_at(c, t)
    for j in range(out.size):
        first, last = 2.0**j, 2.0 ** (j + 1) - 1.0
        then = log_at(c, since[j])
        if c.variant == AUTHORS:  # the cap on rewards can only make the growth smaller
            out[j] = max(0.0, authors_bonus(now, first, c) - authors_bonus(then, first, c))
            continue
        growth = c.scale * (math.sqrt(7.0 * now) - math.sqrt(7.0 * then))
        n = m = first
        if c.variant != MAIN_TEXT:
            n, m = max(first, 7.0 * then * c.scale * c.scale / 4.0), max(first, 7.0 * then * c.scale * c.scale)
        out[j] = 0.0
        if n <= last:
            out[j] += c.span * growth / math.sqrt(n)
        if m <= last:
            out[j] += c.reward_max * growth / math.sqrt(m)


def bonuses(visits: NDArray[np.int64], t: int, constants: BonusConstants) -> NDArray[np.float64]:
    """b_k of every pair at step t: what a pair whose rewards were all 0 is worth.

    >>> constants = BonusConstants(2, 2, 0.05, 1.0, span=1.0, reward_max=1.0, variant=APPENDIX)
    >>> bonuses(np.array([0, 10_000]), 10_001, constants).round(4)
    array([3.    , 0.2001])
    """
    out = np.empty(visits.size)
    every, nothing = np.arange(visits.size), np.zeros(visits.size)
    optimistic_rewards(every, visits, nothing, np.ones(visits.size, dtype=bool), t, tuple(constants), out)
    return out


class BonusRewards(NamedTuple):
    """r̂ = r̄ + b_k at step t, as a planner asks for them."""

    visits: NDArray[np.int64]
    reward_sum: NDArray[np.float64]
    allowed: NDArray[np.bool_]
    """(S*A,) the pairs there are."""
    t: int
    constants: BonusConstants

    def write(self, pairs: NDArray[np.int64], out: NDArray[np.float64]) -> None:
        """Set out[k] to r̂ for every k of `pairs`; -inf if the state does not have the action."""
        optimistic_rewards(pairs, self.visits, self.reward_sum, self.allowed, self.t, tuple(self.constants), out)

    def added(self) -> NDArray[np.float64]:
        """(S*A,) b_k, what is added to the mean rewards."""
        if self.constants.variant == AUTHORS:  # its cap is on the sum
            out = np.empty(self.visits.size)
            everywhere = self._replace(allowed=np.ones(self.visits.size, dtype=bool))
            everywhere.write(np.arange(self.visits.size), out)
            return np.asarray(out - self.reward_sum / np.maximum(1, self.visits))
        return bonuses(self.visits, self.t, self.constants)

    def growth(self, since: NDArray[np.int64]) -> NDArray[np.float64]:
        """Bounds on how much b has grown since step since[j], one for each class j of counts up to t visits."""
        out = np.empty(self.t.bit_length() + 1)
        bonus_growth(since, self.t, tuple(self.constants), out)
        return out
