"""Cells of a partition, and the gain estimates of episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful import plot

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure
from matplotlib.patches import StepPatch


def learned(dim: int = 1, bins: int = 5, **box: Any) -> Any:
    """An agent that has seen made-up transitions."""
    agent = gf.Discretized(gf.PSRL, gf.Partition.uniform(bins=bins, dim=dim, **box), n_actions=3)
    rng = np.random.default_rng(0)
    low, high = np.array(agent.partition.low), np.array(agent.partition.high)
    x = low.copy()
    for _ in range(200):
        y = low + 0.7 * (high - low) * rng.random(dim)
        agent.observe(x, agent.act(x), float(rng.random()), y)
        x = y
    return agent


def test_one_axis_shows_visits_and_the_policy_of_every_cell() -> None:
    agent = learned(low=-2.0, high=3.0)
    figure = plot.partition(agent, axis_labels=["$x_"], action_labels=["_a", "$b{", "c"])
    ax = figure.axes[0]
    bars: Any = next(p for p in ax.patches if isinstance(p, StepPatch))
    np.testing.assert_array_equal(bars.get_data().values, agent.statistics.visits.reshape(5, 3).sum(axis=1))
    np.testing.assert_array_equal(bars.get_data().edges, agent.partition.edges())
    assert ax.get_xlim() == (-2.0, 3.0)
    assert ax.get_xlabel() == "$x_"
    strip = ax.child_axes[0].images[0].get_array()
    assert strip is not None
    assert strip.shape[1] == 5
    chosen = agent.policy(agent.partition.centers).argmax(axis=1)
    for i in range(5):
        for j in range(5):
            assert (chosen[i] == chosen[j]) == bool((strip[0, i] == strip[0, j]).all())
    used = [["_a", "$b{", "c"][a] for a in sorted(set(chosen.tolist()))]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == used  # type: ignore[union-attr]
    for kind in ("pdf", "png", "svg"):
        figure.savefig("/dev/null", format=kind)


def test_a_mixture_is_shown_by_its_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = learned()
    monkeypatch.setattr(agent, "policy", lambda points: np.tile([0.25, 0.75, 0.0], (5, 1)))
    strip = plot.partition(agent).axes[0].child_axes[0].images[0].get_array()
    assert strip is not None
    first = (strip == strip[0, 0]).all(axis=-1)
    assert first.mean() == pytest.approx(0.25, abs=1e-12)


def test_two_axes_show_cells_in_their_own_units() -> None:
    agent = learned(dim=2, low=[-1.0, 10.0], high=[1.0, 30.0])
    figure = plot.partition(agent)
    policy, visits = figure.axes[0], figure.axes[1]
    assert policy.get_xlim() == (-1.0, 1.0)
    assert policy.get_ylim() == (10.0, 30.0)
    assert (policy.get_xlabel(), policy.get_ylabel()) == ("x1", "x2")
    seen = visits.images[0].get_array()
    assert seen is not None
    counts = agent.statistics.visits.reshape(5, 5, 3).sum(axis=2)
    np.testing.assert_array_equal(np.ma.filled(seen, 0), counts.T)
    image = policy.images[0].get_array()
    assert image is not None
    chosen = agent.policy(agent.partition.centers).argmax(axis=1).reshape(5, 5)
    visited = counts > 0
    for i, j in zip(*np.nonzero(visited), strict=True):
        for k, m in zip(*np.nonzero(visited), strict=True):
            assert (chosen[i, j] == chosen[k, m]) == bool((image[j, i] == image[m, k]).all())
    assert image[visited.T].sum(axis=-1).max() < image[~visited.T].sum(axis=-1).min()


@pytest.mark.parametrize("dim", [1, 2])
def test_values_are_drawn_in_place_of_actions(dim: int) -> None:
    cells = gf.Partition.uniform(bins=4, dim=dim)
    values = np.arange(cells.n_cells, dtype=float)
    ax = plot.partition(cells, values=values).axes[0]
    if dim == 1:
        bars: Any = next(p for p in ax.patches if isinstance(p, StepPatch))
        drawn = bars.get_data().values
    else:
        image: Any = ax.images[0].get_array()
        drawn = np.ma.filled(image, np.nan).T.reshape(-1)
    np.testing.assert_array_equal(drawn, values)
    with pytest.raises(gf.errors.InvalidArgumentError, match=f"3 values, expected {cells.n_cells}, one per cell"):
        plot.partition(cells, values=[1, 2, 3])


@pytest.mark.parametrize("dim", [1, 2])
def test_a_partition_alone_an_agent_before_its_first_plan_and_a_given_ax(dim: int) -> None:
    cells = gf.Partition.uniform(bins=4, dim=dim)
    fresh = gf.Discretized(gf.PSRL, cells, n_actions=2)
    figure = Figure()
    for what in (cells, fresh, learned(dim)):
        plot.partition(what).savefig("/dev/null", format="png")
        assert plot.partition(what, ax=figure.add_subplot()) is figure
    figure.savefig("/dev/null", format="png")
    assert any("no plan yet" in t.get_text() for t in plot.partition(fresh).axes[0].texts)


def test_three_axes_and_tabular_agents_are_refused() -> None:
    with pytest.raises(gf.errors.InvalidArgumentError, match="the partition has 3 axes, expected 1 or 2"):
        plot.partition(gf.Partition.uniform(bins=2, dim=3))
    with pytest.raises(
        gf.errors.InvalidArgumentError,
        match=r"is PSRL, expected an agent on a partition.*gf\.plot\.mdp",
    ):
        plot.partition(gf.PSRL(3, 2))  # type: ignore[arg-type]
    with pytest.raises(gf.errors.InvalidArgumentError, match="axis_labels are"):
        plot.partition(gf.Partition.uniform(), axis_labels=["a", "b"])


# ---------------------------------------------------------------------- episodes


def test_estimates_are_the_records_and_the_gain_is_a_line() -> None:
    mdp = gf.environments.riverswim(6)
    agent = gf.SCALPlus(6, 2, span=6.4, bonus_scale=0.1)
    run = gf.simulate(agent, mdp, 2000, seed=0)
    ax = plot.episodes(run).axes[0]
    steps, gains = ax.lines[0].get_xdata(), ax.lines[0].get_ydata()
    np.testing.assert_array_equal(np.asarray(steps)[:-1], run.episodes["step"])
    np.testing.assert_array_equal(np.asarray(gains)[:-1], run.episodes["gain"])
    assert np.asarray(steps)[-1] == 2000
    assert ax.get_xscale() == "log"
    assert list(np.asarray(ax.lines[-1].get_ydata())) == [run.gain, run.gain]
    corners = np.asarray(ax.collections[0].get_paths()[0].vertices)[:, 1]
    assert corners.min() == pytest.approx(run.episodes["gain_low"].min(), rel=1e-12)
    assert corners.max() == pytest.approx(run.episodes["gain_high"].max(), rel=1e-12)
    alone = plot.episodes(agent).axes[0]
    assert len(alone.lines) == len(ax.lines) - 1
    assert list(np.asarray(plot.episodes(agent, 0.3).axes[0].lines[-1].get_ydata())) == [0.3, 0.3]
    figure = Figure()
    assert plot.episodes(run, ax=figure.subplots()) is figure


def test_what_has_no_episodes_is_refused() -> None:
    with pytest.raises(gf.errors.InvalidArgumentError, match="int has no records of episodes"):
        plot.episodes(3)
    with pytest.raises(gf.errors.InvalidArgumentError, match="there is no episode yet"):
        plot.episodes(gf.PSRL(2, 2))
    agent = gf.PSRL(2, 2)
    agent.act(0)
    with pytest.raises(gf.errors.InvalidArgumentError, match="gain is nan"):
        plot.episodes(agent, float("nan"))
