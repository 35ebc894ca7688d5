"""Large arrays on their way to the GPU and back: in parts, through memory that stays in place, by several threads.

A GPU copies memory that the operating system may not move several times as fast as other memory. Each thread has two
buffers of it, and fills or empties one while the GPU copies the other. They are made once and kept with the GPU's
context: at most 64 MiB, two of `PART_BYTES` for each of `TRANSFER_THREADS`.
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
"""Bytes of a part: copying them takes many times as long as asking for it."""
TRANSFER_THREADS = 8
"""Threads that copy parts, at most: fewer do not keep the GPU busy, and more wait for each other."""
WORTH_THREADS = 32 << 20
"""Bytes of arrays from which on threads copy them."""
KEPT_BUFFERS = "gainful: buffers of transfers"
"""Where the context keeps them."""
_copies: Any = cuda.cudadrv.driver


class ArrayPart(NamedTuple):
    """A stretch of an array here, and where its numbers, perhaps of another type, are on the GPU."""

    here: NDArray[Any]
    address: int
    dtype: Any
    """Of the numbers on the GPU."""


class DeviceAddress:
    """A place in the memory of the GPU, as numba-cuda's functions for copies expect it."""

    __cuda_memory__ = True

    def __init__(self, address: int) -> None:
        self.device_ctypes_pointer = c_size_t(address)


class TransferBuffer:
    """Memory that stays in place, and the stream on which the GPU copies it."""

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self._memory, self._stream = memory, cuda.stream()
        self._fetched: tuple[NDArray[Any], NDArray[Any]] | None = None

    def send(self, part: ArrayPart) -> None:
        """Begin to copy a part to the GPU; wait for the one before."""
        self.finish()
        numbers = self._numbers(part)
        np.copyto(numbers, part.here, casting="unsafe")
        _copies.host_to_device(DeviceAddress(part.address), numbers, numbers.nbytes, stream=self._stream)

    def fetch(self, part: ArrayPart) -> None:
        """Begin to copy a part from the GPU; wait for the one before."""
        self.finish()
        numbers = self._numbers(part)
        _copies.device_to_host(numbers, DeviceAddress(part.address), numbers.nbytes, stream=self._stream)
        self._fetched = part.here, numbers

    def finish(self) -> None:
        """Wait for the GPU, and put what came from it in its place."""
        self._stream.synchronize()
        if self._fetched is not None:
            np.copyto(*self._fetched, casting="unsafe")
            self._fetched = None

    def _numbers(self, part: ArrayPart) -> NDArray[Any]:
        return self._memory[: part.here.size * part.dtype.itemsize].view(part.dtype)


def parts_of(array: NDArray[Any], dtype: Any, address: int) -> Iterator[ArrayPart]:
    """An array in parts of at most `PART_BYTES`, here and at `address` on the GPU, where its numbers are `dtype`."""
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
    """Move every part by one of as many threads as there are pairs of buffers; each takes the next part when it can.

    `begin` is called in each thread first.
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
    """Move parts through the buffers that are kept, or through new ones where others use these or have failed."""
    context = cuda.current_context()
    pairs = context.extras.pop(KEPT_BUFFERS, None)
    if pairs is None:
        n = min(TRANSFER_THREADS, available_cores())
        memory = cuda.pinned_array((n, 2, PART_BYTES), np.uint8)
        pairs = [[TransferBuffer(half) for half in pair] for pair in memory]
    move_parts(parts, pairs, move, begin=context.push)
    context.extras[KEPT_BUFFERS] = pairs


def uploaded(*arrays: tuple[NDArray[Any], Any]) -> list[Any]:
    """Copies of arrays on the GPU, where the numbers of each have the type beside it."""
    if SIMULATED or sum(array.nbytes for array, _ in arrays) < WORTH_THREADS:
        return [cuda.to_device(np.ascontiguousarray(array, dtype)) for array, dtype in arrays]
    found = [cuda.device_array(array.shape, dtype) for array, dtype in arrays]
    parts = [
        part
        for (array, dtype), there in zip(arrays, found, strict=True)
        for part in parts_of(np.ascontiguousarray(array), dtype, there.device_ctypes_pointer.value)
    ]
    _through_buffers(parts, TransferBuffer.send)
    return found


def downloaded(*arrays: tuple[Any, Any]) -> list[NDArray[Any]]:
    """Copies of arrays of the GPU, whose numbers have the type beside each here."""
    if SIMULATED or sum(array.size * np.dtype(dtype).itemsize for array, dtype in arrays) < WORTH_THREADS:
        return [np.asarray(array.copy_to_host(), dtype) for array, dtype in arrays]
    found = [np.empty(array.shape, dtype) for array, dtype in arrays]
    parts = [
        part
        for (there, _), here in zip(arrays, found, strict=True)
        for part in parts_of(here, there.dtype, there.device_ctypes_pointer.value)
    ]
    _through_buffers(parts, TransferBuffer.fetch)
    return found
