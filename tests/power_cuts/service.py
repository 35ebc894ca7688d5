"""A service whose agents are created, given new keys and archived: a workload, and opening what a cut left of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gainful.atomic_files import make_folder
from gainful.live import DurableAgent
from gainful.locks import FolderLock
from gainful.serve.agent_registry import AgentRegistry, open_registry
from gainful.serve.agent_slot import OpenOptions
from gainful.serve.keys import admin_key, hashed
from gainful.serve.limits import Limits
from gainful.serve.models import NewAgent

SERVICE = Path("folder/of its own/service")
"""The folder of the service on its disk."""
KEY_FILE = "admin.key"
SMALL: dict[str, Any] = {"agent": "scal-plus", "n_states": 2, "n_actions": 2, "span": 1.0}


def wanted(name: str) -> NewAgent:
    """The request that creates an agent, the same whenever it is sent."""
    return NewAgent.model_validate({"id": name, "config": SMALL, "request_id": f"make-{name}"})


def opened(folder: Path, fsync: Any) -> tuple[AgentRegistry, str, str]:
    """The service of a folder, its admin key, and a warning about that."""
    lock = FolderLock(folder)
    key, _, warning = admin_key(folder / KEY_FILE)
    return open_registry(folder, key, OpenOptions(fsync, "inline"), Limits(), lock), key, warning


def served(disk: Path, mark: Callable[..., None], seed: int, steps: int) -> None:
    """Two sessions of a service, with a mark for everything that it answered."""
    make_folder(disk / SERVICE, mode=0o700)
    for session in range(2):
        asyncio.run(_session(disk / SERVICE, mark, random.Random(seed + session), steps))


async def _session(folder: Path, mark: Callable[..., None], chance: random.Random, steps: int) -> None:
    registry, key, _ = opened(folder, "record")
    mark(admin=hashed(key))
    for _ in range(steps):
        there = sorted(registry.slots)
        kind = chance.random()
        if not there or kind < 0.4:
            new = f"agent-{chance.randrange(10**6)}"
            record, _ = await registry.make(wanted(new))
            mark(agent=new, key=record.key)
        elif kind < 0.6:
            one = chance.choice(there)
            mark(agent=one, key=hashed(await registry.new_key(one)))
        elif kind < 0.7:
            one = chance.choice(there)
            await registry.archive(one)
            mark(archived=one)
        else:
            one = chance.choice(there)
            t = await registry.slot(one).call(_observed)
            mark(agent=one, t=t)
    await registry.close()


def _observed(agent: DurableAgent) -> int:
    agent.observe(agent.t % 2, 0, 0.5, 1)
    return agent.t
