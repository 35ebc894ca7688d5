"""Sweeps: the same results however they are run, resumed, added to; and what goes wrong, told."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.cli.main import run as gainful
from gainful.errors import ExperimentError, InvalidArgumentError, StoreError
from gainful.experiments.estimate import Workload
from gainful.experiments.pool import RunFailed
from gainful.experiments.results import export, results
from gainful.experiments.store import Store
from gainful.experiments.sweep import ExperimentWarning, SilentWatcher, SweepProgress, run_experiment
from gainful.experiments.wire_format import pack, unpack
from tests.experiments.sweeps import SPEC, bits, edited, finished, started, workers_of, written

RUNS = 21
LONG = """
title = "long runs"
horizon = 4e7
seeds = 3
[[environments]]
name = "riverswim"
[[agents]]
name = "scal-plus"
parameters = { span = 7.0 }
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small sweep, run undisturbed by one worker."""
    folder = tmp_path_factory.mktemp("whole")
    outcome = run_experiment(written(folder), folder / "out", jobs=1)
    assert (outcome.planned, outcome.finished, outcome.ran, outcome.failures) == (RUNS, RUNS, RUNS, ())
    return folder / "out"


# ---------------------------------------------------------------------- the same results, however


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [2, 4])
def test_results_do_not_depend_on_the_number_of_workers(jobs: int, whole: Path, tmp_path: Path) -> None:
    run_experiment(written(tmp_path), tmp_path / "out", jobs=jobs)
    assert bits(tmp_path / "out") == bits(whole)


@pytest.mark.slow
def test_a_stored_run_is_what_simulate_gives(whole: Path) -> None:
    frame = results(whole)
    frame = frame[(frame.agent == "scal-plus, bonus_scale = 0.1") & (frame.environment == "riverswim")]
    mdp = gf.environments.riverswim()
    for seed in range(3):
        found = frame[frame.seed == seed]
        span = float(found.span.iloc[0])
        agent = gf.SCALPlus(mdp.n_states, mdp.n_actions, span=span, bonus_scale=0.1, seed=seed)
        run = gf.simulate(agent, mdp, 30_000, seed=seed, checkpoints=found.step.to_numpy())
        assert np.array_equal(found.pseudo_regret, run.pseudo_regret)
        assert np.array_equal(found.expected_regret, run.expected_regret)
        assert np.isfinite(run.expected_regret).all()
        assert np.array_equal(found.regret, run.regret)
        assert np.array_equal(found.reward, run.rewards)


def test_running_again_runs_nothing(whole: Path, tmp_path: Path) -> None:
    before = bits(whole)
    outcome = run_experiment(written(tmp_path), whole)
    assert (outcome.ran, outcome.finished, outcome.complete) == (0, RUNS, True)
    assert bits(whole) == before


@pytest.mark.slow
def test_a_superset_adds_only_what_is_new(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_experiment(written(tmp_path, SPEC.replace("seeds = 3", "seeds = 2")), out, jobs=2)
    first = bits(out)
    outcome = run_experiment(written(tmp_path), out, jobs=2)
    assert (outcome.ran, outcome.finished) == (7, RUNS)
    assert first.items() <= bits(out).items()


def test_a_title_may_change(whole: Path, tmp_path: Path) -> None:
    assert run_experiment(written(tmp_path, SPEC.replace("a small", "the small")), whole).ran == 0
    assert set(results(whole).experiment) == {"the small sweep"}
    run_experiment(written(tmp_path), whole)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("horizon = 3e4", "horizon = 2e4"), "horizon 30,000 -> 20,000"),
        (("seeds = 3", "seeds = [1, 2, 3]"), "seed 0 gone"),
        (('[[agents]]\nname = "psrl"\n', ""), "agent 'psrl' is gone"),
    ],
)
def test_a_changed_spec_is_refused_with_what_differs(
    change: tuple[str, str], told: str, whole: Path, tmp_path: Path
) -> None:
    before = bits(whole)
    with pytest.raises(ExperimentError, match=told):
        run_experiment(written(tmp_path, SPEC.replace(*change)), whole)
    assert bits(whole) == before


# ---------------------------------------------------------------------- failures


class Listener(SilentWatcher):
    """Remembers what failed."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int, bool]] = []

    def failed(self, sweep: SweepProgress, failure: RunFailed, attempt: int, again: bool) -> None:
        self.heard.append((failure.kind, attempt, again))


