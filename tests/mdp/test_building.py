"""Models built part by part, by several threads and in compiled code are those built by NumPy in one piece."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidMDPError
from gainful.mdp import parts, rows

STATES, ACTIONS = 100, 2
NEVER = 10**9
Build = Callable[..., gf.MDP]


def random_rows(seed: int, shortest: int, longest: int) -> tuple[Any, Any, Any]:
    """indptr, next states that repeat and are in no order, and probabilities, some of them 0."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(shortest, longest, STATES * ACTIONS)
    lengths[::ACTIONS] = np.maximum(lengths[::ACTIONS], 1)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    size, filled = int(indptr[-1]), lengths > 0
    weights = rng.random(size) * (rng.random(size) < 0.9)
    weights[indptr[:-1][filled]] += 0.1
    probabilities = weights / np.repeat(np.add.reduceat(weights, indptr[:-1][filled]), lengths[filled])
    return indptr, rng.integers(0, STATES, size), probabilities


def random_rewards(size: int, per_transition: bool) -> Any:
    """Rewards of pairs; or of transitions, some of them equal."""
    rng = np.random.default_rng(2)
    return rng.integers(0, 3, size).astype(float) if per_transition else rng.random((STATES, ACTIONS))


@pytest.fixture(
    params=[
        pytest.param((7, 1, NEVER), id="7 entries"),
        pytest.param((64, 3, NEVER), id="64 entries, 3 threads"),
        pytest.param((10**4, 1, NEVER), id="10,000 entries"),
        pytest.param((64, 3, 0), id="64 entries, 3 threads, compiled", marks=pytest.mark.slow),
        pytest.param((10**6, 1, 0), id="compiled", marks=pytest.mark.slow),
    ]
)
def another_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Build:
    """`MDP.from_rows` in parts of some size, by some number of threads, in compiled code or not."""
    entries, threads, compiled_from = request.param

    def build(*arrays: Any, **options: Any) -> gf.MDP:
        with monkeypatch.context() as patch:
            patch.setattr(parts, "ENTRIES_OF_A_PART", entries)
            patch.setattr(parts, "THREADS_FROM_ENTRIES", 0)
            patch.setattr(parts, "available_cores", lambda: threads)
            patch.setattr(rows, "COMPILED_FROM", compiled_from)
            patch.setattr(rows, "COMPILED_FROM_IF_SORTED", compiled_from)
            return gf.MDP.from_rows(*arrays, **options)

    return build


@pytest.mark.parametrize("law", [None, "transition", "deterministic"])
@pytest.mark.parametrize("sum_of_rows", [1.0, 1.0 + 2e-9])
@pytest.mark.parametrize(("shortest", "longest"), [(0, 3), (0, 60), (1, 2), (1, 700)])
def test_the_model_is_the_same(another_way: Build, law: Any, sum_of_rows: float, shortest: int, longest: int) -> None:
    indptr, next_state, probabilities = random_rows(3, shortest, longest)
    arrays = indptr, next_state, sum_of_rows * probabilities, random_rewards(next_state.size, law is not None)
    options = {"n_actions": ACTIONS, "objective": "cost", "reward_law": law}
    found, expected = another_way(*arrays, **options), gf.MDP.from_rows(*arrays, **options)
    assert found == expected
    assert np.array_equal(found.allowed, expected.allowed)
    assert longest == 2 or found.n_transitions < next_state.size


def test_rows_in_order_stay_as_they_are(another_way: Build) -> None:
    built = gf.MDP.from_rows(*random_rows(4, 0, 30), random_rewards(0, False))
    assert another_way(built.indptr, built.indices, built.probabilities, built.rewards) == built


@pytest.mark.parametrize("n", [1, 2, 8, 9, 10, 128, 129, 130, 137, 138, 257, 258, 265, 1000, 5000])
def test_rows_are_divided_by_the_sums_of_numpy(another_way: Build, n: int) -> None:
    weights = np.random.default_rng(n).random(n)
    p = weights / weights.sum() * (1.0 + 3e-9)
    indptr, to_itself = np.concatenate([[0], np.arange(n, 2 * n)]), np.arange(n - 1)
    next_state, probabilities = np.concatenate([np.arange(n), to_itself]), np.concatenate([p, np.ones(n - 1)])
    built = another_way(indptr, next_state, probabilities, np.zeros((n, 1)))
    assert np.array_equal(built.probabilities[:n], p / np.add.reduceat(p, [0]))


def test_the_arrays_that_were_given_are_copied(another_way: Build) -> None:
    given = (*random_rows(5, 0, 30), random_rewards(0, False))
    before = [array.copy() for array in given]
    built = another_way(*given)
    for array in (built.indptr, built.indices, built.probabilities, built.pair_rewards):
        assert not array.flags.writeable
        assert array.flags.owndata
        assert not any(np.shares_memory(array, other) for other in given)
    for array, copy in zip(given, before, strict=True):
        assert np.array_equal(array, copy)


