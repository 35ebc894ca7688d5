"""The sets of UCRL3, from Bourel, Maillard & Talebi 2020, section 3: what the audit compares the agent with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_HALVINGS = 60


def ucrl3_level(n_states: int, n_actions: int, delta: float) -> float:
    """How often each of UCRL3's inequalities may fail for one pair: δ' = δ/((3 + 3S)·S·A).

    The paper counts three inequalities for the rewards of a pair and three for each of its S probabilities. The
    two-sided inequality of Bernstein is two; counting it so, all of them hold with probability 1 - 4δ/3.

    Parameters
    ----------
    n_states, n_actions : int
        S and A.
    delta : float
        δ.

    Returns
    -------
    float
        δ'.

    Examples
    --------
    >>> ucrl3_level(1, 1, 0.06)
    0.01
    """
    return delta / ((3.0 + 3.0 * n_states) * n_states * n_actions)


def ucrl3_terms(visits: ArrayLike, level: float) -> tuple[Floats, Floats]:
    """The two terms of which UCRL3's bounds are made: ℓ_n/n and β_n.

    ℓ_n = η·ln(ln(ηn)·ln(η²n)/(ln²(η)·δ')) with η = 1.12, by peeling: n in [η^{k-1}, η^k) has δ'/(k(k+1)), and
    k ≤ ln(ηn)/ln(η). (The paper prints ln(n)·ln(ηn), which is 0 at n = 1.) β_n = sqrt(2(1 + 1/n)·ln(sqrt(n+1)/δ')/n),
    by the method of mixtures.

    Parameters
    ----------
    visits : array_like
        n, the visits of each pair; 0 counts as 1.
    level : float
        δ'.

    Returns
    -------
    peeling, laplace : ndarray
        ℓ_n/n and β_n.

    Examples
    --------
    >>> [round(float(term), 3) for term in ucrl3_terms(100, 0.001)]
    [0.161, 0.431]
    """
    n, log_eta = np.maximum(1, np.asarray(visits)).astype(np.float64), np.log(1.12)
    pieces = np.log(1.12 * n) / log_eta * (np.log(1.12**2 * n) / log_eta)
    peeling = 1.12 * np.log(pieces / level) / n
    return np.asarray(peeling), np.asarray(np.sqrt(2.0 * (1.0 + 1.0 / n) * np.log(np.sqrt(n + 1.0) / level) / n))


def ucrl3_reward_width(
    visits: ArrayLike, variance: ArrayLike, level: float, reward_max: float = 1.0, scale: float = 1.0
) -> Floats:
    """The reward interval of UCRL3: |r̃ - r̄| ≤ r_max·min{β_n/2, sqrt(2σ̂²ℓ_n/n) + 7ℓ_n/(3n)}.

    The paper prints a maximum; each of the two bounds holds by itself at the price that δ' pays.

    Parameters
    ----------
    visits : array_like
        n, the visits of each pair.
    variance : array_like
        The variance of the rewards of each pair, in squared units of reward.
    level : float
        δ'.
    reward_max : float
        r_max, the range of the rewards.
    scale : float
        Multiplies the width.

    Returns
    -------
    ndarray
        The half width of each pair.

    Examples
    --------
    >>> ucrl3_reward_width([1, 1000], [0.0, 0.25], 0.001).round(3)
    array([2.693, 0.072])
    """
    peeling, laplace = ucrl3_terms(visits, level)
    spread = np.asarray(variance) / reward_max**2
    by_variance = np.sqrt(2.0 * spread * peeling) + 7.0 * peeling / 3.0
    return np.asarray(scale * reward_max * np.minimum(0.5 * laplace, by_variance))


def bernoulli_proxy(q: ArrayLike) -> Floats:
    """The least variance proxy of a Bernoulli variable on both sides: g(q) = (½ - q)/ln(1/q - 1).

    ln E exp(λ(X - q)) ≤ λ²·g(q)/2 for all λ (Kearns & Saul 1998). The variance q(1-q) is enough for λ < 0 if q ≤ ½, and
    for λ > 0 if q ≥ ½ (Berend & Kontorovich 2013).

    Parameters
    ----------
    q : array_like
        Probabilities.

    Returns
    -------
    ndarray
        g(q): ¼ at ½, 0 at 0 and 1.

    Examples
    --------
    >>> bernoulli_proxy([0.0, 0.1, 0.5, 0.9]).round(4)
    array([0.   , 0.182, 0.25 , 0.182])
    """
    p = np.asarray(q, dtype=np.float64)
    inside = (p > 0.0) & (p < 1.0) & (p != 0.5)
    x = np.where(inside, p, 0.25)
    return np.where(inside, (0.5 - x) / np.log(1.0 / x - 1.0), np.where(p == 0.5, 0.25, 0.0))


def ucrl3_bounds(
    p: ArrayLike, visits: ArrayLike, level: float, *, scale: float = 1.0, tails: str = "proven"
) -> tuple[Floats, Floats]:
    """The probabilities q that UCRL3 has not ruled out: the ends of an interval.

    |p̄ - q| ≤ sqrt(2q(1-q)ℓ_n/n) + ℓ_n/(3n) and -β_n·sqrt(g̲(q)) ≤ p̄ - q ≤ β_n·sqrt(g(q)).

    Parameters
    ----------
    p : array_like
        p̄, the part of the visits after which the next state followed.
    visits : array_like
        n, the visits of its pair.
    level : float
        δ'.
    scale : float
        Multiplies the right-hand sides.
    tails : {"proven", "printed"}
        g̲(q) is q(1-q) for q < ½ and g(q) otherwise; the paper prints the two the other way round.

    Returns
    -------
    lower, upper : ndarray
        The ends, found by bisection.

    Examples
    --------
    >>> [end.round(3).tolist() for end in ucrl3_bounds([0.0, 0.9], 1000, 0.001)]
    [[0.0, 0.835], [0.02, 0.947]]
    """
    p_bar, n = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(visits))
    peeling, laplace = ucrl3_terms(n, level)

    def within(q: Floats, proxy: Floats) -> NDArray[np.bool_]:
        bernstein = np.sqrt(2.0 * q * (1.0 - q) * peeling) + peeling / 3.0
        return np.asarray(np.abs(p_bar - q) <= scale * np.minimum(bernstein, laplace * np.sqrt(proxy)))

    def below(q: Floats) -> Floats:
        return np.where((q < 0.5) == (tails == "proven"), q * (1.0 - q), bernoulli_proxy(q))

    lower = _edge(p_bar, np.zeros_like(p_bar), lambda q: within(q, bernoulli_proxy(q)))
    return lower, _edge(p_bar, np.ones_like(p_bar), lambda q: within(q, below(q)))


def _edge(inside: Floats, outside: Floats, holds: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """Where an interval ends that holds `inside`, and perhaps `outside`."""
    everything = holds(outside)
    near, far = inside.copy(), outside.copy()
    for _ in range(_HALVINGS):
        middle = 0.5 * (near + far)
        kept = holds(middle)
        near, far = np.where(kept, middle, near), np.where(kept, far, middle)
    return np.where(everything, outside, far)
