"""Rows in the order of pairs, for builders that meet the actions of a state in any order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.errors import TooLargeError

Integers = NDArray[np.int64]

MOST_PAIRS = 1 << 28
"""The most pairs of a state and an action that builders make rows for."""


class OrderedChoices(NamedTuple):
    """Choices, each a state with one of its actions, as rows over pairs s*A + a."""

    pair: Integers
    indptr: Integers
    entries: Integers | None
    """Which entry comes where; None if they are in order already."""


def check_pairs(n_states: int, n_actions: int, title: str = "the model") -> None:
    """TooLargeError if there are more pairs of a state and an action than rows should be made for."""
    if n_states * n_actions > MOST_PAIRS:
        raise TooLargeError(
            f"{title}: {n_states:,} states and {n_actions:,} actions are {n_states * n_actions:,} pairs, more than the "
            f"limit of {MOST_PAIRS:,}",
            name=title,
            found=n_states * n_actions,
            hint="do states or actions hold a measurement or a time? Round it, and give actions the same names in "
            "different states",
        )


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
