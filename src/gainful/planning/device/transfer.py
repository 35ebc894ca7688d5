"""Transfers of large arrays to the GPU and back, in parts, through pinned memory, with several threads.

A GPU copies pinned (page-locked) memory several times as fast as other memory. Each thread has two pinned buffers: it
fills or empties one while the GPU copies the other. The buffers are made once and kept with the GPU's context: at most
64 MiB, two of `PART_BYTES` for each of `TRANSFER_THREADS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_size_t
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.cuda_device import SIMULATED, cuda
from gainful.machine import available_cores

PART_BYTES = 4 << 20
"""Bytes of a part; copying it takes much longer than starting the copy."""
TRANSFER_THREADS = 8
"""The most threads that copy parts: fewer do not keep the GPU busy, and more wait for each other."""
WORTH_THREADS = 32 << 20
"""Arrays with at least this many bytes are copied by threads."""
KEPT_BUFFERS = "gainful: buffers of transfers"
"""The key of the buffers in the context."""
_copies: Any = cuda.cudadrv.driver


class ArrayPart(NamedTuple):
    """A part of an array in the CPU's memory, and the address on the GPU of its numbers, perhaps of another type."""

    host: NDArray[Any]
    address: int
    dtype: Any
    """The type of the numbers on the GPU."""


class DeviceAddress:
    """An address of the GPU, in the form that numba-cuda's copy functions expect."""

    __cuda_memory__ = True

    def __init__(self, address: int) -> None:
        self.device_ctypes_pointer = c_size_t(address)


class TransferBuffer:
    """A pinned buffer, and the stream on which the GPU copies it."""

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self._memory, self._stream = memory, cuda.stream()
        self._fetched: tuple[NDArray[Any], NDArray[Any]] | None = None

    def send(self, part: ArrayPart) -> None:
        """Wait for the last copy, and start to copy a part to the GPU."""
        self.finish()
        numbers = self._numbers(part)
        np.copyto(numbers, part.host, casting="unsafe")
        _copies.host_to_device(DeviceAddress(part.address), numbers, numbers.nbytes, stream=self._stream)

    def fetch(self, part: ArrayPart) -> None:
        """Wait for the last copy, and start to copy a part from the GPU."""
        self.finish()
        numbers = self._numbers(part)
        _copies.device_to_host(numbers, DeviceAddress(part.address), numbers.nbytes, stream=self._stream)
        self._fetched = part.host, numbers

    def finish(self) -> None:
        """Wait for the GPU, and copy a fetched part to its array."""
        self._stream.synchronize()
        if self._fetched is not None:
            np.copyto(*self._fetched, casting="unsafe")
            self._fetched = None

    def _numbers(self, part: ArrayPart) -> NDArray[Any]:
        return self._memory[: part.host.size * part.dtype.itemsize].view(part.dtype)


def parts_of(array: NDArray[Any], dtype: Any, address: int) -> Iterator[ArrayPart]:
    """Divide an array into parts of at most `PART_BYTES`; on the GPU it begins at `address` and has type `dtype`."""
    flat, dtype = array.reshape(-1), np.dtype(dtype)
    size = PART_BYTES // max(flat.itemsize, dtype.itemsize)
    for at in range(0, flat.size, size):
        yield ArrayPart(flat[at : at + size], address + at * dtype.itemsize, dtype)


def move_parts(
    parts: list[ArrayPart],
    pairs: Sequence[Sequence[Any]],
    move: Callable[[Any, ArrayPart], None],
    begin: Callable[[], None] | None = None,
) -> None:
    """Move all parts with one thread for each pair of buffers; a thread takes the next part when it is free.

    Each thread calls `begin` first.
    """
    waiting = iter(parts)  # the iterator of a list gives each part to one thread

    def work(buffers: Sequence[Any]) -> None:
        for buffer, part in zip(cycle(buffers), waiting):
            move(buffer, part)
        for buffer in buffers:
            buffer.finish()

    with ThreadPoolExecutor(len(pairs), initializer=begin) as pool:
        list(pool.map(work, pairs))


def _through_buffers(parts: list[ArrayPart], move: Callable[[TransferBuffer, ArrayPart], None]) -> None:
    """Move parts through the kept buffers, or through new ones if another thread uses these or they were lost."""
    context = cuda.current_context()
    pairs = context.extras.pop(KEPT_BUFFERS, None)
    if pairs is None:
        n = min(TRANSFER_THREADS, available_cores())
        memory = cuda.pinned_array((n, 2, PART_BYTES), np.uint8)
        pairs = [[TransferBuffer(half) for half in pair] for pair in memory]
    move_parts(parts, pairs, move, begin=context.push)
    context.extras[KEPT_BUFFERS] = pairs


def uploaded(*arrays: tuple[NDArray[Any], Any]) -> list[Any]:
    """Copy arrays to the GPU, each with the type that it is given with."""
    if SIMULATED or sum(array.nbytes for array, _ in arrays) < WORTH_THREADS:
        return [cuda.to_device(np.ascontiguousarray(array, dtype)) for array, dtype in arrays]
    found = [cuda.device_array(array.shape, dtype) for array, dtype in arrays]
    parts = [
        part
        for (array, dtype), copy in zip(arrays, found, strict=True)
        for part in parts_of(np.ascontiguousarray(array), dtype, copy.device_ctypes_pointer.value)
    ]
    _through_buffers(parts, TransferBuffer.send)
    return found


def downloaded(*arrays: tuple[Any, Any]) -> list[NDArray[Any]]:
    """Copy arrays from the GPU, each with the type that it is given with."""
    if SIMULATED or sum(array.size * np.dtype(dtype).itemsize for array, dtype in arrays) < WORTH_THREADS:
        return [np.asarray(array.copy_to_host(), dtype) for array, dtype in arrays]
    found = [np.empty(array.shape, dtype) for array, dtype in arrays]
    parts = [
        part
        for (array, _), copy in zip(arrays, found, strict=True)
        for part in parts_of(copy, array.dtype, array.device_ctypes_pointer.value)
    ]
    _through_buffers(parts, TransferBuffer.fetch)
    return found
