"""Kernels over the points that a C-SCAL+ agent visits, and over sampled points of its cells.

The raw transitions of a run are counted again on right-closed cells, independently of the agent's own index, and what
the events of the theorem need is summed up on the way: h(x') and p(·|x,a)·v.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined, kernel
from gainful.audit.rows import ANCHOR, CountedRows

POINTS = 5
"""Sampled points of each cell: just inside its left end, its quarters, and its right end."""
NODES = 8
"""Chebyshev points of one piece of x ↦ p(J|x,a): a polynomial of degree 7 goes through them."""
COUNTS, BIAS, TRUE_VALUES = range(3)
"""How much `take` sums up: the transitions alone, h too, the true p·v too."""


class Bands(NamedTuple):
    """Rows of probabilities of cells, each without its ends below 1e-17: row i has p[ptr[i]:ptr[i+1]] from first[i]."""

    first: Any
    ptr: Any
    p: Any


class LoggedTransitions(NamedTuple):
    """Raw transitions: points (n,d) and actions (n,)."""

    origin: Any
    target: Any
    action: Any


class Grid(NamedTuple):
    """Right-closed cells of a box: axis i has bins[i] of them, between edges[offset[i]:offset[i] + bins[i] + 1]."""

    bins: Any
    edges: Any
    offset: Any
    n_actions: int


class BiasLine(NamedTuple):
    """h, linear between nodes of the unit interval; a coordinate y of the agent is (y - low)/length there.

    guide[j] is the piece that j/(len(guide)-1) lies on, where the search for a piece begins.
    """

    nodes: Any
    bias: Any
    guide: Any
    low: float
    length: float


class LawPieces(NamedTuple):
    """x ↦ p(·|x,a) in `pieces` pieces per cell: rows of `bands` at the Chebyshev points of every piece."""

    pieces: int
    bands: Bands
    coefficients_of: Any
    """(NODES, NODES) from values at the Chebyshev points to coefficients of powers."""
    coefficients: Any
    """(rows, NODES) of p(·|x,a)·v_k, put together when episode k first comes to a piece."""
    episode: Any
    """(rows,) the k they were put together for."""


class CellSums(NamedTuple):
    """Per pair: transitions counted, and Σ h(x')."""

    counts: Any
    bias: Any


@inlined
def cell_of(x: Any, grid: Grid) -> int:
    """The right-closed cell of a point."""
    cell = 0
    for j in range(grid.bins.size):
        n, at = grid.bins[j], grid.offset[j]
        low, high = grid.edges[at], grid.edges[at + n]
        k = min(max(int((x[j] - low) / (high - low) * n), 0), n - 1)
        while k > 0 and x[j] <= grid.edges[at + k]:
            k -= 1
        while k < n - 1 and x[j] > grid.edges[at + k + 1]:
            k += 1
        cell = cell * n + k
    return cell


@inlined
def bias_at(y: float, line: BiasLine) -> Any:
    """h(y)."""
    z = min(max((y - line.low) / line.length, 0.0), 1.0)
    k = line.guide[int(z * (line.guide.size - 1))]
    while line.nodes[k + 1] < z:
        k += 1
    share = (z - line.nodes[k]) / (line.nodes[k + 1] - line.nodes[k])
    return line.bias[k] + (line.bias[k + 1] - line.bias[k]) * share


@inlined
def fit_piece(law: LawPieces, row: int, v: Any) -> None:
    """The coefficients of p(·|x,a)·v on one piece."""
    for m in range(NODES):
        law.coefficients[row, m] = 0.0
    for j in range(NODES):
        at = row * NODES + j
        value, to = 0.0, law.bands.first[at]
        for m in range(law.bands.ptr[at], law.bands.ptr[at + 1]):
            value += law.bands.p[m] * v[to]
            to += 1
        for m in range(NODES):
            law.coefficients[row, m] += law.coefficients_of[m, j] * value


@inlined
def expected_value(x: float, cell: int, action: int, grid: Grid, law: LawPieces, v: Any, episode: int) -> Any:
    """p(·|x,a)·v, by the polynomial of the piece that x lies on."""
    place = (x - grid.edges[cell]) / (grid.edges[cell + 1] - grid.edges[cell]) * law.pieces
    piece = min(max(int(place), 0), law.pieces - 1)
    s = 2.0 * (place - piece) - 1.0
    row = (action * grid.bins[0] + cell) * law.pieces + piece
    if law.episode[row] != episode:
        law.episode[row] = episode
        fit_piece(law, row, v)
    value = law.coefficients[row, NODES - 1]
    for m in range(NODES - 2, -1, -1):
        value = value * s + law.coefficients[row, m]
    return value


@kernel
def take(
    moves: LoggedTransitions,
    between: Any,
    grid: Grid,
    level: int,
    line: BiasLine,
    law: LawPieces,
    plan: Any,
    out: CellSums,
) -> float:
    """Count some transitions, and add h(x') up; returns Σ (p(·|x,a)·v - v(x)).

    `between` is (begin, end) in the arrays of `moves`, `level` says how much is summed up, `plan` is (k, v_k) of the
    present episode.
    """
    (begin, end), (episode, v) = between, plan
    drift = 0.0
    for i in range(begin, end):
        cell, a = cell_of(moves.origin[i], grid), moves.action[i]
        pair = cell * grid.n_actions + a
        out.counts[pair] += 1
        if level == COUNTS:
            continue
        out.bias[pair] += bias_at(moves.target[i, 0], line)
        if level == TRUE_VALUES:
            drift += expected_value(moves.origin[i, 0], cell, a, grid, law, v, episode) - v[cell]
    return drift


@kernel
def compare_points(
    rows: CountedRows, possible: Any, laws: Bands, inside: Any, values: Any, true_values: Any, distance: Any
) -> None:
    """p(·|x,a)·v and ‖p̂ - p(·|x,a)‖₁ at the sampled points x of every cell, into (S*A, POINTS) each.

    `laws` has a row per point and action. Points outside the environment's box, and pairs that are not possible, get 0.
    """
    S = values.size
    A = possible.size // S
    q = np.zeros(S)
    for k in range(possible.size):
        if not possible[k]:
            for j in range(POINTS):
                true_values[k, j] = distance[k, j] = 0.0
            continue
        share, row_end = 1.0 / (rows.visits[k] + 1.0), rows.begin[k] + rows.length[k]
        for i in range(rows.begin[k], row_end):
            q[rows.next_state[i]] = rows.count[i] * share
        q[ANCHOR] += share
        for j in range(POINTS):
            point = (k // A) * POINTS + j
            pv, l1 = 0.0, 0.0
            if inside[point]:
                row = point * A + k % A
                to, l1 = laws.first[row], 1.0
                for i in range(laws.ptr[row], laws.ptr[row + 1]):
                    pv += laws.p[i] * values[to]
                    l1 += abs(q[to] - laws.p[i]) - q[to]
                    to += 1
            true_values[k, j], distance[k, j] = pv, l1
        for i in range(rows.begin[k], row_end):
            q[rows.next_state[i]] = 0.0
        q[ANCHOR] = 0.0


@inlined
def level_of(value: float, levels: Any) -> int:
    """The number of the level that a value is rounded down to; levels are evenly spaced, or all the same."""
    width, level = levels[1] - levels[0], 0
    if width > 0.0:
        level = min(max(int((value - levels[0]) / width), 0), levels.size - 1)
    return level


@kernel
def count_levels(moves: LoggedTransitions, end: int, grid: Grid, line: BiasLine, levels: Any, out: Any) -> None:
    """Count h(x') of the first `end` transitions, rounded down to `levels`, for the pair of each: (pairs, LEVELS)."""
    moves, grid, line = LoggedTransitions(*moves), Grid(*grid), BiasLine(*line)
    for i in range(end):
        pair = cell_of(moves.origin[i], grid) * grid.n_actions + moves.action[i]
        out[pair, level_of(bias_at(moves.target[i, 0], line), levels)] += 1
