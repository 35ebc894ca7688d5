"""The pairs seen to lead to each state, in lists that grow with the counts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel
from gainful.growable_rows import FIRST_ROOM, GrowableRows, add
from gainful.planning.estimated import EstimatedMDP


class PairLists(NamedTuple):
    """Row s lists the pairs that lead to s: `length[s]` of them in `pair`, from `begin[s]` on (see `growable_rows`)."""

    begin: Any
    length: Any
    room: Any
    used: Any
    pair: Any
    mark: Any


@kernel
def link(model: EstimatedMDP, known: NDArray[Any], pairs: NDArray[Any], to: PairLists) -> bool:
    """Enter the new transitions of `pairs`, except those to s̄; False if there is no space left."""
    model, rows = EstimatedMDP(*model), GrowableRows(*to)
    for i in range(pairs.size):
        k = pairs[i]
        if model.length[k] == known[k]:
            continue
        for j in range(model.begin[k], model.begin[k] + model.length[k]):
            s = np.int64(model.next_state[j])
            if s != model.attractive and not add(rows, s, k, 0):
                return False
        known[k] = model.length[k]
    return True


class Predecessors:
    """The pairs that lead to each state except s̄, which every pair leads to."""

    def __init__(self, n_states: int, n_actions: int) -> None:
        begin, length, room = (np.zeros(n_states, dtype=np.int64) for _ in range(3))
        size = max(16, FIRST_ROOM * n_states)
        self.lists = PairLists(
            begin, length, room, np.zeros(1, dtype=np.int64), np.zeros(size, np.uint32), np.zeros(size, np.int8)
        )
        self._known: NDArray[np.int64] = np.zeros(n_states * n_actions, dtype=np.int64)
        """The number of next states of each pair that have been entered."""

    def enter(self, model: EstimatedMDP, pairs: NDArray[np.int64] | None = None) -> None:
        """Enter the new transitions of `pairs`, or of every pair that has any."""
        if pairs is None:
            pairs = np.flatnonzero(model.length != self._known)
        while not link(tuple(model), self._known, pairs, tuple(self.lists)):
            self.lists = self.lists._replace(pair=_doubled(self.lists.pair), mark=_doubled(self.lists.mark))


def _doubled(old: NDArray[Any]) -> NDArray[Any]:
    new = np.zeros(2 * old.size, dtype=old.dtype)
    new[: old.size] = old
    return new
