"""The working arrays of a block that plans for SCAL+, and the constants of its plans.

An agent stores pairs in state-major order: pair k = s*A + a. A block stores them in action-major order: its *slot* is
a*S + s. Neighbouring threads have neighbouring states, so that they access neighbouring numbers.
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
from gainful.simulation.device.runs import MAX_UINT16, DeviceRows

PAPER, SHARP, BERNSTEIN = 0, 1, 2
"""Kinds of bonus."""
UNROLLED = 32
"""Loops over rows and actions up to this length are unrolled."""


class BlockArrays(NamedTuple):
    """The working arrays of a block; arrays of pairs are indexed by slot."""

    v: Any
    """(S,) values."""
    w: Any
    """(S,) Lv."""
    rewards: Any
    """(pairs,) the sums of rewards, then the rewards to plan with."""
    inverse: Any
    """(pairs,) 1/(N + 1)."""
    levels: Any
    """(pairs,) for the Bernstein bonus; else empty."""
    counts: Any
    """(pairs * pitch,) transition counts by slot, then by rank; the last number of a row is the visits of the pair."""
    scratch: Any
    """(REDUCTION_SIZE,) for `block_min_max`."""
    pitch: Any
    """From one row of counts to the next."""
    n_actions: Any


class ActionMajorRows(NamedTuple):
    """The rows of the model, padded to the same width, in action-major order."""

    length: Any
    """(pairs,) the number of next states."""
    next_state: Any
    """(pairs * width,) by slot, then by rank."""
    next_state_quads: Any
    """(quads * pairs,) four next states of 16 bits per word, by rank, then by slot; empty if rows are long."""
    allowed: Any
    """(pairs,) whether the agent may use the pair."""
    destinations: Any
    """(words,) the index in `BlockArrays.counts` to which each word of the agent's counts is copied. A word may hold
    two counts, of which this is the first."""
    first: Any
    """(1,) 0: where the row of a model of one pair begins."""
    width: Any
    n_actions: Any


def action_major_rows(rows: DeviceRows, n_actions: int) -> ActionMajorRows:
    """Arrange rows in action-major order; the arrays are still in the CPU's memory."""
    n_pairs = rows.length.size
    order = np.arange(n_pairs).reshape(-1, n_actions).T.reshape(-1)
    lists = rows.next_state.reshape(-1, int(rows.stride)).T[order]
    width = lists.shape[1]
    quads: NDArray[np.uint64] = np.zeros((0, n_pairs), dtype=np.uint64)
    if lists.dtype == np.uint16 and width <= UNROLLED:
        padded = np.zeros((n_pairs, 4 * n_quads(width)), dtype=np.uint16)
        padded[:, :width] = lists
        quads = padded.view(np.uint64).T
    destinations = (np.argsort(order) * row_pitch(width))[:, None] + np.arange(0, width, 2 if are_paired(width) else 1)
    return ActionMajorRows(
        rows.length[order],
        np.ascontiguousarray(lists).reshape(-1),
        np.ascontiguousarray(quads).reshape(-1),
        rows.allowed[order].copy(),
        destinations.reshape(-1).astype(np.uint16 if destinations.max() <= MAX_UINT16 else np.uint32),
        np.zeros(1, dtype=np.int64),
        np.uint32(width),
        np.uint32(n_actions),
    )


def are_paired(width: int) -> bool:
    """Whether two neighbouring counts of a row are read as one 64-bit word."""
    return width % 2 == 0


@inlined
def n_quads(width: int) -> int:
    """The number of quads, words of four next states, in a row."""
    return (width + 3) // 4


@inlined
def row_pitch(width: int) -> int:
    """From one row of counts to the next: whole quads, and visits. It is odd: rows begin in different banks."""
    return 4 * n_quads(width) + 1


