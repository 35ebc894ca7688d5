"""References that share no code with gainful: rational policy iteration and a linear programme by HiGHS."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest
from scipy.optimize import linprog

PRECISION = 1e-9
"""What the planners are asked for, and so the tolerance of every comparison with an exact value."""

Row: TypeAlias = Sequence[Fraction | int]
Choice: TypeAlias = tuple[Row, Fraction | int]
"""One action of a state: probabilities of the next states, and the mean reward."""


def solved(matrix: Sequence[Sequence[Fraction]], right: Sequence[Fraction]) -> list[Fraction]:
    """The solution of a square system, by elimination in rational numbers."""
    rows = [[*line, b] for line, b in zip(matrix, right, strict=True)]
    n = len(rows)
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(n):
            factor = rows[k][i]
            if k != i and factor != 0:
                rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [line[n] for line in rows]


def evaluated(chosen: Sequence[Choice]) -> tuple[Fraction, list[Fraction]]:
    """Gain and bias, bias of the last state 0, of a chain with one recurrent class."""
    n = len(chosen)
    matrix = []
    for s, (row, _) in enumerate(chosen):
        line = [Fraction(int(s == j)) - Fraction(row[j]) for j in range(n - 1)]
        matrix.append([*line, Fraction(1)])
    *bias, gain = solved(matrix, [Fraction(r) for _, r in chosen])
    return gain, [*bias, Fraction(0)]


def optimum(states: Sequence[Sequence[Choice]], *, minimise: bool = False) -> tuple[Fraction, list[int]]:
    """The exact optimal gain and a policy, by Howard's policy iteration; every policy must have one recurrent class."""
    sign = -1 if minimise else 1
    policy = [0] * len(states)
    while True:
        gain, bias = evaluated([states[s][a] for s, a in enumerate(policy)])
        better = list(policy)
        for s, choices in enumerate(states):
            values = [
                sign * (Fraction(r) + sum((Fraction(p) * h for p, h in zip(row, bias, strict=True)), Fraction(0)))
                for row, r in choices
            ]
            if max(values) > values[policy[s]]:
                better[s] = values.index(max(values))
        if better == policy:
            return gain, policy
        policy = better


def arrays(states: Sequence[Sequence[Choice]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P (S,A,S), R (S,A) and the mask of allowed actions, in floating point."""
    S, A = len(states), max(len(choices) for choices in states)
    P, R, allowed = np.zeros((S, A, S)), np.zeros((S, A)), np.zeros((S, A), dtype=bool)
    for s, choices in enumerate(states):
        for a, (row, r) in enumerate(choices):
            P[s, a] = [float(p) for p in row]
            R[s, a] = float(r)
            allowed[s, a] = True
    return P, R, allowed


def linear_programme(P: np.ndarray, R: np.ndarray, allowed: np.ndarray) -> float:
    """The optimal gain of a unichain MDP: min g such that g + h(s) - p(·|s,a)·h >= r(s,a), by HiGHS.

    HiGHS is exact to its tolerances only (1e-7; coefficients below 1e-9 are dropped, and tighter tolerances were seen
    to return wrong optima). So its h only chooses a policy, whose gain and bias come from one linear system, and the
    optimality equation with that bias proves the gain.
    """
    S, _ = R.shape
    pairs = np.argwhere(allowed)
    left = np.zeros((len(pairs), S + 1))
    for k, (s, a) in enumerate(pairs):
        left[k, :S] = -P[s, a]
        left[k, s] += 1.0
        left[k, S] = 1.0
    unbounded = np.full(S, np.inf)
    bounds = np.c_[np.r_[0.0, -unbounded], np.r_[0.0, unbounded]]  # the first pins h(0) = 0
    found = linprog(np.r_[np.zeros(S), 1.0], A_ub=-left, b_ub=-R[allowed], bounds=bounds, method="highs")
    assert found.status == 0, found.message
    assert found.x is not None
    q = np.where(allowed, R + P @ found.x[:S], -np.inf)
    policy = q.argmax(axis=1)
    rows = np.arange(S)
    system = np.eye(S) - P[rows, policy]
    system[:, 0] = 1.0  # the unknown h(0) = 0 gives its column to the gain
    gain, *bias = np.linalg.solve(system, R[rows, policy])
    h = np.r_[0.0, bias]
    residual = np.where(allowed, R + P @ h, -np.inf).max(axis=1) - h - gain
    assert residual.max() < PRECISION / 10
    assert gain == pytest.approx(found.fun, rel=0, abs=1e-5)
    return float(gain)
