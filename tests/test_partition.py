"""Partitions: every edge in its right-closed cell, boxes, and one clear error for each bad input."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

import gainful as gf
from gainful.errors import InvalidArgumentError
from gainful.partition import Partition


def by_definition(x: float, n: int) -> int:
    """I_1 = [0, 1/n], I_k = ((k-1)/n, k/n], the edges as the doubles nearest to k/n; zero-based."""
    return next(k - 1 for k in range(1, n + 1) if x <= k / n)


def test_the_example_of_the_definition() -> None:
    assert gf.Partition.uniform(bins=100).index(0.07) == 6
    assert gf.Partition.uniform(bins=50).index(0.14) == 6
    assert [gf.Partition.uniform(4).index(x) for x in (0.0, 0.25, 0.2500001, 0.5, 1.0)] == [0, 0, 1, 1, 3]


@pytest.mark.parametrize("n", [*range(1, 130), 200, 255, 256, 300, 333, 512, 999, 1000, 10_007])
def test_every_edge_and_its_neighbours_on_the_unit_interval(n: int) -> None:
    part = Partition.uniform(bins=n)
    edges = np.array([k / n for k in range(1, n)])
    assert np.array_equal(part.edges(), np.array([k / n for k in range(n + 1)]))
    inner = np.arange(n - 1)
    assert np.array_equal(part.index_many(edges), inner)
    assert np.array_equal(part.index_many(np.nextafter(edges, 0.0)), inner)
    assert np.array_equal(part.index_many(np.nextafter(edges, 1.0)), inner + 1)
    assert part.index(0.0) == 0
    assert part.index(1.0) == n - 1
    assert np.array_equal(part.index_many(part.centers), np.arange(n))


@given(st.integers(1, 400), st.floats(0.0, 1.0))
def test_any_point_is_where_the_definition_puts_it(n: int, x: float) -> None:
    assert Partition.uniform(bins=n).index(x) == by_definition(x, n)


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 6.0), (-1.0, 1.0), (-2.0, 3.0), (-1.2, 0.6), (-0.07, 0.07), (1e6, 1e6 + 1)]
)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 60, 100, 377])
def test_every_edge_of_a_box_belongs_to_the_cell_on_its_left(low: float, high: float, n: int) -> None:
    part = Partition.uniform(bins=n, low=low, high=high)
    edges = part.edges()
    assert (edges[0], edges[-1]) == (low, high)
    assert np.array_equal(part.index_many(edges[1:]), np.arange(n))
    assert np.array_equal(part.index_many(np.nextafter(edges[:-1], np.inf)), np.arange(n))
    assert part.index(low) == 0


@pytest.mark.parametrize(("low", "high", "n"), [(0, 6, 60), (-1, 1, 200), (-2, 2, 30)])
def test_edges_between_whole_bounds_are_the_nearest_doubles(low: int, high: int, n: int) -> None:
    exact = [float(low + Fraction((high - low) * k, n)) for k in range(n + 1)]
    assert Partition.uniform(bins=n, low=low, high=high).edges().tolist() == exact


@pytest.mark.parametrize("bins", [(3, 5), (7, 1), (4, 2, 3), (6, 6, 6)])
def test_products_of_intervals_are_numbered_row_major(bins: tuple[int, ...]) -> None:
    part = Partition.uniform(bins=bins)
    assert part.n_cells == math.prod(bins)
    assert np.array_equal(part.index_many(part.centers), np.arange(part.n_cells))
    for cell, ks in enumerate(product(*(range(n) for n in bins))):
        corner = [(k + 1) / n for k, n in zip(ks, bins, strict=True)]  # the right-closed corner
        assert part.index(corner) == cell
        assert part.index(np.nextafter([k / n for k, n in zip(ks, bins, strict=True)], 1.0)) == cell


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_edges_in_every_dimension(dim: int) -> None:
    for n in (1, 2, 7, 10, 49):
        part = Partition.uniform(bins=n, dim=dim)
        assert part.bins == (n,) * dim
        for k in range(1, n):
            assert part.index([k / n] * dim) == (k - 1) * sum(n**i for i in range(dim))
            assert part.index(np.nextafter([k / n] * dim, 1.0)) == k * sum(n**i for i in range(dim))


def test_what_a_partition_says_of_itself() -> None:
    part = Partition.uniform(bins=(4, 8), low=[0, -1], high=[1, 1])
    assert (part.dim, part.bins, part.n_cells, part.side) == (2, (4, 8), 32, 0.25)
    assert (part.low, part.high) == ((0.0, -1.0), (1.0, 1.0))
    assert part.centers.shape == (32, 2)
    assert part.centers[0].tolist() == [0.125, -0.875]
    assert part.edges(1).tolist() == [-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1]
    assert part == Partition.uniform(bins=(4, 8), low=[0, -1], high=[1, 1])
    assert len({part, part.with_bins((4, 8)), part.with_bins(3)}) == 2
    assert part.with_bins(3).n_cells == 9
    with pytest.raises(AttributeError):
        part.bins = (2, 2)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        part.centers[0] = 0.0


def test_points_may_be_numbers_lists_arrays_and_integers() -> None:
    part = Partition.uniform(bins=10)
    assert {part.index(x) for x in (0.5, [0.5], np.array([0.5]), np.float32(0.5), np.array(0.5))} == {4}
    assert part.index(1) == 9
    assert part.index_many([[0.0], [1.0]]).tolist() == part.index_many([0.0, 1.0]).tolist() == [0, 9]
    assert Partition.uniform(bins=10, dim=2).index_many(np.empty((0, 2))).size == 0


# ---------------------------------------------------------------------- boxes


def test_the_float32_bounds_of_a_box_are_inside_it() -> None:
    box = spaces.Box(np.array([-2.4, -0.07], dtype=np.float32), np.array([2.4, 0.07], dtype=np.float32))
    part = Partition.from_box(box, bins=10)
    assert part.outside == "error"
    assert part.index(box.low) == 0
    assert part.index(box.high) == 99
    assert part.index(box.sample()) in range(100)


def test_float32_observations_of_bounds_given_as_float64_are_inside() -> None:
    part = Partition.uniform(bins=10, low=-2.4, high=0.1)
    assert float(np.float32(-2.4)) < -2.4
    assert float(np.float32(0.1)) > 0.1
    assert part.index(np.float32(-2.4)) == 0
    assert part.index(np.array([0.1], dtype=np.float32)) == 9
    with pytest.raises(InvalidArgumentError):
        part.index(float(np.float32(0.1)))
    with pytest.raises(InvalidArgumentError):
        part.index(np.nextafter(np.float32(0.1), np.float32(1)))


def test_an_unbounded_box_names_its_axes_and_asks_for_bounds() -> None:
    box = spaces.Box(np.array([-1, -np.inf, 0]), np.array([1, 2, np.inf]), dtype=np.float64)
    with pytest.raises(InvalidArgumentError, match=r"no bounds on axes 1, 2 .*give low= and high="):
        Partition.from_box(box, bins=4)
    largest = np.finfo(np.float32).max
    with pytest.raises(InvalidArgumentError, match="no bounds on axis 0 "):
        Partition.from_box(spaces.Box(-largest, largest, (1,), dtype=np.float32), bins=4)


def test_given_bounds_close_an_unbounded_box_and_what_lies_beyond_is_in_the_end_cells() -> None:
    box = spaces.Box(np.array([-1, -np.inf]), np.array([1, np.inf]), dtype=np.float64)
    part = Partition.from_box(box, bins=4, low=[None, -3.0], high=[np.nan, 3.0])
    assert (part.low, part.high, part.outside) == ((-1.0, -3.0), (1.0, 3.0), "clip")
    assert part.index([-1.0, -50.0]) == 0
    assert part.index([1.0, np.inf]) == 15
    strict = Partition.from_box(box, bins=4, low=[None, -3.0], high=[None, 3.0], outside="error")
    with pytest.raises(InvalidArgumentError, match=r"axis 1 is -50.0, outside \[-3.0, 3.0\]"):
        strict.index([-1.0, -50.0])


def test_boxes_of_no_axis_of_integers_and_with_several_bins() -> None:
    assert Partition.from_box(spaces.Box(-1.0, 1.0, ()), bins=4).index(0.9) == 3
    assert Partition.from_box(spaces.Box(0, 255, (2,), np.uint8), bins=(2, 4)).index(np.array([255, 0], np.uint8)) == 4


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Discrete(3), "Discrete space needs no partition"),
        (spaces.Dict({"a": spaces.Box(0, 1)}), "expected a gymnasium.spaces.Box"),
        (None, "the space is None"),
        (spaces.Box(0, 1, (8, 8)), r"shape \(8, 8\)"),
    ],
)
def test_a_space_that_cannot_be_cut(space: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Partition.from_box(space, bins=4)


# ---------------------------------------------------------------------- bad input

UNIT2 = Partition.uniform(bins=4, dim=2)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ([0.5, 1.5], r"axis 1 is 1.5, outside \[0.0, 1.0\]; widen low and high, or say outside=\"clip\""),
        ([-1e-300, 0.5], r"axis 0 is -1e-300, outside"),
        ([0.5, math.nan], "axis 1 is NaN"),
        ([math.inf, 0.5], "axis 0 is inf"),
        (0.5, r"shape \(\), expected \(2,\)"),
        ([0.5], r"shape \(1,\), expected \(2,\)"),
        ([[0.5, 0.5]], r"shape \(1, 2\)"),
        (["a", "b"], "expected 2 finite"),
        ([0.5, 0.5j], "expected 2 finite"),
    ],
)
def test_a_point_without_a_cell(point: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        UNIT2.index(point)


def test_nan_is_refused_even_when_clipping() -> None:
    part = Partition.uniform(bins=4, outside="clip")
    assert [part.index(x) for x in (-5.0, 7.0, -math.inf, math.inf)] == [0, 3, 0, 3]
    with pytest.raises(InvalidArgumentError, match="axis 0 is NaN"):
        part.index(math.nan)


def test_many_points_name_the_first_bad_one() -> None:
    with pytest.raises(InvalidArgumentError, match=r"axis 1 of point 2 is 2\.0"):
        UNIT2.index_many([[0, 0], [1, 1], [0, 2], [9, 9]])
    with pytest.raises(InvalidArgumentError, match=r"shape \(3,\), expected \(N, 2\)"):
        UNIT2.index_many([0, 1, 0.5])
    with pytest.raises(InvalidArgumentError, match=r"shape \(\)"):
        UNIT2.index_many(0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 0}, "bins is 0"),
        ({"bins": 2.5}, "bins is 2.5"),
        ({"bins": True}, "bins is True"),
        ({"bins": []}, "bins is empty"),
        ({"bins": (4, -1)}, r"bins is \(4, -1\)"),
        ({"bins": (4, 4), "dim": 3}, "for dim 3"),
        ({"dim": 0}, "dim is 0"),
        ({"dim": 1.5}, "dim is 1.5"),
        ({"low": 1.0, "high": 1.0}, r"axis 0 is \[1, 1\]"),
        ({"low": -math.inf}, r"axis 0 is \[-inf, 1\]"),
        ({"low": "a"}, "low is 'a'"),
        ({"low": [0, 0], "high": [1, 1, 1]}, "for dim 3"),
        ({"low": 1e16, "high": 1e16 + 4, "bins": 100}, "too narrow for 100 cells"),
        ({"bins": 100_000, "dim": 2}, "make 1e[+]10 cells"),
        ({"outside": "wrap"}, "outside is 'wrap'"),
    ],
)
def test_a_partition_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Partition.uniform(**options)


def test_an_axis_there_is_not() -> None:
    with pytest.raises(InvalidArgumentError, match="axis is 2, expected 0 … 1"):
        UNIT2.edges(2)


# ---------------------------------------------------------------------- files


@pytest.mark.parametrize(
    "part", [Partition.uniform(7), Partition.uniform((3, 4), low=-0.1, high=[0.3, 1 / 3], outside="clip")]
)
def test_settings_survive_json(part: Partition) -> None:
    assert Partition.from_settings(json.loads(json.dumps(part.settings()))) == part


@pytest.mark.parametrize("settings", [{}, {"bins": [3]}, [3], {"bins": [3], "low": [0], "high": [1], "outside": "x"}])
def test_settings_of_something_else(settings: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        Partition.from_settings(settings)
