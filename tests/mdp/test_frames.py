"""Pictures of environments: what they show, of any size, with any names."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError
from gainful.frames import HERE_COLOUR, MOVED_COLOUR

BLUE, ORANGE = (tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in (HERE_COLOUR, MOVED_COLOUR))


def place_of(picture: Any, colour: tuple[int, ...]) -> tuple[float, float]:
    """The mean row and column of the pixels of this colour."""
    rows, columns = np.nonzero((picture == colour).all(axis=2))
    assert rows.size > 20
    return float(rows.mean()), float(columns.mean())


def test_a_graph_shows_where_the_agent_is_and_how_it_came_there() -> None:
    env = gymnasium.make("gainful/RiverSwim-v0", render_mode="rgb_array")
    places = []
    for state in range(6):
        env.reset(seed=0, options={"state": state})
        picture: Any = env.render()
        assert picture.dtype == np.uint8
        assert picture.shape[0] % 2 == picture.shape[1] % 2 == 0
        assert not (picture == ORANGE).all(axis=2).any()
        places.append(place_of(picture, BLUE)[1])
    assert places == sorted(places)  # from the left bank to the right one
    assert len({round(b - a) for a, b in itertools.pairwise(places)}) <= 2  # evenly, up to a pixel
    env.step(0)
    moved: Any = env.render()
    assert place_of(moved, BLUE)[1] == pytest.approx(places[4], abs=2)
    assert places[4] < place_of(moved, ORANGE)[1] < places[5]
    again: Any = env.render()
    np.testing.assert_array_equal(moved, again)


def test_a_frame_leaves_nothing_behind() -> None:
    env = gf.environments.riverswim(6).to_gymnasium(render_mode="rgb_array")
    env.reset(options={"state": 2})
    first: Any = env.render()
    env.step(1)
    env.render()
    env.reset(options={"state": 2})
    np.testing.assert_array_equal(first, env.render())


def test_a_large_mdp_is_cells_in_the_grid_of_its_labels() -> None:
    rooms = gf.environments.four_rooms()
    env = rooms.to_gymnasium(render_mode="rgb_array")
    row, column = {}, {}
    for label in ("row 0, column 0", "row 0, column 8", "row 8, column 0"):
        env.reset(options={"state": label})
        row[label], column[label] = place_of(env.render(), BLUE)
    assert row["row 0, column 0"] == pytest.approx(row["row 0, column 8"], abs=1)
    assert column["row 0, column 0"] == pytest.approx(column["row 8, column 0"], abs=1)
    assert column["row 0, column 8"] > column["row 0, column 0"] + 100
    assert row["row 8, column 0"] > row["row 0, column 0"] + 100


def test_names_that_no_picture_can_hold_are_shortened() -> None:
    evil = "$\\frac{" + "x" * 300 + "\n\x00\x1b[31m"
    for n in (2, 41):
        P = np.roll(np.eye(n), 1, axis=1).reshape(n, 1, n)
        labels = [f"{i}{evil}" for i in range(n)]
        mdp = gf.MDP(P, np.zeros((n, 1)), state_labels=labels, action_labels=[evil], name=evil)
        env = mdp.to_gymnasium(render_mode="rgb_array")
        env.reset()
        env.step(np.int64(0))
        picture: Any = env.render()
        assert max(picture.shape) < 1200
        place_of(picture, BLUE)


def test_a_point_is_drawn_where_it_is() -> None:
    env: Any = gymnasium.make("gainful/LQG-v0", render_mode="rgb_array").unwrapped
    low, high = env.observation_space.low[0], env.observation_space.high[0]
    columns = []
    for fraction in (0.25, 0.5, 0.75):
        env.reset(seed=0, options={"state": [low + fraction * (high - low)]})
        columns.append(place_of(env.render(), BLUE)[1])
    assert columns[1] - columns[0] == pytest.approx(columns[2] - columns[1], abs=2)
    env.step(0)
    place_of(env.render(), ORANGE)


def test_pictures_without_matplotlib_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InvalidArgumentError, match="gainful\\[figures\\]"):
        gymnasium.make("gainful/RiverSwim-v0", render_mode="rgb_array")
    text: Any = gymnasium.make("gainful/RiverSwim-v0", render_mode="ansi")
    text.reset(seed=0)
    assert text.render() == "left bank\n"
