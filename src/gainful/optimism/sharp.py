"""The sharp bonus of SCAL+: time-uniform deviations at h* alone (docs/kl_scal_plus.md, theorem 11)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined, kernel


class SharpConstants(NamedTuple):
    """Everything but the visits and the rewards seen on which the sharp bonus depends."""

    n_deviations: int
    """The pairs whose deviations are bounded together: S, one for each (s, π*(s)); every pair on cells."""
    delta: float
    scale: float
    """Multiplies β; 1 is the theorem's."""
    span: float
    """The bound c on sp(h*)."""
    reward_max: float
    model_error: float = 0.0
    """Added to every bonus: the error of a model of cells (C-SCAL+'s Hölder term)."""


@inlined
def sharp_deviation(n_deviations: int, delta: float, visits: int, scale: float) -> float:
    """β_n = scale·sqrt((1 + 1/n)·ln(1/2 + S·sqrt(n+1)/δ)/(2n)), n ≥ 1: Laplace's mixture for one mean in [0, 1]."""
    log_term = math.log(0.5 + n_deviations * math.sqrt(visits + 1.0) / delta)
    return scale * math.sqrt((1.0 + 1.0 / visits) * log_term / (2.0 * visits))


@inlined
def sharp_reward(c: SharpConstants, n: int, reward_sum: float) -> float:
    """r̃ + b of one pair that was visited n times."""
    if n == 0:
        return c.reward_max + c.span + c.model_error
    beta = sharp_deviation(c.n_deviations, c.delta, n, c.scale)
    reward = min(c.reward_max, reward_sum / n + c.reward_max * beta)
    return reward + c.span * min(1.0, (n * beta + 1.0) / (n + 1.0)) + c.model_error


@kernel
def sharp_rewards(
    pairs: NDArray[Any],
    visits: NDArray[Any],
    reward_sum: NDArray[Any],
    allowed: NDArray[Any],
    constants: SharpConstants,
    out: NDArray[Any],
) -> None:
    """r̃ + b of each of `pairs`, r̃ = min{r_max, r̄ + r_max·β_n} and b = c·min{1, (n·β_n + 1)/(n + 1)}.

    A pair never visited is worth r_max + c; an action that is not allowed -inf.
    """
    c = SharpConstants(*constants)
    for i in range(pairs.size):
        k = pairs[i]
        out[k] = sharp_reward(c, visits[k], reward_sum[k]) if allowed[k] else -np.inf


class SharpRewards(NamedTuple):
    """r̃ + b, as a planner asks for them; they do not depend on the step."""

    visits: NDArray[np.int64]
    reward_sum: NDArray[np.float64]
    allowed: NDArray[np.bool_]
    """(S*A,) the pairs there are."""
    t: int
    constants: SharpConstants

    def write(self, pairs: NDArray[np.int64], out: NDArray[np.float64]) -> None:
        """Set out[k] to r̃ + b for every k of `pairs`; -inf if the state does not have the action."""
        sharp_rewards(pairs, self.visits, self.reward_sum, self.allowed, tuple(self.constants), out)

    def added(self) -> NDArray[np.float64]:
        """(S*A,) r̃ - r̄ + b, what is added to the mean rewards."""
        return sharp_bonuses(self.visits, self.reward_sum, self.constants)

    def growth(self, since: NDArray[np.int64]) -> NDArray[np.float64]:  # noqa: ARG002
        """No reward grows while its pair is not visited: zeros, one for each class of counts up to t visits."""
        return np.zeros(self.t.bit_length() + 1)


def sharp_bonuses(
    visits: NDArray[np.int64], reward_sum: NDArray[np.float64], constants: SharpConstants
) -> NDArray[np.float64]:
    """What is added to the mean reward r̄ of every pair: r̃ - r̄ + b, where r̄ = 0 if the pair was never visited.

    >>> constants = SharpConstants(2, 0.05, 1.0, span=1.0, reward_max=1.0)
    >>> sharp_bonuses(np.array([0, 10_000]), np.array([0.0, 5_000.0]), constants).round(4)
    array([2.    , 0.0408])
    """
    out = np.empty(visits.size)
    sharp_rewards(np.arange(visits.size), visits, reward_sum, np.ones(visits.size, dtype=bool), tuple(constants), out)
    return np.asarray(out - reward_sum / np.maximum(1, visits))
