"""The records that an agent keeps of its episodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

EPISODE_RECORD = np.dtype(
    [
        ("step", "i8"),
        ("gain", "f8"),
        ("gain_low", "f8"),
        ("gain_high", "f8"),
        ("span", "f8"),
        ("sweeps", "i8"),
        ("planning_seconds", "f8"),
    ]
)
"""One record per episode: first step t_k (from 1), planner's gain with its bracket, sp(v_k), sweeps, CPU seconds."""


class EpisodeLog:
    """Records of episodes, appended one by one to an array that doubles: a million episodes are 56 MB."""

    def __init__(self, records: NDArray[Any] | None = None) -> None:
        self._kept = np.zeros(16, dtype=EPISODE_RECORD) if records is None or not len(records) else records.copy()
        self._n = 0 if records is None else len(records)

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, i: int) -> tuple[Any, ...]:
        record: tuple[Any, ...] = self.array[i].item()
        return record

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.array.tolist())

    def append(self, record: tuple[Any, ...]) -> None:
        """Add the record of one more episode."""
        if self._n == self._kept.size:
            self._kept = np.concatenate([self._kept, np.zeros_like(self._kept)])
        self._kept[self._n] = record
        self._n += 1

    @property
    def array(self) -> NDArray[Any]:
        """All records, as a view."""
        return self._kept[: self._n]
