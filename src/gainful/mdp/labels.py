"""Labels of states and actions: checking, lookup, names in messages, and conversion to table columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError, InvalidMDPError, suggestion


def checked_labels(argument: str, labels: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    """A tuple of n distinct labels, or None."""
    if labels is None:
        return None
    names = tuple(str(x) for x in labels)
    if len(names) != n:
        raise InvalidMDPError(f"{argument} has {len(names)} names", name=argument, found=len(names), expected=str(n))
    if len(set(names)) != n:
        twice = next(x for x in names if names.count(x) > 1)
        raise InvalidMDPError(
            f"{argument} contains '{twice}' twice", name=argument, found=twice, hint="labels must be distinct"
        )
    return names


def are_numbers(labels: tuple[str, ...] | None) -> bool:
    """Whether every label is a whole number, as from a table whose states are 1, 2, 3."""
    return labels is not None and all(x.isdecimal() and str(int(x)) == x for x in labels)


def index_of(kind: str, value: int | str, n: int, labels: tuple[str, ...] | None, numbered: bool) -> int:
    """The index of a state or action, given by its label or (unless the labels are themselves numbers) its index."""
    if labels is None and isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, str) or (numbered and labels is not None):
        value = str(value)
        if labels is None or value not in labels:
            known = suggestion(value, labels) if labels else "this MDP has no labels; use an index"
            raise InvalidArgumentError(kind, value, hint=known, problem=f"there is no {kind} '{value}'")
        return labels.index(value)
    i = int(value)
    if i != value or not 0 <= i < n:
        raise InvalidArgumentError(kind, value, f"0 … {n - 1}", problem=f"{kind} {value} is out of range")
    return i


def name_of(index: int, labels: tuple[str, ...] | None) -> str:
    """The label of a state or action, or its index as text if there are no labels."""
    return str(index) if labels is None else labels[index]


def pair_in_words(
    k: int, n_actions: int, state_labels: Sequence[str] | None, action_labels: Sequence[str] | None
) -> str:
    """`state 'up', action 'go'` of pair k = s*A + a, with indices where there are no labels."""
    s, a = divmod(k, n_actions)
    state = s if state_labels is None else f"'{state_labels[s]}'"
    action = a if action_labels is None else f"'{action_labels[a]}'"
    return f"state {state}, action {action}"


class PairNames(NamedTuple):
    """What states, actions and pairs k = s*A + a are called in messages."""

    n_actions: int
    state_labels: tuple[str, ...] | None
    action_labels: tuple[str, ...] | None

    def state(self, s: int) -> str:
        """The name of a state."""
        return name_of(s, self.state_labels)

    def pair(self, k: int) -> str:
        """P[s, a], with the names of state and action if there are any."""
        s, a = divmod(k, self.n_actions)
        place = f"P[{s}, {a}]"
        if self.state_labels is None and self.action_labels is None:
            return place
        return f"{place} (state '{self.state(s)}', action '{name_of(a, self.action_labels)}')"


def label_column(labels: tuple[str, ...] | None, n: int) -> NDArray[Any]:
    """Labels as a table column: integers if all labels are integers, 0 … n-1 if there are no labels."""
    if labels is None:
        return np.arange(n)
    return np.array([int(x) for x in labels] if are_numbers(labels) else labels, dtype=object)
