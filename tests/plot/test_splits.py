"""The picture of cells over time."""

from __future__ import annotations

import numpy as np
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError
from gainful.plot.splits import history


def learned(dim: int) -> gf.AdaptiveKLSCALPlus:
    agent = gf.AdaptiveKLSCALPlus(gf.Partition.uniform(bins=4, dim=dim), 2, span=1.0, lipschitz=3.0, holder=1.0)
    random = np.random.default_rng(1)
    for _ in range(150):
        x = random.random(dim)
        agent.observe(x, agent.act(x), 0.5, random.random(dim))
    return agent


@pytest.mark.slow
def test_the_cells_of_a_line_are_drawn_over_time() -> None:
    agent = learned(1)
    times, depths = history(agent)
    assert times[0] == 0
    assert np.all(np.diff(times) > 0)
    assert np.array_equal(depths[-1], agent.depths)
    assert np.all(np.diff(depths.astype(int), axis=0) >= 0)
    figure = gf.plot.splits(agent, action_labels=["$left", "_right"])
    assert [axes.get_title(loc="left") for axes in figure.axes[:2]] == ["$left", "_right"]
    mesh = figure.axes[1].collections[0]
    assert np.array_equal(np.asarray(mesh.get_array()).reshape(4, -1), depths[:, :, 1].T)
    figure.canvas.draw()


@pytest.mark.slow
def test_in_a_plane_the_leaves_are_counted() -> None:
    agent = learned(2)
    figure = gf.plot.splits(agent)
    leaves = [int(np.asarray(line.get_ydata())[-1]) for line in figure.axes[0].lines]
    assert sum(leaves) == np.unique(agent.core.trees.leaf).size


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="adaptive cells"):
        gf.plot.splits(gf.CKLSCALPlus(gf.Partition.uniform(bins=2), 2))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="2 names"):
        gf.plot.splits(gf.AdaptiveKLSCALPlus(gf.Partition.uniform(bins=2), 2), action_labels=["one"])
