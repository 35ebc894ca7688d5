"""Rows sorted and normalised in compiled code are those of NumPy, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

import gainful as gf
from gainful.mdp import rows


@pytest.mark.slow
@pytest.mark.parametrize("per_transition", [False, True])
def test_the_compiled_way_builds_the_same_model(per_transition: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 60, 200)  # short rows and long ones, next states that repeat
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    size = int(indptr[-1])
    next_state, weights = rng.integers(0, 100, size), rng.random(size)
    probabilities = weights / np.repeat(np.add.reduceat(weights, indptr[:-1]), lengths)
    rewards = rng.integers(0, 3, size).astype(float) if per_transition else rng.random((100, 2))
    built = []
    for threshold in (0, 10**9):
        monkeypatch.setattr(rows, "COMPILED_FROM", threshold)
        built.append(gf.MDP.from_rows(indptr, next_state, probabilities, rewards, n_actions=2))
    assert built[0] == built[1]
    assert built[0].n_transitions < size
