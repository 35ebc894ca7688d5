"""Action words of packed runs: loading the policy of a new plan, and granting executions of its actions.

An action word can hold few executions. The others wait in `DeviceCounts.remaining` until the word has none left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful._compiled import inlined
from gainful.cuda_device import cuda, device_kernel
from gainful.simulation.device.packed_layout import PackedLayout, PackedRuns, action_word_index, reward_sum_index
from gainful.simulation.device.runs import RUNNING, DeviceCounts, DeviceRuns, TodoList


@inlined
def grant_executions(counts: DeviceCounts, layout: PackedLayout, run: int, state: Any) -> Any:
    """Take as many of a state's remaining executions as an action word can hold; 0 if the episode is over."""
    remaining = np.uint32(counts.remaining[run, state])
    granted = min(remaining, layout.max_executions)
    counts.remaining[run, state] = remaining - granted
    return granted


@inlined
def refilled_action_word(counts: DeviceCounts, layout: PackedLayout, run: int, state: Any, word: Any) -> Any:
    """The action word of a state, with new executions if it has none; it still has none if the episode is over."""
    if word < layout.one_execution:
        word = np.uint32(word + grant_executions(counts, layout, run, state) * layout.one_execution)
    return word


@inlined
def load_action(counts: DeviceCounts, packed: PackedRuns, run: int, s: int, n_actions: int) -> None:
    """Write the action word of state s for a new plan, and the sums of rewards of the new pair."""
    action, layout = np.uint32(counts.act[run, s]), packed.layout
    word = action + grant_executions(counts, layout, run, s) * layout.one_execution
    packed.as_uint16[action_word_index(packed, run, s)] = word
    pair = s * n_actions + np.int64(action)
    if len(packed.sums) > 0:
        packed.as_float64[reward_sum_index(packed, run, s)] = counts.reward_sum[run, pair]
    if len(packed.sums) > 1:
        packed.as_float64[reward_sum_index(packed, run, s) + layout.squares_start] = counts.reward_squares[run, pair]


@device_kernel()
def load_policies(todo: TodoList, runs: DeviceRuns, counts: DeviceCounts, packed: PackedRuns) -> None:
    """Load the policy of every listed run that has a new plan, with one block per run."""
    n_states, n_actions = counts.act.shape[1], counts.visits.shape[1] // counts.act.shape[1]
    i = cuda.blockIdx.x
    while i < todo.n[0]:
        run = todo.run[i]
        s = cuda.threadIdx.x if runs.status[run] == RUNNING else n_states
        while s < n_states:
            load_action(counts, packed, run, s, n_actions)
            s += cuda.blockDim.x
        i += cuda.gridDim.x
