"""Arrays on their way to a GPU: which part goes where, without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is an extra")

from gainful.planning.device.transfer import PART_BYTES, ArrayPart, move_parts, parts_of  # after the skip


class Ferry:
    """A buffer that copies a part when the next one comes, as a GPU would in its own time."""

    def __init__(self, there: np.ndarray[Any, Any]) -> None:
        self._there = there
        self._on_board: ArrayPart | None = None

    def send(self, part: ArrayPart) -> None:
        self.finish()
        self._on_board = part

    def finish(self) -> None:
        if self._on_board is not None:
            part, self._on_board = self._on_board, None
            size = part.dtype.itemsize
            place = self._there[part.address : part.address + part.host.size * size].view(part.dtype)
            np.copyto(place, part.host, casting="unsafe")


def test_every_part_arrives_once_by_whichever_thread_is_ready() -> None:
    rng = np.random.default_rng(0)
    long, wide = rng.integers(0, 2**32, size=PART_BYTES, dtype=np.int64), rng.random(PART_BYTES // 8 + 3)
    there = np.zeros(4 * long.size + wide.nbytes, np.uint8)
    parts = [*parts_of(long, np.uint32, 0), *parts_of(wide, np.float64, 4 * long.size)]
    assert [part.host.size for part in parts[-2:]] == [PART_BYTES // 8, 3]
    assert max(part.host.size * max(8, part.dtype.itemsize) for part in parts) == PART_BYTES
    began: list[int] = []
    ferries = [[Ferry(there), Ferry(there)] for _ in range(3)]
    move_parts(parts, ferries, Ferry.send, begin=lambda: began.append(1))
    np.testing.assert_array_equal(there[: 4 * long.size].view(np.uint32), long)
    np.testing.assert_array_equal(there[4 * long.size :].view(np.float64), wide)
    assert 1 <= len(began) <= 3


def test_an_error_of_a_thread_is_not_lost() -> None:
    def fail(_: Any, part: ArrayPart) -> None:
        raise OSError(part.address)

    idle = Ferry(np.zeros(0, np.uint8))
    with pytest.raises(OSError, match="16"):
        move_parts(list(parts_of(np.zeros(1), np.float64, 16)), [[idle, idle]], fail)
