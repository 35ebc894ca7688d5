"""Rows in the order of pairs, for builders that meet the actions of a state in any order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.machine import check_table_size

Integers = NDArray[np.int64]

BYTES_PER_ROW = 75.0
"""What a pair takes while a model is built, without its transitions (measured)."""


class OrderedChoices(NamedTuple):
    """Choices, each a state with one of its actions, as rows over pairs s*A + a."""

    pair: Integers
    indptr: Integers
    entries: Integers | None
    """Which entry comes where; None if they are in order already."""


def check_pairs(n_states: int, n_actions: int, title: str = "a model") -> None:
    """MemoryLimitError if rows for all pairs of a state and an action take more memory than one model may."""
    check_table_size("n_actions", n_states, n_actions, BYTES_PER_ROW, title)


def ordered_choices(
    n_states: int, n_actions: int, state: Integers, action: Integers, lengths: Integers
) -> OrderedChoices:
    """The rows of choices with `lengths` entries each; no state may have an action twice."""
    check_pairs(n_states, n_actions)
    pair = state * n_actions + action
    per_pair = np.zeros(n_states * n_actions, dtype=np.int64)
    per_pair[pair] = lengths
    indptr = np.concatenate([[0], np.cumsum(per_pair)])
    entries = None
    if np.any(pair[1:] < pair[:-1]):
        entries = np.argsort(np.repeat(pair, lengths), kind="stable")
    return OrderedChoices(pair, indptr, entries)
