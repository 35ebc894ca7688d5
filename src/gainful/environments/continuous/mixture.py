"""Mixture kernels: two fixed laws of the next state, mixed with a weight that depends on the state and the action.

p(·|x,a) = (1 - w_a(x))·p₀ + w_a(x)·p₁. As p₀ and p₁ do not depend on x, E[h(X')|x,a] = H₀ + w_a(x)·(H₁ - H₀) with
H_i = ∫ h dp_i for every function h, and the optimality equation on a continuum of states has one unknown number,
Δ = H₁ - H₀. Everything here is in closed form; `docs/mixtures.md` has the derivation.

*The family.* ψ(y) = 2m·dist(y, {0, 1/m, …, 1}) is a wave of m teeth between 0 and 1, u(x) the mean of ψ(x_1), …,
ψ(x_d), and φ(x) = u(x)^α. "rest" (action 0) earns ρ and has w = κ, "work" (action 1) earns φ(x) and has
w = κ·(1 - φ(x)). p₀ is the uniform law on {u ≤ ½} and p₁ that on {u > ½}: halves of the cube.

*Hölder constants.* |a^α - b^α| ≤ |a-b|^α, and u is 2m-Lipschitz in the sup-norm, so |φ(x) - φ(y)| ≤ (2m·‖x-y‖)^α, with
equality between the bottom and the top of a tooth. The laws have disjoint supports: ‖p(·|x,a) - p(·|y,a)‖₁ =
2·|w_a(x) - w_a(y)|. So L_r = (2m)^α and L_p = 2κ·(2m)^α are the least constants, not only bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined
from gainful.arguments import real, whole
from gainful.environments.continuous.environment import ContinuousEnvironment, EnvironmentKind
from gainful.rng import draw, uniform

Array = NDArray[np.float64]

REST, WORK = 0, 1
_TEETH, _HOLDER, _REST_REWARD, _CHANCE = range(4)
CLOSED_FORM_ROUNDING = 1e-12
"""Above the rounding errors of the closed forms: some dozens of operations on numbers of at most 10."""


@inlined
def wave_level(p: Any, x: Any) -> float:
    """u(x), the mean of ψ over the coordinates."""
    total = 0.0
    for i in range(x.size):
        y = p[_TEETH] * x[i]
        share = y - math.floor(y)
        total += 2.0 * min(share, 1.0 - share)
    level: float = total / x.size
    return level


@inlined
def work_reward(p: Any, x: Any) -> float:
    """φ(x) = u(x)^α."""
    reward: float = math.pow(wave_level(p, x), p[_HOLDER])
    return reward


@inlined
def good_chance(p: Any, x: Any, action: int) -> float:
    """w_a(x), the weight of p₁."""
    chance: float = p[_CHANCE]
    if action == WORK:
        chance *= 1.0 - work_reward(p, x)
    return chance


@inlined
def mixture_step(p: Any, x: Any, action: int, key: Any, first: Any, out: Any) -> float:
    """One step; draw 0 chooses p₀ or p₁, draws 1 … d are a uniform point, moved by half a tooth if it has the wrong u.

    ψ(y + 1/(2m)) = 1 - ψ(y), so the move maps {u < ½} onto {u > ½} and keeps lengths.
    """
    reward: float = work_reward(p, x) if action == WORK else p[_REST_REWARD]
    good = uniform(draw(key, first)) < good_chance(p, x, action)
    for i in range(x.size):
        out[i] = uniform(draw(key, first + np.uint64(i + 1)))
    if (wave_level(p, out) > 0.5) != good:
        half = 0.5 / p[_TEETH]
        for i in range(x.size):
            moved = out[i] + half
            out[i] = moved - 1.0 if moved >= 1.0 else moved
    return reward


# ---------------------------------------------------------------------- what is known about it


@dataclass(frozen=True)
class MixtureLaw:
    """The law of a mixture environment, in d = 1 or 2 dimensions, and its optimal gain and bias.

    Parameters
    ----------
    dim : int
        d, 1 or 2.
    parameters : tuple of float
        m, α, ρ and κ, as the step function has them.

    Examples
    --------
    >>> law = MixtureLaw(1, (1.0, 1.0, 0.4, 0.5))
    >>> law.level(np.array([[0.0], [0.25], [0.5]]))
    array([0. , 0.5, 1. ])
    """

    dim: int
    parameters: tuple[float, ...]

    def level(self, points: Array) -> Array:
        """The level u at points (N,d)."""
        y = self.parameters[_TEETH] * points
        share = y - np.floor(y)
        return np.asarray(np.mean(2.0 * np.minimum(share, 1.0 - share), axis=1))

    def weight(self, points: Array, action: int) -> Array:
        """w_a at points (N,d)."""
        chance = np.full(len(points), self.parameters[_CHANCE])
        if action == WORK:
            chance *= 1.0 - self.level(points) ** self.parameters[_HOLDER]
        return chance

    def masses(self, edges: Sequence[Array]) -> Array:
        """(2, cells): p₀(J) and p₁(J) of all cells J between the edges of each axis, in the unit cube.

        The part of a box of ψ's with mean above ½ is a d-fold difference of (u - ½)₊^d.
        """
        above = self.integrals(edges, lambda u: np.maximum(u - 0.5, 0.0) ** self.dim / math.factorial(self.dim))
        sides = [np.diff(e) for e in edges]
        volume = sides[0] if self.dim == 1 else np.outer(*sides).reshape(-1)
        return np.maximum(2.0 * np.stack([volume - above, above]), 0.0)

    def integrals(self, edges: Sequence[Array], antiderivative: Any) -> Array:
        """∫ f(u(x)) dx over every cell, from the d-fold antiderivative of f."""
        ends, low, high = zip(*(self._folded(e) for e in edges), strict=True)
        scale = (self.dim / (2.0 * self.parameters[_TEETH])) ** self.dim  # corners are means of d numbers; dx = dψ/(2m)
        if self.dim == 1:
            pieces = antiderivative(high[0]) - antiderivative(low[0])
        else:
            a, b = (low[0][:, None], high[0][:, None]), (low[1][None, :], high[1][None, :])
            pieces = sum((1 if i == j else -1) * antiderivative((a[i] + b[j]) / 2.0) for i in (0, 1) for j in (0, 1))
        for axis in range(self.dim):
            before = np.zeros_like(np.take(pieces, [0], axis))
            sums = np.concatenate([before, np.cumsum(pieces, axis)], axis)
            pieces = np.diff(np.take(sums, np.searchsorted(ends[axis], edges[axis]), axis), axis=axis)
        return np.asarray(scale * pieces.reshape(-1))

    def _folded(self, edges: Array) -> tuple[Array, Array, Array]:
        """The ends of pieces of an axis, at edges and where ψ turns, and the least and largest ψ of every piece."""
        m = int(self.parameters[_TEETH])
        ends = np.unique(np.concatenate([edges, np.arange(2 * m + 1) / (2.0 * m)]))
        half = np.minimum(np.floor(m * (ends[1:] + ends[:-1])), 2 * m - 1)  # which half of a tooth
        left, right = 2.0 * m * ends[:-1] - half, 2.0 * m * ends[1:] - half
        rising = half % 2 == 0
        return ends, np.where(rising, left, 1.0 - right), np.where(rising, right, 1.0 - left)

    @cached_property
    def solution(self) -> MixtureSolution:
        """The optimal gain and bias."""
        return solve_mixture(self)


@dataclass(frozen=True)
class MixtureSolution:
    """The optimal gain and bias of a mixture environment.

    h(x) = max(ρ + κΔ, κΔ + (1 - κΔ)·u^α) is the optimal bias: work where u is above `threshold`.

    Attributes
    ----------
    law : MixtureLaw
        What was solved.
    difference : float
        Δ, the expectation of h under p₁ less that under p₀.
    gain : float
        The optimal gain.
    bounds : tuple of float
        A proven bracket on it.
    """

    law: MixtureLaw
    difference: float
    gain: float
    bounds: tuple[float, float]

    @property
    def threshold(self) -> float:
        """θ: work pays where u > θ."""
        _, alpha, rho, kappa = self.law.parameters
        return float(min(rho / (1.0 - kappa * self.difference), 1.0) ** (1.0 / alpha))

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest h."""
        _, _, rho, kappa = self.law.parameters
        least = rho + kappa * self.difference
        return least, max(least, 1.0)

    @property
    def span(self) -> float:
        """sp(h)."""
        low, high = self.ends
        return high - low

    def bias(self, points: Array) -> Array:
        """The bias h at points (N,d)."""
        _, alpha, _, kappa = self.law.parameters
        lost = kappa * self.difference
        return np.maximum(self.ends[0], lost + (1.0 - lost) * self.law.level(points) ** alpha)

    def expected(self, points: Array, action: int) -> Array:
        """E[h(X')|x,a] at points (N,d)."""
        at_0, at_1 = expectations(self.law, self.difference)
        return np.asarray(at_0 + self.law.weight(points, action) * (at_1 - at_0))

    def mean_between(self, low: Array, high: Array) -> float:
        """The mean of h over a box within the unit cube."""
        edges = [np.array([a, b]) for a, b in zip(low, high, strict=True)]
        above = self.law.integrals(edges, lambda u: excess_integral(self.law, self.difference, u, self.law.dim))
        return self.ends[0] + float(above[0]) / float(np.prod(np.subtract(high, low)))


