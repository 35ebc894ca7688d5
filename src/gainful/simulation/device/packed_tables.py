"""Steps in a finite MDP by runs that are packed into shared memory, together with the table of the MDP."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, uint8, uint16, uint32, uint64

from gainful._compiled import inlined
from gainful.cuda_device import cuda, device_kernel
from gainful.rng import GAMMA, mix
from gainful.simulation.device.packed import (
    MOST_WINS,
    PackedRuns,
    copy_words,
    count_seen,
    is_stepping,
    more_executions,
    note_launch,
    words_of_block,
)
from gainful.simulation.device.runs import DeviceCounts, DeviceCurves, DeviceRuns
from gainful.simulation.device.steps import STEPPING_REGISTERS, StepRule, steps_of_launch
from gainful.simulation.transition_table import BERNOULLI, RewardLaw, TransitionTable, below_4, below_8, succeeds

_TWO, _FOUR = np.uint64(2), np.uint64(4)


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
    """What `next_state` finds, in the line that begins at word `line`."""
    if len(world.padding) == 4:
        rank = below_4(words, line, u)
        to = halves[_TWO * (line + np.uint64(3)) + rank]
    else:
        rank = below_8(words, line, u)
        to = halves[_TWO * (line + np.uint64(7)) + rank]
    return rank, np.uint64(to)


@inlined
def add_win(packed: PackedRuns, halves: Any, at: Any, run: int, state: Any) -> None:
    """Count a reward of 1; as many as a half word holds go to global memory at once."""
    wins = np.uint32(halves[at]) + np.uint32(1)
    if wins == MOST_WINS:
        packed.wins[run, state] += MOST_WINS
        wins = np.uint32(0)
    halves[at] = wins


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
    """Steps of every run that has a plan: what `step_runs` does, in packed runs; `n_todo` is set to 0."""
    words, reals = cuda.shared.array(0, uint32), cuda.shared.array(0, float64)
    halves, bytes_ = cuda.shared.array(0, uint16), cuda.shared.array(0, uint8)
    longs = cuda.shared.array(0, uint64)
    at, x, run = packed.layout, np.uint64(cuda.threadIdx.x), cuda.grid(1)
    if run == 0:
        n_todo[0] = 0
    table_words, n_pairs = np.uint64(world.words.size), world.n_pairs
    first, n_words = words_of_block(runs, at)
    copy_words(world.words, np.uint64(0), table_words, words, np.uint64(0))
    copy_words(packed.words, first, n_words, words, table_words)
    cuda.syncthreads()
    if is_stepping(runs, run):
        lines, length = _TWO * (n_pairs + world.n_chances), np.uint64(line_words(len(world.padding)))
        laws = RewardLaw(law.kind, reals[:n_pairs], reals[:0], longs[n_pairs : n_pairs + world.n_chances], law.success)
        mine = table_words + x * at.words
        left, wins = _TWO * mine + at.left, _TWO * mine + at.wins
        act, seen = _FOUR * mine + at.act, _FOUR * mine + at.seen
        state, t, earned = np.uint64(runs.state[run]), runs.step[run], runs.earned[run]
        z, over, won = runs.key[run] + np.uint64(t) * GAMMA, False, 0  # draw t is mix(z)
        n = np.uint32(steps_of_launch(t, curves.checkpoints[np.int64(runs.passed[run])], rule.part))
        i: Any = np.uint32(0)
        bits = mix(z)
        while i < n:
            rest, action = np.uint32(halves[left + state]), np.uint64(bytes_[act + state])
            if rest == 0:
                rest = more_executions(counts, run, state)
                if rest == 0:
                    over = True
                    break
            pair = state * world.n_actions + action
            rank, to = packed_next_state(world, words, halves, lines + pair * length, np.uint32(bits >> np.uint64(32)))
            halves[left + state] = rest - np.uint32(1)
            count_seen(counts.seen, bytes_, seen, state * at.width + rank, run, pair * at.width + rank)
            if len(law.kind) == BERNOULLI:
                if succeeds(laws, pair, bits):
                    won += 1
                    add_win(packed, halves, wins + state, run, state)
            else:
                earned += laws.means[pair]
            state = to
            z += GAMMA
            bits = mix(z)  # early: it depends on nothing that the next step has to wait for
            i = np.uint32(i + np.uint32(1))
        if len(law.kind) == BERNOULLI:
            earned += np.float64(won) * law.success
        runs.state[run], runs.earned[run] = np.uint32(state), earned
        note_launch(runs, run, t + np.int64(i), over)
    cuda.syncthreads()
    copy_words(words, table_words, n_words, packed.words, first)