# ---------------------------------------------------------------------- errors


def changed(position: str, at: int | slice, value: Any) -> Callable[[list[Any]], None]:
    """What sets a number of one of the arrays."""
    place = ("indptr", "indices", "probabilities", "rewards").index(position)

    def change(arrays: list[Any]) -> None:
        arrays[place][at] = value

    return change


WRONG: dict[str, list[Callable[[list[Any]], None]]] = {
    "a next state out of range": [changed("indices", 700, STATES), changed("indices", -1, STATES)],
    "a negative next state": [changed("indices", 900, -1)],
    "a next state that has its lowest 32 bits in range": [changed("indices", 900, 2**32)],
    "not a number": [changed("probabilities", 3, np.nan), changed("probabilities", 1200, np.nan)],
    "negative": [changed("probabilities", 1200, -0.5)],
    "infinite": [changed("probabilities", 1200, np.inf)],
    "sums": [changed("probabilities", 30, 2.0), changed("probabilities", 1300, 0.999)],
    "sums that overflow": [changed("probabilities", slice(30, 40), 1e308)],
    "an infinite reward": [changed("rewards", 1000, np.inf), changed("rewards", 1200, np.nan)],
    "a large reward": [changed("rewards", 1000, 1e200)],
    "falling": [changed("indptr", 150, 3)],
    "next states before probabilities": [changed("probabilities", 5, -1.0), changed("indices", -1, STATES)],
    "probabilities before sums": [changed("probabilities", 5, 7.0), changed("probabilities", -1, np.nan)],
    "probabilities before rewards": [changed("rewards", 5, np.nan), changed("probabilities", -1, np.nan)],
    "rewards before sums": [changed("probabilities", 5, 7.0), changed("rewards", -1, np.nan)],
    "a state without actions": [changed("probabilities", slice(None), 0.0)],
}


@pytest.mark.parametrize("what", WRONG)
def test_errors_are_the_same(another_way: Build, what: str) -> None:
    arrays = list(random_rows(6, 1, 20))
    arrays.append(random_rewards(arrays[1].size, per_transition=True))
    for change in WRONG[what]:
        change(arrays)
    with pytest.raises(InvalidMDPError) as expected:
        gf.MDP.from_rows(*arrays, n_actions=ACTIONS)
    with pytest.raises(InvalidMDPError) as found:
        another_way(*arrays, n_actions=ACTIONS)
    assert str(found.value) == str(expected.value)
    for field in ("problem", "name", "expected", "hint"):
        assert getattr(found.value, field) == getattr(expected.value, field)
    np.testing.assert_equal(found.value.found, expected.value.found)


def test_rewards_that_are_not_finite_may_belong_to_zeros(another_way: Build) -> None:
    indptr, next_state, probabilities = random_rows(8, 1, 20)
    rewards = random_rewards(next_state.size, per_transition=True)
    rewards[probabilities == 0.0] = np.nan
    arrays = indptr, next_state, probabilities, rewards
    assert another_way(*arrays, n_actions=ACTIONS) == gf.MDP.from_rows(*arrays, n_actions=ACTIONS)


def test_rewards_of_pairs_are_checked(another_way: Build) -> None:
    arrays, rewards = random_rows(7, 1, 9), random_rewards(0, False)
    rewards[70, 1] = rewards[90, 0] = 2.0
    with pytest.raises(InvalidMDPError, match=r"the mean reward of P\[70, 1\] is 2, expected a number in \[0, 1\]"):
        another_way(*arrays, rewards, reward_law="bernoulli")
    rewards[80, 0] = np.nan
    with pytest.raises(InvalidMDPError, match=r"the reward of P\[80, 0\] is nan, .*; 1 of 200 pairs are wrong"):
        another_way(*arrays, rewards)


# ---------------------------------------------------------------------- memory


@pytest.mark.parametrize("in_order", [True, False])
def test_building_takes_little_more_memory_than_the_model(in_order: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ENTRIES_OF_A_PART", 2000)
    monkeypatch.setattr(parts, "available_cores", lambda: 2)
    n_states, support = 20_000, 4
    next_state = np.sort(np.arange(n_states * support).reshape(n_states, support) % n_states, axis=1)
    arrays = (
        np.arange(0, next_state.size + 1, support),
        (next_state if in_order else next_state[:, ::-1]).reshape(-1),
        np.full(next_state.size, 1.0 / support),
        np.ones((n_states, 1)),
    )
    gf.MDP.from_rows(*arrays)  # imports what it needs
    tracemalloc.start()
    mdp = gf.MDP.from_rows(*arrays)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    names = ("indptr", "indices", "probabilities", "pair_rewards", "allowed", "start")
    assert peak < 1.2 * sum(getattr(mdp, name).nbytes for name in names)
