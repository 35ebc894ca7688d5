"""Steps in a finite MDP by runs that are packed into shared memory, together with the table of the MDP."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, uint16, uint32, uint64

from gainful._compiled import inlined
from gainful.cuda_device import cuda, device_kernel
from gainful.rng import GAMMA, mix
from gainful.simulation.device.packed import (
    PackedRuns,
    close_log,
    copy_words,
    is_stepping,
    logged,
    note_launch,
    open_log,
    steps_to_log,
    valid_card,
    words_of_block,
)
from gainful.simulation.device.runs import DeviceCounts, DeviceCurves, DeviceRuns
from gainful.simulation.device.steps import STEPPING_REGISTERS, StepRule
from gainful.simulation.transition_table import BERNOULLI, RewardLaw, TransitionTable, search, succeeds

_TWO = np.uint64(2)


class PackedTable(NamedTuple):
    """A transition table and the rewards of its pairs, as words of 32 bits.

    One after the other: mean rewards (float64), chances of Bernoulli rewards (64 bits), and lines. A line has the
    bounds of a pair (32 bits) and its next states (16 bits). Its length is odd, so that lines begin in different banks
    of shared memory.
    """

    padding: tuple[int, ...]
    """As long as the longest row, padded: 4 or 8; a constant to the compiler."""
    words: Any
    n_pairs: Any
    n_chances: Any
    n_actions: Any


def packed_table(table: TransitionTable, law: RewardLaw) -> PackedTable:
    """Pack a table of lines."""
    width = len(table.padding)
    lines = table.lines.reshape(-1, 2, width)
    states = np.ascontiguousarray(lines[:, 1].astype(np.uint16)).view(np.uint32)
    packed = np.concatenate([lines[:, 0, : width - 1], states], axis=1)  # the last bound is never looked at
    words = np.concatenate([law.means.view(np.uint32), law.chances.view(np.uint32), packed.reshape(-1)])
    if words.size % 2:
        words = np.append(words, np.uint32(0))
    return PackedTable(table.padding, words, np.uint64(law.means.size), np.uint64(law.chances.size), table.n_actions)


@inlined
def line_words(width: int) -> int:
    """Words of a line: bounds but the last, and next states of half a word."""
    return width - 1 + width // 2


@inlined
def packed_next_state(world: PackedTable, words: Any, halves: Any, line: Any, u: Any) -> Any:
    """What `next_state` finds, in the line that begins at word `line`, by bisection: with fewer loads."""
    width = np.uint64(len(world.padding))
    rank = search(words, line, line + width, u)
    to = halves[_TWO * (line + width - np.uint64(1)) + rank]
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
    """Steps of every run that has a plan: what `step_runs` does, in packed runs; the lists are emptied."""
    words, reals = cuda.shared.array(0, uint32), cuda.shared.array(0, float64)
    halves, longs = cuda.shared.array(0, uint16), cuda.shared.array(0, uint64)
    at, run = packed.layout, cuda.grid(1)
    if run == 0:
        n_todo[0], packed.waiting.n[0] = 0, 0
    table_words, n_pairs = np.uint64(world.words.size), world.n_pairs
    first, n_words = words_of_block(runs, at)
    copy_words(world.words, np.uint64(0), table_words, words, np.uint64(0))
    copy_words(packed.words, first, n_words, words, table_words)
    cuda.syncthreads()
    if is_stepping(runs, run):
        lines, length = _TWO * (n_pairs + world.n_chances), np.uint64(line_words(len(world.padding)))
        laws = RewardLaw(law.kind, reals[:n_pairs], reals[:0], longs[n_pairs : n_pairs + world.n_chances], law.success)
        cards = _TWO * (table_words + np.uint64(cuda.threadIdx.x) * at.words) + at.cards
        state, t, earned = np.uint64(runs.state[run]), runs.step[run], runs.earned[run]
        n_logged, word = open_log(packed, run)
        n: Any = np.uint32(n_logged + steps_to_log(runs, curves, rule, run, n_logged))
        z, over, won = runs.key[run] + np.uint64(t) * GAMMA, False, np.uint32(0)  # draw t is mix(z)
        i: Any = n_logged
        bits = mix(z)
        while i < n:
            card = valid_card(counts, at, run, state, np.uint32(halves[cards + state]))
            if card < at.one:
                over = True
                break
            pair = state * world.n_actions + np.uint64(card & (at.one - np.uint32(1)))
            rank, to = packed_next_state(world, words, halves, lines + pair * length, np.uint32(bits >> np.uint64(32)))
            halves[cards + state] = np.uint32(card - at.one)
            entry = np.uint32(np.uint32(state) * at.pitch + np.uint32(rank))
            if len(law.kind) == BERNOULLI:
                win = np.uint32(succeeds(laws, pair, bits))
                entry, won = np.uint32(entry + entry + win), np.uint32(won + win)
            else:
                earned += laws.means[pair]
            word = logged(packed, run, i, word, entry)
            state = to
            z += GAMMA
            bits = mix(z)  # early: it depends on nothing that the next step has to wait for
            i = np.uint32(i + np.uint32(1))
        if len(law.kind) == BERNOULLI:
            earned += np.float64(won) * law.success
        close_log(packed, run, i, word)
        runs.state[run], runs.earned[run] = np.uint32(state), earned
        note_launch(runs, curves, packed, run, t + np.int64(i) - np.int64(n_logged), i, over)
    cuda.syncthreads()
    copy_words(words, table_words, n_words, packed.words, first)
