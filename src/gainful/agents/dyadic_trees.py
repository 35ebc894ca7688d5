"""One dyadic tree of cells per action, over the finest cells of a partition.

With n intervals on an axis, and J the least number with 2^J ≥ n on every axis, interval i has the code ⌊i·2^J/n⌋ of J
bits. A cell of depth j holds the finest cells whose codes agree in the first j bits on every axis, and is named by the
lowest of them. It is at most ⌈n/2^j⌉ intervals wide; if n is a power of two, exactly 2^{-j} of the box. The leaf of a
finest cell and an action is the cell of the depth that `depths` has there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel

Depths = NDArray[np.int8]
Numbers = NDArray[np.int64]


def cell_names(bins: tuple[int, ...]) -> Numbers:
    """(J+1, cells) the name of the cell of depth j that holds each finest cell: the lowest finest cell in it.

    >>> cell_names((3,)).tolist()
    [[0, 0, 0], [0, 0, 2], [0, 1, 2]]
    """
    finest = max((n - 1).bit_length() for n in bins)
    found = []
    for j in range(finest + 1):
        lowest = []  # of the intervals of each axis with the same first j bits
        for n in bins:
            first_bits = (np.arange(n, dtype=np.int64) * (1 << finest) // n) >> (finest - j)
            lowest.append(np.searchsorted(first_bits, first_bits))
        corners = np.meshgrid(*lowest, indexing="ij")
        found.append(np.ravel_multi_index([c.reshape(-1) for c in corners], bins))
    return np.array(found, dtype=np.int64)


def cell_widths(bins: tuple[int, ...]) -> NDArray[np.float64]:
    """(J+1,) the longest side of a cell of each depth, the box being scaled to [0, 1]^d.

    >>> cell_widths((4,)).tolist(), cell_widths((3,)).round(3).tolist()
    ([1.0, 0.5, 0.25], [1.0, 0.667, 0.333])
    """
    finest = max((n - 1).bit_length() for n in bins)
    return np.array([max(-(-n // (1 << j)) / n for n in bins) for j in range(finest + 1)])


class MergedRows(NamedTuple):
    """Rows of counts by leaf, next states being cells of the common refinement; `begin` and `length` by pair number."""

    begin: Any
    length: Any
    next_state: Any
    count: Any
    used: Any


@kernel
def merge_rows(rows: Any, order: Any, first: Any, number: Any, out: MergedRows, scratch: Any) -> None:
    """Add up the rows of all pairs of each leaf: leaf i has order[first[i]:first[i+1]], the lowest pair names it.

    `rows` are (begin, length, next_state, count) of the finest pairs, `number` the cell of the refinement of each
    finest cell, and `scratch` zeros, one for each of those cells.
    """
    begin, length, next_state, count = rows
    out = MergedRows(*out)
    used = 0
    for i in range(first.size - 1):
        low, high = scratch.size, -1
        for place in range(first[i], first[i + 1]):
            pair = order[place]
            for e in range(begin[pair], begin[pair] + length[pair]):
                cell = number[next_state[e]]
                scratch[cell] += count[e]
                low, high = min(low, cell), max(high, cell)
        leaf = order[first[i]]
        out.begin[leaf] = used
        for cell in range(low, high + 1):
            if scratch[cell] > 0:
                out.next_state[used], out.count[used] = cell, scratch[cell]
                scratch[cell] = 0
                used += 1
        out.length[leaf] = used - out.begin[leaf]
    out.used[0] = used


class LeafCounts:
    """The counts that a planner reads on the common refinement: pair (q, a) has the row and the visits of its leaf."""

    def __init__(self, n_states: int, n_actions: int, leaf_of: Numbers) -> None:
        self.n_states, self.n_actions = n_states, n_actions
        self._leaf_of = leaf_of
        self.visits: NDArray[np.int64] = np.zeros(leaf_of.size, dtype=np.int64)
        self.reward_sum: NDArray[np.float64] = np.zeros(leaf_of.size)
        self.begin: NDArray[np.int64] = np.zeros(leaf_of.size, dtype=np.int64)
        self.length: NDArray[np.int64] = np.zeros(leaf_of.size, dtype=np.int64)
        self.next_state: NDArray[np.uint32] = np.zeros(1, dtype=np.uint32)
        self.count: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self.used: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self.is_changed: NDArray[np.bool_] = np.zeros(leaf_of.size, dtype=bool)
        self.n_changed: NDArray[np.int64] = np.zeros(1, dtype=np.int64)

    def changed_pairs(self) -> NDArray[np.int64]:
        """None: they are not told apart."""
        return np.empty(0, dtype=np.int64)

    def take_sums(self, visits: NDArray[np.float64], reward_sum: NDArray[np.float64]) -> None:
        """Take the visits and rewards of all leaves, by their numbers."""
        self.visits = visits[self._leaf_of].astype(np.int64)
        self.reward_sum = reward_sum[self._leaf_of]

    def take_rows(self, merged: MergedRows) -> None:
        """Take the rows of all leaves."""
        self.begin, self.length = merged.begin[self._leaf_of], merged.length[self._leaf_of]
        self.next_state, self.count, self.used = merged.next_state, merged.count, merged.used


class DyadicTrees:
    """The leaves of one tree per action, the common refinement of all trees, and when each cell was split.

    Parameters
    ----------
    bins : tuple of int
        The finest intervals of each axis.
    n_actions : int
        A.
    start : int
        The depth of the first leaves, at most J.
    """

    def __init__(self, bins: tuple[int, ...], n_actions: int, start: int) -> None:
        self._names = cell_names(bins)
        self.widths = cell_widths(bins)
        """(J+1,) the longest side of a cell of each depth."""
        self.finest, self.n_cells = len(self._names) - 1, self._names.shape[1]
        self.sizes = [int(np.unique(row).size) for row in self._names]
        """How many cells there are of each depth."""
        self.dim, self.n_actions, self.start = len(bins), n_actions, start
        self.depths: Depths = np.full((self.n_cells, n_actions), start, dtype=np.int8)
        """(cells, A) the depth of the leaf of every finest cell."""
        self.splits: Numbers = np.empty((0, 2), dtype=np.int64)
        """One row per split, in order: steps made, and the number of the leaf, cell · A + action."""
        self._number_everything()

    def _number_everything(self) -> None:
        A, cells = self.n_actions, np.arange(self.n_cells)
        self.leaf: Numbers = (self._names[self.depths, cells[:, None]] * A + np.arange(A)).reshape(-1)
        """(cells*A,) the number of the leaf of every finest pair."""
        named = self._names[self.depths.max(axis=1), cells]
        self.first_cells, self.number = (np.asarray(x, dtype=np.int64) for x in np.unique(named, return_inverse=True))
        self._order = np.argsort(self.leaf, kind="stable").astype(np.int64)
        grouped = self.leaf[self._order]
        self._first = np.flatnonzero(np.concatenate([[True], grouped[1:] != grouped[:-1], [True]])).astype(np.int64)

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all trees."""
        return self._first.size - 1

    @property
    def leaves(self) -> Numbers:
        """The numbers of all leaves, in increasing order."""
        return self.leaf[self._order[self._first[:-1]]]

    def depths_of(self, leaves: Numbers) -> Depths:
        """The depths of leaves, by their numbers."""
        found: Depths = self.depths.reshape(-1)[leaves]
        return found

    def split(self, leaves: Numbers, t: int) -> None:
        """Split these leaves into their halves, after t steps."""
        chosen = np.zeros(self.leaf.size, dtype=bool)
        chosen[leaves] = True
        self.depths.reshape(-1)[chosen[self.leaf]] += 1
        rows = np.stack([np.full(leaves.size, t, dtype=np.int64), leaves], axis=1)
        self.splits = np.concatenate([self.splits, rows])
        self._number_everything()

    def summed(self, numbers: NDArray[Any]) -> NDArray[np.float64]:
        """(cells*A,) sums of `numbers`, one for each finest pair, over every leaf, at its number; 0 elsewhere."""
        return np.bincount(self.leaf, weights=numbers, minlength=self.leaf.size).astype(np.float64, copy=False)

    def counts(self) -> LeafCounts:
        """Empty counts on the common refinement."""
        A = self.n_actions
        pairs = (self.first_cells[:, None] * A + np.arange(A)).reshape(-1)
        return LeafCounts(self.first_cells.size, A, self.leaf[pairs])

    def merged(self, begin: Any, length: Any, next_state: Any, count: Any) -> MergedRows:
        """Add up the rows of the finest pairs by leaf."""
        pairs, room = self.leaf.size, max(int(length.sum()), 1)
        out = MergedRows(
            np.zeros(pairs, dtype=np.int64),
            np.zeros(pairs, dtype=np.int64),
            np.zeros(room, dtype=np.uint32),
            np.zeros(room, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )
        scratch = np.zeros(self.first_cells.size, dtype=np.int64)
        merge_rows((begin, length, next_state, count), self._order, self._first, self.number, tuple(out), scratch)
        return out

    def replay(self, splits: Numbers) -> None:
        """Repeat the splits of another run; a ValueError if they are not splits of leaves in order of time."""
        if (
            splits.ndim != 2
            or splits.shape[1:] != (2,)
            or splits.dtype != np.int64
            or np.any(np.diff(splits[:, 0]) < 0)
        ):
            raise ValueError(f"array 'splits' has shape {splits.shape} and dtype {splits.dtype}, or is not in order")
        if splits.size and (splits.min() < 0 or splits[:, 1].max() >= self.leaf.size):
            raise ValueError("array 'splits' names a cell that does not exist")
        self.depths[:] = self.start
        table = self.depths
        for _, leaf in splits.tolist():
            cell, action = divmod(leaf, self.n_actions)
            depth = int(table[cell, action])
            if depth >= self.finest or self._names[depth, cell] != cell:
                raise ValueError(f"array 'splits' splits pair {leaf}, which is not a leaf that can be split")
            table[self._names[depth] == cell, action] += 1
        self.splits = splits.copy()
        self._number_everything()
