from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gainful as gf
from gainful.audit.audit import audit
from tests.cli.conftest import Gainful, WriteTable


@pytest.mark.slow
def test_verdicts_are_those_of_the_library(gainful: Gainful) -> None:
    found = gainful("audit", "riverswim", "--span", "7", "--runs", "4", "--horizon", "3000", "--json", "--jobs", "2")
    assert found.code == 0
    (told,) = found.data["audits"]
    expected = audit(lambda seed: gf.SCALPlus(6, 2, span=7.0, seed=seed), gf.environments.riverswim(6), 3000, runs=4)
    for verdict in told["verdicts"]:
        one = expected[verdict["statement"]]
        assert (verdict["verdict"], verdict["checks"]) == (one.verdict, one.checks)
        assert one.worst is not None
        assert verdict["worst"]["found"] == one.worst.found
    assert [run["regret"] for run in told["runs"]] == [run.regret for run in expected.runs]
    assert told["facts"]["span"] == pytest.approx(6.310324, abs=1e-6)


def test_a_table_of_verdicts_for_people(gainful: Gainful) -> None:
    found = gainful(
        "audit", "riverswim", "--runs", "2", "--jobs", "1", "--horizon", "2000", "--agent-set", "bonus_scale=0.01"
    )
    assert found.code == 0
    assert "scal-plus in riverswim: 2 runs of 2,000 steps" in found.out
    assert "optimism" in found.out
    assert "no guarantee: bonus_scale is 0.01" in found.out
    assert "Nothing that should hold is violated." in found.out


def test_ctrl_c_says_how_many_runs_were_audited(
    gainful: Gainful, write_table: WriteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def ctrl_c_after_a_run(tell: Callable[[Any, Any], str]) -> Iterator[Callable[[Any, Any], None]]:
        def show(done: int, total: int) -> None:
            assert tell(done, total)
            raise KeyboardInterrupt

        yield show

    monkeypatch.setattr("gainful.cli.audit.live_line", ctrl_c_after_a_run)
    table = write_table("a,go,b,1,0", "b,go,a,0.5,1", "b,go,b,0.5,1", "a,stay,a,1,0.2")
    found = gainful("audit", table, "--runs", "3", "--horizon", "500")
    assert (found.code, found.out) == (130, "")
    assert found.error == "interrupted after 1 of 3 runs; nothing is kept of an audit that is not complete\n"


def test_a_table_of_ones_own_is_audited(gainful: Gainful, write_table: WriteTable) -> None:
    table = write_table("a,go,b,1,0", "b,go,a,0.5,1", "b,go,b,0.5,1", "a,stay,a,1,0.2")
    found = gainful("audit", table, "--runs", "2", "--horizon", "500", "--json")
    assert found.code == 0, found.err
    assert found.data["audits"][0]["agent"] == "scal-plus"


def test_kl_scal_plus_is_audited_without_a_span_unless_one_is_given(gainful: Gainful, write_table: WriteTable) -> None:
    table = write_table("a,go,b,1,0", "b,go,a,0.5,1", "b,go,b,0.5,1", "a,stay,a,1,0.2")
    for options, told in (([], "not applicable"), (["--span", "auto"], "certified")):
        found = gainful(
            "audit", table, "--agent", "kl-scal-plus", *options, "--runs", "1", "--horizon", "300", "--json"
        )
        assert found.code == 0, found.err
        verdicts = {v["statement"]: v["verdict"] for v in found.data["audits"][0]["verdicts"]}
        assert verdicts["span"] == told
        assert verdicts["span-diameter"] == "inconclusive"


@pytest.mark.slow
def test_a_spec_is_audited_with_agents_that_have_no_theorem(gainful: Gainful, tmp_path: Path) -> None:
    spec = tmp_path / "two.toml"
    spec.write_text(
        'title = "two"\nhorizon = 2e3\nseeds = 1\n[[environments]]\nname = "riverswim"\n[[agents]]\n'
        'name = "scal-plus"\nlabel = "mine"\n[[agents]]\nname = "psrl"\n'
    )
    found = gainful("audit", str(spec), "--runs", "2", "--horizon", "1000", "--out", str(tmp_path / "out"), "--json")
    assert found.code == 0, found.err
    assert [(a["agent"], a["horizon"]) for a in found.data["audits"]] == [("mine", 1000), ("psrl", 1000)]
    assert found.data["not_audited"] == []
    of_psrl = {v["statement"]: v for v in found.data["audits"][1]["verdicts"]}
    assert of_psrl["regret-bound"]["verdict"] == "no theorem"
    assert "prior" in of_psrl["regret-bound"]["remark"]
    assert json.loads((tmp_path / "out" / "audit.json").read_text()) == found.data


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "riverswim", "--agent", "ucbvi", "--runs", "1"], "episode_length"),
        (["audit", "riverswim", "--agent", "ucrl-2"], "did you mean 'ucrl2'"),
        (["audit", "riverswim", "--horizon", "0"], "horizon is 0"),
        (["audit", "riverswim", "--runs", "0"], "--runs"),
        (["audit", "quickstart", "--agent", "scal"], "cannot be combined with a spec"),
        (["audit", "riverswam"], "did you mean 'riverswim'"),
        (["audit", "riverswim", "--agent-set", "bonus=loud"], 'bonus is "loud"'),
        (["audit", "missing.toml"], "missing.toml"),
    ],
)
def test_misuse_is_one_message(gainful: Gainful, arguments: list[str], message: str) -> None:
    found = gainful(*arguments)
    assert found.code in (1, 2)
    assert found.out == ""
    assert message in found.err
    assert "Traceback" not in found.err


def test_a_folder_that_cannot_be_written_is_one_message(gainful: Gainful, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = gainful("audit", "toy3d", "--runs", "1", "--horizon", "100", "--out", str(tmp_path / "file" / "x"))
    assert found.code == 1
    assert "cannot be written" in found.err


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_one_try_of_one_run(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "gainful",
            "audit",
            "riverswim",
            "--runs",
            "60",
            "--horizon",
            "1e6",
            "--jobs",
            "2",
            "--json",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    killed = 0
    while process.poll() is None and killed < 3:
        time.sleep(0.7)
        for child in _children(process.pid)[:1]:
            os.kill(child, signal.SIGKILL)
            killed += 1
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert killed
    assert len(json.loads(out)["audits"][0]["runs"]) == 60


def _children(pid: int) -> list[int]:
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.Error:
        return []