TOO_LARGE = """
title = "one that cannot be"
horizon = 1000
seeds = 2
[[environments]]
name = "riverswim"
[[environments]]
name = "garnet"
parameters = { n_states = 60000, n_actions = 4, branching = 4 }
[[agents]]
name = "psrl"
[[agents]]
name = "fixed"
"""


@pytest.mark.slow
def test_a_run_that_fails_does_not_sink_the_others(tmp_path: Path) -> None:
    """PSRL refuses a model of 60 000² · 4 numbers, which is known only where it is made."""
    listener = Listener()
    spec = written(tmp_path, TOO_LARGE)
    outcome = run_experiment(spec, tmp_path / "out", jobs=2, watcher=listener)
    assert (outcome.planned, outcome.finished) == (8, 6)
    assert listener.heard == [("TooLargeError", 1, False)] * 2
    assert {(f["agent"], f["environment"], f["kind"]) for f in outcome.failures} == {
        ("psrl", "garnet", "TooLargeError")
    }
    assert "Traceback" in outcome.failures[0]["traceback"]
    again = run_experiment(spec, tmp_path / "out", jobs=1, fail_fast=True)  # tried again, and told again
    assert (again.ran, len(again.failures)) == (0, 2)


def test_the_first_failure_stops_where_asked(tmp_path: Path) -> None:
    outcome = run_experiment(written(tmp_path, LONG), tmp_path / "out", jobs=1, timeout=0.2, fail_fast=True)
    assert outcome.stopped
    assert len(outcome.failures) == 1
    assert outcome.finished == 0


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_left_out(tmp_path: Path) -> None:
    spec = written(tmp_path, LONG.replace("seeds = 3", "seeds = 1"))
    outcome = run_experiment(spec, tmp_path / "out", jobs=1, timeout=0.1)
    assert [f["kind"] for f in outcome.failures] == ["TimeoutError"]
    assert "raise --timeout" in outcome.failures[0]["message"]
    assert run_experiment(spec, tmp_path / "out", jobs=1).complete
    with Store.read(tmp_path / "out") as store:
        assert store.failures() == []  # it has finished since


