"""How long it takes to build a large MDP from rows, beside solving it: `python benchmarks/building.py [transitions]`.

Random next states in random order, so that every row has to be sorted, checked and normalised. CPU seconds.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import gainful as gf
from gainful.mdp import rows

ACTIONS, SUPPORT = 3, 4


def arrays(transitions: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """indptr, next states, probabilities, rewards."""
    rng = np.random.default_rng(0)
    n_states = transitions // (ACTIONS * SUPPORT)
    n_pairs = n_states * ACTIONS
    next_state = rng.integers(0, n_states, n_pairs * SUPPORT)
    probability = rng.random((n_pairs, SUPPORT))
    probability /= probability.sum(axis=1, keepdims=True)
    return (
        np.arange(0, n_pairs * SUPPORT + 1, SUPPORT),
        next_state,
        probability.ravel(),
        rng.random((n_states, ACTIONS)),
    )


def seconds_to_build(data: tuple[np.ndarray, ...]) -> tuple[gf.MDP, float]:
    """The MDP, and the CPU time that it took."""
    began = time.process_time()
    mdp = gf.MDP.from_rows(*data)
    return mdp, time.process_time() - began


def main() -> None:
    transitions = int(float(sys.argv[1])) if len(sys.argv) > 1 else 6_000_000
    for warm_up in (300_000,):  # compiles
        gf.solve(gf.MDP.from_rows(*arrays(warm_up)), precision=1e-4)
    data = arrays(transitions)
    mdp, building = seconds_to_build(data)
    began = time.process_time()
    plan = gf.solve(mdp, precision=1e-8)
    solving = time.process_time() - began
    print(f"{mdp}: built in {building:.2f} s of CPU, solved to 1e-8 in {solving:.2f} s ({plan.sweeps} sweeps)")
    print(f"building / solving: {building / solving:.2f}")
    if transitions <= 10_000_000:
        vars(rows)["COMPILED_FROM"] = transitions + 1
        _, before = seconds_to_build(data)
        print(f"sorting by NumPy instead: {before:.2f} s, {before / building:.1f} times as long")


if __name__ == "__main__":
    main()
