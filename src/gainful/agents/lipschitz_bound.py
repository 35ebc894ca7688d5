"""A lower confidence bound on the Hölder constant L, from what an agent has counted on the cells of a partition.

For a cell I, an action a and n visits let X_i be numbers in [0, 1] seen at the visits, with mean f(x_i), f(x) being the
reward of x in units of r_max, or the probability that the next state lies in a given set. Then, for all n at once,

    P(inf_I f > klup(X̄, ι_n/n)) ≤ δ'  and  P(sup_I f < 1 - klup(1 - X̄, ι_n/n)) ≤ δ',  ι_n = ln(1/δ') + ½ ln n + ln 2,

by the supermartingale of docs/kl_scal_plus.md, section 1, for the constant inf_I f. Points of two cells I and J are at
most D(I, J) apart, the largest distance of their points, so sup_I f - inf_J f ≤ L·D^α for rewards and ≤ ½·L·D^α for
probabilities. The sets are those of all cells beyond an edge of one axis. δ' = δ divided by twice the number of cells,
actions and functions f, so whatever true L there is lies below the bound with probability at most δ, at any time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import kernel
from gainful.agents.guarantee import Guarantee
from gainful.arguments import finite, real
from gainful.errors import InvalidArgumentError
from gainful.optimism.kl_scal_plus import deviation_level, kl_upper

MOST_COMPARISONS = 500_000_000
"""Comparisons of two cells above which only the most visited cells are compared."""


class CellCounts(NamedTuple):
    """What was counted at every pair of a cell and an action, for the kernels."""

    begin: Any
    length: Any
    next_state: Any
    count: Any
    visits: Any
    reward_sum: Any


class CellGrid(NamedTuple):
    """The cells that are compared."""

    bins: Any
    """(d,) intervals of each axis."""
    cells: Any
    """(m,) the numbers of the cells."""
    corners: Any
    """(m, d) their places on every axis."""


@dataclass(frozen=True)
class LipschitzBound:
    """How large the Hölder constant L is at least, and the two cells that show it.

    Parameters
    ----------
    lipschitz : float
        The bound: L ≥ this, for the exponent `holder`; 0 if the data show nothing.
    holder : float
        The exponent α for which it is meant.
    delta : float
        The probability with which the bound may be wrong, at any time of the run.
    cells : tuple of int
        The two cells that differ most; empty if none do.
    action : int
        The action at which they differ; -1 if none do.
    axis : int
        The axis of the next state whose law differs; -1 if it is the reward that differs.

    Examples
    --------
    >>> LipschitzBound(2.5, 1.0, 0.05, (3, 4), 0, -1).refutes(1.0)
    True
    """

    lipschitz: float
    holder: float
    delta: float
    cells: tuple[int, ...] = ()
    action: int = -1
    axis: int = -1

    def refutes(self, lipschitz: float) -> bool:
        """Tell whether the data refute an L.

        Parameters
        ----------
        lipschitz : float
            The L that somebody believes in.

        Returns
        -------
        bool
            True if it is below the bound.
        """
        return lipschitz < self.lipschitz

    @property
    def evidence(self) -> str:
        """The cells that show the bound, in words; empty if none do."""
        if not self.cells:
            return ""
        what = "rewards" if self.axis < 0 else "next states"
        return f"cells {self.cells[0]} and {self.cells[1]} ({what} of action {self.action})"

    def __str__(self) -> str:
        if not self.cells:
            return "the data show no lower bound on L"
        sure = f"with probability {1.0 - self.delta:g}"
        return f"L is at least {self.lipschitz:.3g} for α = {self.holder:g} {sure}, by {self.evidence}"


def lipschitz_lower_bound(agent: Any, holder: float | None = None, delta: float | None = None) -> LipschitzBound:
    r"""Bound the Hölder constant L from below by what an agent has seen on its cells.

    L is the least number with |r(x,a) - r(y,a)| ≤ r_max·L·‖x-y‖^α and ‖p(·|x,a) - p(·|y,a)‖₁ ≤ L·‖x-y‖^α. If the mean
    rewards of two cells, or the shares of their next states beyond an edge, differ by more than their confidence bounds
    allow, L·D^α is at least the rest, D the largest distance of a point of one cell from one of the other. The bound
    holds at all times of a run at once, with probability 1-δ; the proof is at the top of the module.

    Parameters
    ----------
    agent : PartitionedAgent
        An agent on the cells of a partition. Cells at the end of a partition with ``outside="clip"`` are left out.
    holder : float, optional
        The exponent α; by default the agent's own, or 1.
    delta : float, optional
        The probability with which the bound may be wrong; by default the agent's.

    Returns
    -------
    LipschitzBound
        The bound, and the cells that show it.

    Raises
    ------
    InvalidArgumentError
        If the agent has no cells, or an argument is out of range.

    Examples
    --------
    >>> import gainful as gf
    >>> env = gf.environments.lqg()
    >>> agent = gf.CKLSCALPlus.for_environment(env, bins=8, lipschitz=0.1, holder=1.0)
    >>> _ = gf.simulate(agent, env, horizon=20_000, seed=1)
    >>> found = gf.lipschitz_lower_bound(agent)
    >>> found.refutes(0.1), found.refutes(env.lipschitz)
    (True, False)
    """
    if not getattr(agent, "dim", 0) or not hasattr(agent, "partition"):
        raise InvalidArgumentError("agent", agent, "an agent on the cells of a partition")
    given = getattr(agent, "holder", None) if holder is None else holder
    alpha = 1.0 if given is None else given
    if not (finite(alpha) and 0.0 < alpha <= 1.0):
        raise InvalidArgumentError("holder", holder, "a number in (0, 1]")
    chance = real("delta", agent.delta if delta is None else delta, 0.0, 1.0, low_open=True, high_open=True)
    grid = _compared_cells(agent)
    counts, A = agent.statistics, agent.n_actions
    seen = (counts.begin, counts.length, counts.next_state, counts.count, counts.visits, counts.reward_sum)
    columns = A * functions_of(agent.partition.bins)
    low, high = np.zeros((grid.cells.size, columns)), np.ones((grid.cells.size, columns))
    log_union = math.log(2 * agent.n_states * columns * _partitions(agent)) - math.log(chance)
    cell_bounds(seen, tuple(grid), A, agent.reward_range, log_union, low, high)
    best, i, j, column = largest_quotient(tuple(grid), low, high, A, float(alpha))
    if best <= 0.0:
        return LipschitzBound(0.0, float(alpha), chance)
    action, f = column % A, column // A
    ends = np.cumsum([1, *(n - 1 for n in agent.partition.bins)])  # f = 0 is the reward, then the edges of axis 0, …
    cells = tuple(sorted((int(grid.cells[i]), int(grid.cells[j]))))
    return LipschitzBound(best, float(alpha), chance, cells, int(action), int(np.searchsorted(ends, f, "right")) - 1)


def refuted_smoothness(agent: Any) -> str:
    """Why the data refute the L of an agent, in words; empty if they do not, or if it was given none.

    Parameters
    ----------
    agent : PartitionedAgent
        Any agent.

    Returns
    -------
    str
        Such as "L = 1 is refuted by cells 3 and 4 (rewards of action 0): with probability 0.95 L is at least 2.5".
    """
    told = getattr(agent, "lipschitz", None)
    if told is None or not getattr(agent, "dim", 0):
        return ""
    found = lipschitz_lower_bound(agent)
    if not found.refutes(told):
        return ""
    sure = f"with probability {1.0 - found.delta:g} L is at least {found.lipschitz:.3g} for α = {found.holder:g}"
    return f"L = {told:g} is refuted by {found.evidence}: {sure}"


def guarantee_after(agent: Any) -> Guarantee:
    """Return the guarantee of an agent after what it has seen: void if the data refute its L.

    Parameters
    ----------
    agent : Agent
        Any agent.

    Returns
    -------
    Guarantee
    """
    promised: Guarantee = agent.guarantee
    refuted = refuted_smoothness(agent) if promised.holds else ""
    return replace(promised, reason_void=refuted) if refuted else promised


def functions_of(bins: tuple[int, ...]) -> int:
    """The number of functions compared: the reward, and one for every inner edge of every axis."""
    return 1 + sum(n - 1 for n in bins)


def _partitions(agent: Any) -> int:
    """By how much δ is divided because the agent chooses the number n of cells per axis as it goes: n(n+1)."""
    n = min(agent.partition.bins)
    return n * (n + 1) if getattr(agent, "doubling", False) else 1


def _compared_cells(agent: Any) -> CellGrid:
    """The visited cells; the most visited ones if there are too many to compare."""
    part, A = agent.partition, agent.n_actions
    visits = agent.statistics.visits.reshape(-1, A).sum(axis=1)
    cells = np.flatnonzero(visits > 0)
    bins = np.array(part.bins, dtype=np.int64)
    corners = np.stack(np.unravel_index(cells, part.bins), axis=1).astype(np.int64)
    if part.outside == "clip":
        inner = np.all((corners > 0) & (corners < bins - 1), axis=1)
        cells, corners = cells[inner], corners[inner]
    most = math.isqrt(MOST_COMPARISONS // (A * functions_of(part.bins))) + 1
    if cells.size > most:
        kept = np.sort(np.argsort(-visits[cells], kind="stable")[:most])
        cells, corners = cells[kept], corners[kept]
    return CellGrid(bins, cells.astype(np.int64), np.ascontiguousarray(corners))


@kernel
def cell_bounds(
    counts: CellCounts, grid: CellGrid, n_actions: int, reward_range: float, log_union: float, low: Any, high: Any
) -> None:
    """Lower bounds on sup f and upper bounds on inf f over every cell; column f·A + a."""
    counts, grid = CellCounts(*counts), CellGrid(*grid)
    d = grid.bins.size
    for i in range(grid.cells.size):
        for a in range(n_actions):
            pair = grid.cells[i] * n_actions + a
            n = counts.visits[pair]
            if n == 0:
                continue
            radius = deviation_level(log_union, n) / n
            high[i, a] = counts.reward_sum[pair] / (n * reward_range)
            for f in range(1, low.shape[1] // n_actions):
                high[i, f * n_actions + a] = 0.0
            for e in range(counts.begin[pair], counts.begin[pair] + counts.length[pair]):
                cell, end = np.int64(counts.next_state[e]), low.shape[1] // n_actions
                for axis in range(d - 1, -1, -1):  # the last axis is fastest; its functions are the last
                    bins = grid.bins[axis]
                    end -= bins - 1
                    for k in range(cell % bins):  # beyond the first cell % bins inner edges
                        high[i, (end + k) * n_actions + a] += counts.count[e] / n
                    cell //= bins
            for f in range(low.shape[1] // n_actions):
                mean = min(max(high[i, f * n_actions + a], 0.0), 1.0)
                high[i, f * n_actions + a] = kl_upper(mean, radius)
                low[i, f * n_actions + a] = 1.0 - kl_upper(1.0 - mean, radius)


@kernel
def largest_quotient(grid: CellGrid, low: Any, high: Any, n_actions: int, holder: float) -> tuple[float, int, int, int]:
    """The largest (sup_I f - inf_J f)/D^α, twice that for probabilities, with I, J and its column."""
    grid = CellGrid(*grid)
    best, first, second, column = 0.0, 0, 0, 0
    for i in range(grid.cells.size):
        for j in range(grid.cells.size):
            if i == j:
                continue
            far = 0.0
            for axis in range(grid.bins.size):
                far = max(far, (abs(grid.corners[i, axis] - grid.corners[j, axis]) + 1) / grid.bins[axis])
            weight = far**holder
            for k in range(low.shape[1]):
                factor = 1.0 if k < n_actions else 2.0
                if factor * (low[i, k] - high[j, k]) > best * weight:
                    best, first, second, column = factor * (low[i, k] - high[j, k]) / weight, i, j, k
    return best, first, second, column
