"""Distances in the graph of an MDP: how many moves one state is away from the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from gainful._compiled import kernel


def moves_from(graph: sp.csr_array, root: int) -> NDArray[np.int64]:
    """The least number of edges from `root` to each state; -1 where no path leads.

    >>> line = sp.csr_array(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]))
    >>> moves_from(line, 0).tolist(), moves_from(line, 1).tolist()
    ([0, 1, 2], [-1, 0, 1])
    """
    order, before = breadth_first_order(graph, root, directed=True, return_predecessors=True)
    return np.asarray(_levels(order.astype(np.int64), before.astype(np.int64)))


@kernel
def _levels(order: Any, before: Any) -> Any:
    """The level of each state in a tree, from an order in which parents come first."""
    levels = np.full(before.size, -1)
    levels[order[0]] = 0
    for s in order[1:]:
        levels[s] = levels[before[s]] + 1
    return levels
