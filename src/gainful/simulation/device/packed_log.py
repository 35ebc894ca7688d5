"""The log of a packed run: 16 bits per step in global memory, written and read in words of four entries.

The thread that steps a run keeps the incomplete last word in a register. It writes a word when the word is full, and at
the end of the launch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful._compiled import inlined
from gainful.simulation.device.packed_layout import ENTRIES_PER_WORD, LOG_CAPACITY, PackedLayout, PackedRuns
from gainful.simulation.device.runs import DeviceCurves, DeviceRuns
from gainful.simulation.device.steps import StepRule, steps_of_launch


@inlined
def open_log(packed: PackedRuns, run: int) -> tuple[Any, Any]:
    """The number of entries in the log of a run, and its incomplete last word; 0 if there is none."""
    n = np.uint32(packed.n_logged[run])
    per_word = np.uint32(ENTRIES_PER_WORD)
    return n, packed.log[run, n // per_word] if n % per_word > 0 else np.uint64(0)


@inlined
def steps_to_log(runs: DeviceRuns, curves: DeviceCurves, rule: StepRule, run: int, n_logged: Any) -> Any:
    """How many steps a run makes in this launch, if its episode does not end before."""
    n = steps_of_launch(runs.step[run], curves.checkpoints[np.int64(runs.passed[run])], rule.steps_divisor)
    return np.uint32(min(n, np.int64(LOG_CAPACITY) - np.int64(n_logged)))


@inlined
def append_to_log(packed: PackedRuns, run: int, n: Any, word: Any, entry: Any) -> Any:
    """Append entry number n to the log of a run; returns the last word, which is written once it is full."""
    word = (word >> np.uint64(16)) | (np.uint64(entry) << np.uint64(48))
    if n % np.uint32(ENTRIES_PER_WORD) == np.uint32(ENTRIES_PER_WORD - 1):
        packed.log[run, n // np.uint32(ENTRIES_PER_WORD)] = word
    return word


@inlined
def close_log(packed: PackedRuns, run: int, n: Any, word: Any) -> None:
    """Store the number of entries, and the last word if it is incomplete."""
    packed.n_logged[run] = n
    if n % np.uint32(ENTRIES_PER_WORD) > 0:
        packed.log[run, n // np.uint32(ENTRIES_PER_WORD)] = word


@inlined
def read_log_word(packed: PackedRuns, run: int, n: Any, i: Any) -> tuple[Any, Any]:
    """Word i of a log of n entries, its first entry in the low bits, and the number of its entries."""
    word, left = packed.log[run, i], np.uint32(n - i * np.uint32(ENTRIES_PER_WORD))
    if left < ENTRIES_PER_WORD:  # the incomplete last word
        return word >> np.uint64(16) * np.uint64(np.uint32(ENTRIES_PER_WORD) - left), left
    return word, np.uint32(ENTRIES_PER_WORD)


@inlined
def entry_state(layout: PackedLayout, entry: Any) -> Any:
    """The state of a log entry, entry // pitch; exact for 16 bits, and a product is faster than a division."""
    return np.uint32((np.uint64(entry) * layout.inverse_pitch) >> np.uint64(32))
