"""Clients that send again what was not answered, a service that is killed: nothing is lost and nothing doubled.

6 kills here; GAINFUL_KILLS makes more.
"""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path

import httpx
import pytest

from gainful.live import read_journal
from tests.serve.service import Running, served, start

KILLS = int(os.environ.get("GAINFUL_KILLS", "6"))
AGENTS = ("a", "b", "c")


class Client(threading.Thread):
    """Lives one life on one agent; every request is sent until it is answered, with the same id."""

    def __init__(self, agent: str, key: str, seed: int, board: dict[str, str], over: threading.Event) -> None:
        super().__init__(daemon=True)
        self._agent, self._key, self._chance, self._board, self._over = agent, key, random.Random(seed), board, over
        self.name = f"{agent}{seed}"
        self.told: list[tuple[int, int, float, int]] = []
        """Every observation that was acknowledged: record, state, reward, next state."""
        self.decided: dict[int, int] = {}
        self.retries = self.repeated = 0
        self.wrong: list[str] = []

    def ask(self, client: httpx.Client, verb: str, body: dict[str, object]) -> dict[str, int]:
        while True:
            try:
                answer = client.post(
                    f"{self._board['url']}/agents/{self._agent}/{verb}", json=body,
                    headers={"Authorization": f"Bearer {self._key}"},
                )  # fmt: skip
                if answer.status_code == 200:
                    found: dict[str, int] = answer.json()
                    return found
                if answer.status_code != 503:
                    self.wrong.append(answer.text)
                    raise SystemExit
            except httpx.TransportError:
                pass
            self.retries += 1
            time.sleep(0.02)

    def run(self) -> None:
        state, n = 0, 0
        with httpx.Client(timeout=30.0) as client:
            while not self._over.is_set():
                decision = self.ask(client, "act", {"state": state, "request_id": f"{self.name}:{n}:act"})
                self.decided[decision["decision_id"]] = decision["action"]
                to, reward = self._chance.randrange(6), round(self._chance.random(), 6)
                body: dict[str, object] = {"reward": reward, "next_state": to, "request_id": f"{self.name}:{n}:observe"}
                if n % 2:
                    body |= {"decision_id": decision["decision_id"]}
                else:
                    body |= {"state": state, "action": decision["action"]}
                receipt = self.ask(client, "observe", body)
                self.told.append((receipt["sequence"], state, reward, to))
                self.repeated += receipt["repeated"]
                if self._chance.random() < 0.1:  # an impatient client sends what was answered already
                    again = self.ask(client, "observe", body)
                    if again != {"sequence": receipt["sequence"], "repeated": True}:
                        self.wrong.append(f"{body} gave {receipt}, then {again}")
                state, n = to, n + 1


def _progressed(clients: list[Client], n: int) -> None:
    """Wait until so many more observations were acknowledged."""
    before, patience = sum(len(client.told) for client in clients), time.monotonic() + 60.0
    while sum(len(client.told) for client in clients) < before + n:
        assert time.monotonic() < patience
        assert all(client.is_alive() for client in clients), [client.wrong for client in clients]
        time.sleep(0.01)


@pytest.mark.parametrize("fsync", ["record", "10"])
def test_kills_and_retries_lose_and_double_nothing(fsync: str, tmp_path: Path) -> None:
    folder, board, over = tmp_path / "agents", {"url": ""}, threading.Event()
    chance = random.Random(11)
    running: Running = start(folder, "--fsync", fsync)
    port = running.url.rsplit(":", 1)[1]
    keys = {agent: running.make(agent) for agent in AGENTS}
    board["url"] = running.url
    clients = [Client(agent, keys[agent], seed, board, over) for agent in AGENTS for seed in range(2)]
    for client in clients:
        client.start()
    try:
        for _ in range(KILLS):
            _progressed(clients, 30)
            time.sleep(chance.uniform(0.0, 0.3))
            running.kill()
            running.client.close()
            running = start(folder, "--fsync", fsync, "--port", port)
        _progressed(clients, 30)
        over.set()
        for client in clients:
            client.join(timeout=60)
            assert not client.is_alive()
        assert running.stop() == 0
    finally:
        over.set()
        running.kill()
        running.client.close()
    for agent in AGENTS:
        frame = read_journal(folder / "agents" / agent / "journal")
        seen = frame[frame.kind == "observation"]
        found = sorted(zip(seen.sequence, seen.state, seen.reward, seen.next_state, strict=True))
        theirs = [client for client in clients if client._agent == agent]
        assert all(client.wrong == [] for client in theirs)
        told = sorted(told for client in theirs for told in client.told)
        assert found == told  # each acknowledged observation once, and no other
        made = frame[frame.kind == "decision"].set_index("decision_id").action.to_dict()
        assert made == {k: v for client in theirs for k, v in client.decided.items()}
        assert len(told) > 20
    assert sum(client.retries for client in clients) >= KILLS


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
