"""The names of states and actions in a table, as indices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gainful.errors import InvalidMDPError, suggestion
from gainful.mdp.labels import pair_in_words
from gainful.mdp.table_source import Source


@dataclass(frozen=True)
class Pairs:
    """Indices of each row's pair and next state, and the names behind them."""

    n_states: int
    n_actions: int
    pair: NDArray[np.int64]  # s*A + a of each row
    next_state: NDArray[np.int64]
    state_labels: list[str] | None
    action_labels: list[str] | None

    def title(self, k: int) -> str:
        """`state 'up', action 'go'`."""
        return pair_in_words(int(k), self.n_actions, self.state_labels, self.action_labels)


def label_pairs(
    source: Source,
    state_labels: Sequence[str] | None = None,
    action_labels: Sequence[str] | None = None,
    kept: Mapping[str, Any] | None = None,
) -> Pairs:
    """The label columns as indices. A next state that is never a state has no action: an error that names it."""
    states, targets = source.labels("state"), source.labels("next_state")
    if states.dtype != targets.dtype:
        states, targets = (np.array([str(x) for x in column], dtype=object) for column in (states, targets))
    codes, unique = pd.factorize(states)
    order, names = _order(source, "state", unique, codes, state_labels)
    known = pd.Index(unique)
    target_codes = known.get_indexer(pd.Index(targets, dtype=known.dtype))
    lost = np.flatnonzero(target_codes < 0)
    if lost.size:
        at = int(lost[0])
        n = len(pd.unique(targets[lost]))
        raise InvalidMDPError(
            f"{source.place(at)}, column 'next_state': state '{targets[at]}' has no action: it is never in column "
            f"'state'{f' ({n} such states)' if n > 1 else ''}",
            name="next_state",
            found=targets[at],
            hint="correct the name, or add its lines (a state that ends the process can loop on itself or restart)",
        )
    actions = source.labels("action")
    action_codes, action_unique = pd.factorize(actions)
    stored = (kept or {}).get("actions")
    least = 0
    if action_labels is None and isinstance(stored, list) and {str(x) for x in action_unique} <= set(stored):
        action_labels = stored
    elif isinstance(stored, int):
        least = stored
    action_order, action_names = _order(source, "action", action_unique, action_codes, action_labels, least)
    S = len(names) if names is not None else len(unique)
    A = len(action_names) if action_names is not None else max(len(action_unique), least)
    pair = order[codes] * A + action_order[action_codes]
    return Pairs(S, A, pair, order[target_codes], names, action_names)


def _order(
    source: Source,
    column: str,
    unique: Any,
    codes: NDArray[np.intp],
    labels: Sequence[str] | None,
    least: int = 0,
) -> tuple[NDArray[np.int64], list[str] | None]:
    """The index of each distinct name, and the labels (None for the integers 0 … n-1).

    `labels` fixes the order; `least` is a number of integers known to exist, whether all are in the table or not.
    """
    numbers = integer_names(unique, source.is_text)
    if labels is not None:
        fixed = [str(x) for x in labels]
        where = pd.Index(fixed).get_indexer(pd.Index([str(x) for x in unique]))
        if np.all(where >= 0):
            return where.astype(np.int64), fixed
        if numbers is not None and numbers.min() >= 0 and numbers.max() < len(fixed):
            return numbers, fixed
        first = int(np.flatnonzero(where < 0)[0])
        row = int(np.flatnonzero(codes == first)[0])
        raise InvalidMDPError(
            f"{source.place(row)}, column '{column}': '{unique[first]}' is not in {column}_labels",
            name=column,
            found=unique[first],
            hint=suggestion(str(unique[first]), fixed),
        )
    if numbers is not None and numbers.min() >= 0 and numbers.max() < max(len(numbers), least):
        return numbers, None
    return np.arange(len(unique)), [str(x) for x in unique]


def integer_names(unique: Any, is_text: bool) -> NDArray[np.int64] | None:
    """The distinct names as integers, if that is what they are; text only counts as written canonically (no 007)."""
    values = np.asarray(unique)
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    if is_text and all(re.fullmatch(r"0|[1-9][0-9]{0,17}", x) for x in unique):
        return np.array([int(x) for x in unique], dtype=np.int64)
    return None
