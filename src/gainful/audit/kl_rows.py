"""Kernels over rows of counts for KL-SCAL+: klmax, kinf and the divergence from the true row, pair by pair.

They are written from `docs/kl_scal_plus.md` and share no code with the agent's planner. p̄(s'|s,a) = N(s,a,s')/N(s,a).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined, kernel
from gainful.audit.rows import CountedRows, TrueRows

ROUNDS = 200
"""Halvings or Newton steps, at most; a handful is usual."""
FEW_DIGITS = 1e-13
"""Nearer to 1 than this, an optimistic reward has too few digits left to be compared."""


ABOVE = 1e-5
"""How far above klup an optimistic reward may be, in parts of its distance from r̄."""


NO_SQUARES = np.zeros(0)
"""In place of sums of squared rewards, where r̃ depends on the mean alone."""


class SetsInUse(NamedTuple):
    """What the agent planned with, (S*A,) each."""

    rewards: Any
    """r̃ in [0, r_max]."""
    radius: Any
    possible: Any


class PairValues(NamedTuple):
    """What `optimistic_values` fills, (S*A,) each."""

    lower: Any
    """r̃ + q·v of a law q that lies in the ball."""
    upper: Any
    """r̃ + a proven upper bound on klmax."""
    x: Any
    """Where the dual was smallest: the next call begins there."""


class Functions(NamedTuple):
    """Fixed functions h on the states, and the pairs at which each is asked about: CSR over pairs k = s*A + a."""

    indptr: Any
    which: Any
    """The function of each question."""
    level: Any
    """p·h of each question."""
    values: Any
    """(F, S) the functions."""
    top: Any
    """(F,) max h."""


class Dominations(NamedTuple):
    """What `dominations` fills, (S*A,) each: kinf(p̄, h, p·h) of the question nearest to the radius."""

    found: Any


@inlined
def dual(rows: CountedRows, k: int, values: Any, top: float, x: float) -> Any:
    """At x > 0, ln(E/x) + ρ, W·x and Σ p̄·(x/(x + h))²: see `row_maximum`."""
    log = first = second = 0.0
    share, inverse = 1.0 / rows.visits[k], 1.0 / x
    for i in range(rows.begin[k], rows.begin[k] + rows.length[k]):
        count = np.float64(rows.count[i])
        larger = 1.0 + (top - values[rows.next_state[i]]) * inverse
        smaller = 1.0 / larger
        log += count * np.log(larger)
        first += count * smaller
        second += count * smaller * smaller
    return log * share, first * share, second * share


@inlined
def row_maximum(rows: CountedRows, k: int, values: Any, top: float, radius: float, start: float, rounds: int) -> Any:
    """A bracket of klmax(p̄, v, ρ) after some rounds, or once it is narrow, and where to look next.

    For x ≥ 0 let h = M - v, E = exp(Σ p̄ ln(x + h) - ρ) and W = Σ p̄/(x + h). Then U = M + x - E is an upper bound
    (Jensen), convex in x with the slope 1 - W·E. Where the slope is not negative the law E·p̄/(x + h), with what is
    missing on the best state, has divergence ρ and the value U - slope·x.
    """
    mean = 0.0
    for i in range(rows.begin[k], rows.begin[k] + rows.length[k]):
        mean += rows.count[i] * values[rows.next_state[i]]
    mean /= rows.visits[k]
    spread = top - mean
    if spread <= 0.0:
        return top, top, start
    low_value, upper = mean, top
    low, high, x = 0.0, np.inf, start if start > 0.0 else spread
    for _ in range(rounds):
        log, first, second = dual(rows, k, values, top, x)
        grown = np.exp(log - radius)  # E/x
        slope = 1.0 - first * grown
        bound = top - x * np.expm1(log - radius)
        slack = 2e-15 * (x + spread)  # rounding
        upper = min(upper, bound + slack)
        if slope >= 0.0:
            high = x
            low_value = max(low_value, bound - slope * x - slack)
        else:
            low = x
        best = 1e-11 * spread + (2.0 * slack if x <= 1e5 * spread else 0.0)
        if upper - low_value <= best or high - low <= 1e-15 * x:
            break
        curve = grown * (second - first * first)  # of x
        step = x * (1.0 - slope / curve) if curve > 0.0 else -1.0
        if slope < 0.0:
            step *= 1.0 + 1e-6  # to the right of the root, where a law is found
        if not low < step < high or step > 30.0 * x:
            step = 0.5 * (low + high) if high < np.inf else 8.0 * x
            if low == 0.0 and high < np.inf:
                step = 0.05 * high  # the root may be 0: then the law has mass where p̄ has none
        x = step
    return low_value, upper, x


@kernel
def optimistic_values(rows: CountedRows, sets: SetsInUse, values: Any, actions: Any, out: PairValues) -> None:
    """Fill `out` with brackets of r̃ + klmax(p̄, v, ρ) for the possible pairs; -inf at others.

    The brackets of the actions played, and of those that may be the best of their state, are narrow.
    """
    rows, sets, out = CountedRows(*rows), SetsInUse(*sets), PairValues(*out)
    top = values.max()
    n_actions = rows.visits.size // values.size
    for s in range(values.size):
        best, first = -np.inf, s * n_actions
        for k in range(first, first + n_actions):
            if not sets.possible[k]:
                out.lower[k] = out.upper[k] = -np.inf
            elif rows.visits[k] == 0:
                out.lower[k] = out.upper[k] = sets.rewards[k] + top
            else:
                low, high, out.x[k] = row_maximum(rows, k, values, top, sets.radius[k], out.x[k], 1)
                out.lower[k], out.upper[k] = sets.rewards[k] + low, sets.rewards[k] + high
            best = max(best, out.lower[k])
        for k in range(first, first + n_actions):
            if out.lower[k] < out.upper[k] and (out.upper[k] >= best or k - first == actions[s]):
                low, high, out.x[k] = row_maximum(rows, k, values, top, sets.radius[k], out.x[k], ROUNDS)
                out.lower[k] = max(out.lower[k], sets.rewards[k] + low)
                out.upper[k] = min(out.upper[k], sets.rewards[k] + high)
                best = max(best, out.lower[k])


@inlined
def least_divergence(rows: CountedRows, k: int, h: Any, top: float, level: float) -> Any:
    """kinf(p̄, h, μ): the maximum over 0 ≤ λ ≤ 1 of Σ p̄ ln(1 - λz), z = (h - μ)/(M - μ); 0 if p̄·h ≥ μ up to rounding."""
    n, begin, end = rows.visits[k], rows.begin[k], rows.begin[k] + rows.length[k]
    mean, least = 0.0, top
    for i in range(begin, end):
        if rows.count[i] > 0:
            mean += rows.count[i] / n * h[rows.next_state[i]]
            least = min(least, h[rows.next_state[i]])
    if mean >= level - 1e-12 * (abs(level) + top - least) or level >= top:
        return 0.0  # μ ≥ M: then h = M wherever the pair leads
    low, high, lam = 0.0, 1.0, 0.5
    attained = 0.0
    for _ in range(ROUNDS):
        value = slope = curve = 0.0
        for i in range(begin, end):
            if rows.count[i] == 0:
                continue
            p, z = rows.count[i] / n, (h[rows.next_state[i]] - level) / (top - level)
            left = 1.0 - lam * z
            if left <= 0.0:
                slope = -np.inf
                break
            value += p * np.log1p(-lam * z)
            slope -= p * z / left
            curve += p * (z / left) ** 2
        if slope > -np.inf:
            attained = max(attained, value)
        if slope >= 0.0:
            low = lam
        else:
            high = lam
        if lam == 1.0 and slope >= 0.0:
            break
        if high - low <= 1e-15 or abs(slope) * (high - low) <= 1e-14 * attained:
            break
        step = lam + slope / curve if slope > -np.inf and curve > 0.0 else -1.0
        if step >= 1.0 and high == 1.0 and lam < 1.0:
            step = 1.0
        lam = step if low < step < high or (step == 1.0 and lam < 1.0) else 0.5 * (low + high)
    return attained


@inlined
def row_divergence(rows: CountedRows, k: int, true: TrueRows) -> Any:
    """KL(p̄‖p), both rows sorted by next state; infinite if p̄ has a next state that p has not."""
    j, total = true.indptr[k], 0.0
    for i in range(rows.begin[k], rows.begin[k] + rows.length[k]):
        while j < true.indptr[k + 1] and true.indices[j] < rows.next_state[i]:
            j += 1
        if j == true.indptr[k + 1] or true.indices[j] != rows.next_state[i] or true.probabilities[j] <= 0.0:
            return np.inf
        p = rows.count[i] / rows.visits[k]
        total += p * np.log(p / true.probabilities[j])
    return max(total, 0.0)


@kernel
def dominations(
    rows: CountedRows, true: TrueRows, radius: Any, asked: Functions, seen: Any, exact: bool, out: Dominations
) -> None:
    """Fill `out` for the pairs whose visits differ from `seen`, and bring `seen` up to date.

    klmax(p̄, h, ρ) ≥ p·h if and only if kinf(p̄, h, p·h) ≤ ρ. As p itself is a law with that mean, kinf ≤ KL(p̄‖p): if
    that is at most ρ, the pair dominates whatever the function. If not `exact`, it is then given in place of kinf.
    """
    rows, true, asked, out = CountedRows(*rows), TrueRows(*true), Functions(*asked), Dominations(*out)
    for k in range(rows.visits.size):
        if rows.visits[k] == seen[k] or asked.indptr[k] == asked.indptr[k + 1]:
            continue
        seen[k] = rows.visits[k]
        if not exact:
            out.found[k] = row_divergence(rows, k, true)
            if out.found[k] <= radius[k]:
                continue
        out.found[k] = 0.0
        for j in range(asked.indptr[k], asked.indptr[k + 1]):
            f = asked.which[j]
            found = least_divergence(rows, k, asked.values[f], asked.top[f], asked.level[j])
            out.found[k] = max(out.found[k], found)


@kernel
def nearest_miss(found: Any, allowed: Any) -> int:
    """Where found/allowed is largest, or found where nothing is allowed; infinities are allowed."""
    at, most = 0, -np.inf
    for i in range(found.size):
        if not allowed[i] < np.inf:
            ratio = 0.0
        elif allowed[i] > 0.0:
            ratio = found[i] / allowed[i]
        else:
            ratio = found[i]
        if ratio > most or np.isnan(ratio):
            at, most = i, ratio
            if np.isnan(ratio):
                break
    return at


@inlined
def two_point_law(mean: float, squares: float) -> tuple[float, float]:
    """The lower of two points, of which the other is 1, and the mass at 1, of the law with this mean and mean square.

    `docs/kl_scal_plus.md`, lemma 4a. A mean square as large as the mean is that of 0 and 1, also where it is unknown.
    """
    low = max(0.0, min(mean, (mean - squares) / (1.0 - mean)))
    return low, (mean - low) / (1.0 - low)


@inlined
def distance_from_klup(mean: float, reward: float, radius: float) -> float:
    """How far `reward` is from klup(mean, radius), by kl(mean, reward) - radius over the derivative of kl.

    The agent computes klup from above, and may stop a little above it, which is optimistic too.
    """
    if not mean <= reward <= 1.0:
        return max(mean - reward, reward - 1.0)
    left = max(1.0 - reward, FEW_DIGITS)
    kl = (1.0 - mean) * np.log((1.0 - mean) / left)
    if mean > 0.0:
        kl += mean * np.log(mean / reward)
    if left > FEW_DIGITS:
        above = kl - radius  # in divergence, then in reward
        if reward > mean:
            above *= reward * left / (reward - mean)
        found: float = min(max(-above, above - ABOVE * (reward - mean)), 1.0)
        return found
    return 1.0 if kl > radius + 0.1 else 0.0  # klup is farther from 1 than this


@kernel
def set_errors(sums: Any, constants: Any, sets: SetsInUse, out: Any) -> None:
    """(S*A,) how far radius and r̃ in use are from those of the equations, relative to 1 + the number and to r_max.

    The radius is ι_n/n; r̃ is klup(r̄, ι_n/n) or, if sums of squared rewards are given, the bound of lemma 4a: klup
    between the two points of `two_point_law`. It is not computed again: `distance_from_klup`.
    """
    visits, reward_sum, reward_squares = sums
    log_union, r_max, scale = constants
    sets = SetsInUse(*sets)
    for k in range(visits.size):
        out[k] = 0.0
        if not sets.possible[k]:
            continue
        n, used, reward = visits[k], sets.radius[k], sets.rewards[k] / r_max
        if n == 0:
            out[k] = abs(reward - 1.0) if used == np.inf else np.inf
            continue
        radius = scale * (log_union + 0.5 * np.log(n) + np.log(2.0)) / n
        wrong = abs(used - radius) / (1.0 + radius)
        mean = min(1.0, max(0.0, reward_sum[k] / (n * r_max)))
        if mean >= 1.0 - 1e-15:
            wrong = max(wrong, abs(reward - 1.0))
        else:
            low, share = 0.0, mean
            if reward_squares.size > 0:
                low, share = two_point_law(mean, reward_squares[k] / (n * r_max * r_max))
            height = 1.0 - low
            wrong = max(wrong, height * distance_from_klup(share, (reward - low) / height, radius))
        out[k] = wrong
