"""Runs packed into few bytes each, so that many of them fit into shared memory while they step.

A run counts what it does in an episode in 4 to 16 bits. The counters stay packed from launch to launch: `settle_runs`
adds them to the agent's counts when the episode ends or a checkpoint is reached, and `deal_runs` packs the next
policy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gainful._compiled import inlined
from gainful.cuda_device import SIMULATED, cuda, device_function, device_kernel, device_zeros
from gainful.simulation.device.runs import MOST_HALF, NEEDS_PLAN, RUNNING, DeviceCounts, DeviceCurves, DeviceRuns
from gainful.simulation.device.steps import add_sure_rewards, add_wins, pass_checkpoint, record_checkpoint
from gainful.simulation.device.teams import TodoList
from gainful.simulation.transition_table import BERNOULLI, RewardLaw

MOST_BYTE = 0xFF
"""The largest number of 8 bits."""
NIBBLE = 0xF
"""The largest number of 4 bits."""
PACKED_SEEN = 4 if SIMULATED else NIBBLE + 1
"""Transitions of one kind that are added to the agent's counts at once while a run steps; few in the simulator, so that
its short runs do it too."""
MOST_DEALT = 8 if SIMULATED else MOST_HALF
"""Executions of a pair that are packed at a time; the others wait in `DeviceCounts.left`."""
MOST_WINS = 3 if SIMULATED else MOST_HALF
"""Rewards of 1 that leave a packed run at once."""
SETTLING_BLOCK = 2 if SIMULATED else 64
"""Threads that settle or deal one run."""
IN_FLIGHT = 8
"""Words that a thread asks for before it waits for the first."""


class PackedLayout(NamedTuple):
    """Where the arrays of a run begin, in units of their own type; the run has `words` words of 32 bits."""

    words: Any
    squares: Any
    """(S,) float64 like `sums`, which come first; neither is there if rewards follow from counts."""
    left: Any
    """(S,) half words: how often the episode may still execute the action of a state, of those that were dealt."""
    wins: Any
    """(S,) half words: rewards of 1; not there unless rewards are Bernoulli."""
    act: Any
    """(S,) bytes."""
    seen: Any
    """(S * width,) counters of 4 bits, two in a byte: transitions by state, then by rank."""
    width: Any


class PackedRuns(NamedTuple):
    """R packed runs, one after the other, and what does not fit into them."""

    sums: tuple[int, ...]
    """As long as there are sums of rewards and of their squares; a constant to the compiler."""
    layout: PackedLayout
    words: Any
    reals: Any
    halves: Any
    bytes: Any
    """The same memory, as numbers of each type."""
    granted: Any
    """(R, S) executions granted since the counts were settled."""
    wins: Any
    """(R, S) rewards of 1 that half words cannot hold."""


def packed_layout(n_states: int, width: int, n_sums: int, wins: bool) -> PackedLayout:
    """The layout of a run: numbers of 8 bytes first, then half words, then bytes."""
    left = 4 * n_sums * n_states
    act = 2 * (left + n_states * (1 + wins))
    seen = 4 * -(-(act + n_states) // 4)
    size = seen + -(-n_states * width // 2)
    places = (2 * -(-size // 8), n_states * (n_sums > 1), left, left + n_states, act, seen, width)
    return PackedLayout(*(np.uint64(place) for place in places))


def packed_bytes(n_states: int, width: int, n_sums: int, wins: bool) -> int:
    """Bytes of a packed run."""
    return 4 * int(packed_layout(n_states, width, n_sums, wins).words)


def new_packed_runs(n_runs: int, n_states: int, width: int, n_sums: int, wins: bool) -> PackedRuns:
    """Packed runs that have counted nothing."""
    layout = packed_layout(n_states, width, n_sums, wins)
    memory = device_zeros(n_runs * int(layout.words), np.uint32)
    reals, halves, small = (memory.view(kind) for kind in (np.float64, np.uint16, np.uint8))
    granted = device_zeros((n_runs, n_states), np.uint32)
    further_wins = device_zeros((n_runs, n_states * wins), np.uint32)
    return PackedRuns((0,) * n_sums, layout, memory, reals, halves, small, granted, further_wins)


@device_function
def copy_words(source: Any, first: Any, n: Any, out: Any, at: Any) -> None:
    """Copy n words by all threads of a block, each of which waits for several at a time."""
    i, team = np.uint64(cuda.threadIdx.x), np.uint64(cuda.blockDim.x)
    while i + np.uint64(IN_FLIGHT - 1) * team < n:
        a, b = source[first + i], source[first + i + team]
        c, d = source[first + i + np.uint64(2) * team], source[first + i + np.uint64(3) * team]
        e, f = source[first + i + np.uint64(4) * team], source[first + i + np.uint64(5) * team]
        g, h = source[first + i + np.uint64(6) * team], source[first + i + np.uint64(7) * team]
        out[at + i], out[at + i + team] = a, b
        out[at + i + np.uint64(2) * team], out[at + i + np.uint64(3) * team] = c, d
        out[at + i + np.uint64(4) * team], out[at + i + np.uint64(5) * team] = e, f
        out[at + i + np.uint64(6) * team], out[at + i + np.uint64(7) * team] = g, h
        i += np.uint64(IN_FLIGHT) * team
    while i < n:
        out[at + i] = source[first + i]
        i += team


@device_function
def words_of_block(runs: DeviceRuns, layout: PackedLayout) -> Any:
    """Where the words of a block's runs begin in `PackedRuns.words`, and how many they are."""
    block = np.uint64(cuda.blockDim.x)
    first_run = np.uint64(cuda.blockIdx.x) * block
    n_runs = min(block, np.uint64(runs.state.size) - first_run)
    return first_run * layout.words, n_runs * layout.words


