from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gainful.errors import InvalidArgumentError
from gainful.mdp.model import MDP
from gainful.planning.confidence import Intervals
from gainful.planning.extended import extended_value_iteration
from tests.planning.rows import Array, dense, linear_maximum, maxima, random_mdp, random_values


def bounds_of(mdp: MDP, intervals: Intervals, k: int) -> list[tuple[float, float]]:
    """The set of pair k, state by state, straight from the definition."""
    S = mdp.n_states
    low, high = np.zeros(S), np.full(S, intervals.unseen.flat[k])
    for j in range(mdp.indptr[k], mdp.indptr[k + 1]):
        low[mdp.indices[j]], high[mdp.indices[j]] = intervals.lower[j], intervals.upper[j]
    if intervals.reachable is not None and intervals.truncated is not None and intervals.truncated.flat[k]:
        high[~intervals.reachable] = 0.0
    if intervals.floor_state is not None:
        low[intervals.floor_state] = max(low[intervals.floor_state], intervals.floor)
        high[intervals.floor_state] = max(high[intervals.floor_state], intervals.floor)
    return [(float(x), float(y)) for x, y in zip(low, high, strict=True)]


def check(mdp: MDP, intervals: Intervals, v: Array) -> None:
    S = mdp.n_states
    q, rows = maxima(mdp, intervals, v)
    for k in range(S * mdp.n_actions):
        bounds = bounds_of(mdp, intervals, k)
        assert q[k] == pytest.approx(linear_maximum(v, bounds), rel=0, abs=1e-9)
        p = dense(rows, k, S)
        assert p.sum() == pytest.approx(1.0, rel=0, abs=1e-14)
        assert all(low - 1e-15 <= x <= high + 1e-15 for x, (low, high) in zip(p, bounds, strict=True))
        assert p @ v == pytest.approx(q[k], rel=0, abs=1e-14)


@pytest.mark.parametrize("seed", range(12))
def test_the_best_row_matches_a_linear_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    S = int(rng.integers(1, 9))
    mdp = random_mdp(rng, S, 2, 3)
    width = rng.choice([0.0, 0.02, 0.3, 1.0], size=mdp.n_transitions)
    unseen = rng.choice([0.0, 0.01, 0.1, 1.0], size=(S, 2))
    check(mdp, Intervals.around(mdp, width, unseen), random_values(rng, S))


@pytest.mark.parametrize("seed", range(6))
def test_the_floor_is_kept(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    mdp = random_mdp(rng, 6, 2, 3)
    options: dict[str, Any] = {"floor_state": int(rng.integers(6)), "floor": 0.05}
    intervals = Intervals.around(mdp, 0.2, float(rng.choice([0.0, 0.01, 0.2])), **options)
    v = random_values(rng, 6)
    check(mdp, intervals, v)
    _, rows = maxima(mdp, intervals, v)
    assert all(dense(rows, k, 6)[options["floor_state"]] >= 0.05 for k in range(12))


@pytest.mark.parametrize("seed", range(4))
def test_truncated_pairs_stay_on_the_reachable_states(seed: int) -> None:
    rng = np.random.default_rng(200 + seed)
    P = np.zeros((7, 2, 7))
    P[:, :, [0, 2, 5]] = rng.dirichlet(np.ones(3), size=(7, 2))
    mdp = MDP(P, rng.random((7, 2)))
    reachable = np.array([True, False, True, True, False, True, False])
    intervals = Intervals.around(mdp, 0.3, 0.1, reachable=reachable, truncated=rng.random((7, 2)) < 0.5)
    check(mdp, intervals, random_values(rng, 7))


def test_many_unseen_states_are_served_in_stretches() -> None:
    rng = np.random.default_rng(5)
    S = 400
    mdp = random_mdp(rng, S, 1, 5)
    v = rng.random(S)
    intervals = Intervals.around(mdp, 0.3, rng.choice([0.0, 0.003, 0.02], size=(S, 1)))
    q, rows = maxima(mdp, intervals, v)
    by_value = np.argsort(-v)
    for k in range(S):
        low, high = np.array(bounds_of(mdp, intervals, k)).T
        p, free = low.copy(), 1.0 - low.sum()
        for s in by_value:
            given = min(high[s] - low[s], free)
            p[s] += given
            free -= given
        assert q[k] == pytest.approx(p @ v, rel=0, abs=1e-13)
        assert dense(rows, k, S) == pytest.approx(p, rel=0, abs=1e-13)


def test_a_next_state_listed_with_several_rewards_has_one_interval() -> None:
    mdp = MDP.from_rows(
        [0, 3, 4], [0, 1, 1, 0], [0.5, 0.25, 0.25, 1.0], [0.0, 1.0, 2.0, 0.0], n_actions=1, reward_law="transition"
    )
    assert mdp.n_transitions == 4
    q, rows = maxima(mdp, Intervals.around(mdp, 0.1, 0.1), np.array([0.0, 1.0]))
    assert q == pytest.approx([0.6, 0.1], rel=0, abs=1e-15)  # [0.4, 0.6] for state 0 leaves at most 0.6
    assert dense(rows, 0, 2) == pytest.approx([0.4, 0.6], rel=0, abs=1e-15)


def test_intervals_that_hold_no_distribution_name_the_pair() -> None:
    mdp = MDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[1.0], [0.0]], state_labels=["up", "down"])
    above = Intervals(np.array([0.5, 0.5, 0.6, 0.5]), np.ones(4), np.zeros((2, 1)))
    with pytest.raises(InvalidArgumentError, match=r"state down, action 0: the lower bounds sum to 1\.1"):
        extended_value_iteration(mdp, above)
    below = Intervals(np.zeros(4), np.array([0.4, 0.4, 1.0, 1.0]), np.zeros((2, 1)))
    with pytest.raises(InvalidArgumentError, match=r"state up, action 0: .* upper bounds to 0\.8"):
        extended_value_iteration(mdp, below)
    wrong_size = Intervals(np.zeros(3), np.ones(3), np.zeros((2, 1)))
    with pytest.raises(InvalidArgumentError, match="3 lower bounds for 4 stored transitions"):
        extended_value_iteration(mdp, wrong_size)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"lower": [0.5], "upper": [0.4]}, r"lower\[0\] = 0.5 is above upper\[0\] = 0.4"),
        ({"upper": [1.2]}, r"upper\[0\] is 1.2"),
        ({"lower": [-0.1]}, r"lower\[0\] is -0.1"),
        ({"lower": [0.1, 0.1]}, "2 lower bounds but 1 upper bounds"),
        ({"unseen": [[np.nan]]}, r"unseen\[0, 0\] is nan"),
        ({"floor": 0.1}, "floor_state is not given"),
        ({"floor": 2.0, "floor_state": 0}, "floor is 2"),
        ({"floor": 0.1, "floor_state": 1}, "floor_state is 1"),
    ],
)
def test_bad_intervals_are_named(parts: dict[str, Any], message: str) -> None:
    whole: dict[str, Any] = {"lower": [0.1], "upper": [0.9], "unseen": [[0.1]]} | parts
    with pytest.raises(InvalidArgumentError, match=message):
        Intervals(**whole)
