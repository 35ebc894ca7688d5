"""Evaluation of one policy by Anderson-accelerated value iteration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gainful.planning.sweeper import Sweeper

MEMORY = 8
PERIOD = 3
DAMPING = 0.9


def evaluate_by_anderson(
    sweeper: Sweeper,
    start: NDArray[np.float64],
    *,
    tolerance: float,
    max_sweeps: int,
    every_sweep: Callable[[int], None] = lambda _: None,
) -> tuple[NDArray[np.float64], float, int]:
    r"""Solve r_π + P_π h - h = g·1 for π = `sweeper.act`, approximately.

    Returns (h, span of its residual, sweeps), h the best vector seen.

    Damped steps h ← h + τ f, f the residual less its mean; every third step is Anderson's: with the last m
    differences ΔH, ΔF it minimises ‖f - ΔF γ‖₂ and moves to h + τ f - (ΔH + τ ΔF) γ (Anderson 1965; periodic
    variant of Pratapa, Suryanarayana & Pask 2016). The residual is affine in h, so m differences span a Krylov space.
    Stops when the span of f is at most `tolerance`, after `max_sweeps`, or when f has grown a thousandfold from its
    best (a policy with several recurrent classes has no such h). Nothing is claimed about the result:
    the caller certifies it by a Bellman sweep. `every_sweep` is told the number of sweeps so far.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite ends the evaluation
        return _evaluated(sweeper, start, tolerance, max_sweeps, every_sweep)


def _evaluated(
    sweeper: Sweeper,
    start: NDArray[np.float64],
    tolerance: float,
    max_sweeps: int,
    every_sweep: Callable[[int], None],
) -> tuple[NDArray[np.float64], float, int]:
    S = start.size
    h, f = start.copy(), np.empty(S)
    best, best_width = start.copy(), np.inf
    last_h, last_f = np.empty(S), np.empty(S)
    dH, dF = np.zeros((MEMORY, S)), np.zeros((MEMORY, S))
    gram = np.zeros((MEMORY, MEMORY))
    stored = 0
    for sweep in range(1, max_sweeps + 1):
        low, high = sweeper.policy_gaps(h, f)
        every_sweep(sweep)
        width = high - low
        if width < best_width:
            best_width = width
            best[:] = h
        if width <= tolerance or not width <= 1e3 * best_width:
            return best, best_width, sweep
        f -= f.mean()
        if sweep > 1:
            j = stored % MEMORY
            np.subtract(h, last_h, out=dH[j])
            np.subtract(f, last_f, out=dF[j])
            stored += 1
            kept = min(stored, MEMORY)
            gram[j, :kept] = gram[:kept, j] = dF[:kept] @ dF[j]
        last_h[:], last_f[:] = h, f
        if sweep % PERIOD == 0:
            kept = min(stored, MEMORY)
            gamma = combination(gram, dF[:kept] @ f, kept)
            if gamma is not None:
                h -= gamma @ dH[: gamma.size]
                f -= gamma @ dF[: gamma.size]
        f *= DAMPING
        h += f
        h -= h[0]
    return best, best_width, max_sweeps


def combination(gram: NDArray[np.float64], along: NDArray[np.float64], kept: int) -> NDArray[np.float64] | None:
    """γ that minimises ‖f - ΔF γ‖₂, given ΔF·ΔF and ΔF·f; None if differences have become too small.

    They are scaled to length 1 first.
    """
    lengths = np.sqrt(np.diag(gram)[:kept])
    if not (np.all(lengths > 1e-140) and np.all(np.isfinite(gram[:kept, :kept]))):
        return None
    try:
        scaled = gram[:kept, :kept] / np.outer(lengths, lengths)
        gamma = np.linalg.lstsq(scaled, along / lengths, rcond=1e-14)[0] / lengths
    except np.linalg.LinAlgError:
        return None
    return gamma if np.all(np.isfinite(gamma)) else None
