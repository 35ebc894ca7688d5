"""A decision process on a part of its states."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidArgumentError
from gainful.mdp.arrays import rows_of_pairs
from gainful.mdp.rows import TransitionRows

if TYPE_CHECKING:
    from gainful.mdp.finite_process import FiniteProcess

    Process = TypeVar("Process", bound=FiniteProcess)


def restricted_to(process: Process, states: ArrayLike) -> Process:
    """The process on a subset of states, without the pairs that can leave it."""
    keep = _checked_mask(states, process.n_states)
    rows = TransitionRows(process.indptr, process.indices, process.probabilities, process.entry_rewards)
    of_kept = np.repeat(keep, process.n_actions)
    rows = rows_of_pairs(rows, of_kept & _stays_inside(rows, keep))
    number = np.cumsum(keep) - 1  # of the states that are kept, among them
    return process._replace(
        n_states=int(keep.sum()),
        indptr=np.concatenate([[0], np.cumsum(np.diff(rows.indptr)[of_kept])]),
        indices=number[rows.indices],
        probabilities=rows.probabilities,
        entry_rewards=rows.entry_rewards,
        pair_rewards=process.pair_rewards[of_kept],
        start=_restricted_start(process.start[keep]),
        state_labels=[process.state_name(int(s)) for s in np.flatnonzero(keep)],
    )


def _checked_mask(states: ArrayLike, n_states: int) -> NDArray[np.bool_]:
    """(S,) which states are chosen, by a mask or by indices."""
    chosen = np.asarray(states)
    if chosen.dtype == bool:
        fine = chosen.shape == (n_states,) and bool(chosen.any())
    else:
        fine = chosen.dtype.kind in "iu" and chosen.size > 0 and chosen.min() >= 0 and chosen.max() < n_states
    if not fine:
        raise InvalidArgumentError(
            "states", states, f"a mask of shape ({n_states},) or indices 0 … {n_states - 1}, at least one"
        )
    keep = np.zeros(n_states, dtype=bool)
    keep[chosen] = True
    return keep


def _stays_inside(rows: TransitionRows, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(S*A,) the pairs that lead to states of the mask only; not the empty rows."""
    lengths = np.diff(rows.indptr)
    filled = lengths > 0
    inside = np.zeros(lengths.size, dtype=np.int64)
    inside[filled] = np.add.reduceat(keep[rows.indices].astype(np.int64), rows.indptr[:-1][filled])
    stays: NDArray[np.bool_] = filled & (inside == lengths)
    return stays


def _restricted_start(start: NDArray[np.float64]) -> NDArray[np.float64]:
    """The start distribution given that it is in the subset; the first state if it never is."""
    total = float(start.sum())
    if total == 0.0:
        first = np.zeros(start.size)
        first[0] = 1.0
        return first
    return start / total
