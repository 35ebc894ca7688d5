"""Arrays that describe a process: dense and sparse transition probabilities, rewards and masks, as rows over pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidMDPError
from gainful.mdp.rows import TransitionRows


def allowed_mask(allowed: ArrayLike, n_states: int, n_actions: int) -> NDArray[np.bool_]:
    """Which actions each state has, as (S,A) truth values."""
    mask = np.array(allowed, dtype=bool)
    if mask.shape != (n_states, n_actions):
        raise InvalidMDPError(
            f"allowed has shape {mask.shape}",
            name="allowed",
            found=mask.shape,
            expected=f"(S, A) = ({n_states}, {n_actions})",
        )
    return mask


def rows_of_pairs(rows: TransitionRows, pairs: NDArray[np.bool_]) -> TransitionRows:
    """Rows with those outside the mask emptied."""
    lengths = np.diff(rows.indptr)
    if not np.any(lengths[~pairs]):
        return rows
    keep = np.repeat(pairs, lengths)
    return TransitionRows(
        np.concatenate([[0], np.cumsum(np.where(pairs, lengths, 0))]).astype(np.int64),
        rows.indices[keep],
        rows.probabilities[keep],
        None if rows.entry_rewards is None else rows.entry_rewards[keep],
    )


def stacked_matrices(matrices: Sequence[Any]) -> tuple[int, int, NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """A sparse (S,S) matrix per action as CSR over pairs s*A + a."""
    shapes = {m.shape for m in matrices}
    n_actions = len(matrices)
    if len(shapes) != 1 or len({*next(iter(shapes))}) != 1:
        raise InvalidMDPError(
            f"the matrices have shapes {sorted(shapes)}",
            name="P",
            found=sorted(shapes),
            expected="the same (S, S) for each action",
        )
    n_states = matrices[0].shape[0]
    csr = [sp.csr_array(m) for m in matrices]
    lengths = np.stack([np.diff(m.indptr) for m in csr], axis=1).reshape(-1)  # (S*A,)
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    indices = np.empty(indptr[-1], dtype=np.int64)
    values = np.empty(indptr[-1])
    for a, m in enumerate(csr):
        own = np.diff(m.indptr)
        to = np.repeat(indptr[a:-1:n_actions] - m.indptr[:-1], own) + np.arange(m.nnz)
        indices[to], values[to] = m.indices, m.data
    return n_states, n_actions, indptr, indices, values


def reward_arrays(
    R: NDArray[np.float64], S: int, A: int, indptr: NDArray[Any], indices: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Rewards as (S*A,) means, or one per transition for R (S,A,S)."""
    if R.shape == (S, A):
        return R.reshape(-1), None
    if R.shape == (S, A, S):
        rows = np.repeat(np.arange(S * A), np.diff(indptr))
        return np.zeros(S * A), R.reshape(S * A, S)[rows, indices]
    if R.shape == (S,):
        return np.repeat(R, A), None
    raise InvalidMDPError(
        f"R has shape {R.shape}",
        name="R",
        found=R.shape,
        expected=f"(S, A) = ({S}, {A}), ({S},) or ({S}, {A}, {S})",
    )
