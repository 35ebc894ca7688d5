"""Taxi, FrozenLake and the four rooms: rows, structure, and gains from computations of their own."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import gymnasium
import numpy as np
import pytest

import gainful as gf
from gainful.environments import four_rooms, frozen_lake, taxi
from gainful.environments.toy_text import newest
from gainful.errors import InvalidArgumentError, UnknownEnvironmentError
from tests.published.exact import PRECISION, Choice, linear_programme, optimum

# ---------------------------------------------------------------------- Gymnasium's versions


def test_the_newest_version_installed_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert newest("Taxi") in ("Taxi-v3", "Taxi-v4")
    monkeypatch.setitem(gymnasium.registry, "Taxi-v10", gymnasium.envs.registration.EnvSpec("Taxi-v10"))
    monkeypatch.setitem(gymnasium.registry, "other/Taxi-v11", gymnasium.envs.registration.EnvSpec("other/Taxi-v11"))
    assert newest("Taxi") == "Taxi-v10"


def test_a_family_that_is_not_installed_is_named() -> None:
    with pytest.raises(UnknownEnvironmentError, match="has no environment 'Tram'"):
        newest("Tram")


# ---------------------------------------------------------------------- Taxi

TAXI_MAP = ("R: | : :G", " : | : : ", " : : : : ", " | : | : ", "Y| : |B: ")  # cells with a wall or none between them
STANDS = {"red": (0, 0), "green": (0, 4), "yellow": (4, 0), "blue": (4, 3)}


def taxi_distances(begin: tuple[int, int]) -> dict[tuple[int, int], int]:
    found, queue = {begin: 0}, deque([begin])
    while queue:
        row, column = queue.popleft()
        near = [(row - 1, column), (row + 1, column)]
        if column < 4 and TAXI_MAP[row][2 * column + 1] == ":":
            near.append((row, column + 1))
        if column > 0 and TAXI_MAP[row][2 * column - 1] == ":":
            near.append((row, column - 1))
        for cell in near:
            if 0 <= cell[0] < 5 and cell not in found:
                found[cell] = found[row, column] + 1
                queue.append(cell)
    return found


def test_taxi_gain_is_that_of_shortest_fares() -> None:
    distance = {stand: taxi_distances(cell) for stand, cell in STANDS.items()}
    lengths = [
        distance[here][cab] + 1 + distance[there][STANDS[here]] + 1
        for cab in distance["red"]
        for here in STANDS
        for there in STANDS
        if here != there
    ]
    assert len(lengths) == 300
    mean = Fraction(sum(lengths), 300)
    assert mean == Fraction(1307, 100)
    assert 21 / mean - 1 == Fraction(793, 1307)
    plan = gf.solve(taxi(), precision=PRECISION)
    assert plan.gain == pytest.approx(793 / 1307, rel=0, abs=PRECISION)


def test_taxi_rows() -> None:
    mdp = taxi()
    assert (mdp.n_states, mdp.n_actions, str(gf.structure(mdp))) == (400, 6, "communicating")
    waiting, riding = "cab 0,0, passenger at red, to blue", "cab 0,0, passenger riding, to blue"
    assert mdp.transition(waiting, "pick up") == {mdp.state_index(riding): 1.0}
    assert mdp.transition(riding, "drop off") == {mdp.state_index(waiting): 1.0}
    assert mdp.transition(riding, "south") == {mdp.state_index("cab 1,0, passenger riding, to blue"): 1.0}
    wall = "cab 0,1, passenger riding, to blue"
    assert mdp.transition(wall, "east") == {mdp.state_index(wall): 1.0}
    assert mdp.rewards[mdp.state_index(waiting)].tolist() == [-1.0, -1.0, -1.0, -1.0, -1.0, -10.0]
    there = mdp.state_index("cab 4,3, passenger riding, to blue")
    assert mdp.rewards[there].tolist() == [-1.0, -1.0, -1.0, -1.0, -10.0, 20.0]
    delivered = mdp.transition(there, "drop off")
    assert delivered == pytest.approx(dict.fromkeys(np.flatnonzero(mdp.start).tolist(), 1 / 300), rel=0, abs=1e-15)
    assert len(delivered) == 300


def test_taxi_diameter() -> None:
    assert gf.diameter(taxi()) == pytest.approx(74.106667, rel=0, abs=1e-6)


# ---------------------------------------------------------------------- FrozenLake

LAKE = ("SFFF", "FHFH", "FFFH", "HFFG")
WAYS = ((0, -1), (1, 0), (0, 1), (-1, 0))  # left, down, right, up


def lake_choices(lake: tuple[str, ...]) -> list[list[Choice]]:
    """The slippery lake in rational numbers, from its map."""
    n = len(lake)
    cells = [(r, c) for r in range(n) for c in range(n) if lake[r][c] in "SF"]
    states: list[list[Choice]] = []
    for r, c in cells:
        choices: list[Choice] = []
        for a in range(4):
            row, pay = [Fraction(0)] * len(cells), Fraction(0)
            for b in (a - 1, a, a + 1):
                down, right = WAYS[b % 4]
                cell = (min(max(r + down, 0), n - 1), min(max(c + right, 0), n - 1))
                pay += Fraction(int(lake[cell[0]][cell[1]] == "G"), 3)
                row[cells.index(cell) if cell in cells else 0] += Fraction(1, 3)
            choices.append((row, pay))
        states.append(choices)
    return states


def test_slippery_frozen_lake_in_rational_numbers() -> None:
    states = lake_choices(LAKE)
    mdp = frozen_lake()
    P, R = mdp.to_dense()
    for s, choices in enumerate(states):
        for a, (row, pay) in enumerate(choices):
            assert P[s, a] == pytest.approx([float(p) for p in row], rel=0, abs=1e-15)
            assert R[s, a] == pytest.approx(float(pay), rel=0, abs=1e-15)
    gain, _ = optimum(states)
    assert gain == Fraction(11, 612)
    assert gf.solve(mdp, precision=PRECISION).gain == pytest.approx(11 / 612, rel=0, abs=PRECISION)


def test_the_large_frozen_lake() -> None:
    mdp = frozen_lake("8x8")
    P, R = mdp.to_dense()
    assert mdp.n_states == 53
    expected = linear_programme(P, R, mdp.allowed)
    assert expected == pytest.approx(0.0106141438, rel=0, abs=5e-11)
    assert gf.solve(mdp, precision=PRECISION).gain == pytest.approx(expected, rel=0, abs=PRECISION)


@pytest.mark.parametrize(("map_name", "steps"), [("4x4", 6), ("8x8", 14)])
def test_frozen_lake_without_slipping(map_name: Any, steps: int) -> None:
    mdp = frozen_lake(map_name, is_slippery=False)
    assert str(gf.structure(mdp)) == "communicating"
    assert mdp.transition("row 0, column 0", "right") == {1: 1.0}
    assert gf.solve(mdp, precision=PRECISION).gain == pytest.approx(1 / steps, rel=0, abs=PRECISION)


# ---------------------------------------------------------------------- four rooms


def test_four_rooms_of_five_cells() -> None:
    """Rooms of 2 x 2 cells, a door at the first cell of each half of the walls."""
    mdp = four_rooms(5, slip=0.3)
    assert mdp.state_labels is not None
    picture = [["#"] * 5 for _ in range(5)]
    for label in mdp.state_labels:
        row, column = (int(word) for word in label.replace("row ", "").split(", column "))
        picture[row][column] = "."
    assert ["".join(line) for line in picture] == [".....", "..#..", ".##.#", ".....", "..#.."]
    corner = mdp.transition("row 0, column 0", "up")  # up and left stay
    right, below = mdp.state_index("row 0, column 1"), mdp.state_index("row 1, column 0")
    assert corner == pytest.approx({0: 0.8, right: 0.1, below: 0.1}, rel=0, abs=1e-15)
    door = mdp.transition("row 0, column 2", "left")  # up and down stay
    here, left, past = (mdp.state_index(f"row 0, column {c}") for c in (2, 1, 3))
    assert door == pytest.approx({left: 0.7, here: 0.2, past: 0.1}, rel=0, abs=1e-15)
    goal = mdp.n_states - 1
    assert all(mdp.transition(goal, a) == {0: 1.0} for a in range(4))
    assert mdp.rewards.sum() == mdp.rewards[goal].sum() == 4.0


@pytest.mark.parametrize("size", [5, 7, 9, 11, 13])
def test_four_rooms_without_slipping(size: int) -> None:
    mdp = four_rooms(size, slip=0.0)
    assert mdp.n_states == 4 * (size // 2) ** 2 + 4
    assert mdp.n_transitions == 4 * mdp.n_states
    assert str(gf.structure(mdp)) == "communicating"
    assert gf.solve(mdp, precision=PRECISION).gain == pytest.approx(1 / (2 * size - 1), rel=0, abs=PRECISION)
    assert shortest(mdp) == 2 * size - 2


def shortest(mdp: gf.MDP) -> int:
    """Steps from the first to the last state, all moves being sure."""
    best, heap = {0: 0}, [(0, 0)]
    while heap:
        steps, s = heapq.heappop(heap)
        for a in range(4):
            (target,) = mdp.transition(s, a)
            if steps + 1 < best.get(target, 10**9):
                best[target] = steps + 1
                heapq.heappush(heap, (steps + 1, target))
    return best[mdp.n_states - 1]


def test_slippery_four_rooms() -> None:
    mdp = four_rooms()
    P, R = mdp.to_dense()
    assert mdp.n_states == 104
    expected = linear_programme(P, R, mdp.allowed)
    assert expected == pytest.approx(0.0263837670, rel=0, abs=5e-11)
    assert gf.solve(mdp, precision=PRECISION).gain == pytest.approx(expected, rel=0, abs=PRECISION)
    steps = gf.hitting_times(mdp, mdp.n_states - 1)[0]
    assert 1 / (1 + steps) == pytest.approx(expected, rel=0, abs=PRECISION)


# ---------------------------------------------------------------------- bad parameters


@pytest.mark.parametrize(
    ("factory", "parameters", "message"),
    [
        (frozen_lake, {"map_name": "5x5"}, "map_name is '5x5', expected one of '4x4', '8x8'"),
        (frozen_lake, {"is_slippery": 1}, "is_slippery is 1, expected True or False"),
        (four_rooms, {"size": 3}, "size is 3, expected an integer of at least 5"),
        (four_rooms, {"size": 6}, "size is 6, expected an odd number"),
        (four_rooms, {"slip": 1.0}, r"slip is 1.0, expected a number in \[0, 1\)"),
        (four_rooms, {"slip": -0.1}, "slip is -0.1"),
    ],
)
def test_bad_parameters_are_named(factory: Callable[..., gf.MDP], parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        factory(**parameters)
