"""How long it takes to build a large MDP from rows, and how much memory: `python benchmarks/building.py [transitions]`.

Rows are checked and normalised; next states are random, in increasing order or in random order, in which case every row
has to be sorted. Compared with copying the arrays, with SciPy, which sorts and merges copies of the rows and adds them
up, with working on all rows at once instead of on parts of them, with sorting by NumPy, and with solving the MDP. CPU
seconds of all threads, the best of several; memory at the peak, without the arrays that were given, relative to that of
the MDP.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

import gainful as gf
from gainful.machine import available_cores
from gainful.mdp import parts, rows

ACTIONS, SUPPORT = 4, 8
TIMES = 5
SORTED_BY_NUMPY = 10_000_000
"""The most transitions that NumPy sorts here."""
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def arrays(transitions: int, in_order: bool) -> Arrays:
    """indptr, next states, probabilities, rewards."""
    rng = np.random.default_rng(0)
    n_states = transitions // (ACTIONS * SUPPORT)
    n_pairs, width = n_states * ACTIONS, n_states // SUPPORT
    next_state = rng.integers(0, width, (n_pairs, SUPPORT), dtype=np.uint32)
    next_state += np.arange(SUPPORT, dtype=np.uint32) * np.uint32(width)
    if not in_order:
        next_state = rng.permuted(next_state, axis=1)
    probability = rng.random((n_pairs, SUPPORT))
    probability /= probability.sum(axis=1, keepdims=True)
    return (
        np.arange(0, n_pairs * SUPPORT + 1, SUPPORT),
        next_state.reshape(-1),
        probability.reshape(-1),
        rng.random((n_states, ACTIONS)),
    )


def seconds(function: Callable[[], Any], times: int = TIMES) -> tuple[float, float]:
    """CPU seconds of all threads, and seconds; the least of several times."""
    found = []
    for _ in range(times):
        cpu, wall = time.process_time(), time.perf_counter()
        function()
        found.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(cpu for cpu, _ in found), min(wall for _, wall in found)


def peak(data: Arrays) -> float:
    """The memory that building takes at its peak, relative to the arrays of the MDP."""
    tracemalloc.start()
    mdp = gf.MDP.from_rows(*data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    names = ("indptr", "indices", "probabilities", "pair_rewards", "allowed", "start")
    return float(most / sum(getattr(mdp, name).nbytes for name in names))


def by_scipy(data: Arrays) -> Any:
    """Rows sorted and merged by SciPy, and their sums."""
    indptr, next_state, probability, rewards = data
    matrix = sp.csr_array(
        (probability.copy(), next_state.astype(np.int64), indptr.copy()), shape=(indptr.size - 1, len(rewards))
    )
    matrix.sum_duplicates()
    return matrix, matrix.sum(axis=1)


@contextmanager
def changed(module: ModuleType, name: str, value: int) -> Iterator[None]:
    """A constant of a module with another value."""
    before = vars(module)[name]
    vars(module)[name] = value
    yield
    vars(module)[name] = before


def compare(transitions: int, in_order: bool) -> gf.MDP:
    """Print the times and the memory for one kind of rows."""
    data = arrays(transitions, in_order)

    def build() -> gf.MDP:
        return gf.MDP.from_rows(*data)

    copying, _ = seconds(lambda: [array.copy() for array in data])
    building, wall = seconds(build)
    print(f"rows in {'increasing' if in_order else 'random'} order: {transitions:,} transitions")
    print(f"  built in {building:.3f} s of CPU, {wall:.3f} s with {available_cores()} cores; memory {peak(data):.2f}")
    print(f"  copying the arrays: {copying:.3f} s; building / copying: {building / copying:.1f}")
    scipy, _ = seconds(lambda: by_scipy(data), 2)
    print(f"  SciPy: {scipy:.3f} s, {scipy / building:.1f} times as long")
    with changed(parts, "ENTRIES_OF_A_PART", transitions):
        whole, _ = seconds(build)
        print(f"  all rows at once: {whole:.3f} s, {whole / building:.1f} times as long; memory {peak(data):.2f}")
    if not in_order and transitions <= SORTED_BY_NUMPY:
        with changed(rows, "COMPILED_FROM", transitions + 1):
            slow, _ = seconds(build, 2)
            print(f"  sorting by NumPy: {slow:.3f} s, {slow / building:.1f} times as long")
    return build()


def main() -> None:
    """Compare for both kinds of rows, then solve."""
    transitions = int(float(sys.argv[1])) if len(sys.argv) > 1 else 6_400_000
    gf.solve(gf.MDP.from_rows(*arrays(2_000_000, in_order=False)), precision=1e-4)  # compiles
    compare(transitions, in_order=True)
    mdp = compare(transitions, in_order=False)
    building, _ = seconds(lambda: gf.MDP.from_rows(*arrays_of(mdp)), 1)
    solving, _ = seconds(lambda: gf.solve(mdp, precision=1e-8), 1)
    print(f"{mdp}: built from its own rows in {building:.3f} s of CPU, solved to 1e-8 in {solving:.3f} s")
    print(f"building / solving: {building / solving:.2f}")


def arrays_of(mdp: gf.MDP) -> Arrays:
    """What an MDP can be built from again."""
    return mdp.indptr, mdp.indices, mdp.probabilities, mdp.rewards


if __name__ == "__main__":
    main()
