"""Blocks of warps of 32 threads: branches, barriers, shuffles.

The blocks of a grid run one after the other, and so do the warps of a block, from barrier to barrier; no kernel may
depend on that, and what does is a race (`memory`). Of a warp, the threads that are least far in the code go on, so that
they meet again after a branch.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tests.gpu.emulator.memory import (
    ADDING,
    BARRIER,
    BLOCK_STARTED,
    NOW,
    READING,
    WRITING,
    Access,
    Memory,
    checked,
    loaded,
    store,
)
from tests.gpu.emulator.operations import Op, compiled, inlined, masked, result
from tests.gpu.emulator.ptx import ALSO, GUARD, OP, TO, WIDTH, X, Y, Z

LANES = 32
RUNS, AT_BARRIER, AT_SHUFFLE, DONE = range(4)
"""What a thread is doing."""
ENDED, BAD_ACCESS, STUCK, LOST_AT_BARRIER, LOST_IN_WARP, TOO_LONG, RELEASED = range(7)
"""How a block or a warp has ended, or that its threads go on after a barrier. Stuck: threads of a warp wait for others
that will not come, or at different barriers. Lost: threads have returned for which others wait."""
ISSUED, EXECUTED = range(2)
"""What is counted: instructions of warps, and of threads."""
MOST_ISSUED = 1 << 33
"""Instructions of warps from which on a launch is given up."""
AFTER_ALL = np.int64(2**62)


class Block(NamedTuple):
    """A block of threads."""

    registers: Any
    """uint64 (warps, registers, 32)."""
    at: Any
    """int64 (warps, 32): the next instruction of each thread."""
    doing: Any
    """int64 (warps, 32)."""
    number: Any
    """(1,) its number in the grid."""
    threads: Any
    """Threads of a block."""
    counted: Any
    """int64 (2,)."""


@inlined
def guarded(row: Any, registers: Any, lane: Any) -> Any:
    """Whether a thread executes an instruction."""
    guard = row[GUARD]
    if guard == 0:
        return True
    return registers[guard - 1, lane] != 0 if guard > 0 else registers[-guard - 1, lane] == 0


@inlined
def access_memory(row: Any, block: Block, registers: Any, warp: int, lane: Any, at: int, memory: Memory) -> bool:
    """A load, a store or an atomic addition of one thread; whether it was possible."""
    op, size = row[OP], max(1, row[WIDTH] // 8)
    address = registers[row[X], lane] + np.uint64(row[ALSO])
    how = READING if op == Op.LOAD else (WRITING if op == Op.STORE else ADDING)
    first = block.number[0] * block.threads
    thread = first + warp * LANES + np.int64(lane)
    space, value = row[TO] if op == Op.STORE else row[Z], registers[row[Y], lane]
    if not checked(memory, Access(how, space, address, size, at, thread, first, block.threads), value):
        return False
    if op == Op.STORE:
        store(address, size, value)
        return True
    found = loaded(address, size)
    if op == Op.ATOMIC_ADD:
        store(address, size, masked(found + value, row[WIDTH]))
    registers[row[TO], lane] = found
    return True


@inlined
def execute(row: Any, block: Block, warp: int, lanes: Any, at: int, memory: Memory) -> bool:
    """An instruction that does not concern the other threads, by some of a warp; whether it was possible."""
    registers, op, width = block.registers[warp], row[OP], row[WIDTH]
    for lane in lanes:
        if guarded(row, registers, lane):
            if op >= Op.LOAD:
                if not access_memory(row, block, registers, warp, lane, at, memory):
                    return False
            else:
                x, y, z = registers[row[X], lane], registers[row[Y], lane], registers[row[Z], lane]
                registers[row[TO], lane] = result(op, width, x, y, z)
    return True


@compiled
def branch(row: Any, block: Block, warp: int, lanes: Any) -> None:
    """Send threads where a branch leads them, or end them."""
    for lane in lanes:
        if not guarded(row, block.registers[warp], lane):
            block.at[warp, lane] += 1
        elif row[OP] == Op.RETURN:
            block.doing[warp, lane] = DONE
        else:
            block.at[warp, lane] = row[ALSO]


@compiled
def source_lane(op: int, lane: int, by: Any, reach: Any) -> Any:
    """The thread of the warp whose number a shuffle brings; -1 if it is beyond its reach."""
    segment, clamp = np.int64((reach >> np.uint64(8)) & np.uint64(31)), np.int64(reach & np.uint64(31))
    most = (lane & segment) | (clamp & ~segment & 31)
    other = np.int64(by & np.uint64(31))
    found = lane ^ other if op == Op.SHUFFLE_XOR else (lane & segment) | (other & ~segment & 31)
    return found if found <= most else -1


@compiled
def exchange(row: Any, block: Block, warp: int, members: Any, memory: Memory) -> bool:
    """A shuffle, a vote or a barrier of the threads of a warp; whether all whose numbers are read take part."""
    registers, op, any_of = block.registers[warp], row[OP], np.uint64(0)
    sent = np.zeros(LANES, np.uint64)
    for lane in range(LANES):
        if (members >> np.uint32(lane)) & np.uint32(1):
            sent[lane] = registers[row[X], lane]
            any_of |= sent[lane]
    for lane in range(LANES):
        if (members >> np.uint32(lane)) & np.uint32(1):
            if op == Op.VOTE_ANY:
                registers[row[TO], lane] = any_of
            elif op != Op.WARP_BARRIER:
                source = source_lane(op, lane, registers[row[Y], lane], registers[row[WIDTH], lane])
                registers[row[ALSO], lane] = np.uint64(source >= 0)
                source = lane if source < 0 else source
                if not (members >> np.uint32(source)) & np.uint32(1):
                    return False
                registers[row[TO], lane] = sent[source]
            block.at[warp, lane] += 1
            block.doing[warp, lane] = RUNS
    if op == Op.WARP_BARRIER:
        memory.clock[NOW] += 1
        memory.warp_times[warp] = memory.clock[NOW]
    return True


@compiled
def meet(row: Any, block: Block, warp: int, lanes: Any, memory: Memory) -> Any:
    """Threads of a warp come to an instruction of several: they wait until all whom it names are there."""
    at, arrived = block.at[warp, lanes[0]], np.uint32(0)
    for lane in lanes:
        block.doing[warp, lane] = AT_SHUFFLE
    members = np.uint32(block.registers[warp, row[Z], lanes[0]])
    for lane in range(LANES):
        if (members >> np.uint32(lane)) & np.uint32(1):
            if block.doing[warp, lane] == DONE:
                return LOST_IN_WARP
            if block.doing[warp, lane] == AT_SHUFFLE and block.at[warp, lane] == at:
                arrived |= np.uint32(1) << np.uint32(lane)
    if arrived != members:
        return ENDED
    return ENDED if exchange(row, block, warp, members, memory) else STUCK


@compiled
def next_threads(block: Block, warp: int, lanes: Any) -> tuple[Any, int, Any]:
    """The least instruction that threads of a warp are at, how many they are, and the next one that others are at.

    `lanes` begins with these threads.
    """
    at, n, others = AFTER_ALL, 0, AFTER_ALL
    for lane in range(LANES):
        if block.doing[warp, lane] == RUNS:
            place = block.at[warp, lane]
            if place < at:
                others, at, n = at, place, 0
            if place == at:
                lanes[n] = lane
                n += 1
            elif place < others:
                others = place
    return at, n, others


@compiled
def run_warp(code: Any, block: Block, warp: int, memory: Memory) -> Any:
    """Let the threads of a warp run until all of them have returned or wait."""
    places = np.zeros(LANES, np.uint64)
    while True:
        at, n, others = next_threads(block, warp, places)
        if n == 0:
            return ENDED
        lanes, first, ends = places[:n], at, False
        while at < others and not ends:
            row = code[at]
            ends = row[OP] >= Op.BRANCH
            if not ends:
                if not execute(row, block, warp, lanes, at, memory):
                    return BAD_ACCESS
                at += 1
        for lane in lanes:
            block.at[warp, lane] = at
        block.counted[ISSUED] += at - first + ends
        block.counted[EXECUTED] += n * (at - first + ends)
        if block.counted[ISSUED] > MOST_ISSUED:
            return TOO_LONG
        if ends:
            how = leave_line(code[at], block, warp, lanes, memory)
            if how != ENDED:
                return how


@compiled
def leave_line(row: Any, block: Block, warp: int, lanes: Any, memory: Memory) -> Any:
    """A branch, a barrier, or an instruction of several threads."""
    if row[OP] <= Op.RETURN:
        branch(row, block, warp, lanes)
    elif row[OP] <= Op.BARRIER_COUNT:
        for lane in lanes:
            block.doing[warp, lane] = AT_BARRIER
    else:
        return meet(row, block, warp, lanes, memory)
    return ENDED


@compiled
def release(code: Any, block: Block, memory: Memory) -> Any:
    """Let the threads go on that wait at a barrier, if all threads do; `ENDED` too if all have returned."""
    at, waiting, done, other = np.int64(-1), 0, 0, 0
    for k in range(block.threads):
        warp, lane = k // LANES, k % LANES
        if block.doing[warp, lane] == DONE:
            done += 1
        elif block.doing[warp, lane] == AT_BARRIER and at in (-1, block.at[warp, lane]):
            at, waiting = block.at[warp, lane], waiting + 1
        else:
            other += 1
    if other > 0:
        return STUCK
    if waiting == 0:
        return ENDED
    if done > 0:
        return LOST_AT_BARRIER
    row = code[at]
    count, op = np.uint64(0), row[OP]
    for k in range(block.threads):
        count += np.uint64(block.registers[k // LANES, row[X], k % LANES] != 0)
    answer = count
    if op == Op.BARRIER_AND:
        answer = np.uint64(count == np.uint64(block.threads))
    elif op == Op.BARRIER_OR:
        answer = np.uint64(count > 0)
    for k in range(block.threads):
        if op != Op.BARRIER:
            block.registers[k // LANES, row[TO], k % LANES] = answer
        block.at[k // LANES, k % LANES] += 1
        block.doing[k // LANES, k % LANES] = RUNS
    memory.clock[NOW] += 1
    memory.clock[BARRIER] = memory.clock[NOW]
    return RELEASED


@njit(cache=True, error_model="numpy")
def run_block(code: Any, block: Block, memory: Memory) -> Any:
    """Let the threads of a block run until all have returned; how it ended."""
    n_warps = block.at.shape[0]
    memory.clock[NOW] += 1
    memory.clock[BLOCK_STARTED] = memory.clock[BARRIER] = memory.clock[NOW]
    block.at[:] = 0
    for k in range(n_warps * LANES):
        block.doing[k // LANES, k % LANES] = RUNS if k < block.threads else DONE
    while True:
        for warp in range(n_warps):
            how = run_warp(code, block, warp, memory)
            if how != ENDED:
                return how
        how = release(code, block, memory)
        if how != RELEASED:
            return how


_text = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
run_block._cache._cache_file._source_stamp = hashlib.sha256(_text).hexdigest()  # Numba looks at this file alone
