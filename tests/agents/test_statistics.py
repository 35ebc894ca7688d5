from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gainful.agents.statistics import Statistics

transitions = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7), st.floats(0, 1)), max_size=200)


@given(transitions)
def test_counts_are_those_of_a_dictionary(seen: list[tuple[int, int, float]]) -> None:
    statistics = Statistics(8, 3)  # pairs 0 … 23, of which 0 … 5 occur
    for pair, to, reward in seen:
        statistics.observe(pair, to, reward)
    for pair in range(24):
        expected = sorted(Counter(to for p, to, _ in seen if p == pair).items())
        states, counts = statistics.row(pair)
        assert list(zip(states.tolist(), counts.tolist(), strict=True)) == expected
        assert statistics.visits[pair] == sum(n for _, n in expected)
        rewards = [r for p, _, r in seen if p == pair]
        assert statistics.reward_sum[pair] == pytest.approx(sum(rewards), rel=1e-14, abs=0)
        assert statistics.reward_squares[pair] == pytest.approx(sum(r * r for r in rewards), rel=1e-14, abs=0)


@given(transitions)
def test_arrays_and_back_lose_nothing(seen: list[tuple[int, int, float]]) -> None:
    first, second = Statistics(8, 3), Statistics(8, 3)
    for pair, to, reward in seen:
        first.observe(pair, to, reward)
    second.from_arrays(first.to_arrays())
    for statistics in (first, second):  # both go on
        statistics.observe(2, 7, 0.25)
        statistics.observe(2, 0, 0.5)
    for name, array in first.to_arrays().items():
        assert np.array_equal(array, second.to_arrays()[name]), name


def test_memory_follows_what_was_seen_not_the_square_of_the_states() -> None:
    statistics = Statistics(100_000, 2)
    for s in range(1000):
        statistics.observe(2 * s, (s + 1) % 1000, 0.0)
    assert statistics.next_state.nbytes + statistics.count.nbytes < 10_000_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"visits": np.zeros(3, dtype=np.int64)}, "visits"),
        ({"count": np.array([5])}, "add up"),
        ({"next_state": np.array([9], dtype=np.uint32)}, "out of range"),
        ({"next_state": np.array([1, 2], dtype=np.uint32)}, "2 next states"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, np.ndarray], message: str) -> None:
    statistics = Statistics(3, 2)
    statistics.observe(0, 1, 0.5)
    with pytest.raises(ValueError, match=message):
        Statistics(3, 2).from_arrays({**statistics.to_arrays(), **change})