@inlined
def dealt(granted: Any) -> Any:
    """How many of the executions left are packed at once."""
    return min(np.uint32(granted), np.uint32(MOST_DEALT))


@inlined
def more_executions(counts: DeviceCounts, run: int, state: Any) -> Any:
    """Deal further executions of the action of a state; 0 if the episode is over."""
    left = np.uint32(counts.left[run, state])
    now = dealt(left)
    counts.left[run, state] = left - now
    return now


@device_function
def count_seen(seen: Any, bytes_: Any, first: Any, here: Any, run: int, number: Any) -> None:
    """Count a transition in counter `here` of a run, whose counters begin at byte `first`; its agent's is `number`."""
    at, shift = first + (here >> np.uint64(1)), np.uint32(4) * np.uint32(here & np.uint64(1))
    two = np.uint32(bytes_[at])
    before = (two >> shift) & np.uint32(NIBBLE)
    if before == PACKED_SEEN - 1:
        cuda.atomic.add(seen, (run, number), np.uint32(PACKED_SEEN))
        two -= before << shift
    else:
        two += np.uint32(1) << shift
    bytes_[at] = two


@device_kernel()
def deal_runs(todo: TodoList, runs: DeviceRuns, counts: DeviceCounts, packed: PackedRuns) -> None:
    """Pack the policy of every run of the list that has a new plan: a block of threads for each."""
    at, n_states, n_actions = packed.layout, counts.act.shape[1], counts.visits.shape[1] // counts.act.shape[1]
    i = cuda.blockIdx.x
    while i < todo.n[0]:
        run = todo.run[i]
        words = np.uint64(run) * at.words
        reals, halves, bytes_ = words // np.uint64(2), np.uint64(2) * words, np.uint64(4) * words
        s = cuda.threadIdx.x if runs.status[run] == RUNNING else n_states
        while s < n_states:
            left, action, here = counts.left[run, s], counts.act[run, s], np.uint64(s)
            now = dealt(left)
            packed.halves[halves + at.left + here], packed.bytes[bytes_ + at.act + here] = now, action
            counts.left[run, s], packed.granted[run, s] = left - now, left
            pair = s * n_actions + np.int64(action)
            if len(packed.sums) > 0:
                packed.reals[reals + here] = counts.reward_sum[run, pair]
            if len(packed.sums) > 1:
                packed.reals[reals + at.squares + here] = counts.reward_squares[run, pair]
            s += cuda.blockDim.x
        i += cuda.gridDim.x