@pytest.mark.parametrize("options", [{"jobs": 0}, {"tries": 0}, {"timeout": 0.0}, {"checkpoint_every": -1.0}])
def test_options_that_cannot_be(options: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a number above 0"):
        run_experiment(written(tmp_path), tmp_path / "out", **options)


@pytest.mark.slow
def test_a_worker_that_is_always_killed_is_given_up(tmp_path: Path) -> None:
    driver = started(
        written(tmp_path, LONG.replace("seeds = 3", "seeds = 1")), tmp_path / "out", "--tries", "2", "-j", "1"
    )
    killed = 0
    while driver.poll() is None:
        for worker in workers_of(driver):
            worker.kill()
            worker.wait()
            killed += 1
        time.sleep(0.02)
    said = driver.communicate()[0]
    assert driver.returncode == 1, said
    assert killed >= 2
    assert "was killed by SIGKILL" in said
    assert "starting try 2" in said
    assert "Next: repeat the command" in said


# ---------------------------------------------------------------------- interruptions


@pytest.mark.slow
def test_ctrl_c_stops_where_it_can_go_on_and_bits_stay_the_same(tmp_path: Path) -> None:
    spec = written(tmp_path, LONG.replace("4e7", "2e8").replace("seeds = 3", "seeds = 2"))
    finished(spec, tmp_path / "whole", "-j", "2")
    driver = started(spec, tmp_path / "out", "-j", "2", "--checkpoint-every", "0.05")
    while driver.poll() is None and len(list((tmp_path / "out").glob("checkpoints/*"))) < 2:  # a token, and one more
        time.sleep(0.02)
    driver.send_signal(signal.SIGINT)
    said = driver.communicate(timeout=60)[0]
    assert driver.returncode == 130, said
    assert "stopping: active runs are writing their checkpoints" in said
    assert [p for p in (tmp_path / "out" / "checkpoints").iterdir() if p.name != "token"]
    finished(spec, tmp_path / "out", "-j", "2")
    assert bits(tmp_path / "out") == bits(tmp_path / "whole")
    assert [p.name for p in (tmp_path / "out" / "checkpoints").iterdir()] == ["token"]


@pytest.mark.slow
def test_one_driver_at_a_time(tmp_path: Path) -> None:
    spec = written(tmp_path, LONG)
    driver = started(spec, tmp_path / "out", "-j", "1")
    while not workers_of(driver):
        time.sleep(0.05)
    with pytest.raises(ExperimentError, match="another gainful is running this experiment"):
        run_experiment(spec, tmp_path / "out")
    with Store.read(tmp_path / "out") as store:  # but anyone may look
        assert sum(row["planned"] for row in store.progress()) == 3
    driver.kill()
    driver.communicate()
    assert run_experiment(spec, tmp_path / "out", jobs=2).complete  # the lock of the dead is free


def test_workers_end_with_their_driver(tmp_path: Path) -> None:
    driver = started(written(tmp_path, LONG.replace("4e7", "4e9")), tmp_path / "out", "-j", "2")
    while len(workers := workers_of(driver)) < 2:
        time.sleep(0.05)
    driver.kill()
    driver.communicate()
    for worker in workers:
        worker.wait(timeout=10)


# ---------------------------------------------------------------------- places that fail


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for out in (tmp_path / "file" / "out", Path("/proc/gainful")):
        with pytest.raises(StoreError, match="cannot be written"):
            run_experiment(written(tmp_path), out)


FULL_DISK = """
import resource, sys
from gainful.errors import StoreError
from gainful.experiments.store import STORE_FILE
from gainful.experiments.sweep import SilentWatcher, run_experiment
from pathlib import Path

class SweepWatcher(SilentWatcher):
    def progressed(self, sweep):
        if sweep.finished == 3:  # from now on no file of this process may grow
            size = max(p.stat().st_size for p in Path(sys.argv[2]).glob(STORE_FILE + "*"))
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

try:
    run_experiment(sys.argv[1], sys.argv[2], jobs=1, watcher=SweepWatcher())
except StoreError as error:
    print(error)
    sys.exit(7)
"""


@pytest.mark.slow
def test_a_disk_that_fills_up_loses_nothing(whole: Path, tmp_path: Path) -> None:
    spec, out = written(tmp_path), tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(spec), str(out)], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 7, done.stdout + done.stderr
    assert "every run stored before is safe: make room, and run the same command again" in done.stdout
    with Store.read(out) as store:
        stored = store.finished()
    assert 3 <= len(stored) < RUNS
    outcome = run_experiment(spec, out, jobs=2)
    assert outcome.ran == RUNS - len(stored)
    assert bits(out) == bits(whole)


@pytest.mark.slow
def test_runs_of_an_older_version_are_kept_and_made_anew(whole: Path, tmp_path: Path) -> None:
    spec, out = written(tmp_path), tmp_path / "out"
    run_experiment(spec, out, jobs=2)
    with edited(out) as connection:
        connection.execute("UPDATE runs SET results_version = 0, run_id = 'x' || run_id WHERE seed = 1")
    outcome = run_experiment(spec, out, jobs=2)
    assert (outcome.ran, outcome.complete) == (7, True)
    assert bits(out) == bits(whole)
    assert set(results(out, older=True).seed) == {1}


def test_a_sweep_begun_before_expected_regret_existed_resumes_with_nan_for_its_older_runs(
    whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole, tmp_path / "out")
    with Store.read(tmp_path / "out") as opened:
        rows = [(*unpack(row["data"]), row["run_id"]) for row in opened.runs()]
    with edited(tmp_path / "out") as store:
        for values, arrays, run_id in rows:
            kept = {name: array for name, array in arrays.items() if name != "expected_regret"}
            store.execute("UPDATE runs SET data = ? WHERE run_id = ?", (pack(values, kept), run_id))
        store.execute("DELETE FROM runs WHERE run_id = ?", (rows[0][2],))
    outcome = run_experiment(written(tmp_path), tmp_path / "out", jobs=1)
    assert (outcome.ran, outcome.finished) == (1, RUNS)
    frame, before = results(tmp_path / "out"), results(whole)
    new = frame.run_id == rows[0][2]
    assert frame[~new].expected_regret.isna().all()
    assert np.array_equal(frame[new].expected_regret, before[before.run_id == rows[0][2]].expected_regret)
    assert frame[new].expected_regret.notna().all()
    assert np.array_equal(frame.pseudo_regret, before.pseudo_regret)


# ---------------------------------------------------------------------- what comes out


