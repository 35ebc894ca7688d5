"""Tuning: specs, the choice of trials, and searches that survive a kill."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gainful as gf
from gainful.checked_json import to_checked_json
from gainful.cli.main import run
from gainful.errors import ExperimentError, InvalidSpecError, StoreError
from gainful.experiments.store import Store
from gainful.experiments.tune import TUNING_FILE, TuningPlan, TuningTrial, next_trials
from gainful.experiments.tune_spec import Choice, Range, TuneSpec, read_tune_spec

SPEC = """
title = "a small search"
horizon = 2000
seeds = 2
checkpoints = 5
[[environments]]
name = "riverswim"
[[agents]]
name = "ucrl2b"
[tune]
trials = 4
confirm = 3
batch = 2
[tune.search]
width_scale = { low = 0.01, high = 1.0, log = true }
delta = [0.05, 0.1]
"""


def spec_with(**changes: Any) -> TuneSpec:
    table = {"trials": 4, "confirm": 3, "batch": 2, "search": {"width_scale": {"low": 0.01, "high": 1.0, "log": True}}}
    data = {"horizon": 2000, "seeds": 2, "environments": [{"name": "riverswim"}], "agents": [{"name": "ucrl2b"}]}
    return read_tune_spec({**data, "tune": {**table, **changes}})


def scored(spec: TuneSpec, plan: TuningPlan) -> list[TuningTrial]:
    """Trials with scores that are best where width_scale is 0.1."""
    with_scores = [
        TuningTrial(t.number, t.parameters, abs(np.log(t.parameters["width_scale"] / 0.1))) for t in plan.trials
    ]
    return [TuningTrial(0, {}, 5.0), *with_scores]


def searched(folder: Path, spec: TuneSpec, trials: int) -> TuningPlan:
    """A search without runs, with a new plan from the file at every batch."""
    while len(TuningPlan.opened(folder, spec).trials) < trials:
        plan = TuningPlan.opened(folder, spec)
        plan.add(next_trials(spec, plan, scored(spec, plan), spec.batch))
    return TuningPlan.opened(folder, spec)


# ---------------------------------------------------------------------- specs


def test_a_spec_is_an_experiment_and_what_to_search() -> None:
    spec = read_tune_spec(SPEC)
    assert spec.search == {"width_scale": Range(0.01, 1.0, log=True), "delta": Choice((0.05, 0.1))}
    assert (spec.trials, spec.batch, spec.seeds, spec.confirmation_seeds) == (4, 2, (0, 1), (2, 3, 4))
    assert read_tune_spec({**spec.experiment, "tune": {"search": {"delta": [0.1, 0.2]}}}).trials == 30
    assert spec_with(search={"width_scale": {"low": 1, "high": 3}}).search["width_scale"] == Range(1, 3, whole=True)
    assert spec_with(confirm=[7, 9]).confirmation_seeds == (7, 9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("trials = 4", "trials = 0", r"line 11: tune.trials: is 0, expected a whole number from 1"),
        ("trials = 4", "trails = 4", r"line 11: tune.trails: there is no such key here; did you mean 'trials'"),
        ("confirm = 3", "confirm = [1, 9]", "line 12: tune.confirm: seed 1 is a tuning seed too"),
        ("confirm = 3", "confirm = [9, 9]", "each once"),
        ("confirm = 3", "confirm = [-1]", "whole number from 0"),
        ("confirm = 3", 'measure = "speed"', 'is "speed", expected one of "expected_regret"'),
        ("low = 0.01", "low = 2.0", "line 15: tune.search.width_scale: goes from 2.0 to 1.0"),
        ("low = 0.01", "low = 0.0", "low is 0.0, expected a number above 0, because of log = true"),
        ("low = 0.01", "low = nan", "tune.search.width_scale: is "),
        ("low = 0.01, ", "", "expected a list of values, or { low = 0.01"),
        ("[0.05, 0.1]", "[0.05]", "at least two different"),
        ("[0.05, 0.1]", "[0.05, [1]]", "at least two different"),
        ("[0.05, 0.1]", "[0.05, 1.5]", "line 16: tune.search.delta: ucrl2b: delta is 1.5"),
        ("delta = [", "dleta = [", "line 16: tune.search.dleta: ucrl2b has no such parameter; did you mean 'delta'"),
        ('name = "ucrl2b"', 'name = "ucrl2b"\nlabel = "x"', "cannot be used here; an agent has name, parameters"),
        ('name = "ucrl2b"', 'name = "ucrl2b"\n[[agents]]\nname = "psrl"', "there are 2 agents; one is tuned at a time"),
        ('name = "ucrl2b"', 'name = "ucrl3b"', "line 9: agents.0..name: unknown agent 'ucrl3b'"),
        ("horizon = 2000", "horizon = 0.5", "line 3: horizon"),
        ("[tune", "[[tune", "is not valid TOML|no table"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(old: str, new: str, message: str) -> None:
    assert old in SPEC
    with pytest.raises(InvalidSpecError, match=message):
        read_tune_spec(SPEC.replace(old, new))


def test_a_spec_without_a_search_and_a_search_run_as_an_experiment_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpecError, match=r"there is no table \[tune\]"):
        read_tune_spec(SPEC[: SPEC.index("[tune]")])
    with pytest.raises(InvalidSpecError, match="run it with gainful tune"):
        gf.run_experiment(SPEC, tmp_path)


# ---------------------------------------------------------------------- which trials


def test_the_choice_of_trials_finds_the_best_and_does_not_depend_on_when_it_was_interrupted(tmp_path: Path) -> None:
    spec = spec_with(batch=4)
    plan = searched(tmp_path / "one", spec, 24)
    again = TuningPlan.opened(tmp_path / "two", spec)
    while len(again.trials) < 24:  # in one go, without a file between
        again.add(next_trials(spec, again, scored(spec, again), spec.batch))
    assert [t.parameters for t in plan.trials] == [t.parameters for t in again.trials]
    tried = [t.parameters["width_scale"] for t in plan.trials]
    assert len(set(tried)) == 24
    assert all(0.01 <= x <= 1.0 and x == float(f"{x:.4g}") for x in tried)
    late, early = np.abs(np.log(np.array(tried) / 0.1)).reshape(2, 12)[::-1]
    assert np.median(late) < np.median(early)
    other = searched(tmp_path / "three", spec_with(batch=4, seed=1), 4)
    assert [t.parameters for t in other.trials] != [t.parameters for t in plan.trials[:4]]


def test_a_finite_space_is_tried_once_and_then_the_search_ends(tmp_path: Path) -> None:
    spec = spec_with(search={"width_scale": [0.1, 0.2, 1.0]}, batch=5)  # 1.0 is the default: the agent as given
    plan = TuningPlan.opened(tmp_path, spec)
    plan.add(next_trials(spec, plan, scored(spec, plan), 5))
    assert sorted(t.parameters["width_scale"] for t in plan.trials) == [0.1, 0.2]
    assert next_trials(spec, plan, scored(spec, plan), 5) == []


def test_a_file_of_another_spec_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    spec = spec_with()
    searched(tmp_path, spec, 2)
    assert len(TuningPlan.opened(tmp_path, spec_with(trials=9, confirm=5)).trials) == 2  # these may change
    with pytest.raises(ExperimentError, match="holds a tuning of another spec"):
        TuningPlan.opened(tmp_path, spec_with(seed=3))
    file = tmp_path / TUNING_FILE
    good = file.read_bytes()
    members = json.loads(good)
    members.pop("sha256")
    hostile = [
        b"",
        b"[]",
        good[:-9],
        good.replace(b"parameters", b"parametres", 1),
        to_checked_json({**members, "version": 2}),
        to_checked_json({**members, "trials": 3}),
        to_checked_json({**members, "trials": [{"parameters": {"width_scale": 7.0}, "problem": ""}]}),
        to_checked_json({**members, "trials": [{"parameters": {"width_scale": "0.1"}, "problem": ""}]}),
        to_checked_json({**members, "trials": [{"parameters": {"evil": 0.1}, "problem": ""}]}),
        to_checked_json({**members, "confirmed": ["x"]}),
    ]
    for data in hostile:
        file.write_bytes(data)
        with pytest.raises(ExperimentError, match="cannot be read"):
            TuningPlan.opened(tmp_path, spec)
    file.write_bytes(good)
    for i in range(0, 8 * len(good), 97):  # flipped bits are noticed
        damaged = bytearray(good)
        damaged[i // 8] ^= 1 << (i % 8)
        file.write_bytes(bytes(damaged))
        with pytest.raises(ExperimentError):
            TuningPlan.opened(tmp_path, spec)


# ---------------------------------------------------------------------- whole searches


def runs_in(folder: Path) -> dict[str, float]:
    """When every stored run was finished, by its id."""
    with Store.read(folder) as store:
        return {row["run_id"]: row["finished_at"] for row in store.runs(data=False)}


@pytest.mark.slow
def test_a_search_stores_every_trial_and_confirms_on_fresh_seeds(tmp_path: Path, capsys: Any) -> None:
    found = gf.tune(SPEC, tmp_path, jobs=2)
    assert [t.label for t in found.trials] == ["as given", "trial 1", "trial 2", "trial 3", "trial 4"]
    stored = gf.results(tmp_path / "trials")
    final = stored[stored["step"] == 2000].groupby("agent", observed=True)["expected_regret"]
    for trial in found.trials:
        assert trial.score == pytest.approx(final.mean()[trial.label], rel=1e-12, abs=0)
    assert set(stored["seed"]) == {0, 1}
    assert found.best.score == min(t.score for t in found.trials[1:])
    fresh = gf.results(tmp_path / "confirmation")
    assert set(fresh["seed"]) == {2, 3, 4}
    assert set(fresh["agent"]) == {"as given", found.best.label}
    comparison = found.comparison()
    assert comparison is not None
    assert comparison.environments[0].improvement.pairs == 3
    agent = gf.UCRL2B(6, 2, seed=0, **found.parameters)
    again = gf.simulate(agent, gf.environments.riverswim(6), 2000, seed=0)
    mine = stored[(stored["agent"] == found.best.label) & (stored["seed"] == 0)]
    assert again.expected_regret[-1] == mine["expected_regret"].iloc[-1]
    assert "<script" not in found._repr_html_()
    # the same call makes nothing anew, and says the same on the command line
    before = runs_in(tmp_path / "trials") | runs_in(tmp_path / "confirmation")
    capsys.readouterr()
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.replace("trials = 4", "trials = 5"), encoding="utf-8")
    assert run(["tune", str(path), "--out", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    after = runs_in(tmp_path / "trials") | runs_in(tmp_path / "confirmation")
    assert {run_id: after[run_id] for run_id in before} == before
    assert [t["score"] for t in told["trials"][:5]] == [t.score for t in found.trials]
    assert len(told["trials"]) == 6
    assert Path(told["page"]).exists()
    assert run(["tune", str(path), "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    with pytest.raises(StoreError, match=r"confirmation or .*trials"):
        gf.results(tmp_path)
    assert "5 trials by mean expected regret on 2 tuning seeds" in text
    assert "On 3 fresh seeds, of which nothing was chosen" in text


@pytest.mark.slow
def test_a_killed_search_continues_with_the_same_trials(tmp_path: Path) -> None:
    text = SPEC.replace("horizon = 2000", "horizon = 30000").replace("confirm = 3", "confirm = 1")
    whole = gf.tune(text, tmp_path / "whole", jobs=2)
    path = tmp_path / "spec.toml"
    path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "gainful", "tune", str(path), "--out", str(tmp_path / "killed"), "--jobs", "2"]
    silent = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=silent, stderr=silent, start_new_session=True)
    give_up = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < give_up:
        with contextlib.suppress(StoreError):  # not there yet
            if len(runs_in(tmp_path / "killed" / "trials")) >= 5:  # in the middle of the second batch
                break
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    found = gf.tune(text, tmp_path / "killed", jobs=1)
    assert found.trials == whole.trials
    pd.testing.assert_frame_equal(found.confirmation(), whole.confirmation())
