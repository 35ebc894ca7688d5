"""Steps in a finite MDP by packed runs in shared memory.

A block copies the table of the MDP and its runs to shared memory, steps the runs, one thread per run, and copies them
back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, uint16, uint32, uint64

from gainful._compiled import inlined
from gainful.cuda_device import cuda, device_kernel
from gainful.rng import GAMMA, mix
from gainful.simulation.device.packed_layout import PackedRuns
from gainful.simulation.device.packed_log import append_to_log, close_log, open_log, steps_to_log
from gainful.simulation.device.packed_policy import refilled_action_word
from gainful.simulation.device.packed_steps import block_words, copy_words, end_packed_launch, is_running
from gainful.simulation.device.runs import DeviceCounts, DeviceCurves, DeviceRuns
from gainful.simulation.device.steps import STEPPING_REGISTERS, StepRule
from gainful.simulation.transition_table import BERNOULLI, RewardLaw, TransitionTable, search, succeeds

_TWO = np.uint64(2)


class PackedTable(NamedTuple):
    """A transition table and the rewards of its pairs in one array of 32-bit words.

    It holds the mean rewards (float64), then the probabilities of Bernoulli rewards (64 bits), then one line per pair.
    A line has the cumulative bounds of a pair (32 bits each) and its next states (16 bits each). Its length is odd, so
    that lines begin in different banks of shared memory.
    """

    padding: tuple[int, ...]
    """Its length is that of the longest row, padded: 4 or 8. It is a constant to the compiler."""
    words: Any
    n_pairs: Any
    n_chances: Any
    n_actions: Any


def packed_table(table: TransitionTable, law: RewardLaw) -> PackedTable:
    """Pack a transition table and the rewards of its pairs."""
    width = len(table.padding)
    lines = table.lines.reshape(-1, 2, width)
    states = np.ascontiguousarray(lines[:, 1].astype(np.uint16)).view(np.uint32)
    packed = np.concatenate([lines[:, 0, : width - 1], states], axis=1)  # the last bound is never read
    words = np.concatenate([law.means.view(np.uint32), law.chances.view(np.uint32), packed.reshape(-1)])
    if words.size % 2:
        words = np.append(words, np.uint32(0))
    return PackedTable(table.padding, words, np.uint64(law.means.size), np.uint64(law.chances.size), table.n_actions)


@inlined
def line_words(width: int) -> int:
    """32-bit words of a line: all bounds but the last, and the next states, two to a word."""
    return width - 1 + width // 2


@inlined
def packed_next_state(world: PackedTable, as_uint32: Any, as_uint16: Any, line: Any, u: Any) -> Any:
    """The rank and the next state, as `next_state` finds them, by bisection of the line that begins at word `line`."""
    width = np.uint64(len(world.padding))
    rank = search(as_uint32, line, line + width, u)
    to = as_uint16[_TWO * (line + width - np.uint64(1)) + rank]
    return rank, np.uint64(to)


@device_kernel(registers=STEPPING_REGISTERS)
def step_packed(
    world: PackedTable,
    law: RewardLaw,
    runs: DeviceRuns,
    counts: DeviceCounts,
    curves: DeviceCurves,
    packed: PackedRuns,
    rule: StepRule,
    n_todo: Any,
) -> None:
    """Step every run that has a plan, as `step_shared` does, and empty the lists of runs."""
    as_uint32, as_float64 = cuda.shared.array(0, uint32), cuda.shared.array(0, float64)
    as_uint16, as_uint64 = cuda.shared.array(0, uint16), cuda.shared.array(0, uint64)
    layout, run = packed.layout, cuda.grid(1)
    if run == 0:
        n_todo[0], packed.to_count.n[0] = 0, 0
    table_words, n_pairs = np.uint64(world.words.size), world.n_pairs
    first, n_words = block_words(runs, layout)
    copy_words(world.words, np.uint64(0), table_words, as_uint32, np.uint64(0))
    copy_words(packed.as_uint32, first, n_words, as_uint32, table_words)
    cuda.syncthreads()
    if is_running(runs, run):
        lines, length = _TWO * (n_pairs + world.n_chances), np.uint64(line_words(len(world.padding)))
        chances = as_uint64[n_pairs : n_pairs + world.n_chances]
        staged_law = RewardLaw(law.kind, as_float64[:n_pairs], as_float64[:0], chances, law.success)
        run_start = table_words + np.uint64(cuda.threadIdx.x) * layout.words_per_run
        action_words = _TWO * run_start + layout.action_words_start
        state, t, earned = np.uint64(runs.state[run]), runs.step[run], runs.earned[run]
        n_logged, word = open_log(packed, run)
        n: Any = np.uint32(n_logged + steps_to_log(runs, curves, rule, run, n_logged))
        z, over, successes = runs.key[run] + np.uint64(t) * GAMMA, False, np.uint32(0)  # random number t is mix(z)
        i: Any = n_logged
        bits = mix(z)
        while i < n:
            action_word = refilled_action_word(counts, layout, run, state, np.uint32(as_uint16[action_words + state]))
            if action_word < layout.one_execution:
                over = True
                break
            pair = state * world.n_actions + np.uint64(action_word & (layout.one_execution - np.uint32(1)))
            line, u = lines + pair * length, np.uint32(bits >> np.uint64(32))
            rank, to = packed_next_state(world, as_uint32, as_uint16, line, u)
            as_uint16[action_words + state] = np.uint32(action_word - layout.one_execution)
            entry = np.uint32(np.uint32(state) * layout.pitch + np.uint32(rank))
            if len(law.kind) == BERNOULLI:
                success = np.uint32(succeeds(staged_law, pair, bits))
                entry, successes = np.uint32(entry + entry + success), np.uint32(successes + success)
            else:
                earned += staged_law.means[pair]
            word = append_to_log(packed, run, i, word, entry)
            state = to
            z += GAMMA
            bits = mix(z)  # early: it does not depend on the step before
            i = np.uint32(i + np.uint32(1))
        if len(law.kind) == BERNOULLI:
            earned += np.float64(successes) * law.success
        close_log(packed, run, i, word)
        runs.state[run], runs.earned[run] = np.uint32(state), earned
        end_packed_launch(runs, curves, packed, run, t + np.int64(i) - np.int64(n_logged), i, over)
    cuda.syncthreads()
    copy_words(as_uint32, table_words, n_words, packed.as_uint32, first)
