"""Transition rows: checked, sorted by next state, merged, without zeros, normalised.

Rows are CSR over pairs k = s*A + a. The arrays that come out are the ones every planner reads:
`indptr` int64 (S*A+1), `indices` uint32, `probabilities` float64, and rewards per entry where the law needs them.
All of this is done to one part of the rows after the other (`gainful.mdp.parts`): each is copied and worked on while it
is in the cache, and no other array of the size of the model is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.errors import InvalidMDPError
from gainful.mdp.parts import RowPart, copied, each, row_parts, stretches
from gainful.mdp.row_tidying import tidy_rows

SUM_TOLERANCE = 1e-8
COMPILED_FROM = 200_000
"""Transitions from which sorting rows by NumPy takes longer than loading compiled code."""
COMPILED_FROM_IF_SORTED = 30_000_000
"""Transitions from which everything else that NumPy does takes longer, too."""


class TransitionRows(NamedTuple):
    """CSR rows over pairs, ready for planners."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    probabilities: NDArray[np.float64]
    entry_rewards: NDArray[np.float64] | None


class RowCheck(NamedTuple):
    """A check that rows can fail."""

    name: str
    """The argument that is wrong."""
    counted: str
    """What is counted in the message, if anything."""


CHECKS = INDICES, PROBABILITIES, REWARDS, SUMS = (
    RowCheck("indices", "transitions"),
    RowCheck("probabilities", "probabilities"),
    RowCheck("rewards", ""),
    RowCheck("probabilities", "rows"),
)
"""In the order in which they are made: where several fail, the message is about the first."""


class RowFault(NamedTuple):
    """What is wrong in a part of the rows: the first thing, and how many like it there are."""

    check: RowCheck
    row: int
    text: str
    """What the row does, to be read after its name."""
    found: Any
    expected: str
    number: int


class PartOfRows(NamedTuple):
    """What became of a part of the rows."""

    entries: int
    """How many are left of them."""
    rows: int
    """How many rows have entries."""
    fault: RowFault | None


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


