"""Transition rows: checked, sorted by next state, merged, without zeros, normalised.

Rows are CSR over pairs k = s*A + a. The arrays that come out are the ones every planner reads:
`indptr` int64 (S*A+1), `indices` uint32, `probabilities` float64, and rewards per entry where the law needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidMDPError
from gainful.mdp.row_sorting import COMPILED_FROM, divide_rows, sort_by_next_state, sort_by_reward

SUM_TOLERANCE = 1e-8
_ENTRIES_AT_ONCE = 1 << 22  # entries processed at once, where a temporary array would double the memory


class TransitionRows(NamedTuple):
    """CSR rows over pairs, ready for planners."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    probabilities: NDArray[np.float64]
    entry_rewards: NDArray[np.float64] | None


def _count(n: int, of: int, what: str) -> str:
    return f"{n} of {of} {what} fail{'s' if n == 1 else ''}"


def as_float(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Copy `values` to a float64 array; InvalidMDPError if they are not real numbers."""
    if np.iscomplexobj(values):
        raise InvalidMDPError(f"{name} is complex", name=name, found=values, expected="real numbers")
    if hasattr(values, "columns"):
        raise InvalidMDPError(
            f"{name} is a table",
            name=name,
            found=values,
            expected="an array",
            hint="use MDP.from_table for a table of transitions",
        )
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidMDPError(f"{name} is not an array of numbers: {error}", name=name, found=values) from error


def checked_rows(
    indptr: ArrayLike,
    indices: ArrayLike,
    probabilities: ArrayLike,
    n_states: int,
    pair: Callable[[int], str],
    entry_rewards: ArrayLike | None = None,
) -> TransitionRows:
    """Copy, check and normalise CSR rows; `pair(k)` is the name of row k in messages."""
    ptr = np.array(indptr, dtype=np.int64)
    raw = np.asarray(indices)
    p = as_float("probabilities", probabilities)
    rewards = None if entry_rewards is None else as_float("rewards of transitions", entry_rewards)
    if ptr.ndim != 1 or raw.ndim != 1 or p.ndim != 1:
        raise InvalidMDPError(
            f"indptr, indices and probabilities have {ptr.ndim}, {raw.ndim} and {p.ndim} dimensions",
            name="indptr, indices, probabilities",
            found=(ptr.ndim, raw.ndim, p.ndim),
            expected="one-dimensional arrays",
        )
    if raw.size != p.size or (rewards is not None and rewards.shape != p.shape):
        raise InvalidMDPError(
            f"{raw.size} indices but {p.size} probabilities",
            name="indices",
            found=raw.size,
            hint="each transition needs one of both",
        )
    if ptr.size == 0 or ptr[0] != 0 or ptr[-1] != p.size or np.any(ptr[1:] < ptr[:-1]):
        raise InvalidMDPError(
            "indptr is " + (f"{ptr[0]} … {ptr[-1]}" if ptr.size else "empty"),
            name="indptr",
            found=ptr,
            expected=f"numbers that rise from 0 to the number of transitions ({p.size})",
        )
    _check_indices(raw, ptr, n_states, pair)
    _check_probabilities(p, ptr, pair)
    rows = TransitionRows(ptr, raw.astype(np.uint32), p, rewards)
    rows = _without_zeros(rows)
    rewards = rows.entry_rewards
    if rewards is not None and not np.isfinite(rewards).all():
        at = int(np.flatnonzero(~np.isfinite(rewards))[0])
        raise InvalidMDPError(
            f"{pair(_row_of(rows.indptr, at))}: the reward of moving to state {rows.indices[at]} is {rewards[at]}",
            name="rewards",
            found=float(rewards[at]),
            expected="a finite number",
        )
    rows = merged(rows)
    _normalise(rows, pair)
    return rows


def _row_of(ptr: NDArray[np.int64], entry: int) -> int:
    return int(np.searchsorted(ptr, entry, side="right")) - 1


def _check_indices(raw: NDArray[Any], ptr: NDArray[np.int64], n_states: int, pair: Callable[[int], str]) -> None:
    if raw.size == 0:
        raise InvalidMDPError("there are no transitions", name="indices", hint="each allowed pair needs at least one")
    if raw.dtype.kind not in "iu":
        whole = raw.dtype.kind == "f" and bool(np.all(raw == np.floor(raw)))
        raise InvalidMDPError(
            f"the next states have dtype {raw.dtype}",
            name="indices",
            found=str(raw.dtype),
            expected="integers",
            hint="convert them with .astype(int)" if whole else "",
        )
    if raw.min() < 0 or raw.max() >= n_states:
        bad = np.flatnonzero((raw < 0) | (raw >= n_states))
        at = int(bad[0])
        raise InvalidMDPError(
            f"{pair(_row_of(ptr, at))} moves to state {raw[at]}",
            name="indices",
            found=int(raw[at]),
            expected=f"0 … {n_states - 1}",
            hint=_count(bad.size, raw.size, "transitions"),
        )


def _check_probabilities(p: NDArray[np.float64], ptr: NDArray[np.int64], pair: Callable[[int], str]) -> None:
    ok = p >= 0.0  # False for NaN too
    ok &= np.isfinite(p)
    if not ok.all():
        bad = np.flatnonzero(~ok)
        at = int(bad[0])
        raise InvalidMDPError(
            f"{pair(_row_of(ptr, at))} has the probability {p[at]:.6g}",
            name="probabilities",
            found=float(p[at]),
            expected="a number in [0, 1]",
            hint=_count(bad.size, p.size, "probabilities"),
        )


def _without_zeros(rows: TransitionRows) -> TransitionRows:
    keep = rows.probabilities > 0.0
    if keep.all():
        return rows
    before = np.concatenate([[0], np.cumsum(keep)])
    rewards = None if rows.entry_rewards is None else rows.entry_rewards[keep]
    return TransitionRows(before[rows.indptr].astype(np.int64), rows.indices[keep], rows.probabilities[keep], rewards)


def merged(rows: TransitionRows) -> TransitionRows:
    """Rows in increasing next state; equal transitions (same next state, same reward) become one entry."""
    ptr, idx, p, rewards = rows
    if idx.size < 2:
        return rows
    starts = np.zeros(idx.size, dtype=bool)
    starts[ptr[:-1][ptr[:-1] < idx.size]] = True
    if np.all((idx[1:] > idx[:-1]) | starts[1:]):
        return rows
    if idx.size >= COMPILED_FROM:
        idx, p, rewards = _sorted_in_place(rows)
        row = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
    else:
        row = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
        order = np.lexsort((idx, row)) if rewards is None else np.lexsort((rewards, idx, row))
        idx, p, rewards = idx[order], p[order], None if rewards is None else rewards[order]
    same = idx[1:] == idx[:-1]
    same &= row[1:] == row[:-1]
    if rewards is not None:
        same &= rewards[1:] == rewards[:-1]
    if not same.any():
        return TransitionRows(ptr, idx, p, rewards)
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    starts_of_rows = np.concatenate([[0], np.cumsum(np.bincount(row[first], minlength=ptr.size - 1))])
    return TransitionRows(
        starts_of_rows, idx[first], np.add.reduceat(p, first), None if rewards is None else rewards[first]
    )


def _sorted_in_place(
    rows: TransitionRows,
) -> tuple[NDArray[np.uint32], NDArray[np.float64], NDArray[np.float64] | None]:
    """The entries of copies that may be changed, sorted by next state and reward within each row."""
    ptr, idx, p, rewards = rows
    idx, p = np.require(idx, requirements="W"), np.require(p, requirements="W")
    if rewards is None:
        sort_by_next_state(ptr, idx, p)
    else:
        rewards = np.require(rewards, requirements="W")
        sort_by_reward(ptr, idx, p, rewards)
    return idx, p, rewards


def _normalise(rows: TransitionRows, pair: Callable[[int], str]) -> None:
    ptr, p = rows.indptr, rows.probabilities
    filled = np.flatnonzero(ptr[1:] > ptr[:-1])
    sums = np.add.reduceat(p, ptr[filled]) if filled.size else np.zeros(0)
    off = np.abs(sums - 1.0)
    if filled.size and off.max() > SUM_TOLERANCE:
        bad = np.flatnonzero(off > SUM_TOLERANCE)
        at = int(bad[0])
        raise InvalidMDPError(
            f"{pair(int(filled[at]))} sums to {sums[at]:.10g}",
            name="probabilities",
            found=float(sums[at]),
            expected=f"1 (tolerance {SUM_TOLERANCE:g})",
            hint=_count(bad.size, filled.size, "rows"),
        )
    # a row already divided once stays as it is, so that saving, loading and rebuilding change no bit
    differs = off > (ptr[filled + 1] - ptr[filled] + 2) * 2.0**-53
    inexact = filled[differs]
    lengths = ptr[inexact + 1] - ptr[inexact]
    scale = sums[differs]
    if p.size >= COMPILED_FROM:
        divide_rows(ptr, p, inexact, scale)
        return
    begin = 0
    while begin < inexact.size:  # in pieces of bounded size
        end = begin + max(
            1, int(np.searchsorted(np.cumsum(lengths[begin : begin + _ENTRIES_AT_ONCE]), _ENTRIES_AT_ONCE))
        )
        where = np.repeat(ptr[inexact[begin:end]], lengths[begin:end])
        where += np.arange(where.size) - np.repeat(
            np.cumsum(lengths[begin:end]) - lengths[begin:end], lengths[begin:end]
        )
        p[where] /= np.repeat(scale[begin:end], lengths[begin:end])
        begin = end
