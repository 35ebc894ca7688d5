"""Labels of states and actions: checked, looked up, and given back as what they were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError, InvalidMDPError, suggestion


def checked_labels(what: str, labels: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    """N different names, or None."""
    if labels is None:
        return None
    names = tuple(str(x) for x in labels)
    if len(names) != n:
        raise InvalidMDPError(f"{what} has {len(names)} names, expected {n}")
    if len(set(names)) != n:
        twice = next(x for x in names if names.count(x) > 1)
        raise InvalidMDPError(f"{what} names '{twice}' twice; labels must differ")
    return names


def are_numbers(labels: tuple[str, ...] | None) -> bool:
    """Whether every label is a whole number, as from a table whose states are 1, 2, 3."""
    return labels is not None and all(x.isdecimal() and str(int(x)) == x for x in labels)


def index_of(what: str, value: int | str, n: int, labels: tuple[str, ...] | None, numbered: bool) -> int:
    """The index of `value`: a label, or (unless the labels are numbers themselves) an index."""
    if labels is None and isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, str) or (numbered and labels is not None):
        value = str(value)
        if labels is None or value not in labels:
            known = suggestion(value, labels) if labels else "this MDP has no labels; use an index"
            raise InvalidArgumentError(f"no {what} is called '{value}'; {known}")
        return labels.index(value)
    i = int(value)
    if i != value or not 0 <= i < n:
        raise InvalidArgumentError(f"{what} {value} is out of range, expected 0 … {n - 1}")
    return i


def label_column(labels: tuple[str, ...] | None, n: int) -> NDArray[Any]:
    """Labels as a table shows them: numbers where they are numbers, 0 … n-1 where there are none."""
    if labels is None:
        return np.arange(n)
    return np.array([int(x) for x in labels] if are_numbers(labels) else labels, dtype=object)
