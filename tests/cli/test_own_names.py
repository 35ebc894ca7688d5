"""A user's own agent by its name, from a spec on two workers to the service."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

import gainful as gf
from gainful.cli.main import run
from gainful.user_modules import load_object
from tests.experiments.user_code import TABLE, forget, write_module

SPEC = """
horizon = {horizon}
seeds = 4
checkpoints = 5
[[environments]]
name = "{module}:river"
[[environments]]
table = "van.csv"
[[agents]]
name = "{module}:Uniform"
parameters = {{ b = 2 }}
[[agents]]
name = "SCAL+"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a module and a table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "van.csv").write_text(TABLE, encoding="utf-8")
    return tmp_path


def test_commands_take_names(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_module(home, "named_a")
    assert run(["solve", "named_a:river", "--set", "n=4", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["n_states"] == 4
    assert err.count("importing named_a from") == 1
    words = ["learn", "van.csv", "--agent", "named_a:Uniform", "--agent-set", "b=3", "--horizon", "500"]
    assert run([*words, "--json", "--save-agent", "mine.agent"]) == 0
    assert json.loads(capsys.readouterr().out)["agent"] == "named_a:Uniform"
    assert gf.load_agent(home / "mine.agent").b == 3.0
    assert run(["learn", "van.csv", "--agent", "named_a:Plain", "--horizon", "500"]) == 0
    assert "note: Plain has methods of its own" in capsys.readouterr().err
    assert run(["learn", "riverswim", "--agent", "SCAL+", "--horizon", "100", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["agent"] == "scal-plus"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["learn", "riverswim", "--agent", "no_such:Thing"], 2, "there is no module 'no_such'"),
        (
            ["learn", "riverswim", "--agent", "named_b:Broken"],
            2,
            "named_b:Broken cannot be made: RuntimeError: no luck",
        ),
        (["learn", "riverswim", "--agent", "named_b:Uniform", "--agent-set", "x=1"], 2, "no such parameter"),
        (["learn", "riverswim", "--agent", "named_b:Fails"], 1, "by zero (raised in"),
        (["solve", "named_b:Nothing"], 2, "has no 'Nothing'"),
        (["audit", "riverswim", "--agent", "named_b:Uniform", "--runs", "1"], 2, "no theorem about it is audited"),
        (["serve", "agents", "--allow", "no_such"], 2, "there is no module 'no_such'"),
        (["learn", "riverswim", "--agent", "scal++"], 2, "did you mean"),
    ],
)
def test_what_is_wrong_with_a_name(
    home: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    write_module(home, "named_b")
    forget("named_b")
    source = home / "named_b.py"
    fails = "\n\nclass Fails(Plain):\n    def act(self, state):\n        return 1 // 0\n"
    source.write_text(source.read_text(encoding="utf-8") + fails, encoding="utf-8")
    assert run(words) == code
    found = capsys.readouterr().err
    assert said in found
    assert "bug in gainful" not in found


def _gainful(*words: str, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "gainful", *words], **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.slow
def test_a_users_own_agent_from_a_spec_to_the_service(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = home / "study"
    study.mkdir()
    write_module(study, "named_c")
    (home / "van.csv").rename(study / "van.csv")
    (study / "mine.toml").write_text(SPEC.format(module="named_c", horizon=60_000_000), encoding="utf-8")
    words = ("run", "study/mine.toml", "--out", "out", "--jobs", "2", "--checkpoint-every", "0.2")
    with _gainful(*words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as first:
        until = time.monotonic() + 120.0
        checkpoints = home / "out" / "checkpoints"
        while time.monotonic() < until and len(list(checkpoints.glob("*"))) < 2:
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)
    written = len(list(checkpoints.glob("*")))
    assert written > 1, "a checkpoint of the user's agent, and the token"
    with _gainful(*words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as second:
        _, said = second.communicate(timeout=300)
    assert second.returncode == 0, said.decode()
    assert said.decode().count("importing named_c from") == 1
    frame = gf.results(home / "out")
    assert frame["run_id"].nunique() == 16
    expected = gf.simulate(
        load_from(study, "named_c:Uniform")(3, 2, b=2.0, seed=1), gf.environments.riverswim(3), 60_000_000, seed=1
    )
    mine = frame[(frame.agent == "named_c:Uniform") & (frame.environment == "named_c:river") & (frame.seed == 1)]
    assert mine["reward"].iloc[-1] == expected.rewards[-1]

    forget("named_c")
    (study / "named_c.py").rename(study / "named_c.txt")  # report and export import nothing
    assert run(["report", "out"]) == 0
    assert run(["export", "out", "--csv", "runs.csv"]) == 0
    assert "named_c" not in sys.modules
    (study / "named_c.txt").rename(study / "named_c.py")
    capsys.readouterr()
    assert run(["audit", "study/mine.toml", "--horizon", "2000", "--runs", "2", "--jobs", "1"]) == 0
    assert "not audited: named_c:Uniform" in capsys.readouterr().out

    agents = home / "agents"
    service = _gainful(
        "serve", str(agents), "--port", "0", "--allow", "named_c", "--json",
        stdout=subprocess.PIPE, cwd=study, env={**os.environ, "GAINFUL_ADMIN_KEY": "k" * 40},
    )  # fmt: skip
    try:
        assert service.stdout is not None
        url = json.loads(service.stdout.readline())["url"]
        headers = {"Authorization": f"Bearer {'k' * 40}"}
        config = {"agent": "named_c:Uniform", "n_states": 3, "n_actions": 2, "b": 2.0}
        made = httpx.post(f"{url}/agents", json={"id": "pump", "config": config}, headers=headers, timeout=30)
        assert made.status_code == 201, made.text
        answer = httpx.post(f"{url}/agents/pump/act", json={"state": 0}, headers=headers, timeout=30)
        assert answer.json()["action"] in (0, 1)
        refused = {"id": "other", "config": {**config, "agent": "os:system"}}
        no = httpx.post(f"{url}/agents", json=refused, headers=headers, timeout=30)
        assert no.status_code == 422, no.text
        assert "a request causes no import" in no.text
    finally:
        service.terminate()
        service.wait(timeout=60)
    with gf.open_agent(agents / "agents" / "pump" / "journal", allow=["named_c"]) as agent:
        assert agent.kind == "Uniform"


def load_from(folder: Path, reference: str) -> Any:
    """The object, from a module in this folder."""
    from gainful.user_modules import look_in

    look_in([folder])
    return load_object(reference)
