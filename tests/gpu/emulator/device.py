"""The emulated GPU in the place of the real one: kernels are compiled for an H200, and run by `machine`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from ctypes import c_size_t, memmove
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from numba import typeof, types

from gainful import cuda_device
from gainful.cuda_device import STATIC_SHARED_BYTES, DeviceKernel, _Exact, cuda
from tests.gpu.emulator.machine import (
    BAD_ACCESS,
    ENDED,
    EXECUTED,
    ISSUED,
    LANES,
    LOST_AT_BARRIER,
    LOST_IN_WARP,
    STUCK,
    TOO_LONG,
    Block,
    run_block,
)
from tests.gpu.emulator.memory import (
    ADDRESS,
    BY_INSTRUCTION,
    BY_THREAD,
    FINE,
    INSTRUCTION,
    LAUNCHED,
    MISALIGNED,
    MOST_REPORTS,
    NOW,
    OUTSIDE,
    PROBLEM,
    RACE,
    THREAD,
    Memory,
)
from tests.gpu.emulator.ptx import Program, parse, starting_values

CAPABILITY = (9, 0)
"""Of the GPU that kernels are compiled for: an H100 or H200."""
GPU = SimpleNamespace(
    id=0,
    name="emulated GPU",
    compute_capability=CAPABILITY,
    MULTIPROCESSOR_COUNT=2,
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=232_448,
)
AT_ONCE = 4
"""Blocks that run at a time, where a launch has no more."""
POISON = 0xA5
"""What memory holds that nobody has written."""
HOW = {
    BAD_ACCESS: "a forbidden access to memory",
    STUCK: "threads wait for each other at different places",
    LOST_AT_BARRIER: "threads wait at a barrier for others that have returned",
    LOST_IN_WARP: "threads of a warp wait for others that have returned",
    TOO_LONG: "no end",
}
WHAT = {
    OUTSIDE: "outside of all arrays",
    MISALIGNED: "at an address that is no multiple of its size",
    RACE: "in a race",
}


class EmulationError(Exception):
    """Something that a kernel may not do on a GPU."""


class ArrayHere(np.ndarray[Any, Any]):
    """An array of the emulated GPU."""

    @property
    def device_ctypes_pointer(self) -> c_size_t:
        """Its address."""
        return c_size_t(self.ctypes.data)

    def copy_to_host(self) -> np.ndarray[Any, Any]:
        """A copy."""
        return np.array(self)

    def copy_to_device(self, numbers: Any) -> None:
        """Write numbers to the array."""
        self[...] = numbers


def array_here(shape: Any, dtype: Any = np.float64) -> ArrayHere:
    """A new array, whose numbers are not set."""
    found = np.empty(shape, dtype)
    found.reshape(-1).view(np.uint8)[:] = POISON
    return found.view(ArrayHere)


def zeros_here(shape: Any, dtype: Any = np.float64) -> ArrayHere:
    """An array of zeros."""
    return np.zeros(shape, dtype).view(ArrayHere)


def copy_here(array: Any) -> ArrayHere:
    """A copy of an array."""
    return np.array(array, order="C").view(ArrayHere)


class DelayedStream:
    """A stream that copies as late as it may: what is changed before, or read before, shows."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], object]] = []

    def add(self, copy: Callable[[], object]) -> None:
        """Copy later."""
        self._waiting.append(copy)

    def synchronize(self) -> None:
        """Copy now what waits."""
        for copy in self._waiting:
            copy()
        self._waiting.clear()


def host_to_device(there: Any, here: np.ndarray[Any, Any], n_bytes: int, stream: DelayedStream) -> None:
    """Copy an array to an address of the GPU."""
    stream.add(lambda: memmove(there.device_ctypes_pointer.value, here.ctypes.data, n_bytes))


def device_to_host(here: np.ndarray[Any, Any], there: Any, n_bytes: int, stream: DelayedStream) -> None:
    """Copy an array from an address of the GPU."""
    stream.add(lambda: memmove(here.ctypes.data, there.device_ctypes_pointer.value, n_bytes))