def test_the_tidy_table(whole: Path, tmp_path: Path) -> None:
    frame = results(whole)
    assert list(frame.columns[:10]) == [
        "experiment",
        "environment",
        "agent",
        "parameters",
        "seed",
        "step",
        "reward",
        "regret",
        "pseudo_regret",
        "expected_regret",
    ]
    assert frame.groupby(["environment", "agent", "seed"], observed=True).ngroups == RUNS
    assert np.array_equal(frame.regret, frame.step * frame.gain - frame.reward)
    assert json.loads(frame.parameters.iloc[0])["names"] == ["riverswim", "scal-plus"]
    import pandas as pd

    for name in ("runs.csv", "runs.csv.gz", "runs.parquet"):
        assert export(whole, tmp_path / name) == len(frame)
        read = pd.read_parquet(tmp_path / name) if "parquet" in name else pd.read_csv(tmp_path / name)
        assert np.array_equal(read.regret, frame.regret)
        assert list(read.columns) == list(frame.columns)
    with pytest.raises(InvalidArgumentError, match="ends in"):
        export(whole, tmp_path / "runs.xlsx")
    assert gf.results(whole).equals(frame)


def test_the_commands(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gainful(["run", str(written(tmp_path)), "--out", str(whole)]) == 0
    captured = capsys.readouterr()
    assert "scal-plus, bonus_scale = 0.1" in captured.out
    assert "21 of 21 runs are stored" in captured.err
    assert gainful(["run", str(written(tmp_path)), "--out", str(whole), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["planned"], facts["finished"], facts["ran"]) == (RUNS, RUNS, 0)
    assert len(facts["summary"]) == 7
    assert gainful(["status", str(whole)]) == 0
    assert "21 of 21 runs finished" in capsys.readouterr().out
    assert gainful(["status", str(whole), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["configurations"]) == 7
    assert gainful(["export", str(whole), "--csv", str(tmp_path / "x.csv")]) == 0
    assert (tmp_path / "x.csv").exists()
    assert gainful(["export", str(whole)]) == 2
    assert gainful(["status", str(tmp_path / "nothing")]) == 1
    assert "there is no experiment here" in capsys.readouterr().err
    assert gainful(["list", "specs"]) == 0
    assert "quickstart" in capsys.readouterr().out


@pytest.mark.slow
def test_hostile_names_stay_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SPEC.replace('title = "a small sweep"', 'title = "[red]\\u001b[31m<script>"').replace("3e4", "100")
    text = text.replace("1e4", "100").replace("seeds = 3", "seeds = 1")
    text = text.replace('name = "psrl"', 'name = "psrl"\nlabel = "[bold]x\\u001b[0m"')
    assert gainful(["run", str(written(tmp_path, text)), "--out", str(tmp_path / "out")]) == 0
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err
    assert "[bold]x\\x1b[0m" in captured.out
    assert gainful(["status", str(tmp_path / "out")]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_what_is_left_is_estimated_and_then_measured() -> None:
    work = Workload([("a", "x", 100), ("b", "x", 100), ("c", "y", 10)], {"x": 4.0, "y": 1.0})
    assert work.seconds == 9.0
    work.stepped("a", 50)  # from a checkpoint: the first that is heard of it
    assert (work.seconds, work.steps) == (7.0, 0)
    work.stepped("a", 75)
    assert (work.seconds, work.steps) == (6.0, 25)
    work.finished("a", 1.0)  # 1 s for half a run: 2 s for one
    assert (work.seconds, work.steps) == (3.0, 50)
    work.stepped("b", 0)
    work.stepped("b", 50)
    assert work.seconds == 2.0
    work.lost("b")  # to be tried again
    assert work.seconds == 3.0
    work.dropped("b")
    work.finished("c", 0.5)  # nothing was heard of it before
    assert (work.seconds, work.steps) == (0.0, 110)


def test_a_damaged_token_stopped_a_sweep_for_good(tmp_path: Path) -> None:
    text = 'horizon = 100\nseeds = 1\n[[environments]]\nname = "toy3d"\n[[agents]]\nname = "fixed"\n'
    run_experiment(text, tmp_path / "out", jobs=1)
    for damage in (b"\xff\xfe", b"0" * 32 + b" 00000000"):
        (tmp_path / "out" / "checkpoints" / "token").write_bytes(damage)
        with pytest.warns(ExperimentWarning, match="token: damaged; it was written anew"):
            outcome = run_experiment(text, tmp_path / "out", jobs=1)
        assert outcome.complete
        run_experiment(text, tmp_path / "out", jobs=1)
