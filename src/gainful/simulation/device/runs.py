"""The arrays of many runs in the memory of a GPU: where each run is, what its agent has counted, what is recorded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.cuda_device import cuda
from gainful.simulation.transition_table import TransitionTable

RUNNING, FINISHED, PLAN_FAILED, NEEDS_PLAN, NEEDS_COUNTING, NEEDS_COUNTING_AND_PLAN = 0, 1, 2, 3, 4, 5
"""The status of a run: it steps; it is finished; its last plan cannot be made to its precision; its episode is over and
it needs a plan; its log must be added to its agent's counts; the same, and then it needs a plan."""
MAX_UINT16 = 0xFFFF
"""The largest number of type uint16."""
NO_EXECUTION_LIMIT = np.uint32(0xFFFFFFFF)
"""Remaining executions in an episode without limits; no launch makes as many steps."""


class TodoList(NamedTuple):
    """A list of runs that a kernel works on: the first `n[0]` numbers of `run`."""

    run: Any
    """(R,)."""
    n: Any
    """(1,)."""


class DeviceRuns(NamedTuple):
    """The state of R runs: (R,) each, unless it says otherwise."""

    state: Any
    step: Any
    """Steps made."""
    key: Any
    """The random stream of the environment."""
    earned: Any
    """The sum of rewards."""
    status: Any
    passed: Any
    """The number of checkpoints passed."""
    sweeps: Any
    """Sweeps already made for an unfinished plan, which the next launch continues; else 0."""
    point: Any
    """(R, d) points of the unit cube in a continuous environment; (R, 0) in a finite one."""


class DeviceCounts(NamedTuple):
    """The counts and the policies of R agents; the run is the first index, because one block plans for one run."""

    transitions: Any
    """(R, pairs * width) by pair, then by rank: the position of the next state in its row of the model."""
    visits: Any
    """(R, pairs)."""
    reward_sum: Any
    reward_squares: Any
    act: Any
    """(R, S) the actions of the policy."""
    remaining: Any
    """(R, S) how often the episode may still execute each of them."""


class DeviceRows(NamedTuple):
    """The rows of the model, padded to the same width: the next state of each transition counter."""

    length: Any
    """(pairs,) the number of next states."""
    next_state: Any
    """(width * stride,) by rank, then by pair, so that threads with neighbouring pairs make coalesced reads."""
    stride: Any
    """From one rank to the next: the number of pairs, or one more to make it odd, which avoids bank conflicts."""
    allowed: Any
    """(pairs,) whether the agent may use the pair."""
    pairs: Any
    """(pairs,) 0, 1, 2, …"""


class DeviceCurves(NamedTuple):
    """What is recorded at C checkpoints."""

    checkpoints: Any
    """(C,) their steps."""
    rewards: Any
    """(C, R) the sum of rewards."""
    means: Any
    """(C, R) the sum of mean rewards."""
    expected_regret: Any
    """(C, R)."""
    gaps: Any
    """(pairs,) optimality gaps, from which expected regret is computed."""
    zeros: Any
    """(pairs,) zeros: the visits before the run."""


class DeviceEpisodes(NamedTuple):
    """Records of up to E episodes of each run: (E, R), unless it says otherwise; E is 0 if none are kept."""

    number: Any
    """(R,) the number of episodes."""
    step: Any
    low: Any
    high: Any
    span: Any
    sweeps: Any
    vacuous: Any
    """(R,) whether the last plan ignored all data."""


def on_device(group: Any) -> Any:
    """Copy the arrays of a NamedTuple to the GPU; other fields stay as they are."""
    return type(group)(*(cuda.to_device(x) if isinstance(x, np.ndarray) else x for x in group))


def rows_of(lengths: NDArray[np.int64], indices: NDArray[np.uint32], allowed: NDArray[np.bool_]) -> DeviceRows:
    """Pad rows, which have these lengths and next states one after the other, to the longest."""
    width, stride = int(lengths.max()), lengths.size | 1
    kind = np.uint16 if int(indices.max(initial=0)) <= MAX_UINT16 else np.uint32  # fewer bytes: more of them are cached
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
    """Copy the table to the GPU."""
    found: TransitionTable = on_device(table._replace(first=table.first.copy(), next_states=table.next_states.copy()))
    return found
