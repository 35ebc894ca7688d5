"""The term that the cells of C-SCAL+ add to the bonus of SCAL+, and the number of cells to use.

Qian, Fruit, Pirotta & Lazaric, Exploration bonus for regret minimization in undiscounted discrete and continuous MDPs,
sec. 4. The assumption: |r(x,a) - r(y,a)| ≤ r_max·L·‖x-y‖^α and ‖p(·|x,a) - p(·|y,a)‖₁ ≤ L·‖x-y‖^α, in the sup-norm of
the unit cube.
"""

from __future__ import annotations

import math


def holder_term(span: float, reward_max: float, lipschitz: float, holder: float, bins: int) -> float:
    """(c + r_max)·L·n^{-α}, n = `bins` the intervals per axis: cells have side 1/n, however many there are.

    >>> holder_term(2.0, 1.0, 0.5, 1.0, 4)
    0.375
    """
    return (span + reward_max) * lipschitz * math.pow(bins, -holder)


def bins_for_horizon(horizon: float, n_actions: int, lipschitz: float, holder: float, dim: int = 1) -> int:
    """Intervals per axis, n = ⌈((α/d)·L·sqrt(T/A))^{1/(d+α)}⌉, which minimises n^d·sqrt(A·T) + L·n^{-α}·T.

    The theorem's S for d = 1. For d > 1 the source gives T^{1/(2d+2α)}, without L and A.

    >>> bins_for_horizon(10_000, 4, 2.0, 1.0), bins_for_horizon(10_000, 4, 2.0, 1.0, dim=2)
    (10, 4)
    """
    best = math.pow(holder / dim * lipschitz * math.sqrt(horizon / n_actions), 1.0 / (dim + holder))
    return max(1, math.ceil(best))


def regret_exponent(holder: float, dim: int = 1) -> float:
    """(2d+α)/(2d+2α): with the n above the regret is Õ of T to this power; (α+2)/(2α+2) for d = 1.

    >>> regret_exponent(1.0), regret_exponent(0.5, dim=2)
    (0.75, 0.9)
    """
    return (2.0 * dim + holder) / (2.0 * dim + 2.0 * holder)
