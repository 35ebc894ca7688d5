"""Agents that take long, and what the operator can do meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gainful.live.folder import lock_folder
from gainful.serve.agent_registry import AgentRegistry, open_registry
from gainful.serve.agent_slot import OpenOptions
from gainful.serve.limits import Limits
from gainful.serve.models import parse_new_agent
from gainful.serve.problem_details import ProblemError
from tests.serve.service import CONFIG, Running, served

ADMIN_KEY = "a" * 32


def with_registry(folder: Path, scenario: Callable[[AgentRegistry], Awaitable[None]]) -> None:
    """Run a scenario on the agents of a folder, within a minute."""

    async def run() -> None:
        folder.mkdir(exist_ok=True)
        registry = open_registry(folder, ADMIN_KEY, OpenOptions("off"), Limits(agents=4), lock_folder(folder))
        async with asyncio.timeout(60.0):
            await scenario(registry)
            await registry.close()

    asyncio.run(run())


async def make(registry: AgentRegistry, agent_id: str, **members: Any) -> str:
    """Create an agent; its key."""
    wanted = {"id": agent_id, "config": CONFIG, **members}
    return (await registry.make(parse_new_agent(json.dumps(wanted).encode())))[1]


def test_one_slow_agent_does_not_block_administration(tmp_path: Path) -> None:
    async def scenario(registry: AgentRegistry) -> None:
        slow_key, other_key = await make(registry, "slow"), await make(registry, "other")
        over, begun = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def plan(_: Any) -> None:
            loop.call_soon_threadsafe(begun.set)
            over.wait(50.0)

        planning = registry.slot("slow").call(plan)
        waiting = [registry.slot("slow").call(lambda agent: agent.act(0)) for _ in range(100)]
        await begun.wait()
        deleting = asyncio.create_task(registry.archive("slow"))
        await asyncio.sleep(0)
        assert registry.keys.holder(slow_key) is None  # a leaked key is revoked at once
        for refused in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(refused, ProblemError)  # and what it has put in the queue is not waited for
            assert refused.status == 503
        with pytest.raises(ProblemError) as told:
            await registry.new_key("slow")
        assert told.value.status == 409
        new = await registry.new_key("other")
        assert registry.keys.holder(other_key) is None
        assert registry.keys.holder(new) == "other"
        await make(registry, "third")
        with pytest.raises(ProblemError) as told:
            await make(registry, "slow")
        assert told.value.status == 409
        assert not deleting.done()
        over.set()
        await planning
        assert (await deleting).startswith("slow-")
        await make(registry, "slow")

    with_registry(tmp_path / "agents", scenario)


def test_agents_made_at_the_same_time_are_as_many_as_allowed(tmp_path: Path) -> None:
    async def scenario(registry: AgentRegistry) -> None:
        wanted = [make(registry, f"a{i % 6}") for i in range(12)]
        made = await asyncio.gather(*wanted, return_exceptions=True)
        statuses = sorted(each.status if isinstance(each, ProblemError) else 201 for each in made)
        assert statuses.count(201) == len(registry.slots) == 4
        assert set(statuses) == {201, 409, 507}

    with_registry(tmp_path / "agents", scenario)


def test_one_request_sent_several_times_at_once_makes_one_agent(tmp_path: Path) -> None:
    async def scenario(registry: AgentRegistry) -> None:
        wanted = {"config": CONFIG, "request_id": "r"}
        made = await asyncio.gather(*(registry.make(parse_new_agent(json.dumps(wanted).encode())) for _ in range(5)))
        assert len({(record.id, key) for record, key in made}) == len(registry.slots) == 1

    with_registry(tmp_path / "agents", scenario)


def test_a_request_sent_again_after_delete_makes_no_second_agent(tmp_path: Path) -> None:
    wanted = {"id": "pump", "request_id": "make-pump", "config": CONFIG}

    def check(running: Running) -> None:
        again = running.post("/agents", wanted)
        assert again.status_code == 409
        assert "which was archived as pump-" in again.json()["what"]
        other = running.post("/agents", {**wanted, "name": "other"})
        assert other.status_code == 409
        assert "with other contents" in other.json()["what"]
        assert running.ask("GET", "/agents/pump").status_code == 404

    with served(tmp_path / "agents") as running:
        assert running.post("/agents", wanted).status_code == 201
        assert running.ask("DELETE", "/agents/pump").status_code == 200
        check(running)
        running.kill()
    (tmp_path / "agents" / "archive" / "notes").mkdir()
    (tmp_path / "agents" / "archive" / "notes.txt").touch()
    with served(tmp_path / "agents") as running:
        check(running)
        assert running.post("/agents", {**wanted, "request_id": "another"}).status_code == 201
        assert running.ask("DELETE", "/agents/pump").status_code == 200
        check(running)
        assert running.stop() == 0