@inlined
def settle_state(
    law: RewardLaw, counts: DeviceCounts, packed: PackedRuns, run: int, s: int, done: Any, low: float
) -> None:
    """Add what a run did in state s, `done` executions of its action, to visits and rewards."""
    at, words, here = packed.layout, np.uint64(run) * packed.layout.words, np.uint64(s)
    reals, halves = words // np.uint64(2), np.uint64(2) * words
    action = np.int64(packed.bytes[np.uint64(4) * words + at.act + here])
    pair = s * (counts.visits.shape[1] // counts.act.shape[1]) + action
    counts.visits[run, pair] += done
    packed.granted[run, s] -= done
    if len(packed.sums) > 0:
        counts.reward_sum[run, pair] = packed.reals[reals + here]
        if len(packed.sums) > 1:
            counts.reward_squares[run, pair] = packed.reals[reals + at.squares + here]
    elif len(law.kind) == BERNOULLI:
        wins = np.float64(packed.wins[run, s] + packed.halves[halves + at.wins + here])
        packed.wins[run, s], packed.halves[halves + at.wins + here] = 0, 0
        add_wins(law, counts, run, pair, wins, np.float64(done) - wins, low)
    else:
        add_sure_rewards(law, counts, run, pair, np.int64(done), low)


@device_function
def settle_transitions(seen: Any, packed: PackedRuns, run: int, n_actions: Any) -> None:
    """Add a run's counters of transitions to those of its agent, eight at a time, and set them to 0."""
    at, words = packed.layout, np.uint64(run) * packed.layout.words
    act, before = np.uint64(4) * words + at.act, at.seen // np.uint64(4)
    first, n_words = words + before, at.words - before
    i = np.uint64(cuda.threadIdx.x)
    while i < n_words:
        eight, number = packed.words[first + i], np.uint64(8) * i
        packed.words[first + i] = 0
        while eight > 0:
            n = np.uint32(eight & np.uint32(NIBBLE))
            if n > 0:
                s = number // at.width
                pair = s * n_actions + np.uint64(packed.bytes[act + s])
                cuda.atomic.add(seen, (run, pair * at.width + (number - s * at.width)), n)
            eight >>= np.uint32(4)
            number += np.uint64(1)
        i += np.uint64(cuda.blockDim.x)


@device_kernel()
def settle_runs(
    law: RewardLaw, runs: DeviceRuns, counts: DeviceCounts, curves: DeviceCurves, packed: PackedRuns, low: float
) -> None:
    """Give agents what was counted since the last time, and record checkpoints: a block of threads for each run.

    Only where an episode has ended or a checkpoint is reached; `low` is the agents' least reward.
    """
    run, n_states = cuda.blockIdx.x, counts.act.shape[1]
    status, passed = runs.status[run], np.int64(runs.passed[run])
    if status != NEEDS_PLAN and status != RUNNING:
        return
    due = runs.step[run] == curves.checkpoints[passed]
    if status == RUNNING and not due:
        return
    halves = np.uint64(2) * np.uint64(run) * packed.layout.words + packed.layout.left
    s = cuda.threadIdx.x
    while s < n_states:
        left = np.uint32(counts.left[run, s]) + np.uint32(packed.halves[halves + np.uint64(s)])
        done = np.uint32(packed.granted[run, s]) - left
        if done > 0:
            settle_state(law, counts, packed, run, s, done, low)
        s += cuda.blockDim.x
    settle_transitions(counts.seen, packed, run, np.uint64(counts.visits.shape[1] // n_states))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0 and due:
        if len(packed.sums) > 0:
            curves.rewards[passed, run] = runs.earned[run]
        else:
            record_checkpoint(law, curves, counts.visits[run], passed, run, runs.earned[run])
        pass_checkpoint(runs, curves, run, passed)


@inlined
def note_launch(runs: DeviceRuns, run: int, t: Any, over: bool) -> None:
    """Note where a run is at the end of a launch; `settle_runs` does the rest."""
    runs.step[run] = t
    if over:
        runs.status[run] = NEEDS_PLAN


@inlined
def is_stepping(runs: DeviceRuns, run: Any) -> bool:
    """Whether there is such a run, and it has a plan."""
    found: bool = run < runs.state.size and runs.status[run] == RUNNING
    return found
