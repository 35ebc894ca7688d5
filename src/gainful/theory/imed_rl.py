"""The equations of IMED-RL, written from the paper (Pesquerel & Maillard, NeurIPS 2022, section 3 and proposition 2).

They are slow and plain: dense arrays, a linear system per policy, bisection on one variable. One sample that was never
seen, of reward r_max/2 and a uniform next state, counts in every pair, as in the authors' implementation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.theory.kl import kinf

Floats = NDArray[np.float64]


def imed_rl_estimates(transitions: ArrayLike, reward_sums: ArrayLike, reward_max: float) -> tuple[Floats, Floats]:
    """The estimated mean rewards and transitions: r̂ = (Σr + r_max/2)/(N+1) and p̂ = (N(s,a,·) + 1/S)/(N+1).

    Parameters
    ----------
    transitions : array_like of shape (S, A, S)
        How often each transition was seen.
    reward_sums : array_like of shape (S, A)
        The sums of rewards, in [0, r_max] each.
    reward_max : float
        r_max.

    Returns
    -------
    rewards : ndarray of shape (S, A)
    rows : ndarray of shape (S, A, S)

    Examples
    --------
    >>> r, p = imed_rl_estimates([[[1, 0]], [[0, 0]]], [[1.0], [0.0]], 1.0)
    >>> r.tolist(), p.tolist()
    ([[0.75], [0.5]], [[[0.75, 0.25]], [[0.5, 0.5]]])
    """
    counts, sums = np.asarray(transitions, dtype=np.float64), np.asarray(reward_sums, dtype=np.float64)
    n = counts.sum(axis=2) + 1.0
    return (sums + 0.5 * reward_max) / n, (counts + 1.0 / counts.shape[0]) / n[:, :, None]


def imed_rl_skeleton(visits: ArrayLike, allowed: ArrayLike | None = None) -> NDArray[np.bool_]:
    """The skeleton: actions with N(s,a) ≥ ln²(max_b N(s,b)).

    Parameters
    ----------
    visits : array_like of shape (S, A)
        N.
    allowed : array_like of bool, shape (S, A), optional
        The actions that each state has; all by default.

    Returns
    -------
    ndarray of bool, shape (S, A)

    Examples
    --------
    >>> imed_rl_skeleton([[100, 21, 22], [0, 0, 0]]).tolist()
    [[True, False, True], [True, True, True]]
    """
    n = np.asarray(visits, dtype=np.float64)
    kept: NDArray[np.bool_] = n >= np.log(np.maximum(n.max(axis=1), 1.0))[:, None] ** 2
    return kept if allowed is None else kept & np.asarray(allowed, dtype=bool)


def imed_rl_optimum(rewards: ArrayLike, rows: ArrayLike, skeleton: ArrayLike) -> tuple[float, Floats]:
    """The optimal gain and bias of an MDP whose rows are all positive, restricted to some actions: policy iteration.

    Each policy is evaluated by a linear system, g + h(s) - p̂·h = r̂ with h(0) = 0.

    Parameters
    ----------
    rewards : array_like of shape (S, A)
        r̂.
    rows : array_like of shape (S, A, S)
        p̂.
    skeleton : array_like of bool, shape (S, A)
        The actions to choose from.

    Returns
    -------
    gain : float
    bias : ndarray of shape (S,)
        0 in state 0.

    Examples
    --------
    >>> gain, bias = imed_rl_optimum([[0.2, 0.6]], [[[1.0], [1.0]]], [[True, True]])
    >>> gain, bias.tolist()
    (0.6, [0.0])
    """
    r, p, mask = np.asarray(rewards), np.asarray(rows), np.asarray(skeleton, dtype=bool)
    S, states = r.shape[0], np.arange(r.shape[0])
    actions = np.where(mask, r, -np.inf).argmax(axis=1)
    for _ in range(1000):
        system = np.eye(S) - p[states, actions]
        system[:, 0] = 1.0
        found = np.linalg.solve(system, r[states, actions])
        gain, bias = float(found[0]), np.concatenate([[0.0], found[1:]])
        values = np.where(mask, r + p @ bias, -np.inf)
        better = values.max(axis=1) > values[states, actions] + 1e-11 * (1.0 + np.abs(bias).max())
        if not better.any():
            break
        actions = np.where(better, values.argmax(axis=1), actions)
    return gain, bias


def imed_rl_divergence(
    reward_law: tuple[ArrayLike, ArrayLike], row: ArrayLike, bias: ArrayLike, needed: float, reward_max: float
) -> float:
    """K = inf{KL(F⊗p‖q) : q has mean γ of R + h(Y)}, over laws q of values up to r_max + max h (proposition 2).

    Parameters
    ----------
    reward_law : tuple of array_like
        The different rewards, and the probability of each.
    row : array_like of shape (S,)
        p, the law of the next state, independent of the reward.
    bias : array_like of shape (S,)
        h.
    needed : float
        γ.
    reward_max : float
        r_max.

    Returns
    -------
    float
        0 if the mean is γ or more.

    Examples
    --------
    With one state it is the divergence of a bandit, of Bernoulli laws here:

    >>> import math
    >>> K = imed_rl_divergence(([0.0, 1.0], [0.5, 0.5]), [1.0], [0.0], 0.75, 1.0)
    >>> round(K, 12) == round(0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25), 12)
    True
    """
    values, chances = (np.asarray(x, dtype=np.float64) for x in reward_law)
    p, h = np.asarray(row, dtype=np.float64), np.asarray(bias, dtype=np.float64)
    weights = np.append(np.outer(chances, p).reshape(-1), 0.0)
    atoms = np.append((values[:, None] + h[None, :]).reshape(-1), reward_max + h.max())
    return kinf(weights, atoms, needed)


def imed_rl_index(visits: int, divergence: float) -> float:
    """H = N·K + ln N.

    Parameters
    ----------
    visits : int
        N, at least 1.
    divergence : float
        K.

    Returns
    -------
    float

    Examples
    --------
    >>> imed_rl_index(1, 0.25)
    0.25
    """
    return visits * divergence + float(np.log(visits))
