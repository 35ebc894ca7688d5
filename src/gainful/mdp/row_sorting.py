"""Rows sorted by next state, in place and in compiled code: one pass over large models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful._compiled import kernel

SHORT_ROW = 32
"""Entries up to which a row is sorted by insertion."""
COMPILED_FROM = 200_000
"""Entries from which a compiled pass takes less time than loading it."""


@kernel
def sort_by_next_state(ptr: NDArray[Any], idx: NDArray[Any], p: NDArray[Any]) -> None:
    """Sort each row by next state, equal ones in their order."""
    for k in range(ptr.size - 1):
        begin, end = ptr[k], ptr[k + 1]
        if end - begin <= SHORT_ROW:
            for i in range(begin + 1, end):
                state, weight = idx[i], p[i]
                j = i
                while j > begin and idx[j - 1] > state:
                    idx[j], p[j] = idx[j - 1], p[j - 1]
                    j -= 1
                idx[j], p[j] = state, weight
        else:
            order = np.argsort(idx[begin:end], kind="mergesort")
            idx[begin:end] = idx[begin:end][order]
            p[begin:end] = p[begin:end][order]


@kernel
def sort_by_reward(ptr: NDArray[Any], idx: NDArray[Any], p: NDArray[Any], rewards: NDArray[Any]) -> None:
    """Sort each row by next state, then by reward, equal ones in their order."""
    for k in range(ptr.size - 1):
        begin, end = ptr[k], ptr[k + 1]
        if end - begin <= SHORT_ROW:
            for i in range(begin + 1, end):
                state, weight, reward = idx[i], p[i], rewards[i]
                j = i
                while j > begin and (idx[j - 1] > state or (idx[j - 1] == state and rewards[j - 1] > reward)):
                    idx[j], p[j], rewards[j] = idx[j - 1], p[j - 1], rewards[j - 1]
                    j -= 1
                idx[j], p[j], rewards[j] = state, weight, reward
        else:
            by_reward = np.argsort(rewards[begin:end], kind="mergesort")
            order = by_reward[np.argsort(idx[begin:end][by_reward], kind="mergesort")]
            idx[begin:end] = idx[begin:end][order]
            p[begin:end] = p[begin:end][order]
            rewards[begin:end] = rewards[begin:end][order]


@kernel
def divide_rows(ptr: NDArray[Any], p: NDArray[Any], rows: NDArray[Any], by: NDArray[Any]) -> None:
    """Divide the entries of `rows` by one number each."""
    for i in range(rows.size):
        for j in range(ptr[rows[i]], ptr[rows[i] + 1]):
            p[j] /= by[i]
