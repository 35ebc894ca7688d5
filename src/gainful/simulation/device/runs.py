"""What a GPU keeps of many runs between kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.cuda_device import cuda
from gainful.simulation.transition_table import TransitionTable

RUNNING, FINISHED, PLAN_FAILED, NEEDS_PLAN, NEEDS_SETTLING, NEEDS_BOTH = 0, 1, 2, 3, 4, 5
"""What a run waits for: steps, nothing, nothing (its last plan cannot be made to its precision), a plan, that what it
has logged is added to what its agent knows, and that before a plan."""
MOST_HALF = 0xFFFF
"""The largest number of 16 bits."""
EVERY_LIMIT = np.uint32(0xFFFFFFFF)
"""Executions left of a pair whose episode has no limits; no launch makes as many steps."""


class DeviceRuns(NamedTuple):
    """Where R runs are: (R,) each."""

    state: Any
    step: Any
    """Steps made."""
    key: Any
    """The stream from which the environment draws."""
    earned: Any
    """The sum of rewards, added one by one."""
    status: Any
    passed: Any
    """Checkpoints passed."""
    sweeps: Any
    """Sweeps made for a plan that was not finished in its launch; else 0."""
    point: Any
    """(R, d) where runs are in the unit cube; (R, 0) where states are numbers."""


class DeviceCounts(NamedTuple):
    """What R agents have counted, and what they do; runs outermost, as a block of threads plans for one run."""

    seen: Any
    """(R, pairs * width) transitions, by pair, then by the rank of the next state in the row of the model."""
    visits: Any
    """(R, pairs)."""
    reward_sum: Any
    reward_squares: Any
    act: Any
    """(R, S) the action that the policy chooses."""
    left: Any
    """(R, S) how often the episode may still execute it."""


class DeviceRows(NamedTuple):
    """The rows of the model, padded to one width: which next state a counter belongs to."""

    length: Any
    """(pairs,) next states of the model."""
    next_state: Any
    """(width * stride,) by rank, then by pair: neighbouring threads, which have neighbouring pairs, read neighbours."""
    stride: Any
    """From one rank to the next: the number of pairs, or one more, so that copies by rank meet no bank twice."""
    allowed: Any
    """(pairs,) of the agent."""
    pairs: Any
    """(pairs,) 0, 1, 2, …"""


class DeviceCurves(NamedTuple):
    """What is recorded at each of C checkpoints."""

    checkpoints: Any
    """(C,)."""
    rewards: Any
    """(C, R) the sum of rewards."""
    means: Any
    """(C, R) the sum of mean rewards."""
    expected_regret: Any
    """(C, R)."""
    gaps: Any
    """(pairs,) from which expected regret counts."""
    nothing: Any
    """(pairs,) zeros, the visits before."""


class DeviceEpisodes(NamedTuple):
    """Records of episodes: (E, R) each but `number` (R,); E is 0 if none are kept."""

    number: Any
    step: Any
    low: Any
    high: Any
    span: Any
    sweeps: Any
    vacuous: Any
    """(R,) whether the last plan ignored the data."""


def on_device(group: Any) -> Any:
    """A NamedTuple with its arrays copied to the GPU; what is no array stays as it is."""
    return type(group)(*(cuda.to_device(x) if isinstance(x, np.ndarray) else x for x in group))


def rows_of(lengths: NDArray[np.int64], indices: NDArray[np.uint32], allowed: NDArray[np.bool_]) -> DeviceRows:
    """Rows with these lengths and next states, one after the other, padded to the longest."""
    width, stride = int(lengths.max()), lengths.size | 1
    kind = np.uint16 if int(indices.max(initial=0)) <= MOST_HALF else np.uint32  # the fewer bytes, the more are cached
    next_state = np.zeros((stride, width), dtype=kind)
    next_state[: lengths.size][np.arange(width) < lengths[:, None]] = indices
    return DeviceRows(
        lengths.astype(np.int64),
        next_state.T.reshape(-1).copy(),
        np.uint64(stride),
        allowed.reshape(-1).copy(),
        np.arange(lengths.size),
    )


def device_table(table: TransitionTable) -> TransitionTable:
    """The table on the GPU."""
    found: TransitionTable = on_device(table._replace(first=table.first.copy(), next_states=table.next_states.copy()))
    return found
