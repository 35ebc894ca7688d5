"""What the tests of durable agents share: a world that needs no memory, lives in it, and the bits of an agent."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from gainful.agents.files import agent_state
from gainful.errors import JournalError
from gainful.live import DurableAgent, open_agent
from gainful.live.end_marker import END_FILE, JournalEnd, pack_end
from gainful.live.folder import SEGMENT_HEADER_SIZE, Folder, segment_header
from gainful.live.journal import read_all
from gainful.live.records import RecordLayout

S, A = 7, 3
CONFIG: dict[str, Any] = {"agent": "scal-plus", "n_states": S, "n_actions": A, "span": 3.0, "bonus_scale": 0.2}
QUICK: dict[str, Any] = {"fsync": "off", "planning": "inline"}


def noise(t: int, i: int) -> float:
    """A number in [0, 1) for step t: the world has no state of its own, so any life can go on with it."""
    return int.from_bytes(hashlib.blake2b(f"{t},{i}".encode(), digest_size=6).digest(), "little") / 2.0**48


def state_at(t: int) -> int:
    return int(noise(t, 0) * S)


def reward_at(t: int, action: int) -> float:
    return round(noise(t, 1 + action) ** (1 + action), 3)


def lived(agent: Any, until: int) -> None:
    """Act and observe until the agent has made so many observations."""
    while agent.t < until:
        t = agent.t
        a = agent.act(state_at(t))
        agent.observe(state_at(t), a, reward_at(t, int(a)), state_at(t + 1))


def bits(agent: Any) -> dict[str, bytes]:
    """All of an agent's state but the time that planning took."""
    plain = agent.copy() if isinstance(agent, DurableAgent) else agent
    header, arrays = agent_state(plain)
    arrays = dict(arrays)
    arrays["records"] = arrays["records"].copy()
    arrays["records"]["planning_seconds"] = 0.0
    header = {k: v for k, v in header.items() if k != "settings"}
    return {"header": repr(header).encode(), **{k: np.ascontiguousarray(a).tobytes() for k, a in arrays.items()}}


def killed(agent: DurableAgent) -> None:
    """Leave the folder as a kill does: whatever closing writes is undone, and the lock is free."""
    wait_for("gainful-snapshot")
    kept = agent.path.with_name(f"{agent.path.name} as it was")
    shutil.copytree(agent.path, kept)
    with contextlib.suppress(JournalError):
        agent.close()
    shutil.rmtree(agent.path)
    kept.rename(agent.path)


def wait_for(threads: str) -> None:
    """Until no thread of this name is at work: "gainful-snapshot" or "gainful-planning"."""
    for thread in threading.enumerate():
        if thread.name == threads:
            thread.join()


def journal_size(path: Path) -> int:
    """The length of the file that the next record goes to."""
    return Folder(path).segments()[-1][1].stat().st_size


def opened(path: Path, config: Any = None, **options: Any) -> DurableAgent:
    """Open without a warning, or the test fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return open_agent(path, config, **{**QUICK, **options})


def replayed_from_the_beginning(path: Path, first_snapshot: bytes, out: Path) -> DurableAgent:
    """The agent made from its first snapshot and every record of its journal, and nothing else."""
    folder = Folder(path)
    description = folder.read_description()
    layout = RecordLayout(description.salt, description.dim)
    out.mkdir()
    shutil.copy(folder.description_file, out)
    new = Folder(out)
    new.snapshot(0).write_bytes(first_snapshot)
    data = segment_header(description.identity)
    assert len(data) == SEGMENT_HEADER_SIZE
    for r in read_all(folder, description, layout):
        data += layout.pack(r.kind, r.flags, r.sequence, r.time, r.payload, r.request)
    new.segment(1).write_bytes(data)
    (out / END_FILE).write_bytes(pack_end(description.salt, JournalEnd(1, len(data))))
    return opened(out)
