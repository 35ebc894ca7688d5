"""Client processes that send again what was not answered, a service that is killed: nothing is lost or doubled.

Three kills with each way of syncing; GAINFUL_KILLS sets the number for both together (1,000 in `make soak`).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gainful.live import read_journal
from tests.serve.forked import ForkedService
from tests.serve.service import served

KILLS = int(os.environ.get("GAINFUL_KILLS", "6")) // 2
AGENTS = {"a": ("id", "id"), "b": ("state", "state"), "c": ("turns",)}
"""How the clients of each agent report outcomes. Clients that share an agent report alike, because a state and action
may also be those of another client's decision."""


class Process:
    """A client process (client.py) and what it wrote."""

    def __init__(self, url: str, agent: str, key: str, number: int, how: str, folder: Path) -> None:
        self.agent, self._file = agent, folder / f"{agent}{number}.jsonl"
        self._counted = self._read = 0
        script = Path(__file__).with_name("client.py")
        with open(self._file, "wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, str(script), url, agent, key, str(number), how], stdin=subprocess.PIPE, stdout=out
            )

    @property
    def n_told(self) -> int:
        """Observations acknowledged so far."""
        with open(self._file, "rb") as file:
            file.seek(self._read)
            whole = file.read().rpartition(b"\n")[0]
        self._counted += whole.count(b'"told"')
        self._read += len(whole)
        return self._counted

    def lines(self, name: str) -> list[Any]:
        found = [json.loads(line) for line in self._file.read_text().splitlines()]
        return [line[name] for line in found if name in line]

    def end(self) -> int:
        """Let it finish what it is at; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def _progressed(clients: list[Process], n: int) -> None:
    """Wait until so many more observations were acknowledged."""
    before, patience = sum(client.n_told for client in clients), time.monotonic() + 60.0
    while sum(client.n_told for client in clients) < before + n:
        assert time.monotonic() < patience
        assert all(client.process.poll() is None for client in clients), [client.lines("wrong") for client in clients]
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("fsync", ["record", "10"])
def test_kills_and_retries_lose_and_double_nothing(fsync: str, tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    chance = random.Random(11)
    with served(folder) as running:
        keys = {agent: running.make(agent) for agent in AGENTS}
        assert running.stop() == 0
    service = ForkedService(folder, "--fsync", fsync)
    port = service.url.rsplit(":", 1)[1]
    clients: list[Process] = []
    try:
        for agent, manners in AGENTS.items():
            clients += [Process(service.url, agent, keys[agent], n, how, tmp_path) for n, how in enumerate(manners)]
        for _ in range(KILLS):
            _progressed(clients, 30)
            time.sleep(chance.uniform(0.0, 0.1))
            service.kill()
            service = ForkedService(folder, "--fsync", fsync, "--port", port)
        _progressed(clients, 30)
        assert [client.end() for client in clients] == [0] * len(clients)
    finally:
        for client in clients:
            client.process.kill()
            client.process.wait()
        service.kill()
    for agent in AGENTS:
        frame = read_journal(folder / "agents" / agent / "journal")
        seen = frame[frame.kind == "observation"]
        found = sorted(zip(seen.sequence, seen.state, seen.reward, seen.next_state, strict=True))
        theirs = [client for client in clients if client.agent == agent]
        assert [client.lines("wrong") for client in theirs] == [[]] * len(theirs)
        told = sorted(tuple(told) for client in theirs for told in client.lines("told"))
        assert found == told  # each acknowledged observation once, and no other
        made = frame[frame.kind == "decision"].set_index("decision_id").action.to_dict()
        assert made == {k: v for client in theirs for k, v in client.lines("decided")}
        assert len(told) > 20
    assert sum(retries for client in clients for retries in client.lines("retries")) >= KILLS


@pytest.mark.slow
def test_a_request_answered_before_a_kill_has_the_same_answer_after_it(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    with served(folder) as running:
        wanted = {"id": "pump", "request_id": "make", "config": {"agent": "psrl", "n_states": 6, "n_actions": 4}}
        made = running.post("/agents", wanted).json()
        acts = [running.post("/agents/pump/act", {"state": i, "request_id": f"a{i}"}).json() for i in range(5)]
        told = {"decision_id": acts[2]["decision_id"], "reward": 0.5, "next_state": 1, "request_id": "o"}
        receipt = running.post("/agents/pump/observe", told).json()
        rows = {"transitions": [{"state": 0, "action": 1, "reward": 0.5, "next_state": 1}] * 3, "request_id": "many"}
        batch = running.post("/agents/pump/observe", rows).json()
        running.kill()
    with served(folder) as running:
        assert running.post("/agents", wanted).json() == made
        before = running.bytes_of("pump")
        again = [running.post("/agents/pump/act", {"state": i, "request_id": f"a{i}"}).json() for i in range(5)]
        assert again == acts
        assert running.post("/agents/pump/observe", told, made["key"]).json() == {**receipt, "repeated": True}
        assert running.post("/agents/pump/observe", rows, made["key"]).json() == {**batch, "repeated": True}
        assert running.bytes_of("pump") == before
        assert running.ask("GET", "/agents/pump").json()["observations"] == 4
        other = running.post("/agents/pump/act", {"state": 5, "request_id": "a0"})
        assert other.status_code == 409
        assert running.bytes_of("pump") == before


@pytest.mark.slow
def test_abandon_and_change_sent_again_do_nothing_twice(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    with served(folder) as running:
        running.make("pump")
        decision = running.post("/agents/pump/act", {"state": 0}).json()["decision_id"]
        gone = {"decision_id": decision, "request_id": "gone"}
        changes = [{"bonus_scale": x, "reason": "try", "request_id": f"change:{x}"} for x in (0.5, 0.25)]
        first = running.post("/agents/pump/abandon", gone).json()
        made = [running.post("/agents/pump/change", change).json() for change in changes]
        assert [first["repeated"], *(answer["repeated"] for answer in made)] == [False] * 3
        running.kill()
    with served(folder) as running:
        before = running.bytes_of("pump")
        assert running.post("/agents/pump/abandon", gone).json() == {**first, "repeated": True}
        for change in changes:  # also the first: what was changed since stays
            again = running.post("/agents/pump/change", change).json()
            assert (again["repeated"], again["settings"]["bonus_scale"]) == (True, 0.25)
        assert running.post("/agents/pump/abandon", {"decision_id": decision}).status_code == 404
        assert running.post("/agents/pump/abandon", {**gone, "decision_id": 99}).status_code == 409
        assert running.post("/agents/pump/change", {**changes[0], "bonus_scale": 2.0}).status_code == 409
        assert running.post("/agents/pump/act", {"state": 0, "request_id": "gone"}).status_code == 409
        assert running.bytes_of("pump") == before
        assert len(running.ask("GET", "/agents/pump").json()["changes"]) == 2


@pytest.mark.slow
def test_what_is_left_of_an_agent_is_never_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    wanted = {"id": "pump", "request_id": "make", "config": {"agent": "psrl", "n_states": 6, "n_actions": 4}}
    with served(folder) as running:
        running.post("/agents", wanted)
        running.post("/agents/pump/act", {"state": 0})
        running.kill()
        (running.journal("pump") / "agent.json").unlink()
        before = running.bytes_of("pump")
    with served(folder) as running:
        assert running.ask("GET", "/agents").json()["agents"] == []
        assert running.post("/agents", wanted).status_code == 409
        assert running.bytes_of("pump") == before
        assert running.stop() == 0
        assert any("agent.json is missing" in line for line in running.said)


@pytest.mark.slow
def test_a_damaged_agent_is_told_and_holds_up_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    with served(folder) as running:
        for agent in ("good", "bad"):
            running.make(agent)
            for n in range(5):
                running.post(f"/agents/{agent}/act", {"state": n})
        running.kill()
        path = running.journal("bad") / "journal-000001.log"
        data = bytearray(path.read_bytes())
        data[80] ^= 1
        path.write_bytes(bytes(data))
    with served(folder) as running:
        refused = running.post("/agents/bad/act", {"state": 0})
        assert refused.status_code == 503
        assert "damaged" in refused.json()["what"]
        assert str(folder) not in refused.text
        assert running.post("/agents/good/act", {"state": 0}).status_code == 200
        listed = {agent["id"]: agent for agent in running.ask("GET", "/agents").json()["agents"]}
        assert (listed["bad"]["open"], listed["good"]["open"]) == (False, True)
        assert path.read_bytes() == bytes(data)
        assert running.stop() == 0