def floats_of(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """`values` themselves if they are a float64 array, to be copied later; else what `as_float` makes of them."""
    return values if type(values) is np.ndarray and values.dtype == np.float64 else as_float(name, values)


def checked_rows(
    indptr: ArrayLike,
    indices: ArrayLike,
    probabilities: ArrayLike,
    n_states: int,
    pair: Callable[[int], str],
    entry_rewards: ArrayLike | None = None,
    internal: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None,
) -> TransitionRows:
    """Copy, check and normalise CSR rows; `pair(k)` is the name of row k in messages.

    `internal` converts rewards to internal ones, by which rows are sorted too.
    """
    ptr = copied(indptr, np.int64)
    raw = np.asarray(indices)
    p = floats_of("probabilities", probabilities)
    rewards = None if entry_rewards is None else floats_of("rewards of transitions", entry_rewards)
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
    if ptr.size == 0 or ptr[0] != 0 or ptr[-1] != p.size or not _rises(ptr):
        raise InvalidMDPError(
            "indptr is " + (f"{ptr[0]} … {ptr[-1]}" if ptr.size else "empty"),
            name="indptr",
            found=ptr,
            expected=f"numbers that rise from 0 to the number of transitions ({p.size})",
        )
    _check_kind(raw)
    rows = TransitionRows(
        ptr,
        np.empty(raw.size, np.uint32),
        np.empty(p.size) if p is probabilities else p,
        np.empty(p.size) if rewards is not None and rewards is entry_rewards else rewards,
    )

    def tidy(part: RowPart) -> tuple[TransitionRows, RowFault | None]:
        own, here = _rows_of_part(rows, part), slice(part.begin, part.end)
        fault = _wrong_index(own.indptr, raw[here], n_states)
        if fault is not None:
            return own, fault
        np.copyto(own.indices, raw[here], casting="unsafe")
        if rows.probabilities is not p:
            np.copyto(own.probabilities, p[here])
        if own.entry_rewards is not None and rewards is not None:
            own.entry_rewards[:] = rewards[here] if internal is None else internal(rewards[here])
        with np.errstate(over="ignore"):  # a sum that overflows is not 1, which is an error
            return _tidied(own, raw.size)

    return _in_parts(rows, tidy, pair)


def _rises(ptr: NDArray[np.int64]) -> bool:
    """Whether no number is smaller than the one before."""
    ends, begins = ptr[1:], ptr[:-1]
    return all(each(lambda own: not (ends[own] < begins[own]).any(), stretches(ends.size)))


def _check_kind(raw: NDArray[Any]) -> None:
    """InvalidMDPError unless there are transitions, to whole numbers."""
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


# ---------------------------------------------------------------------- parts


def _rows_of_part(rows: TransitionRows, part: RowPart) -> TransitionRows:
    """The rows of a part, whose `indptr` begins at 0; the other arrays are views."""
    if part.last - part.first == rows.indptr.size - 1:
        return rows
    ptr = np.empty(part.last - part.first + 1, np.int64)
    ptr[0] = 0  # where the part before ends is changed by whoever works on that
    np.subtract(rows.indptr[part.first + 1 : part.last + 1], part.begin, out=ptr[1:])
    own = slice(part.begin, part.end)
    rewards = rows.entry_rewards
    return TransitionRows(ptr, rows.indices[own], rows.probabilities[own], None if rewards is None else rewards[own])


def _entries(rows: TransitionRows) -> list[NDArray[Any]]:
    """The arrays with one number per entry."""
    return [array for array in (rows.indices, rows.probabilities, rows.entry_rewards) if array is not None]


def _in_parts(
    rows: TransitionRows,
    work: Callable[[RowPart], tuple[TransitionRows, RowFault | None]],
    pair: Callable[[int], str],
) -> TransitionRows:
    """What `work` makes of each part, in the arrays of `rows`."""

    def replace(part: RowPart) -> PartOfRows:
        if part.begin == part.end:
            return PartOfRows(0, 0, None)
        found, fault = work(part)
        filled = int(np.count_nonzero(found.indptr[1:] > found.indptr[:-1]))
        if fault is not None:
            return PartOfRows(0, filled, fault._replace(row=part.first + fault.row))
        end = part.begin + found.indices.size
        for array, new in zip(_entries(rows), _entries(found), strict=True):
            if new.base is not array:
                array[part.begin : end] = new
        if end < part.end:
            np.add(found.indptr[1:], part.begin, out=rows.indptr[part.first + 1 : part.last + 1])
        return PartOfRows(found.indices.size, filled, None)

    parts = row_parts(rows.indptr)
    if len(parts) == 1:
        found, fault = work(parts[0])
        if fault is not None:
            raise _error_of([fault], rows.indices.size, int(np.count_nonzero(np.diff(found.indptr))), pair)
        n = found.indices.size
        if found.indices.base is not rows.indices:
            return found
        del found  # views of arrays that become shorter
        return _side_by_side(rows, parts, [n])
    done = each(replace, parts)
    faults = [part.fault for part in done if part.fault is not None]
    if faults:
        raise _error_of(faults, rows.indices.size, sum(part.rows for part in done), pair)
    return _side_by_side(rows, parts, [part.entries for part in done])


def _error_of(faults: list[RowFault], n_transitions: int, n_rows: int, pair: Callable[[int], str]) -> InvalidMDPError:
    """The error for the first fault of the first check that failed."""
    check = min((fault.check for fault in faults), key=CHECKS.index)
    alike = [fault for fault in faults if fault.check == check]
    number, of = sum(fault.number for fault in alike), n_rows if check == SUMS else n_transitions
    return InvalidMDPError(
        f"{pair(alike[0].row)}{alike[0].text}",
        name=check.name,
        found=alike[0].found,
        expected=alike[0].expected,
        hint=_count(number, of, check.counted) if check.counted else "",
    )


def _side_by_side(rows: TransitionRows, parts: list[RowPart], kept: list[int]) -> TransitionRows:
    """Rows without the gaps behind parts that became shorter."""
    end = 0
    for part, n in zip(parts, kept, strict=True):
        if end < part.begin:
            rows.indptr[part.first + 1 : part.last + 1] -= part.begin - end
            for array in _entries(rows):
                array[end : end + n] = array[part.begin : part.begin + n]
        end += n
    if end == rows.indices.size:
        return rows
    indices, probabilities, *rewards = (_shortened(array, end) for array in _entries(rows))
    return TransitionRows(rows.indptr, indices, probabilities, rewards[0] if rewards else None)


def _shortened(array: NDArray[Any], size: int) -> NDArray[Any]:
    """The first numbers of an array that has no other views; in place, if it can be."""
    if not array.flags.owndata:
        return array[:size].copy()
    array.resize(size, refcheck=False)
    return array


def _tidied(rows: TransitionRows, size: int) -> tuple[TransitionRows, RowFault | None]:
    """Rows of a part without zeros, sorted, merged and normalised, or what is wrong with them.

    `size` is the number of all transitions.
    """
    ptr, idx, p, rewards = rows
    finite = rewards is None or bool(np.isfinite(rewards).all())
    if finite and (size >= COMPILED_FROM_IF_SORTED or (size >= COMPILED_FROM and not _in_order(ptr, idx))):
        refused, n, off = tidy_rows(ptr.view(np.uint64), idx, p, rewards, SUM_TOLERANCE)
        if not refused:
            if n < idx.size:
                rows = TransitionRows(ptr, idx[:n], p[:n], None if rewards is None else rewards[:n])
            return rows, _normalise(rows) if off else None
    low, high = p.min(), p.max()
    if not (low >= 0.0 and high < np.inf):  # so for NaN too
        return rows, _wrong_probability(rows)
    if low == 0.0:
        rows = _without_zeros(rows)
    if rows.entry_rewards is not None and not finite and not np.isfinite(rows.entry_rewards).all():
        return rows, _wrong_reward(rows, rows.entry_rewards)
    rows = _merged(rows)
    return rows, _normalise(rows)


def _row_of(ptr: NDArray[np.int64], entry: int) -> int:
    return int(np.searchsorted(ptr, entry, side="right")) - 1


def _wrong_index(ptr: NDArray[np.int64], raw: NDArray[Any], n_states: int) -> RowFault | None:
    if raw.min() >= 0 and raw.max() < n_states:
        return None
    bad = np.flatnonzero((raw < 0) | (raw >= n_states))
    at = int(bad[0])
    return RowFault(
        INDICES, _row_of(ptr, at), f" moves to state {raw[at]}", int(raw[at]), f"0 … {n_states - 1}", bad.size
    )


def _wrong_probability(rows: TransitionRows) -> RowFault:
    p = rows.probabilities
    bad = np.flatnonzero(~((p >= 0.0) & np.isfinite(p)))  # NaN too
    at = int(bad[0])
    text = f" has the probability {p[at]:.6g}"
    return RowFault(PROBABILITIES, _row_of(rows.indptr, at), text, float(p[at]), "a number in [0, 1]", bad.size)


def _wrong_reward(rows: TransitionRows, rewards: NDArray[np.float64]) -> RowFault:
    at = int(np.flatnonzero(~np.isfinite(rewards))[0])
    text = f": the reward of moving to state {rows.indices[at]} is {rewards[at]}"
    return RowFault(REWARDS, _row_of(rows.indptr, at), text, float(rewards[at]), "a finite number", 1)


def _without_zeros(rows: TransitionRows) -> TransitionRows:
    keep = rows.probabilities > 0.0
    before = np.concatenate([[0], np.cumsum(keep)])
    rewards = None if rows.entry_rewards is None else rows.entry_rewards[keep]
    return TransitionRows(before[rows.indptr].astype(np.int64), rows.indices[keep], rows.probabilities[keep], rewards)


def merged(rows: TransitionRows) -> TransitionRows:
    """Rows in increasing next state; equal transitions (same next state, same reward) become one entry.

    The arrays are changed.
    """
    return _in_parts(rows, lambda part: (_merged(_rows_of_part(rows, part)), None), str)


def _merged(rows: TransitionRows) -> TransitionRows:
    """The same for the rows of a part."""
    ptr, idx, p, rewards = rows
    if _in_order(ptr, idx):
        return rows
    row = np.repeat(np.arange(ptr.size - 1), np.diff(ptr))
    if rewards is not None or not _in_order(ptr, idx, np.greater_equal):
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


def _in_order(ptr: NDArray[np.int64], idx: NDArray[np.uint32], follows: np.ufunc = np.greater) -> bool:
    """Whether each next state is larger (or what else `follows` says) than the one before it in the row."""
    if idx.size < 2:
        return True
    begins = ptr[:-1]
    right = follows(idx[1:], idx[:-1])
    right[begins[(begins > 0) & (begins < idx.size)] - 1] = True  # the first of a row follows none
    return bool(right.all())


def _normalise(rows: TransitionRows) -> RowFault | None:
    """Divide rows by their sums, unless one of these is too far from 1."""
    ptr, p = rows.indptr, rows.probabilities
    lengths = ptr[1:] - ptr[:-1]
    starts, filled = ptr[:-1], None
    if not lengths.all():
        filled = np.flatnonzero(lengths)
        starts, lengths = starts[filled], lengths[filled]
    sums = np.add.reduceat(p, starts) if starts.size else np.zeros(0)
    off = np.abs(sums - 1.0)
    if off.max(initial=0.0) > SUM_TOLERANCE:
        bad = np.flatnonzero(off > SUM_TOLERANCE)
        at = int(bad[0])
        row = at if filled is None else int(filled[at])
        text = f" sums to {sums[at]:.10g}"
        return RowFault(SUMS, row, text, float(sums[at]), f"1 (tolerance {SUM_TOLERANCE:g})", bad.size)
    # a row already divided once stays as it is, so that saving, loading and rebuilding change no bit
    differs = off > (lengths + 2) * 2.0**-53
    if differs.any():
        p /= np.repeat(np.where(differs, sums, 1.0), lengths)
    return None
