"""Regret curves: what is drawn is what the aggregates say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import gainful as gf
from gainful import plot
from gainful.experiments.aggregates import curves
from gainful.plot.line_names import apart
from gainful.plot.palette import SERIES_COLOURS
from gainful.simulation.run import Run

pytest.importorskip("matplotlib")

from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

HOSTILE = ["$x_{", "_hidden", "a\\b", "<b>&amp;</b>", "100 % $", "\\$", "tab\tnew\nline\x00", "\ud800", "é ∑ 漢" * 40]


def frame_of(environments: tuple[str, ...] = ("E",), agents: int = 3, runs: int = 5, **given: Any) -> pd.DataFrame:
    """A tidy table of made-up runs."""
    rng = np.random.default_rng(0)
    steps = np.array([1, 10, 100, 1000])
    parts = []
    for e in environments:
        for a in range(agents):
            for seed in range(runs):
                y = np.cumsum(rng.uniform(1.0, 10.0 * (a + 1), steps.size))
                parts.append(
                    pd.DataFrame(
                        {
                            "environment": e,
                            "agent": f"agent {a}",
                            "seed": seed,
                            "run_id": f"{e}{a}/{seed}",
                            "step": steps,
                            "pseudo_regret": y,
                            "regret": y + 1.0,
                            "reward": steps - y,
                        }
                    ),
                )
    return pd.concat(parts, ignore_index=True).assign(**given)


def run_of(pseudo_regret: list[float], seed: int = 0, expected: list[float] | None = None) -> Run:
    steps = 10 ** np.arange(len(pseudo_regret))
    y = np.array(pseudo_regret)
    run = Run(steps, steps - y, y + 1.0, y, 1.0, np.empty(0), 0, seed, 0.5, 0.5)
    return run if expected is None else replace(run, expected_regret=np.array(expected))


def lines_of(ax: Any) -> list[Any]:
    return [line for line in ax.lines if not str(line.get_label()).startswith("_")]


@pytest.mark.parametrize("statistic", ["median", "mean", "iqm"])
@pytest.mark.parametrize("value", ["pseudo_regret", "regret"])
def test_lines_and_bands_are_the_aggregates_numbers(statistic: Any, value: Any) -> None:
    frame = frame_of()
    expected = curves(frame, value, (0.1, 0.9))
    ax = plot.regret(frame, value=value, statistic=statistic, band=(0.1, 0.9)).axes[0]
    assert [line.get_label() for line in ax.lines] == ["agent 0", "agent 1", "agent 2"]
    bands = [c for c in ax.collections if isinstance(c, PolyCollection)]
    assert len(bands) == 3
    for line, band in zip(ax.lines, bands, strict=True):
        rows = expected[expected["agent"] == line.get_label()]
        np.testing.assert_array_equal(line.get_xdata(), rows["step"])
        np.testing.assert_array_equal(line.get_ydata(), rows[statistic])
        corners = band.get_paths()[0].vertices
        for x, low, high in rows[["step", "low", "high"]].itertuples(index=False):
            here = np.asarray(corners)[np.asarray(corners)[:, 0] == x][:, 1]
            assert here.min() == pytest.approx(low, rel=1e-12, abs=0)
            assert here.max() == pytest.approx(high, rel=1e-12, abs=0)


@pytest.mark.parametrize(("statistic", "ends"), [("mean", ("mean_low", "mean_high")), ("iqm", ("low", "high"))])
def test_a_mean_has_its_interval_and_other_centres_the_quartiles(statistic: Any, ends: tuple[str, str]) -> None:
    frame = frame_of(agents=1)
    ax = plot.regret(frame, statistic=statistic, log=False).axes[0]
    (corners,) = [np.asarray(path.vertices) for c in ax.collections for path in c.get_paths()]
    for x, low, high in curves(frame)[["step", *ends]].itertuples(index=False):
        here = corners[corners[:, 0] == x][:, 1]
        assert [here.min(), here.max()] == pytest.approx([low, high], rel=1e-12, abs=0)
    t = stats.ttest_1samp(frame[frame.step == 1000].pseudo_regret, 0.0).confidence_interval(0.95)
    assert curves(frame)[["mean_low", "mean_high"]].iloc[-1].tolist() == pytest.approx(
        [t.low, t.high], rel=1e-12, abs=0
    )


def test_options_change_what_they_say() -> None:
    frame = frame_of(runs=4)
    plain = plot.regret(frame).axes[0]
    assert (plain.get_xscale(), plain.get_yscale()) == ("log", "log")
    per_step = plot.regret(frame, per_step=True, log=False, band=None, seeds=True).axes[0]
    assert (per_step.get_xscale(), per_step.get_yscale()) == ("linear", "linear")
    assert not per_step.collections
    assert len(per_step.lines) == 3 * (1 + 4)
    for a, b in zip(lines_of(plain), lines_of(per_step), strict=True):
        np.testing.assert_allclose(np.asarray(b.get_ydata()), np.asarray(a.get_ydata()) / a.get_xdata(), rtol=1e-15)
    assert per_step.get_ylabel() == "pseudo-regret per step"
    assert "mean of 4 runs" in [t.get_text() for t in per_step.texts]
    assert "mean of 4 runs, band: 95 % interval" in [t.get_text() for t in plain.texts]
    median = plot.regret(frame, statistic="median").axes[0]
    assert "median of 4 runs, band from 25 to 75 %" in [t.get_text() for t in median.texts]


def test_an_environment_is_a_panel() -> None:
    frame = frame_of(("river", "lake", "sea"))
    figure = plot.regret(frame)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["river", "lake", "sea"]
    assert all(len(ax.lines) == 3 for ax in figure.axes)
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["agent 0", "agent 1", "agent 2"]
    alone = plot.regret(frame, environment="lake")
    assert [ax.get_title(loc="left") for ax in alone.axes] == ["lake"]
    assert {"agent 0", "agent 1", "agent 2"} <= {t.get_text() for t in alone.axes[0].texts}
    for a, b in zip(figure.axes[1].lines, alone.axes[0].lines, strict=True):
        np.testing.assert_array_equal(a.get_ydata(), b.get_ydata())
        assert a.get_color() == b.get_color()


def test_runs_lists_and_dictionaries() -> None:
    a, b = run_of([1.0, 2.0, 4.0]), run_of([1.0, 4.0, 8.0])
    one = plot.regret(a).axes[0]
    np.testing.assert_array_equal(one.lines[0].get_ydata(), a.pseudo_regret)
    assert not one.collections
    both = plot.regret([a, b], statistic="mean").axes[0]
    np.testing.assert_array_equal(both.lines[0].get_ydata(), [1.0, 3.0, 6.0])
    named = plot.regret({"x": a, "y": [a, b]}, value="regret").axes[0]
    assert [line.get_label() for line in named.lines] == ["x", "y"]
    np.testing.assert_array_equal(named.lines[0].get_ydata(), a.regret)
    assert len(named.collections) == 1


def test_a_given_ax_is_drawn_on_and_has_a_legend() -> None:
    figure = Figure()
    ax = figure.subplots()
    assert plot.regret(frame_of(), ax=ax) is figure
    assert len(ax.lines) == 3
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["agent 0", "agent 1", "agent 2"]  # type: ignore[union-attr]
    with pytest.raises(gf.errors.InvalidArgumentError, match="choose one with environment=: 'E', 'F'"):
        plot.regret(frame_of(("E", "F")), ax=ax)


def test_values_of_both_signs_have_an_axis_for_both_and_zeros_are_gaps_that_are_said() -> None:
    ax = plot.regret([run_of([1.0, -2.0, 4.0]), run_of([1.0, -1.0, 5.0])]).axes[0]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [1.0, -1.5, 4.5])
    assert ax.get_yscale() == "symlog"
    assert ax.get_ylim()[0] < -1.5
    zero = plot.regret([run_of([0.0, 2.0, 4.0]), run_of([0.0, 1.0, 5.0])]).axes[0]
    assert zero.get_yscale() == "log"
    assert "not above 0" in zero.get_title(loc="left")
    runs = plot.regret([run_of([1.0, -2.0, 4.0]), run_of([1.0, 5.0, 5.0])], seeds=True).axes[0]
    assert runs.get_yscale() == "symlog"  # for the single runs
    never = plot.regret(run_of([0.0, -2.0, -4.0])).axes[0]
    assert never.get_yscale() == "linear"


def test_more_than_eight_agents_are_dashed_and_many_are_listed() -> None:
    ax = plot.regret(frame_of(agents=12)).axes[0]
    looks = {(to_hex(line.get_color()), str(line.get_linestyle()), line.is_dashed()) for line in ax.lines}
    assert len(looks) == 12
    assert [to_hex(line.get_color()).upper() for line in ax.lines[:8]] == list(SERIES_COLOURS)
    assert [line.is_dashed() for line in ax.lines] == [False] * 8 + [True] * 4
    assert len(ax.get_legend().get_texts()) == 12  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph")  # the font has no Chinese
@pytest.mark.parametrize("kind", ["pdf", "png", "svg"])
def test_hostile_labels_are_text_in_every_format(kind: str, tmp_path: Path) -> None:
    runs = {label: run_of([1.0, 2.0 + i, 4.0 + i]) for i, label in enumerate(HOSTILE)}
    figure = plot.regret(runs)
    frame = frame_of(("$\\frac{1}{$", "_e$")).replace({"agent": {"agent 0": "$\\bad{$", "agent 1": "_under"}})
    grid = plot.regret(frame)
    for i, one in enumerate((figure, grid)):
        one.savefig(tmp_path / f"{i}.{kind}")
        assert (tmp_path / f"{i}.{kind}").stat().st_size > 1000
    assert "$x_{" in {t.get_text() for t in figure.axes[0].texts}
    assert {"$\\bad{$", "_under"} <= {t.get_text() for t in grid.legends[0].get_texts()}


def test_runs_with_other_checkpoints_are_noted() -> None:
    long, short = run_of([1.0, 2.0, 3.0, 4.0]), run_of([1.0, 2.0])
    figure = plot.regret({"a": [long, short]})
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_xdata(), [1, 10])
    assert any("share 2 of 4 checkpoints" in t.get_text() for t in figure.texts)


def test_an_unknown_regret_is_an_error_or_a_note() -> None:
    known, unknown = run_of([1.0, 2.0]), replace(run_of([1.0, 2.0]), pseudo_regret=np.full(2, np.nan))
    nowhere = replace(unknown, regret=np.full(2, np.nan))
    message = "regret is unknown, because the optimal gain is unknown; draw value='reward'"
    with pytest.raises(gf.errors.InvalidArgumentError, match=message):
        plot.regret(nowhere)
    with pytest.raises(gf.errors.InvalidArgumentError, match="pseudo-regret is unknown, because"):
        plot.regret(unknown, value="pseudo_regret")
    with pytest.raises(gf.errors.InvalidArgumentError, match="expected regret is unknown; draw"):
        plot.regret(known, value="expected_regret")
    assert plot.regret(unknown).axes[0].get_ylabel() == "realised regret"
    figure = plot.regret({"a": known, "b": unknown})
    assert [line.get_label() for line in figure.axes[0].lines] == ["a"]
    assert any(t.get_text() == "b: pseudo-regret unknown" for t in figure.texts)


def test_expected_regret_is_drawn_where_all_runs_have_it_and_otherwise_the_pseudo_regret() -> None:
    new, old = run_of([1.0, 2.0, 5.0], expected=[1.0, 3.0, 4.0]), run_of([1.0, 2.0, 6.0])
    ax = plot.regret({"a": new}).axes[0]
    assert ax.get_ylabel() == "expected regret"
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), new.expected_regret)
    assert plot.regret(new, value="pseudo_regret").axes[0].get_ylabel() == "pseudo-regret"
    mixed = plot.regret({"a": new, "b": [old, new]})
    assert mixed.axes[0].get_ylabel() == "pseudo-regret"
    assert [line.get_label() for line in mixed.axes[0].lines] == ["a", "b"]
    np.testing.assert_array_equal(mixed.axes[0].lines[0].get_ydata(), new.pseudo_regret)
    note = "expected regret is unknown for 1 of 3 runs, so pseudo-regret is drawn"
    assert [t.get_text() for t in mixed.texts] == [note]
    assert plot.regret(old).axes[0].get_ylabel() == "pseudo-regret"
    assert not plot.regret(old).texts


def test_each_panel_names_what_it_draws() -> None:
    frame = frame_of(("river", "lake"), agents=2)
    frame["expected_regret"] = np.where(frame.environment == "lake", frame.step, np.nan)
    river, lake = plot.regret(frame).axes
    assert (river.get_ylabel(), lake.get_ylabel()) == ("pseudo-regret", "expected regret")
    np.testing.assert_array_equal(lake.lines[0].get_ydata(), [1, 10, 100, 1000])
    assert [line.get_color() for line in river.lines] == [line.get_color() for line in lake.lines]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (frame_of(), {"value": "wealth"}, "value is 'wealth', expected one of expected_regret, pseudo"),
        (frame_of(), {"statistic": "mode"}, "statistic is 'mode', expected one of median, mean, iqm"),
        (frame_of(), {"band": 0.5}, "band is 0.5, expected two quantiles"),
        (frame_of(), {"band": (0.9, 0.1)}, "expected 0 <= low <= high <= 1"),
        (frame_of(("river",)), {"environment": "rivr"}, "did you mean 'river'"),
        (frame_of(), {"ax": 3}, "ax is int, expected matplotlib Axes"),
        (frame_of().drop(columns="seed"), {}, "no column 'seed'"),
        (frame_of().iloc[:0], {}, "no rows"),
        ({}, {}, "an empty dictionary"),
        ({"x": 3}, {}, "the data of 'x' are int 3, expected a folder"),
        ([], {}, "a list of nothing"),
        ([1, 2], {}, "a list of int"),
    ],
)
def test_what_cannot_be_drawn_is_said(data: Any, options: Any, message: str) -> None:
    with pytest.raises(gf.errors.InvalidArgumentError, match=message.replace("(", "\\(")):
        plot.regret(data, **options)


def test_a_folder_that_holds_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(gf.errors.GainfulError):
        plot.regret(tmp_path / "nowhere")


@pytest.mark.parametrize("places", [[0.5, 0.5, 0.5], [0.0, 0.0, 1.0], [1.0, 0.99, 0.2, 0.21], [0.3]])
def test_labels_move_apart_and_keep_their_order(places: list[float]) -> None:
    found = apart(np.array(places), 0.1)
    assert found.min() >= 0.0
    assert found.max() <= 1.0 + 1e-12
    order = np.argsort(places, kind="stable")
    assert (np.diff(found[order]) >= 0.1 - 1e-12).all()
