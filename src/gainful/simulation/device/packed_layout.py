"""The memory layout of packed runs, of which many fit into shared memory at a time.

For each state, a packed run has one 16-bit *action word*: the action of the policy in its low bits, and above it how
often the episode may still execute that action. A run does not count its transitions while it steps. It appends each
step to a log in global memory, 16 bits per step (`packed_log`). The log is added to the agent's counts when the episode
ends, at checkpoints, and when it is nearly full (`packed_counting`). Then the action words of the next policy are
loaded (`packed_policy`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined
from gainful.cuda_device import SIMULATED, cuda, device_zeros
from gainful.simulation.device.runs import MAX_UINT16, TodoList

LOG_CAPACITY = 16 if SIMULATED else 1 << 15
"""Steps that the log of a run can hold; few in the simulator, so that short runs fill it too."""
LOG_NEARLY_FULL = LOG_CAPACITY * 3 // 4
"""A log with this many steps at the end of a launch is counted, because the next launch might fill it."""
MAX_PACKED_ACTIONS = 64
"""The most actions of a packed run: six bits, which leave ten bits for executions."""
ENTRIES_PER_WORD = 4
"""Log entries in a word of 64 bits."""


class PackedLayout(NamedTuple):
    """Where the arrays of a packed run begin, and how its action words and log entries are encoded."""

    words_per_run: Any
    """32-bit words of one run."""
    squares_start: Any
    """Index of the sums of squared rewards, float64 (S,); the sums of rewards come before them. Both are optional."""
    action_words_start: Any
    """Index of the action words, uint16 (S,)."""
    one_execution: Any
    """One execution in an action word; the bits below it hold the action."""
    max_executions: Any
    """The most executions of an action word; further ones stay in `DeviceCounts.remaining`."""
    pitch: Any
    """Distance in the log's numbering between the entries of one state and those of the next."""
    inverse_pitch: Any
    """⌊2³²/pitch⌋ + 1, for `entry_state`."""


class PackedRuns(NamedTuple):
    """R packed runs, one after the other in memory, and their logs."""

    sums: tuple[int, ...]
    """Its length is the number of sums that a run keeps: none, rewards, or rewards and their squares. The length is a
    constant to the compiler."""
    bernoulli: tuple[int, ...]
    """Not empty if rewards are Bernoulli: the lowest bit of a log entry then says whether the step was a success."""
    layout: PackedLayout
    as_uint32: Any
    as_float64: Any
    as_uint16: Any
    """The memory of all runs, three times, as arrays of different types."""
    log: Any
    """(R, capacity / 4) four entries per word; an entry is state * pitch + rank of the next state. An incomplete last
    word is filled from its high end."""
    n_logged: Any
    """(R,) steps in the log."""
    to_count: TodoList
    """The runs whose log must be counted by `count_logs`."""
    planner_counts: tuple[int, ...]
    """Not empty if the kernel that plans also counts the logs and loads the policies of the runs that it plans for."""


class LogFormat(NamedTuple):
    """What the runs in one environment log, and how much memory that takes."""

    n_states: int
    width: int
    """The most next states of a pair."""
    n_actions: int
    n_sums: int
    """Sums of rewards that the log does not determine: 1 for rewards, 2 for rewards and their squares."""
    bernoulli: bool
    """Whether rewards are Bernoulli."""

    @property
    def pitch(self) -> int:
        """See `PackedLayout.pitch`; odd, so that the histograms of different states begin in different banks."""
        return self.width | 1

    @property
    def n_entries(self) -> int:
        """The number of different log entries."""
        return self.n_states * self.pitch * (1 + self.bernoulli)

    @property
    def run_bytes(self) -> int:
        """Bytes of a packed run in shared memory."""
        size = self.n_states * (8 * self.n_sums + 2)
        return 8 * -(-size // 8) if self.n_sums else 4 * (-(-size // 4) | 1)

    @property
    def log_bytes(self) -> int:
        """Bytes of the log of a run in global memory."""
        return 2 * LOG_CAPACITY

    @property
    def counting_bytes(self) -> int:
        """Bytes of shared memory that `count_logs` needs: a histogram of the log, and the actions."""
        return 4 * (self.n_entries + self.n_states)

    def fits(self, shared: int) -> bool:
        """Whether entries and actions have enough bits, and counting takes at most a quarter of `shared` bytes."""
        enough_bits = self.n_entries <= MAX_UINT16 + 1 and self.n_actions <= MAX_PACKED_ACTIONS
        return enough_bits and 4 * self.counting_bytes <= shared

    def layout(self) -> PackedLayout:
        """The layout of a run: float64 sums first, then action words."""
        one = 1 << max(1, (self.n_actions - 1).bit_length())
        most = min(8, MAX_UINT16 // one) if SIMULATED else MAX_UINT16 // one
        return PackedLayout(
            words_per_run=np.uint64(self.run_bytes // 4),
            squares_start=np.uint64(self.n_states * (self.n_sums > 1)),
            action_words_start=np.uint64(4 * self.n_sums * self.n_states),
            one_execution=np.uint32(one),
            max_executions=np.uint32(most),
            pitch=np.uint32(self.pitch),
            inverse_pitch=np.uint64((1 << 32) // self.pitch + 1),
        )


def new_packed_runs(n_runs: int, log_format: LogFormat) -> PackedRuns:
    """Packed runs with empty logs."""
    layout = log_format.layout()
    memory = device_zeros(n_runs * int(layout.words_per_run), np.uint32)
    as_uint16 = memory.view(np.uint16)
    as_float64 = memory.view(np.float64) if log_format.n_sums else device_zeros(0, np.float64)
    log = cuda.device_array((n_runs, LOG_CAPACITY // ENTRIES_PER_WORD), np.uint64)
    to_count = TodoList(cuda.device_array(n_runs, np.int64), device_zeros(1, np.int64))
    return PackedRuns(
        sums=(0,) * log_format.n_sums,
        bernoulli=(0,) * log_format.bernoulli,
        layout=layout,
        as_uint32=memory,
        as_float64=as_float64,
        as_uint16=as_uint16,
        log=log,
        n_logged=device_zeros(n_runs, np.uint32),
        to_count=to_count,
        planner_counts=(),
    )


def no_packed_runs() -> PackedRuns:
    """An empty argument for kernels where runs are not packed."""
    return new_packed_runs(0, LogFormat(1, 1, 1, 0, False))


@inlined
def action_word_index(packed: PackedRuns, run: int, s: Any) -> Any:
    """The index of the action word of state s in `as_uint16`."""
    layout = packed.layout
    return np.uint64(2) * np.uint64(run) * layout.words_per_run + layout.action_words_start + np.uint64(s)


@inlined
def reward_sum_index(packed: PackedRuns, run: int, s: Any) -> Any:
    """The index of the sum of rewards of state s in `as_float64`."""
    return np.uint64(run) * packed.layout.words_per_run // np.uint64(2) + np.uint64(s)


@inlined
def logged_action(packed: PackedRuns, run: int, s: Any) -> Any:
    """The action that the log of a run is about in state s."""
    return packed.as_uint16[action_word_index(packed, run, s)] & (packed.layout.one_execution - np.uint32(1))