def excess_integral(law: MixtureLaw, difference: float, u: Array, times: int) -> Array:
    """The first or second antiderivative of q(u) = ((1 - κΔ)·u^α - ρ)⁺ that is 0 at 0."""
    _, alpha, rho, kappa = law.parameters
    slope = 1.0 - kappa * difference
    begin = min(rho / slope, 1.0) ** (1.0 / alpha)
    v = np.maximum(u, begin)

    def once(at: Any) -> Any:
        return slope * at ** (alpha + 1.0) / (alpha + 1.0) - rho * at

    def twice(at: Any) -> Any:
        return slope * at ** (alpha + 2.0) / ((alpha + 1.0) * (alpha + 2.0)) - rho * at * at / 2.0

    if times == 1:
        return np.asarray(once(v) - once(begin))
    return np.asarray(twice(v) - twice(begin) - once(begin) * (v - begin))


def expectations(law: MixtureLaw, difference: float) -> tuple[float, float]:
    """M₀ and M₁: the expectations of m(x) = ρ + κΔ + q(u(x)) under p₀ and p₁.

    u has the density 2 on [0, ½] and on [½, 1] for d = 1, and 8u on [0, ½] and 8(1-u) on [½, 1] for d = 2 (by parts).
    """
    _, _, rho, kappa = law.parameters
    at = np.array([0.5, 1.0])
    half, whole_line = excess_integral(law, difference, at, 1)
    base = rho + kappa * difference
    if law.dim == 1:
        return base + 2.0 * float(half), base + 2.0 * float(whole_line - half)
    twice_half, twice_whole = excess_integral(law, difference, at, 2)
    bad = 4.0 * half - 8.0 * twice_half
    good = 8.0 * (twice_whole - twice_half) - 4.0 * half
    return base + float(bad), base + float(good)


