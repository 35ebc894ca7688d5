"""Runs in memory as tables, and their statistics: the same as of stored runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gainful as gf
from gainful.errors import InvalidArgumentError, StoreError
from gainful.experiments import aggregates
from gainful.experiments.spec import read_spec


def runs_of(n: int, horizon: int = 300) -> list[gf.Run]:
    river = gf.environments.riverswim(6)
    return gf.simulate_many(lambda seed: gf.PSRL(6, 2, seed=seed), river, horizon=horizon, seeds=range(n))


@pytest.mark.slow
def test_a_run_is_a_table_with_the_columns_of_stored_runs(tmp_path: Path) -> None:
    (run,) = runs_of(1)
    frame = run.to_frame()
    assert len(frame) == run.steps.size
    for column, values in (("step", run.steps), ("reward", run.rewards), ("expected_regret", run.expected_regret)):
        np.testing.assert_array_equal(frame[column], values)
    entries = {"environments": [{"name": "riverswim"}], "agents": [{"name": "psrl"}]}
    gf.run_experiment(read_spec({"horizon": 300, "seeds": 1, **entries}), tmp_path, jobs=1)
    stored = gf.results(tmp_path)
    assert set(frame.columns) <= set(stored.columns)
    same = ["seed", "step", "reward", "regret", "pseudo_regret", "expected_regret", "horizon", "gain", "episodes"]
    pd.testing.assert_frame_equal(frame[same], stored[same], check_exact=True)
    # and so are the statistics, of the folder as text too
    ours, theirs = gf.summary({"psrl": run}), gf.summary(str(tmp_path))
    timeless = [name for name in ours.columns if name != "planning_share"]
    pd.testing.assert_frame_equal(ours[timeless], theirs[timeless])
    assert theirs.columns[0] == "environment"
    assert [line.get_label() for line in gf.plot.regret(str(tmp_path)).axes[0].lines] == ["psrl"]


def test_episodes_are_a_table_and_stay_an_array() -> None:
    (run,) = runs_of(1)
    frame = run.episodes_to_frame()
    assert isinstance(run.episodes, np.ndarray)
    assert len(run.episodes) == len(frame) > 1
    assert frame.index.tolist() == list(range(1, len(frame) + 1))
    np.testing.assert_array_equal(frame["step"], run.episodes["step"])
    assert frame["length"].isna().tolist() == [False] * (len(frame) - 1) + [True]
    assert frame["length"].sum() == run.episodes["step"][-1] - 1
    assert len(replace(run, episodes=run.episodes[:0]).episodes_to_frame()) == 0


def test_a_summary_of_several_agents_is_that_of_the_aggregates() -> None:
    first, second = runs_of(4), runs_of(3, horizon=500)
    found = gf.summary({"a": first, "b": tuple(second)}, resamples=200)
    assert found["agent"].tolist() == ["a", "b"]
    assert found["runs"].tolist() == [4, 3]
    finals = np.array([run.expected_regret[-1] for run in first])
    assert found["expected_regret_mean"][0] == pytest.approx(finals.mean(), rel=1e-12, abs=0)
    interval = aggregates.bootstrap_interval(finals, aggregates.median, 0.95, 200, 0, "expanded")
    assert (found["expected_regret_median_low"][0], found["expected_regret_median_high"][0]) == (
        interval.low,
        interval.high,
    )


def test_runs_with_one_seed_count_each() -> None:
    runs = [replace(run, seed=7) for run in runs_of(3)]
    assert gf.summary(runs, resamples=100)["runs"].tolist() == [3]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "empty dictionary"),
        ({"a": []}, "the data of 'a' are a list of nothing"),
        ({"a": [1]}, "a list of int"),
        (3, "the data are int 3"),
    ],
)
def test_what_is_no_run_is_refused(data: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        gf.summary(data)


def test_a_folder_without_an_experiment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        gf.summary(tmp_path)