@inlined
def block_size(n_states: int, n_pairs: int, kind: int) -> int:
    """The number of float64 numbers in the arrays of a block."""
    return 2 * n_states + (3 if kind == BERNSTEIN else 2) * n_pairs


@inlined
def block_arrays(
    numbers: Any, words: Any, scratch: Any, n_states: int, n_levels: int, rows: ActionMajorRows
) -> BlockArrays:
    """Divide an array of `block_size` numbers; `words` are for counts."""
    first, n_pairs = 2 * n_states, rows.length.size
    return BlockArrays(
        numbers[:n_states],
        numbers[n_states:first],
        numbers[first : first + n_pairs],
        numbers[first + n_pairs : first + 2 * n_pairs],
        numbers[first + 2 * n_pairs : first + 2 * n_pairs + n_levels],
        words,
        scratch,
        np.uint64(row_pitch(rows.width)),
        rows.n_actions,
    )


class DevicePlanConstants(NamedTuple):
    """What SCAL+'s plans depend on, besides counts and step; the lengths of tuples are constants to the compiler."""

    kind: tuple[int, ...]
    """Its length is the kind of bonus: `PAPER`, `SHARP` or `BERNSTEIN`."""
    in_global_memory: tuple[int, ...]
    """Not empty if the arrays of a block do not fit shared memory."""
    counts_logs: tuple[int, ...]
    """Not empty if the kernel also counts the logs of packed runs and loads their policies; the arrays of a block are
    then in shared memory."""
    tiny_rewards: tuple[int, ...]
    """Not empty if rewards are so small that `quotient` cannot divide by inverses."""
    quads: tuple[int, ...]
    """Its length is the number of quads in a row, so that their loop can be unrolled; empty if rows are long."""
    width: tuple[int, ...]
    """Its length is that of a padded row, so that dividing by it is cheap; empty if rows are long."""
    actions: tuple[int, ...]
    """Its length is the number of actions, so that dividing by it is cheap; empty if there are many."""
    paired: tuple[int, ...]
    """Not empty if two counts of an agent are read as one word, see `are_paired`."""
    paper: BonusConstants
    sharp: SharpConstants
    bernstein: BernsteinConstants
    span: float
    damping: float
    reward_range: float
    reward_min: float


@inlined
def count_of_actions(c: DevicePlanConstants, block: BlockArrays) -> Any:
    """The number of actions, a constant to the compiler if it is small."""
    return np.uint32(len(c.actions)) if len(c.actions) > 0 else np.uint32(block.n_actions)


@inlined
def slot_of(c: DevicePlanConstants, block: BlockArrays, k: Any) -> Any:
    """The slot a*S + s of pair k = s*A + a."""
    n_actions = count_of_actions(c, block)
    s = np.uint32(k) // n_actions
    return np.uint64((np.uint32(k) - s * n_actions) * np.uint32(block.v.size) + s)


@inlined
def ratio(c: DevicePlanConstants, x: float, divisor: float, inverse: float) -> float:
    """x/divisor, where `inverse` is 1/divisor."""
    if len(c.tiny_rewards) > 0:
        return x / divisor
    return quotient(x, divisor, inverse)


@inlined
def row_width(c: DevicePlanConstants, rows: ActionMajorRows) -> Any:
    """The length of a padded row, a constant to the compiler if it is short."""
    return np.uint32(len(c.width)) if len(c.width) > 0 else np.uint32(rows.width)


@inlined
def pitch_of(c: DevicePlanConstants, block: BlockArrays) -> Any:
    """From one row of counts to the next, a constant to the compiler if rows are short."""
    return np.uint64(row_pitch(len(c.width))) if len(c.width) > 0 else np.uint64(block.pitch)


@inlined
def visits_at(c: DevicePlanConstants, block: BlockArrays, k: Any) -> Any:
    """The index of the visits of slot k in `BlockArrays.counts`."""
    return (np.uint64(k) + np.uint64(1)) * pitch_of(c, block) - np.uint64(1)