def solve_mixture(law: MixtureLaw) -> MixtureSolution:
    """Solve Δ = M₁(Δ) - M₀(Δ) by bisection: the gain is M₀(Δ).

    M₁ - M₀ - Δ falls with Δ, is at least 0 at 0 and negative at 1/κ. For *any* Δ take h(x) = m(x) and
    Δ' = M₁(Δ) - M₀(Δ): then Lh(x) - h(x) = M₀(Δ) + (a number between 0 and κ·(Δ' - Δ)), which proves the bracket.
    """
    kappa = law.parameters[_CHANCE]
    low, high = 0.0, 1.0 / kappa
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        bad, good = expectations(law, middle)
        low, high = (middle, high) if good - bad > middle else (low, middle)
    bad, good = expectations(law, low)
    off = kappa * (good - bad - low)
    return MixtureSolution(
        law, low, bad, (bad + min(off, 0.0) - CLOSED_FORM_ROUNDING, bad + max(off, 0.0) + CLOSED_FORM_ROUNDING)
    )


# ---------------------------------------------------------------------- the environment


def mixture_environment(
    name: str, axis_labels: tuple[str, ...], settings: dict[str, Any], start: Sequence[float]
) -> ContinuousEnvironment:
    """The environment of the family with these axes; `settings` are the arguments of the function that makes it."""
    dim = len(axis_labels)
    m = whole("teeth", settings["teeth"], 1, 10_000)
    alpha = real("holder", settings["holder"], 0.0, 1.0, low_open=True)
    rho = real("rest_reward", settings["rest_reward"], 0.0, 1.0)
    kappa = real("chance", settings["chance"], 0.0, 1.0, low_open=True, high_open=True)
    parameters = (float(m), alpha, rho, kappa)
    steepest = (2.0 * m) ** alpha
    return ContinuousEnvironment(
        name=name,
        kind=int(EnvironmentKind.MIXTURE),
        parameters=np.array(parameters),
        n_actions=2,
        draws=dim + 1,
        start=np.array(start),
        low=np.zeros(dim),
        high=np.ones(dim),
        reward_min=0.0,
        reward_max=1.0,
        reward_lipschitz=steepest,
        transition_lipschitz=2.0 * kappa * steepest,
        holder=alpha,
        action_labels=("rest", "work"),
        axis_labels=axis_labels,
        settings=settings,
        mixture=MixtureLaw(dim, parameters),
    )
