"""The arrays of a launch, and who used which part of them when: every access is checked.

Addresses are real ones: an array of the emulated GPU is a NumPy array, and so is shared memory. Memory is divided into
cells, each as long as the shortest number that an array there has. A cell remembers its last write and two reads by
different threads, with the time: a clock that moves on at every barrier.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tests.gpu.emulator.operations import compiled, inlined
from tests.gpu.emulator.ptx import SHARED

WRITE_TIME, WRITTEN_BY, READ_TIME, READ_BY, OTHER_TIME, OTHER_BY = range(6)
"""Columns of `Memory.marks`. Who it was: the thread, and in the low 32 bits the instruction, or its complement if that
was atomic."""
NOW, LAUNCHED, BLOCK_STARTED, BARRIER = range(4)
"""Places of the clock: the time, and when the launch, the block, and what follows the last barrier began."""
READING, WRITING, ADDING = range(3)
FINE, OUTSIDE, MISALIGNED, RACE = range(4)
"""What may be wrong with an access."""
PROBLEM, INSTRUCTION, THREAD, ADDRESS, BY_INSTRUCTION, BY_THREAD = range(6)
"""Columns of a report."""
MOST_REPORTS = 32


class Memory(NamedTuple):
    """All memory that a launch may use: arrays by their addresses, shared memory last."""

    first: Any
    last: Any
    """uint64 (ranges,): from `first` to before `last`. The last range is shared memory, whatever its address."""
    shift: Any
    """(ranges,) a cell has 2**shift bytes."""
    cell: Any
    """(ranges,) where the cells of a range begin among all."""
    marks: Any
    """int64 (cells, 6)."""
    clock: Any
    """int64 (4,)."""
    warp_times: Any
    """int64 (warps,): when what follows the last barrier of a warp began."""
    reports: Any
    """int64 (MOST_REPORTS, 6): what was found, once for each pair of instructions."""


class Access(NamedTuple):
    """One access: what is done, where, by whom."""

    how: Any
    space: Any
    address: Any
    size: Any
    instruction: Any
    thread: Any
    """Its number in the grid."""
    first: Any
    """The first thread of its block."""
    threads: Any
    """Threads of a block."""


def _at_address(typing: Any, address: Any, bits: int) -> Any:
    number = getattr(types, f"uint{bits}")

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer()))

    return number(types.uint64), build


def _to_address(typing: Any, address: Any, value: Any, bits: int) -> Any:
    number = getattr(types, f"uint{bits}")

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[1], builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer()))
        return context.get_dummy_value()

    return types.void(types.uint64, number), build


load_8 = intrinsic(lambda typing, address: _at_address(typing, address, 8))
load_16 = intrinsic(lambda typing, address: _at_address(typing, address, 16))
load_32 = intrinsic(lambda typing, address: _at_address(typing, address, 32))
load_64 = intrinsic(lambda typing, address: _at_address(typing, address, 64))
store_8 = intrinsic(lambda typing, address, value: _to_address(typing, address, value, 8))
store_16 = intrinsic(lambda typing, address, value: _to_address(typing, address, value, 16))
store_32 = intrinsic(lambda typing, address, value: _to_address(typing, address, value, 32))
store_64 = intrinsic(lambda typing, address, value: _to_address(typing, address, value, 64))


@inlined
def loaded(address: Any, size: int) -> Any:
    """The number of `size` bytes at an address."""
    if size == 8:
        return load_64(address)
    if size == 4:
        return np.uint64(load_32(address))
    return np.uint64(load_16(address)) if size == 2 else np.uint64(load_8(address))


@inlined
def store(address: Any, size: int, value: Any) -> None:
    """Write a number of `size` bytes to an address."""
    if size == 8:
        store_64(address, value)
    elif size == 4:
        store_32(address, np.uint32(value))
    elif size == 2:
        store_16(address, np.uint16(value))
    else:
        store_8(address, np.uint8(value))


@compiled
def report(memory: Memory, problem: int, a: Access, by: int) -> None:
    """Note a problem, unless it has been noted for these instructions; `by` is who else was there."""
    other = by & np.int64(2**32 - 1)
    other = np.int64(other ^ (2**32 - 1)) if other >= 2**31 else np.int64(other)
    for row in memory.reports:
        if row[PROBLEM] == FINE:
            row[PROBLEM], row[INSTRUCTION], row[THREAD] = problem, a.instruction, a.thread
            row[ADDRESS], row[BY_INSTRUCTION], row[BY_THREAD] = np.int64(a.address), other, by >> 32
            return
        if row[PROBLEM] == problem and row[INSTRUCTION] == a.instruction and row[BY_INSTRUCTION] == other:
            return


@inlined
def range_of(memory: Memory, a: Access) -> int:
    """The range of memory that an access lies in; -1 if it is beyond all."""
    n = memory.first.size
    if a.space == SHARED:
        at = n - 1
    else:
        low, high = 0, n - 1  # the last range of global memory that begins at the address or before it
        while low < high:
            middle = (low + high) // 2
            if memory.first[middle] <= a.address:
                low = middle + 1
            else:
                high = middle
        at = low - 1
    inside = at >= 0 and memory.first[at] <= a.address and a.address + np.uint64(a.size) <= memory.last[at]
    return at if inside else -1


@inlined
def in_order(memory: Memory, a: Access, time: Any, by: Any) -> Any:
    """Whether an earlier access was by the same thread, or a barrier lies between."""
    other, clock = by >> 32, memory.clock
    began = clock[BLOCK_STARTED] if a.space == SHARED else clock[LAUNCHED]  # shared memory is each block's own
    if other == a.thread or time < began:
        return True
    place, warp = other - a.first, (a.thread - a.first) >> 5
    if not 0 <= place < a.threads:
        return False
    return time < clock[BARRIER] or (place >> 5 == warp and time < memory.warp_times[warp])


@inlined
def both_atomic(a: Access, by: Any) -> Any:
    """Whether two accesses are atomic: then their order does not matter."""
    return a.how == ADDING and (by & np.int64(2**32 - 1)) >= 2**31


@inlined
def mark(memory: Memory, at: int, a: Access, same: bool) -> None:
    """Compare an access with what is known of a cell, and note it there; `same`: it writes what is there already."""
    marks, now = memory.marks, memory.clock[NOW]
    low = a.instruction ^ (2**32 - 1) if a.how == ADDING else a.instruction
    me = np.int64((a.thread << 32) | low)
    written, by = marks[at, WRITE_TIME], marks[at, WRITTEN_BY]
    harmless = (same and a.how == WRITING) or both_atomic(a, by)
    if written > 0 and not harmless and not in_order(memory, a, written, by):
        report(memory, RACE, a, by)
    read, reader = marks[at, READ_TIME], marks[at, READ_BY]
    if a.how == READING:
        if reader >> 32 != a.thread and not in_order(memory, a, read, reader):
            marks[at, OTHER_TIME], marks[at, OTHER_BY] = read, reader
        marks[at, READ_TIME], marks[at, READ_BY] = now, me
        return
    if read > 0 and not in_order(memory, a, read, reader):
        report(memory, RACE, a, reader)
    other_read, other_reader = marks[at, OTHER_TIME], marks[at, OTHER_BY]
    if other_read > 0 and not in_order(memory, a, other_read, other_reader):
        report(memory, RACE, a, other_reader)
    marks[at, WRITE_TIME], marks[at, WRITTEN_BY] = now, me


@inlined
def checked(memory: Memory, a: Access, value: Any) -> bool:
    """Whether an access is possible at all; races are noted, and it goes on."""
    if a.address & np.uint64(a.size - 1):
        report(memory, MISALIGNED, a, 0)
        return False
    at = range_of(memory, a)
    if at < 0:
        report(memory, OUTSIDE, a, 0)
        return False
    shift = memory.shift[at]
    same = a.how == WRITING and loaded(a.address, a.size) == value
    first = memory.cell[at] + (np.int64(a.address - memory.first[at]) >> shift)
    for i in range(max(1, a.size >> shift)):
        mark(memory, first + i, a, same)
    return True
