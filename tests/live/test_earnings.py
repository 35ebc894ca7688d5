"""What a durable agent earned over time: the same blocks however it was observed, reopened or recovered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.live.earnings import MAX_BLOCKS, Earnings
from gainful.live.records import RecordLayout, TransitionColumns

CONFIG = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}
LAYOUT = RecordLayout(0)


def rewards_of(n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(n).integers(0, 8, n) / 8.0  # sums of these are exact


def earned(rewards: Any) -> Earnings:
    made = Earnings()
    for i, r in enumerate(rewards.tolist()):
        made.add(i % 6, 1, r, (i + 1) % 6)
    return made


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 5000])
def test_blocks_have_the_averages_of_their_observations(n: int) -> None:
    rewards, made = rewards_of(n), earned(rewards_of(n))
    assert len(made.sums) < MAX_BLOCKS
    assert made.length >= n / MAX_BLOCKS
    whole = len(made.sums) * made.length
    assert n - whole < made.length
    assert made.sums == rewards[:whole].reshape(-1, made.length).sum(axis=1).tolist()


@pytest.mark.parametrize("sizes", [(5000,), (1, 4999), (300, 700, 4000)])
def test_batches_give_the_blocks_of_single_observations(sizes: tuple[int, ...]) -> None:
    rewards, made, at = rewards_of(5000), Earnings(), 0
    for size in sizes:
        i = np.arange(at, at + size)
        made.add_rows(TransitionColumns(i % 6, np.ones(size, dtype=np.uint32), rewards[i], (i + 1) % 6))
        at += size
    expected = earned(rewards)
    assert (made.length, made.sums) == (expected.length, expected.sums)
    assert list(made.transitions) == list(expected.transitions)


def test_arrays_give_it_back_and_other_arrays_are_refused() -> None:
    made = earned(rewards_of(777))
    arrays = made.to_arrays(LAYOUT)
    again = Earnings.from_arrays(LAYOUT, arrays)
    for one in (made, again):
        one.add(0, 1, 0.5, 1)
    assert (again.length, again.sums, list(again.transitions)) == (made.length, made.sums, list(made.transitions))
    for place, wrong in ((0, -1.0), (1, 0.0), (2, 1e6), (3, np.nan), (5, np.inf)):
        blocks = arrays["blocks"].copy()
        blocks[place] = wrong
        with pytest.raises(ValueError, match="the blocks of the earnings"):
            Earnings.from_arrays(LAYOUT, arrays | {"blocks": blocks})


def test_it_is_the_same_after_closing_and_a_snapshot_in_between(tmp_path: Path) -> None:
    rewards = rewards_of(300)
    with gf.open_agent(tmp_path / "agent", CONFIG) as agent:
        for i, r in enumerate(rewards[:200].tolist()):
            agent.observe(state=i % 6, action=1, reward=r, next_state=(i + 1) % 6)
            if i == 120:
                agent.snapshot()
        before = agent.earnings()
    with gf.open_agent(tmp_path / "agent") as agent:
        again = agent.earnings()
        assert again.averages.tolist() == before.averages.tolist() == rewards[:200].tolist()
        assert again.outcomes == before.outcomes
        states = np.arange(200, 300) % 6
        agent.observe_many(states, np.ones(100, dtype=int), rewards[200:], (states + 1) % 6)
        found = agent.earnings()
    assert found.length == 2
    assert found.averages.tolist() == rewards.reshape(-1, 2).mean(axis=1).tolist()
    assert found.outcomes[-1] == (300, 5, 1, rewards[-1], 0)


def test_costs_stay_costs_and_labels_labels(tmp_path: Path) -> None:
    config = {
        "agent": "kl-scal-plus",
        "state_labels": ["new", "worn"],
        "action_labels": ["run", "repair"],
        "cost_min": 0.0,
        "cost_max": 10.0,
    }
    with gf.open_agent(tmp_path / "agent", config) as agent:
        agent.observe(state="new", action="run", cost=0.0, next_state="worn")
        agent.observe(state="worn", action="repair", cost=4.0, next_state="new")
        found = agent.earnings()
    assert found.averages.tolist() == [0.0, 4.0]
    assert not np.signbit(found.averages).any()
    assert found.outcomes == ((1, "new", "run", 0.0, "worn"), (2, "worn", "repair", 4.0, "new"))
