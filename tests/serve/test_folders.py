"""What lies in the service's folder: nothing that was stored is lost, nobody else reads what the service made."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from gainful.atomic_files import make_folder
from gainful.checked_json import to_checked_json
from gainful.live import open_agent
from gainful.locks import FolderLock
from gainful.serve.agent_registry import open_registry
from gainful.serve.agent_slot import OpenOptions
from gainful.serve.keys import admin_key, hashed
from gainful.serve.limits import Limits
from tests.serve.service import CONFIG, served

WANTED = {"request_id": "make", "config": CONFIG}


def durable_agent(path: Path) -> None:
    """A durable agent with a past."""
    with open_agent(path, CONFIG) as agent:
        for n in range(20):
            agent.observe(n % 6, agent.act(n % 6), 0.5, (n + 1) % 6)


def files(place: Path) -> dict[str, bytes]:
    return {str(p.relative_to(place)): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file()}


def record(place: Path) -> None:
    kept = {"id": place.name, "key": "", "created": "2026-01-01T00:00:00Z", "request": "earlier"}
    place.mkdir(exist_ok=True)
    (place / "card.json").write_text(json.dumps(kept))


def unbegun(place: Path) -> None:
    """As a service that is killed while it makes an agent leaves it: record and journal, no agent.json."""
    record(place)
    open_agent(place / "journal", CONFIG).close()
    (place / "journal" / "agent.json").unlink()
    (place / ".card.json.0123456789ab.tmp").touch()
    (place / "journal" / ".agent.json.0123456789ab.tmp").touch()


def with_notes(place: Path) -> None:
    unbegun(place)
    (place / "notes.txt").write_text("measured by hand")


def with_a_hidden_file(place: Path) -> None:
    unbegun(place)
    (place / "journal" / ".notes").write_text("measured by hand")


def begun_by_hand(place: Path) -> None:
    unbegun(place)
    (place / "card.json").unlink()


def backup(place: Path) -> None:
    record(place)
    durable_agent(place / "backup")


def linked(place: Path) -> None:
    durable_agent(place.parent.parent / "elsewhere")
    place.symlink_to(place.parent.parent / "elsewhere")


HELD: dict[str, Callable[[Path], None]] = {
    "agent": durable_agent,
    "notes": with_notes,
    "hidden": with_a_hidden_file,
    "by-hand": begun_by_hand,
    "backup": backup,
    "linked": linked,
}


def test_making_an_agent_deletes_nothing_that_was_stored(tmp_path: Path) -> None:
    places = tmp_path / "service" / "agents"
    places.mkdir(parents=True)
    for name, put in HELD.items():
        put(places / name)
    before = files(tmp_path)
    with served(tmp_path / "service") as running:
        for name in HELD:
            answer = running.post("/agents", {"id": name, "config": CONFIG})
            assert answer.status_code == 409, (name, answer.text)
            assert answer.json()["found"]
        running.journal("later").parent.mkdir()  # while it is served
        durable_agent(places / "later" / "journal")
        later = files(places / "later")
        assert running.post("/agents", {"id": "later", "config": CONFIG}).status_code == 409
        assert files(places / "later") == later
        assert running.stop() == 0
        told = "".join(running.said)
        assert f"move it to {places / 'agent' / 'journal'}" in told
        assert f"{places / 'notes'}: not served, because it contains notes.txt" in told
    after = files(tmp_path)
    assert {name: after.get(name) for name in before} == before


def test_what_a_kill_left_of_an_agent_never_begun_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    unbegun(tmp_path / "agents" / "pump")
    (tmp_path / "agents" / "empty").mkdir()
    with served(tmp_path) as running:
        for name in ("pump", "empty"):
            assert running.post("/agents", {"id": name, "config": CONFIG}).status_code == 201
            assert running.post(f"/agents/{name}/act", {"state": 0}).status_code == 200


def test_an_agent_that_cannot_be_planned_for_leaves_nothing(tmp_path: Path) -> None:
    config = {"agent": "ucbvi", "n_states": 3, "n_actions": 2, "episode_length": 5, "horizon": 100.0}
    with served(tmp_path, "--planning", "background") as running:  # told only after the agent was begun
        assert running.post("/agents", {"id": "pump", "config": config}).status_code == 422
        assert not (tmp_path / "agents" / "pump").exists()


@pytest.mark.slow
def test_what_the_service_makes_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "service"
    with served(folder) as running:
        running.make("pump")
        running.make("gone")
        running.ask("DELETE", "/agents/gone")
        running.post("/agents/pump/key", None)
        for place in (folder, folder / "agents", folder / "agents" / "pump", folder / "archive"):
            assert stat.S_IMODE(place.stat().st_mode) == 0o700, place
        for file in (folder / "admin.key", folder / "agents" / "pump" / "card.json"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_an_admin_key_that_a_kill_left_empty_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAINFUL_ADMIN_KEY", raising=False)
    (tmp_path / "admin.key").touch()
    key, _, _ = admin_key(tmp_path / "admin.key")
    assert len(key) > 40
    assert admin_key(tmp_path / "admin.key")[0] == key
    assert stat.S_IMODE((tmp_path / "admin.key").stat().st_mode) == 0o600
    assert sorted(p.name for p in tmp_path.iterdir()) == ["admin.key", "admin.key.check"]


def test_a_record_whose_checksum_was_lost_counted_as_an_old_one(tmp_path: Path) -> None:
    """Without the word "sha256", a record looked like one of the first version; those still open."""
    place = tmp_path / "agents" / "pump"
    make_folder(place)
    durable_agent(place / "journal")
    written = {"version": "2", "id": "pump", "key": hashed("k" * 40)}
    (place / "card.json").write_bytes(to_checked_json(written))

    async def opened() -> tuple[list[str], str]:
        options = OpenOptions("off", "inline")
        registry = open_registry(tmp_path, "a" * 40, options, Limits(), FolderLock(tmp_path))
        await registry.close()
        return registry.warnings, registry.records["pump"].key

    def found() -> tuple[list[str], str]:
        return asyncio.run(opened())

    assert found() == ([], written["key"])
    for text, problem in (
        (json.dumps(written), "its checksum is missing"),
        (to_checked_json({**written, "version": "3"}).decode(), "it is of version '3'"),
    ):
        (place / "card.json").write_text(text)
        (warning,), key = found()
        assert (problem in warning, key) == (True, "")
    (place / "card.json").write_text(json.dumps({k: v for k, v in written.items() if k != "version"}))
    assert found() == ([], written["key"])
