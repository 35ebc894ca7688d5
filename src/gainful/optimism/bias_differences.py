"""Bounds on differences of the optimal bias along a path, and on the optimism that they leave (docs/pmevi.md).

Everything is in units of r_max. c ≥ sp(h*), and g ≥ g* is any optimistic gain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FREEDMAN_GRID = 40
"""λ_i = 2^-(i+1), i = 0 … 39: enough for more than 10²³ steps."""


class PathSums(NamedTuple):
    """What a path says about pairs of states, (S, S) each, and about all of it."""

    completed: Floats
    """Segments from s to s'."""
    cut: Floats
    """Segments that a break of the path cut short."""
    steps: Floats
    """The steps of both."""
    earned: Floats
    """Their rewards, in units of r_max."""
    under_way: Floats
    """Steps of all segments, those under way included."""
    n_steps: int
    total: float
    """All rewards."""
    n_pieces: int


def azuma_radius(n: Floats, width: float, failure: float) -> Floats:
    """|Σ ξ_i| ≤ R·sqrt(½(n+1)·ln(sqrt(n+1)/δ')) for all n at once, ξ of conditional range R = `width`.

    >>> azuma_radius(np.array([99.0]), 1.0, 0.01).round(3).tolist()
    [18.585]
    """
    return np.asarray(width * np.sqrt(0.5 * (n + 1.0) * np.log(np.sqrt(n + 1.0) / failure)))


def freedman_radius(squares: Floats, width: float, failure: float) -> Floats:
    """|Σ ξ_i| ≤ min_i [ψ(λ_i)·V/b² + ln(2(i+1)(i+2)/δ')]·b/λ_i for all n at once, λ_i = 2^-(i+1), ψ(λ) = -ln(1-λ) - λ.

    V = Σ (x_i - x̂_i)² of the observed increments x with any prediction x̂ made before each, |x_i - x̂_i| ≤ b = `width`.

    >>> freedman_radius(np.array([0.0, 100.0]), 1.0, 0.01).round(2).tolist()
    [11.98, 43.43]
    """
    i = np.arange(FREEDMAN_GRID)
    rate = 2.0 ** -(i + 1.0)
    cost = -np.log1p(-rate) - rate
    level = np.log(2.0 * (i + 1.0) * (i + 2.0) / failure)
    found = (np.asarray(squares)[..., None] / width**2 * cost + level) * (width / rate)
    return np.asarray(found.min(axis=-1))


def bias_intervals(
    path: PathSums, gain: float, span: float, radius: Floats, all_radius: float
) -> tuple[Floats, Floats]:
    """(S, S) bounds of h*(s') - h*(s): (X - B - c·pieces - A - A_ss')/n and (X + A_ss')/n; infinite where n = 0.

    X = g·(steps of the segments) - (their rewards), B = g·T - (all rewards). A segment that a break cut short widens
    both bounds by c/n.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = gain * path.steps - path.earned
        others = max(0.0, gain * path.n_steps - path.total + span * path.n_pieces + all_radius)
        n = path.completed
        low = np.where(n > 0, (lost - others - radius - span * path.cut) / n, -np.inf)
        high = np.where(n > 0, (lost + radius + span * path.cut) / n, np.inf)
    return low, high


def largest_jumps(closed: Floats) -> Floats:
    """(S, S) bounds of |h*(s) - h*(s')| from closed bounds of the differences."""
    return np.maximum(np.maximum(closed, closed.T), 0.0)


def reward_squares(visits: NDArray[np.int64], sums: Floats, squares: Floats) -> float:
    """Bound Σ (R - r̂)², r̂ the mean of the pair's rewards before each (0 at first): Σ (R - r̄)² + 1 + ln N for each pair.

    By Welford's identity Σ (R_i - r̄_{i-1})² = Σ (R_i - r̄)² + Σ (R_i - r̄_{i-1})²/i.
    """
    n = np.maximum(visits, 1)
    own = np.maximum(squares - sums * sums / n, 0.0) + 1.0 + np.log(n)
    return float(own[visits > 0].sum())


def mitigation(deviation: Floats, most_span: float, radius: Floats) -> Floats:
    """β = sqrt(2ρ)·σ + 2·c·ρ, where σ bounds the standard deviation of h* under p̄ and c ≥ sp(h*).

    If klmax(p̄, h*, ρ) ≥ p·h*, then p·h* ≤ p̄·h* + β (docs/kl_scal_plus.md, lemma 7).

    >>> mitigation(np.array([0.5]), 2.0, np.array([0.02])).round(6).tolist()
    [0.18]
    """
    with np.errstate(invalid="ignore"):
        found = np.sqrt(2.0 * radius) * np.minimum(deviation, 0.5 * most_span) + 2.0 * most_span * radius
    return np.where(np.isfinite(radius), found, np.inf)
