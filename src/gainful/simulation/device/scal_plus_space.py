"""The memory of a block of threads that plans for SCAL+, and what its plans depend on.

In the memory of a block, pairs stand in the order of their *places*: by action, then by state, so that neighbouring
threads, which have neighbouring states, read neighbours.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import inlined
from gainful.cuda_device import quotient
from gainful.optimism.bernstein_scal_plus import BernsteinConstants
from gainful.optimism.scal_plus import BonusConstants
from gainful.optimism.sharp import SharpConstants
from gainful.simulation.device.runs import MOST_HALF, DeviceRows

PAPERS, SHARP, BERNSTEIN = 0, 1, 2
"""Kinds of bonus."""
UNROLLED = 32
"""The longest row whose expected value is computed without a loop, and the most actions with the like."""


class TeamSpace(NamedTuple):
    """The working vectors of a block."""

    v: Any
    """(S,) values."""
    w: Any
    """(S,) Lv."""
    rewards: Any
    """(pairs,) the sums of rewards, then the rewards to plan with."""
    inverse: Any
    """(pairs,) 1/(N + 1)."""
    levels: Any
    """(pairs,) for the Bernstein bonus, else none."""
    counts: Any
    """(pairs * pitch,) transitions seen, by place, then by rank; the last of each pair are its visits."""
    parts: Any
    """(PARTS,) for `together`."""
    pitch: Any
    """From one row of counts to the next."""
    n_actions: Any


class PlacedRows(NamedTuple):
    """The rows of the model, padded to one width, in the order of places."""

    length: Any
    """(pairs,) next states of the model."""
    next_state: Any
    """(pairs * width,) by place, then by rank."""
    fours: Any
    """(ranks / 4 * pairs,) four next states of 16 bits in a word, by rank, then by place; empty if rows are long."""
    allowed: Any
    """(pairs,) of the agent."""
    homes: Any
    """(words,) where the counter of each word of an agent is in the memory of a block; of two, the first."""
    first: Any
    """(1,) where the row of a model of one pair begins: at 0."""
    width: Any
    n_actions: Any


def placed_rows(rows: DeviceRows, n_actions: int) -> PlacedRows:
    """Rows of pairs by state, then by action, in the order of places; not yet on the GPU."""
    n_pairs = rows.length.size
    order = np.arange(n_pairs).reshape(-1, n_actions).T.reshape(-1)
    lists = rows.next_state.reshape(-1, int(rows.stride)).T[order]
    width = lists.shape[1]
    fours: NDArray[np.uint64] = np.zeros((0, n_pairs), dtype=np.uint64)
    if lists.dtype == np.uint16 and width <= UNROLLED:
        padded = np.zeros((n_pairs, 4 * quarters(width)), dtype=np.uint16)
        padded[:, :width] = lists
        fours = padded.view(np.uint64).T
    homes = (np.argsort(order) * row_pitch(width))[:, None] + np.arange(0, width, 2 if are_paired(width) else 1)
    return PlacedRows(
        rows.length[order],
        np.ascontiguousarray(lists).reshape(-1),
        np.ascontiguousarray(fours).reshape(-1),
        rows.allowed[order].copy(),
        homes.reshape(-1).astype(np.uint16 if homes.max() <= MOST_HALF else np.uint32),
        np.zeros(1, dtype=np.int64),
        np.uint32(width),
        np.uint32(n_actions),
    )


def are_paired(width: int) -> bool:
    """Whether two counters of a row, side by side, are read as one word of 8 bytes."""
    return width % 2 == 0


@inlined
def quarters(width: int) -> int:
    """Words of four next states in a row."""
    return (width + 3) // 4


@inlined
def row_pitch(width: int) -> int:
    """From one row of counts to the next: whole words of four, and visits. It is odd: rows begin in other banks."""
    return 4 * quarters(width) + 1


@inlined
def space_size(n_states: int, n_pairs: int, kind: int) -> int:
    """Numbers that the vectors of a block take."""
    return 2 * n_states + (3 if kind == BERNSTEIN else 2) * n_pairs


@inlined
def team_space(numbers: Any, words: Any, parts: Any, n_states: int, n_levels: int, rows: PlacedRows) -> TeamSpace:
    """Divide an array of `space_size` numbers; the words are for counts."""
    first, n_pairs = 2 * n_states, rows.length.size
    return TeamSpace(
        numbers[:n_states],
        numbers[n_states:first],
        numbers[first : first + n_pairs],
        numbers[first + n_pairs : first + 2 * n_pairs],
        numbers[first + 2 * n_pairs : first + 2 * n_pairs + n_levels],
        words,
        parts,
        np.uint64(row_pitch(rows.width)),
        rows.n_actions,
    )


class DevicePlanConstants(NamedTuple):
    """What the plans of SCAL+ depend on besides the counts and the step; `kind` is a constant to the compiler."""

    kind: tuple[int, ...]
    """Of length `PAPERS`, `SHARP` or `BERNSTEIN`."""
    far: tuple[int, ...]
    """Not empty if the vectors of a block do not fit shared memory."""
    logs: tuple[int, ...]
    """Not empty if there are logs to be added before plans are made, and cards to be dealt after them; the vectors of a
    block are then shared."""
    tiny: tuple[int, ...]
    """Not empty if rewards are so small that `quotient` cannot divide by inverses."""
    quarters: tuple[int, ...]
    """As long as there are words of four in a row, so that their loop can be unrolled; empty if rows are long."""
    width: tuple[int, ...]
    """As long as the longest row, so that dividing by its length is cheap; empty if rows are long."""
    actions: tuple[int, ...]
    """As long as there are actions, so that dividing by their number is cheap; empty if they are many."""
    paired: tuple[int, ...]
    """Not empty if two counts of an agent are read as one word."""
    paper: BonusConstants
    sharp: SharpConstants
    bernstein: BernsteinConstants
    span: float
    damping: float
    reward_range: float
    reward_min: float


@inlined
def count_of_actions(c: DevicePlanConstants, space: TeamSpace) -> Any:
    """A, a constant to the compiler if it is small."""
    return np.uint32(len(c.actions)) if len(c.actions) > 0 else np.uint32(space.n_actions)


@inlined
def place_of(c: DevicePlanConstants, space: TeamSpace, k: Any) -> Any:
    """The place of pair k = s*A + a: a*S + s."""
    n_actions = count_of_actions(c, space)
    s = np.uint32(k) // n_actions
    return np.uint64((np.uint32(k) - s * n_actions) * np.uint32(space.v.size) + s)


@inlined
def ratio(c: DevicePlanConstants, x: float, divisor: float, inverse: float) -> float:
    """x/divisor."""
    if len(c.tiny) > 0:
        return x / divisor
    return quotient(x, divisor, inverse)


@inlined
def row_width(c: DevicePlanConstants, rows: PlacedRows) -> Any:
    """The length of a padded row, a constant to the compiler if it is short."""
    return np.uint32(len(c.width)) if len(c.width) > 0 else np.uint32(rows.width)


@inlined
def pitch_of(c: DevicePlanConstants, space: TeamSpace) -> Any:
    """From one row of counts to the next, a constant to the compiler if rows are short."""
    return np.uint64(row_pitch(len(c.width))) if len(c.width) > 0 else np.uint64(space.pitch)


@inlined
def visits_at(c: DevicePlanConstants, space: TeamSpace, k: Any) -> Any:
    """Where the visits of the pair at place k are."""
    return (np.uint64(k) + np.uint64(1)) * pitch_of(c, space) - np.uint64(1)
