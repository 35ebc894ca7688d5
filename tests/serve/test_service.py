"""The service over HTTP: agents, decisions, observations, metrics, shutdown."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

import gainful as gf
from gainful.cli.main import run
from gainful.live import open_agent, read_journal
from gainful.serve.keys import hashed
from gainful.theory.regret import regret_bound
from tests.serve.service import CONFIG, Running, served


def test_an_agent_from_creation_to_the_archive(service: Running) -> None:
    key = service.make("complete")
    first = service.post("/agents/complete/act", {"state": 0}, key).json()
    late = service.post("/agents/complete/act", {"state": 3}, key).json()
    assert first["action"] in (0, 1)
    waiting = service.ask("GET", "/agents/complete/pending", key).json()
    assert [w["decision_id"] for w in waiting["pending"]] == [first["decision_id"], late["decision_id"]]
    told = {"decision_id": late["decision_id"], "reward": 1.0, "next_state": 4}
    receipt = service.post("/agents/complete/observe", told, key).json()
    assert receipt == {"sequence": receipt["sequence"], "repeated": False}
    assert service.post("/agents/complete/observe", told, key).json() == {**receipt, "repeated": True}
    service.post("/agents/complete/abandon", {"decision_id": first["decision_id"]}, key)
    plain = {"state": 4, "action": 1, "reward": 0.5, "next_state": 5}
    assert service.post("/agents/complete/observe", plain, key).status_code == 200
    many = {"transitions": [plain, {**plain, "reward": 0.0, "next_state": 0}]}
    assert service.post("/agents/complete/observe", many, key).status_code == 200
    found = service.ask("GET", "/agents/complete", key).json()
    assert found["observations"] == 4
    assert found["pending"] == 0
    assert found["mean_reward"] == pytest.approx((1.0 + 0.5 + 0.5 + 0.0) / 4, rel=0, abs=1e-12)
    assert found["tables"]["visits"][4] == [0, 3]
    assert found["gain"]["low"] <= found["gain"]["estimate"] <= found["gain"]["high"]
    assert found["confidence"]["pairs"] == 12
    assert found["confidence"]["pairs_visited"] == 2
    episodes = service.ask("GET", "/agents/complete/episodes", key).json()
    assert episodes["of"] == found["episodes"] == len(episodes["step"])
    frame = read_journal(service.journal("complete"))
    assert (frame.kind == "observation").sum() == 4
    gone = service.ask("DELETE", "/agents/complete").json()["done"].split()[-1]
    assert service.ask("GET", "/agents/complete").status_code == 404
    assert service.ask("GET", "/agents/complete", key).status_code == 401
    with open_agent(service.folder / "archive" / gone / "journal") as agent:
        assert agent.t == 4


def test_the_answers_are_those_of_the_agent_itself(tmp_path: Path) -> None:
    config = {**CONFIG, "seed": 3, "bonus_scale": 0.1}
    with (
        served(tmp_path / "agents", "--planning", "inline") as service,  # "auto" depends on how busy the machine is
        open_agent(tmp_path / "twin", config, planning="inline") as twin,
    ):
        key = service.make("same", seed=3, bonus_scale=0.1)
        state = 0
        for n in range(60):
            decision = service.post("/agents/same/act", {"state": state}, key).json()
            mine = twin.act(state)
            assert decision == {"decision_id": mine.decision_id, "action": int(mine)}
            to = (state + decision["action"] + n) % 6
            service.post("/agents/same/observe", {**decision, "state": state, "reward": 0.25, "next_state": to}, key)
            twin.observe(state, mine, 0.25, to)
            state = to
        found = service.ask("GET", "/agents/same", key).json()
        assert twin.gain_bounds == (found["gain"]["low"], found["gain"]["high"])
        assert found["tables"]["policy"] == list(twin.actions if twin.actions is not None else [])
        assert found["tables"]["visits"] == twin.statistics.visits.reshape(6, 2).tolist()


def test_the_regret_bound_is_the_theorems_or_says_why_there_is_none(service: Running) -> None:
    key = service.make("bounded", reward_min=-1.0)
    empty = service.ask("GET", "/agents/bounded", key).json()["regret_bound"]
    assert (empty["value"], empty["reason"]) == (None, "nothing has been observed")
    for n in range(30):
        decision = service.post("/agents/bounded/act", {"state": n % 6}, key).json()["decision_id"]
        told = {"decision_id": decision, "reward": 0.0, "next_state": (n + 1) % 6}
        assert service.post("/agents/bounded/observe", told, key).status_code == 200
    found = service.ask("GET", "/agents/bounded", key).json()["regret_bound"]
    assert found["value"] == regret_bound(30, 6, 2, span=7.0, reward_max=2.0)
    assert (found["steps"], found["trivial"], found["probability"]) == (30, 60.0, 0.95)
    changed = service.post("/agents/bounded/change", {"bonus_scale": 0.5, "reason": "impatient"}, key)
    assert changed.json()["settings"]["bonus_scale"] == 0.5
    again = service.post("/agents/bounded/change", {"bonus_scale": 0.5, "reason": "impatient"}, key)
    assert (changed.json()["repeated"], again.json()["repeated"]) == (False, True)
    known = service.ask("GET", "/agents/bounded", key).json()
    assert len(known["changes"]) == 1
    assert known["regret_bound"]["value"] is None
    assert "bonus_scale" in known["regret_bound"]["reason"]
    other = service.make("unbounded", agent="ucrl2b", span=None)
    assert "UCRL2B" in service.ask("GET", "/agents/unbounded", other).json()["regret_bound"]["reason"]


def test_an_agent_on_points(service: Running) -> None:
    config = {
        "agent": "c-scal-plus",
        "n_actions": 2,
        "span": 2.0,
        "lipschitz": 1.0,
        "holder": 1.0,
        "partition": {"bins": [4, 2], "low": [0.0, 0.0], "high": [1.0, 2.0]},
    }
    made = service.post("/agents", {"id": "points", "config": config})
    assert made.status_code == 201, made.text
    key = made.json()["key"]
    decision = service.post("/agents/points/act", {"state": [0.5, 1.5]}, key).json()
    assert service.ask("GET", "/agents/points/pending", key).json()["pending"][0]["state"] == [0.5, 1.5]
    told = {"decision_id": decision["decision_id"], "reward": 0.5, "next_state": [0.75, 0]}
    assert service.post("/agents/points/observe", told, key).status_code == 200
    outside = service.post("/agents/points/act", {"state": [0.5, 2.5]}, key)
    assert outside.status_code == 422
    assert "2.5" in outside.json()["what"]
    found = service.ask("GET", "/agents/points?states=3&first=2", key).json()
    assert found["tables"]["n_states"] == 8
    assert len(found["tables"]["visits"]) == 3
    expected = regret_bound(1, 8, 2, span=2.0, lipschitz=1.0, holder=1.0, bins=2)
    assert found["regret_bound"]["value"] == expected


CELLS = {"bins": [4, 2], "low": [0.0, 0.0], "high": [1.0, 2.0]}
POINTS: dict[str, Any] = {"agent": "c-scal-plus", "n_actions": 2, "span": 2.0, "n_states": None}
CONFIGS: list[dict[str, Any]] = [
    {},
    {"reward_min": -1.0, "reward_max": 3.0},
    {"mixture": "min-action"},
    {"bonus_scale": 0.1},
    {"span": 0.0},
    {"agent": "ucbvi", "span": None, "episode_length": 5, "horizon": 1000.0},
    {"agent": "opt-psrl", "span": None, "horizon": 1000.0, "samples": 3},
    {"agent": "ucrl2", "span": None},
    {"agent": "scal"},
    {"agent": "epsilon-greedy-q", "span": None},
    {"agent": "optimistic-q", "horizon": 1000.0},
    {**POINTS, "partition": CELLS},
    {**POINTS, "partition": CELLS, "lipschitz": 1.0, "holder": 1.0},
    {**POINTS, "lipschitz": 1.0, "holder": 1.0, "horizon": 10_000.0, "dim": 2},
    {**POINTS, "lipschitz": 1.0, "holder": 0.5, "horizon": 1e6, "dim": 1, "low": -1.0, "high": 1.0},
    {**POINTS, "lipschitz": 1.0, "holder": 1.0, "dim": 1},
]


@pytest.mark.parametrize("n", range(len(CONFIGS)))
def test_an_agent_of_any_documented_config_can_be_asked_about(n: int, service: Running) -> None:
    config, name = {**CONFIG, **CONFIGS[n]}, f"config-{n}"
    key = service.make(name, **CONFIGS[n])
    assert service.ask("GET", f"/agents/{name}", key).status_code == 200
    dim = config.get("dim", 2) if config["n_states"] is None else 0
    for n in range(10):
        state, to = [0.1] * dim or n % 6, [0.1] * dim or (n + 1) % 6
        decision = service.post(f"/agents/{name}/act", {"state": state}, key).json()["decision_id"]
        told = {"decision_id": decision, "reward": 0.5, "next_state": to}
        assert service.post(f"/agents/{name}/observe", told, key).status_code == 200
    for path in ("", "/episodes", "/pending"):
        answer = service.ask("GET", f"/agents/{name}{path}", key)
        assert answer.status_code == 200, answer.text
    found = service.ask("GET", f"/agents/{name}", key).json()
    if config["agent"] == "c-scal-plus" and config.get("horizon"):
        S = found["tables"]["n_states"]
        bins = gf.CSCALPlus(**{k: v for k, v in config.items() if k not in ("agent", "n_states")}).partition.bins
        assert set(bins) == {round(S ** (1 / dim))}
        wanted = regret_bound(10, S, 2, span=2.0, lipschitz=1.0, holder=config["holder"], bins=min(bins))
        assert found["regret_bound"]["value"] == wanted


def test_a_decision_without_an_outcome_does_not_jam_a_client_that_names_states_and_actions(service: Running) -> None:
    key = service.make("jam")  # the service lets 5 decisions wait
    service.post("/agents/jam/act", {"state": 5}, key)
    state = 0
    for _ in range(50):
        decision = service.post("/agents/jam/act", {"state": state}, key)
        assert decision.status_code == 200, decision.text
        told = {"state": state, "action": decision.json()["action"], "reward": 0.5, "next_state": (state + 1) % 6}
        assert service.post("/agents/jam/observe", told, key).status_code == 200
        state = (state + 1) % 6
    found = service.ask("GET", "/agents/jam", key).json()
    assert (found["observations"], found["pending"]) == (50, 1)


def test_making_an_agent_again_gives_the_first_answer(service: Running) -> None:
    wanted = {"id": "again", "name": "x", "request_id": "make:1", "config": CONFIG}
    first = service.post("/agents", wanted)
    assert service.post("/agents", wanted).json() == first.json()
    other = service.post("/agents", {**wanted, "name": "y"})
    assert other.status_code == 409
    taken = service.post("/agents", {**wanted, "request_id": "make:2"})
    assert taken.status_code == 409
    new = service.post("/agents/again/key", None).json()["key"]
    assert service.ask("GET", "/agents/again", first.json()["key"]).status_code == 401
    assert service.ask("GET", "/agents/again", new).status_code == 200
    assert service.post("/agents", wanted).status_code == 409


def test_keys_are_kept_as_hashes_only(service: Running) -> None:
    key = service.make("hashed")
    kept = b"".join(p.read_bytes() for p in service.folder.rglob("*") if p.is_file() and p.name != "admin.key")
    assert key.encode() not in kept
    assert key.removeprefix("gf_").encode() not in kept
    assert hashed(key).encode() in kept
    assert service.admin.encode() not in kept
    assert stat.S_IMODE((service.folder / "admin.key").stat().st_mode) == 0o600


def test_metrics_can_be_read_by_prometheus(service: Running) -> None:
    key = service.make("measured")
    service.post("/agents/measured/observe", {"state": 0, "action": 0, "reward": 0.0, "next_state": 1}, key)
    answer = service.ask("GET", "/metrics", "")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {family.name: family for family in text_string_to_metric_families(answer.text)}
    seen = {s.labels["agent"]: s.value for s in found["gainful_agent_observations"].samples}
    assert seen["measured"] == 1
    counted = found["gainful_http_requests"].samples
    assert any(s.labels["route"] == "/agents/{id}/observe" and s.value >= 1 for s in counted)
    times = found["gainful_http_request_duration_seconds"]
    assert times.type == "histogram"
    through_a_proxy = service.ask("GET", "/metrics", "", headers={"X-Forwarded-For": "10.0.0.1"})
    assert through_a_proxy.status_code == 401
    by_another_name = service.ask("GET", "/metrics", "", headers={"Host": "rebound.example"})
    assert by_another_name.status_code == 401
    assert service.ask("GET", "/metrics", key, headers={"Via": "x"}).status_code == 403
    assert service.ask("GET", "/metrics", headers={"Via": "x"}).status_code == 200


def test_a_signal_ends_it_gracefully(tmp_path: Path) -> None:
    with served(tmp_path / "agents") as running:
        key = running.make("pump")
        answered: list[int] = []
        over = threading.Event()

        def work() -> None:
            with httpx.Client() as client:
                while not over.is_set():
                    try:
                        told = {"state": 0, "action": 1, "reward": 0.5, "next_state": 1}
                        answer = client.post(
                            f"{running.url}/agents/pump/observe", json=told, headers={"Authorization": f"Bearer {key}"}
                        )
                    except httpx.TransportError:
                        return
                    assert answer.status_code in (200, 503)
                    if answer.status_code == 200:
                        answered.append(answer.json()["sequence"])

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 30.0
        while len(answered) < 20 and time.monotonic() < until:
            time.sleep(0.05)
        began = time.monotonic()
        assert running.stop(signal.SIGINT) == 0
        assert time.monotonic() - began < 10.0
        over.set()
        for thread in threads:
            thread.join()
        assert answered
        frame = read_journal(running.journal("pump"))
        assert set(answered) <= set(frame.sequence)
        assert (running.journal("pump") / f"snapshot-{frame.sequence.max()}.npz").exists()


@pytest.mark.slow
def test_a_second_service_on_the_folder_is_refused(service: Running) -> None:
    command = [sys.executable, "-m", "gainful", "serve", str(service.folder), "--port", "0"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert second.returncode == 1
    assert f"process {service.process.pid}" in second.stderr


def started(*_: Any, **__: Any) -> None:
    """In place of a server that would never end."""
    raise AssertionError("the service was started")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "--allow-remote"),
        (["--fsync", "sometimes"], "--fsync"),
        (["--max-body", "huge"], "--max-body"),
        (["--planning", "never"], "--planning"),
    ],
)
def test_misuse_is_told(
    options: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("uvicorn.Server.serve", started)
    assert run(["serve", str(tmp_path / "x"), "--port", "0", *options]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "gainful", "serve", str(tmp_path / "x"), "--port", port]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert found.returncode == 2
    assert port in found.stderr


def test_the_description_and_the_docs_are_served(service: Running) -> None:
    described: dict[str, Any] = json.loads(service.ask("GET", "/openapi.json", "").text)
    assert "/agents/{id}/act" in described["paths"]
    page = service.ask("GET", "/docs", "")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert all(path in page.text for path in described["paths"])
    for word in ("http://", "https://", "<script"):
        assert word not in page.text


@pytest.mark.slow
def test_an_agent_put_there_by_hand_is_served_to_the_admin_key(tmp_path: Path) -> None:
    open_agent(tmp_path / "agents" / "agents" / "pump" / "journal", CONFIG).close()
    (tmp_path / "agents" / "agents" / "Not An Id").mkdir()
    (tmp_path / "agents" / "agents" / "begun").mkdir()  # a record without an agent was never acknowledged
    (tmp_path / "agents" / "agents" / "begun" / "card.json").write_text('{"id": "begun", "key": "", "request": "r"}')
    with served(tmp_path / "agents") as running:
        assert [a["id"] for a in running.ask("GET", "/agents").json()["agents"]] == ["pump"]
        assert running.post("/agents/pump/act", {"state": 0}).status_code == 200
        key = running.post("/agents/pump/key", None).json()["key"]
        assert running.post("/agents/pump/act", {"state": 0}, key).status_code == 200
        assert running.post("/agents", {"id": "begun", "request_id": "r", "config": CONFIG}).status_code == 201
        assert running.stop() == 0
        assert any("Not An Id" in line for line in running.said)


def test_a_folder_that_is_an_agent_itself_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    open_agent(tmp_path / "pump", CONFIG).close()
    before = sorted(p.name for p in (tmp_path / "pump").iterdir())
    monkeypatch.setattr("uvicorn.Server.serve", started)
    assert run(["serve", str(tmp_path / "pump"), "--port", "0"]) == 2
    assert "is itself a durable agent" in capsys.readouterr().err
    assert sorted(p.name for p in (tmp_path / "pump").iterdir()) == before


@pytest.mark.slow
def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['starlette'] = None; from gainful.cli.main import run; "
        f"sys.exit(run(['serve', {str(tmp_path / 'x')!r}]))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert found.returncode == 2
    assert "pip install 'gainful[serve]'" in found.stderr