def flattened(kind: Any, argument: Any) -> tuple[list[Any], list[np.ndarray[Any, Any]]]:
    """The parameters that an argument is passed as, and the arrays in it: what numba-cuda does at a launch."""
    if isinstance(kind, types.Array):
        place = [0, 0, argument.size, argument.itemsize, argument.ctypes.data, *argument.shape, *argument.strides]
        return place, [argument]
    if isinstance(kind, types.BaseTuple):
        parts = [flattened(of, value) for of, value in zip(kind, argument, strict=True)]
        return [x for numbers, _ in parts for x in numbers], [a for _, arrays in parts for a in arrays]
    return [float(argument) if isinstance(kind, types.Float) else int(argument)], []


def memory_of(program: Program, arrays: list[np.ndarray[Any, Any]], shared: np.ndarray[Any, Any], n: int) -> Memory:
    """All memory that a launch with n warps in a block may use; arrays that share theirs are one range."""
    ranges: list[list[int]] = []
    for array in sorted(arrays, key=lambda a: a.ctypes.data):
        if array.size == 0:
            continue
        first, size = array.ctypes.data, array.itemsize
        if ranges and first < ranges[-1][1]:
            ranges[-1][1] = max(ranges[-1][1], first + array.nbytes)
            ranges[-1][2] = min(ranges[-1][2], size)
        else:
            ranges.append([first, first + array.nbytes, size])
    ranges.append([shared.ctypes.data, shared.ctypes.data + shared.nbytes, program.shortest_shared()])
    cells = np.cumsum([0, *(-(-(last - first) // size) for first, last, size in ranges)])
    columns = np.array(ranges, dtype=np.uint64)
    return Memory(
        first=columns[:, 0].copy(),
        last=columns[:, 1].copy(),
        shift=np.log2(columns[:, 2]).astype(np.int64),
        cell=cells[:-1].astype(np.int64),
        marks=np.zeros((int(cells[-1]), 6), np.int64),
        clock=CLOCK,
        warp_times=np.zeros(n, np.int64),
        reports=np.zeros((MOST_REPORTS, 6), np.int64),
    )


CLOCK = np.zeros(4, np.int64)
PROGRAMS: dict[tuple[Any, Any], Program] = {}
COUNTED: dict[str, Counter[str]] = {}
"""Of each kernel: launches, instructions of warps and of threads."""


class EmulatedLaunch:
    """A launch of a kernel with its arguments; it can be repeated."""

    def __init__(self, kernel: Any, where: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        self.name, self._arguments = kernel.__name__, arguments
        self._blocks, threads, *shared = where
        kinds = tuple(typeof(argument) for argument in arguments)
        self._program = program_of(kernel, kinds)
        parts = [flattened(kind, argument) for kind, argument in zip(kinds, arguments, strict=True)]
        parameters = [x for numbers, _ in parts for x in numbers]
        n_warps = -(-threads // LANES)
        dynamic = shared[0] if shared else 0
        places, size = shared_places(self._program, dynamic)
        self._shared = np.zeros(size + 16, np.uint8)
        self._shared = self._shared[-self._shared.ctypes.data % 16 :][:size]
        self._memory = memory_of(self._program, [a for _, arrays in parts for a in arrays], self._shared, n_warps)
        values = starting_values(self._program, parameters)
        for name, place in places.items():
            if name in self._program.registers:
                values[self._program.registers[name]] = self._shared.ctypes.data + place
        self._start = np.zeros((n_warps, len(self._program.registers), LANES), np.uint64)
        for register, value in values.items():
            self._start[:, register] = np.uint64(value)
        thread = np.arange(n_warps * LANES, dtype=np.uint64).reshape(n_warps, LANES)
        self._special("%tid.x", thread)
        self._special("%laneid", thread % np.uint64(LANES))
        self._special("%ntid.x", np.uint64(threads))
        self._special("%nctaid.x", np.uint64(self._blocks))
        self._special("%dynamic_smem_size", np.uint64(dynamic))
        self._block = Block(
            registers=np.zeros_like(self._start),
            at=np.zeros((n_warps, LANES), np.int64),
            doing=np.zeros((n_warps, LANES), np.int64),
            number=np.zeros(1, np.int64),
            threads=threads,
            counted=np.zeros(2, np.int64),
        )

    def _special(self, name: str, value: Any) -> None:
        if name in self._program.registers:
            self._start[:, self._program.registers[name]] = value

    def __call__(self) -> None:
        """Run all blocks."""
        block, memory = self._block, self._memory
        CLOCK[NOW] += 1
        CLOCK[LAUNCHED] = CLOCK[NOW]
        block.counted[:] = 0
        for number in range(self._blocks):
            self._special("%ctaid.x", np.uint64(number))
            block.registers[:] = self._start
            block.number[0] = number
            self._shared[:] = POISON
            how = run_block(self._program.code, block, memory)
            if how != ENDED:
                raise EmulationError(f"{self.name}, block {number}: {HOW[how]}\n{self._places()}\n{self._reports()}")
        tally = COUNTED.setdefault(self.name, Counter())
        tally.update(launches=1, issued=int(block.counted[ISSUED]), executed=int(block.counted[EXECUTED]))
        if memory.reports[0, PROBLEM] != FINE:
            raise EmulationError(f"{self.name}:\n{self._reports()}")

    def _places(self) -> str:
        """Where threads are."""
        text, threads = self._program.text, range(self._block.threads)
        places = Counter(int(self._block.at[k // LANES, k % LANES]) for k in threads)
        return "\n".join(f"  {n} threads at {at}: {text[at]}" for at, n in sorted(places.items()))

    def _reports(self) -> str:
        """What was found, a line each."""
        text, lines = self._program.text, []
        for row in self._memory.reports:
            if row[PROBLEM] != FINE:
                at, by = int(row[INSTRUCTION]), int(row[BY_INSTRUCTION])
                line = f"  thread {row[THREAD]}, instruction {at} ({text[at]}), {WHAT[int(row[PROBLEM])]}"
                if row[PROBLEM] == RACE:
                    line += f" with thread {row[BY_THREAD]}, instruction {by} ({text[by]})"
                lines.append(f"{line}, address {int(row[ADDRESS]):#x}")
        return "\n".join(lines)


def shared_places(program: Program, dynamic: int) -> tuple[dict[str, int], int]:
    """Where the arrays of shared memory are, those whose size is given at the launch all at its end; and its size."""
    places, size = {}, 0
    for array in program.shared:
        if array.size:
            size += -size % array.align
            places[array.name] = size
            size += array.size
    if dynamic and size > STATIC_SHARED_BYTES:
        raise EmulationError(
            f"{size} bytes of a kernel's own shared memory, where launches leave room for {STATIC_SHARED_BYTES}"
        )
    size += -size % 16
    places |= {array.name: size for array in program.shared if not array.size}
    if size + dynamic > GPU.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        raise EmulationError(f"{size + dynamic} bytes of shared memory are more than a block can have")
    return places, size + dynamic


def program_of(kernel: Any, kinds: tuple[Any, ...]) -> Program:
    """A kernel compiled by NVIDIA's compiler, for arguments of these types."""
    key = kernel.__wrapped__, kinds
    if key not in PROGRAMS:
        with _Exact(), patch.object(cuda.dispatcher, "get_current_device", lambda: GPU):
            code, _ = cuda.compile_ptx(kernel.__wrapped__, kinds, cc=CAPABILITY)
        PROGRAMS[key] = parse(code)
    return PROGRAMS[key]


def emulate_gpu() -> None:
    """Let numba-cuda believe in the emulated GPU, before any module with kernels is imported."""

    def prepared(kernel: Any, where: tuple[int, ...], *arguments: Any, at_once: bool = False) -> EmulatedLaunch:
        blocks, *others = where
        return EmulatedLaunch(kernel, (min(blocks, AT_ONCE) if at_once else blocks, *others), arguments)

    def launched(kernel: Any, where: tuple[int, ...]) -> Any:
        return lambda *arguments: EmulatedLaunch(kernel, where, arguments)()

    cuda.get_current_device = lambda: GPU
    memory = SimpleNamespace(free=1 << 30, total=1 << 30)
    context = SimpleNamespace(get_memory_info=lambda: memory, extras={}, push=lambda: None)
    cuda.current_context, cuda.is_available = lambda: context, lambda: True
    cuda.device_array, cuda.to_device, cuda.stream, cuda.pinned_array = array_here, copy_here, DelayedStream, array_here
    cuda.cudadrv.driver.host_to_device = host_to_device
    cuda.cudadrv.driver.device_to_host = device_to_host
    cuda_device.device_zeros = zeros_here
    DeviceKernel.prepared, DeviceKernel.__getitem__ = prepared, launched  # type: ignore[assignment, method-assign]
