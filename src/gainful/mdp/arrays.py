"""Arrays that describe a process: dense and sparse transition probabilities, rewards and masks, as rows over pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidMDPError
from gainful.mdp.rows import TransitionRows, as_float, floats_of


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


def pair_rows(P: ArrayLike | Sequence[Any]) -> tuple[int, int, NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """S, A and CSR rows over pairs s*A + a, of an array (S,A,S) or a sparse (S,S) matrix per action."""
    if isinstance(P, Sequence) and len(P) > 0 and all(sp.issparse(m) for m in P):
        return stacked_matrices(P)
    if sp.issparse(P):
        raise InvalidMDPError(
            "P is one sparse matrix", name="P", found=P, hint="pass a sequence with one (S,S) matrix per action"
        )
    dense = as_float("P", P)
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
        hint = ""
        if dense.ndim == 3 and dense.shape[1] == dense.shape[2] and 0 not in dense.shape:
            hint = "this looks like (A, S, S): pass P.transpose(1, 0, 2)"
        raise InvalidMDPError(
            f"P has shape {dense.shape}",
            name="P",
            found=dense.shape,
            expected="(S, A, S): [state, action, next state]",
            hint=hint,
        )
    n_states, n_actions, _ = dense.shape
    indptr = np.arange(n_states * n_actions + 1, dtype=np.int64) * n_states
    indices = np.tile(np.arange(n_states, dtype=np.uint32), n_states * n_actions)
    return n_states, n_actions, indptr, indices, dense.reshape(-1)


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


def reward_table(
    rewards: ArrayLike, n_pairs: int, n_actions: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """(S,A) mean rewards of `n_pairs` rows; or zeros, and one reward per transition, for which A has to be given."""
    table = floats_of("rewards", rewards)  # no copy: it is converted to internal rewards later
    entries: NDArray[np.float64] | None = None
    if n_actions is not None:
        if n_actions < 1 or n_pairs < 1 or n_pairs % n_actions:
            raise InvalidMDPError(
                f"{n_pairs} rows do not divide into {n_actions} actions per state",
                name="n_actions",
                found=n_actions,
                expected=f"a divisor of {n_pairs}",
            )
        n_states = n_pairs // n_actions
        if table.ndim == 1:
            entries, table = table, np.zeros((n_states, n_actions))
        if table.shape != (n_states, n_actions):
            raise InvalidMDPError(
                f"rewards have shape {table.shape}",
                name="rewards",
                found=table.shape,
                expected=f"({n_states}, {n_actions}) or one per transition",
            )
    elif table.ndim != 2 or 0 in table.shape:
        raise InvalidMDPError(
            f"rewards have shape {table.shape}",
            name="rewards",
            found=table.shape,
            expected="(S, A)",
            hint="for one reward per transition give n_actions=",
        )
    elif table.size != n_pairs:
        raise InvalidMDPError(
            f"indptr has {n_pairs + 1} entries", name="indptr", found=n_pairs + 1, expected=f"S*A+1 = {table.size + 1}"
        )
    return table, entries


def rewards_by_pair(
    pair: NDArray[np.int64], probability: NDArray[np.float64], reward: NDArray[np.float64], n_pairs: int
) -> tuple[NDArray[np.float64], bool]:
    """(n_pairs,) a reward of each pair, and whether all transitions that can happen have that of their pair."""
    possible = probability > 0.0
    found = np.zeros(n_pairs)
    found[pair[possible]] = reward[possible]
    return found, bool(np.all(found[pair[possible]] == reward[possible]))
