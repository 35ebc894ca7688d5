"""Requests of one agent share syncs; a failed sync is reported to all of them; a slow agent delays no other."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gainful.agents import registry as agents
from gainful.errors import AgentInUseError, GainfulError, InvalidArgumentError, JournalError, PlanningError
from gainful.live import DurableAgent, open_agent
from gainful.serve.agent_registry import AgentRecord
from gainful.serve.agent_slot import AgentSlot, OpenOptions
from gainful.serve.agent_view import agent_view, episodes
from gainful.serve.app import list_agents
from gainful.serve.json_text import encode
from gainful.serve.keys import ADMIN, Keyring, admin_key, derived_key, hashed, new_key
from gainful.serve.problem_details import ProblemError, of_error
from gainful.serve.server import is_loopback
from gainful.serve.worker_pool import WorkerPool
from tests.every_agent import ALL_AGENTS
from tests.serve.service import CONFIG


def observed(n: int) -> Callable[[DurableAgent], Any]:
    return lambda agent: agent.observe(n % 6, 0, 0.5, (n + 1) % 6, request_id=f"r{n}")


@pytest.mark.parametrize("fsync", ["record", 5.0, "off"])
def test_requests_at_once_share_syncs(fsync: Any, tmp_path: Path) -> None:
    async def scenario() -> int:
        workers = WorkerPool(fsync if isinstance(fsync, float) else None)
        open_agent(tmp_path / "a", CONFIG).close()
        slot = AgentSlot("a", tmp_path / "a", OpenOptions(fsync), workers, 1000)
        receipts = await asyncio.gather(*(slot.call(observed(n)) for n in range(300)))
        assert [r.sequence for r in receipts] == list(range(1, 301))
        if fsync == 5.0:
            await asyncio.sleep(0.1)
        syncs = slot.syncs
        await slot.close()
        workers.shutdown()
        return syncs

    syncs = asyncio.run(scenario())
    assert (syncs == 0) if fsync == "off" else (1 <= syncs < 60)


def test_a_failed_sync_is_told_to_all_it_was_for_and_the_agent_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, broken = os.fsync, [False]

    def fsync(handle: int) -> None:
        if broken[0]:
            raise OSError(errno.EIO, "Input/output error")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)

    async def scenario() -> None:
        workers = WorkerPool(None)
        open_agent(tmp_path / "a", CONFIG).close()
        slot = AgentSlot("a", tmp_path / "a", OpenOptions("record"), workers, 1000)
        await slot.call(observed(0))
        broken[0] = True
        lost = await asyncio.gather(*(slot.call(observed(n)) for n in range(1, 4)), return_exceptions=True)
        assert all(isinstance(error, JournalError) for error in lost)
        broken[0] = False
        again = await asyncio.gather(*(slot.call(observed(n)) for n in range(1, 4)))
        assert [r.sequence for r in again] == [2, 3, 4]
        assert await slot.call(lambda agent: agent.t) == 4
        await slot.close()
        workers.shutdown()

    asyncio.run(scenario())


def test_a_timed_sync_of_an_agent_closed_meanwhile_is_harmless(tmp_path: Path) -> None:
    async def scenario() -> None:
        workers = WorkerPool(None)
        open_agent(tmp_path / "a", CONFIG).close()
        slot = AgentSlot("a", tmp_path / "a", OpenOptions(5.0), workers, 1000)
        await slot.call(observed(0))
        agent = slot.agent
        assert agent is not None
        real = agent.sync

        def sync() -> None:
            slot.close_agent()
            real()

        agent.sync = sync  # type: ignore[method-assign]
        slot.sync_if_open()
        assert slot.syncs == 0
        assert await slot.call(lambda agent: agent.t) == 1
        await slot.close()
        workers.shutdown()

    asyncio.run(scenario())


def test_timed_syncs_go_on_after_any_exception(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        workers, done = WorkerPool(2.0), asyncio.Event()

        def broken() -> None:
            raise ZeroDivisionError("a mistake")

        workers.sync_soon(broken)
        await asyncio.sleep(0.05)
        loop = asyncio.get_running_loop()

        def good() -> None:
            loop.call_soon_threadsafe(done.set)

        workers.sync_soon(good)
        await asyncio.wait_for(done.wait(), 10)
        workers.shutdown()

    asyncio.run(scenario())
    assert "a mistake" in capsys.readouterr().err


def test_a_slow_agent_holds_up_no_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        workers = WorkerPool(None)
        slots = []
        for name in "abcdefgh":
            open_agent(tmp_path / name, CONFIG).close()
            slots.append(AgentSlot(name, tmp_path / name, OpenOptions("off"), workers, 1000))
        await asyncio.gather(*(slot.call(lambda agent: agent.act(0)) for slot in slots))
        slow = [slot.call(lambda _: time.sleep(1.0)) for slot in slots[:5]]
        began = time.monotonic()
        await asyncio.gather(*(slot.call(lambda agent: agent.act(0)) for slot in slots[5:]))
        assert time.monotonic() - began < 0.5
        await asyncio.gather(*slow)
        for slot in slots:
            await slot.close()
        workers.shutdown()

    asyncio.run(scenario())


def test_a_queue_that_is_full_refuses(tmp_path: Path) -> None:
    async def scenario() -> None:
        workers = WorkerPool(None)
        open_agent(tmp_path / "a", CONFIG).close()
        slot = AgentSlot("a", tmp_path / "a", OpenOptions("off"), workers, 3)
        waiting = [slot.call(lambda _: time.sleep(0.1)) for _ in range(3)]
        with pytest.raises(ProblemError) as refused:
            slot.call(lambda agent: agent.t)
        assert refused.value.status == 503
        assert "Retry-After" in refused.value.headers
        await asyncio.gather(*waiting)
        await slot.close()
        with pytest.raises(ProblemError):
            slot.call(lambda agent: agent.t)
        workers.shutdown()

    asyncio.run(scenario())


def journal_error(number: int) -> JournalError:
    error = JournalError("/secret/place/agents/a/journal: cannot be written")
    error.__cause__ = OSError(number, os.strerror(number))
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (journal_error(errno.ENOSPC), 507),
        (journal_error(errno.EIO), 503),
        (AgentInUseError("in use"), 503),
        (InvalidArgumentError("no"), 422),
        (PlanningError("no plan"), 409),
    ],
)
def test_errors_have_their_status_and_tell_no_path(error: GainfulError, status: int) -> None:
    refused = of_error(error, "a", "/secret/place/agents/a")
    assert refused.status == status
    assert "secret" not in refused.what


@pytest.mark.parametrize("name", ALL_AGENTS)
def test_every_agent_can_be_shown(name: str, tmp_path: Path) -> None:
    needed = agents.describe(name).parameters
    cells = {"bins": [3], "low": [0.0], "high": [1.0], "outside": "error"}
    known = {
        "span": 2.0,
        "episode_length": 5,
        "policy": [0, 1, 0],
        "agent_class": "psrl",
        "lipschitz": 1.0,
        "holder": 1.0,
        "horizon": 1000,
        "discount": 0.9,
        "m": 10,
        "partition": cells,
    }
    config: dict[str, Any] = {"agent": name, "n_actions": 2}
    config |= {key: value for key, value in known.items() if key in needed}
    if name in agents.AGENTS:
        config["n_states"] = 3
    with open_agent(tmp_path / "a", config, fsync="off") as agent:
        json.loads(encode(agent_view(agent, 0, 10)))
        for n in range(20):
            state, to = (n % 3, (n + 1) % 3) if not agent.dim else ([n % 3 / 3], [(n + 1) % 3 / 3])
            agent.observe(state, agent.act(state), 0.5, to)
        found = json.loads(encode(agent_view(agent, 0, 10)))
        encode(episodes(agent, 5))
        assert sum(map(sum, found["tables"]["visits"])) == found["observations"] == 20
        assert (found["regret_bound"]["value"] is not None) == (
            name in ("scal-plus", "c-scal-plus", "kl-scal-plus", "c-kl-scal-plus", "pmevi-dt")
        )
        assert found["regret_bound"]["reason"]


@pytest.mark.parametrize(("bonus", "probability"), [("sharp", 0.85), ("bernstein", None)])
def test_the_bound_of_the_sharp_bonus_is_shown_and_the_bernstein_bonus_has_none(
    bonus: str, probability: float | None, tmp_path: Path
) -> None:
    allowed = [[True, True], [True, False]]
    config = {"agent": "scal-plus", "n_states": 2, "n_actions": 2, "span": 1.0, "bonus": bonus, "allowed": allowed}
    with open_agent(tmp_path / "a", config, fsync="off") as agent:
        agent.observe(0, agent.act(0), 0.5, 1)
        found = agent_view(agent, 0, 10)
        encode(found)
        assert found["regret_bound"]["probability"] == (probability and pytest.approx(probability, rel=1e-12, abs=0))
        assert found["regret_bound"]["reason"]


def test_an_agent_closed_while_agents_are_listed_is_listed_all_the_same(tmp_path: Path) -> None:
    class Closing:
        """A slot whose agent is closed after the first look."""

        trouble, looks = "", 0

        @property
        def agent(self) -> DurableAgent | None:
            self.looks += 1
            return agent if self.looks == 1 else None

    with open_agent(tmp_path / "a", CONFIG, fsync="off") as agent:
        registry = SimpleNamespace(slots={"a": Closing()}, records={"a": AgentRecord("a")}, folder=tmp_path)
        service: Any = SimpleNamespace(registry=registry, holder=lambda _: ADMIN)
        answer = asyncio.run(list_agents(service, cast(Any, None)))
    (listed,) = json.loads(bytes(answer.body))["agents"]
    assert (listed["open"], listed["agent"]) == (True, "SCALPlus")


def test_keys() -> None:
    admin, one, two = new_key(), new_key(), new_key()
    ring = Keyring(admin)
    ring.put("a", hashed(one))
    assert (ring.holder(admin), ring.holder(one), ring.holder(two), ring.holder("")) == (ADMIN, "a", None, None)
    ring.put("a", hashed(two))
    assert (ring.holder(one), ring.holder(two)) == (None, "a")
    ring.put("b", "")
    assert ring.holder("") is None
    nonce = b"n" * 32
    assert derived_key(admin, nonce) == derived_key(admin, nonce) != derived_key(one, nonce)
    assert len(derived_key(admin, nonce)) == len(admin)


def test_a_flipped_bit_in_the_admin_key_was_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GAINFUL_ADMIN_KEY", raising=False)
    file = tmp_path / "admin.key"
    key, *_ = admin_key(file)
    assert admin_key(file) == (key, str(file), "")
    whole = file.read_bytes()
    file.write_bytes(whole[:9] + bytes([whole[9] ^ 1]) + whole[10:])
    assert "is not as it was: it is damaged, or was replaced" in admin_key(file)[2]
    file.write_bytes(whole)
    check = tmp_path / "admin.key.check"
    check.write_bytes(b"x" + check.read_bytes()[1:])
    assert "was damaged and has been written anew" in admin_key(file)[2]
    assert admin_key(file) == (key, str(file), "")
    file.write_text("y" * 40)
    check.unlink()  # as the warning says
    assert admin_key(file) == ("y" * 40, str(file), "")


def test_an_admin_key_of_ones_own_must_be_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAINFUL_ADMIN_KEY", "secret")
    with pytest.raises(InvalidArgumentError, match="32"):
        admin_key(tmp_path / "admin.key")
    monkeypatch.setenv("GAINFUL_ADMIN_KEY", "x" * 40)
    assert admin_key(tmp_path / "admin.key")[0] == "x" * 40
    assert not (tmp_path / "admin.key").exists()
    monkeypatch.delenv("GAINFUL_ADMIN_KEY")
    key, where, warning = admin_key(tmp_path / "admin.key")
    assert (where, warning) == (str(tmp_path / "admin.key"), "")
    (tmp_path / "admin.key").chmod(0o644)
    again, _, warning = admin_key(tmp_path / "admin.key")
    assert again == key
    assert "chmod 600" in warning


def test_which_hosts_are_this_machine_only() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.9.9.9")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org", "")))
