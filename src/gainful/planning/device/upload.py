"""Large arrays on their way to the GPU: in parts, through memory that stays in place, by several threads.

A GPU copies from memory that the operating system may not move several times as fast as from other memory.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.cuda_device import SIMULATED, cuda

UPLOAD_PART, UPLOAD_THREADS = 16 << 20, 8
"""Bytes of a part, and threads that copy parts into memory that stays in place, from where the GPU takes them."""


class Uploader:
    """Copies arrays to the GPU; `close` returns the memory that stays in place."""

    def __init__(self) -> None:
        self._buffers: Any = None

    def uploaded(self, array: NDArray[Any]) -> Any:
        """A copy of an array on the GPU."""
        flat = np.ascontiguousarray(array)
        if SIMULATED or flat.nbytes < UPLOAD_PART:
            return cuda.to_device(flat)
        if self._buffers is None:
            self._buffers = cuda.pinned_array((UPLOAD_THREADS, UPLOAD_PART), np.uint8)
        there, context = cuda.device_array(flat.shape, flat.dtype), cuda.current_context()

        def work(thread: int) -> None:
            context.push()
            try:
                _send(flat, there, self._buffers[thread], thread)
            finally:
                context.pop()

        with ThreadPoolExecutor(UPLOAD_THREADS) as pool:
            list(pool.map(work, range(UPLOAD_THREADS)))
        return there

    def close(self) -> None:
        """Return the memory."""
        self._buffers = None


def _send(flat: NDArray[Any], there: Any, buffer: NDArray[np.uint8], thread: int) -> None:
    """Copy every n-th part of an array, from part `thread` on; n is the number of threads."""
    size, stream, numbers = UPLOAD_PART // flat.itemsize, cuda.stream(), buffer.view(flat.dtype)
    for at in range(thread * size, flat.size, UPLOAD_THREADS * size):
        part = flat[at : at + size]
        np.copyto(numbers[: part.size], part)
        there[at : at + part.size].copy_to_device(numbers[: part.size], stream=stream)
        stream.synchronize()
