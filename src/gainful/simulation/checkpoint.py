"""A run in the middle of its life, in one plain file from which it continues to the same bits.

The file holds the agent (as `agent.save` writes it), where the run is, and what identifies it: seed, checkpoints, the
environment's fingerprint and the agent's settings. It is replaced as a whole: a kill at any moment leaves the last one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gainful.agents.files import agent_state, take_state
from gainful.archive import Format, read_archive, write_archive
from gainful.errors import InvalidRunError
from gainful.simulation.base import ResumableSimulation

RUN_FILE = Format("gainful-run", 1, "run", "simulate(checkpoint_file=...)", InvalidRunError)


class Checkpoint:
    """Where a life that has not begun is to be kept, and how often."""

    def __init__(self, life: ResumableSimulation, path: str | Path, every: float) -> None:
        self.life, self.path, self.every = life, Path(path), every
        self._last = time.monotonic()
        self.identity: dict[str, Any] = {
            "agent": type(life.agent).__name__, "settings": life.agent.settings(), "seed": life.seed,
            "grid": hashlib.sha256(life.grid.tobytes()).hexdigest(), "horizon": int(life.grid[-1]),
            "environment": life.fingerprint, "lived": life.lived,
        }  # fmt: skip
        """What must be the same for a file to belong to this run: known before it begins."""

    def write(self) -> None:
        """Replace the file by the present state."""
        life = self.life
        agent_header, agent_arrays = agent_state(life.agent)
        header, arrays = life.progress_made()
        write_archive(
            RUN_FILE, self.path, {"identity": self.identity, "run": header, "agent": agent_header},
            arrays | {f"agent_{name}": array for name, array in agent_arrays.items()},
        )  # fmt: skip
        self._last = time.monotonic()

    def write_if_due(self) -> None:
        """Replace the file if the last one is `every` seconds old."""
        if time.monotonic() - self._last >= self.every:
            self.write()

    def resume(self) -> bool:
        """Take up the life in the file; False where there is none. Another run's file is an InvalidRunError."""
        if not self.path.exists():
            return False
        header, arrays = read_archive(RUN_FILE, self.path)
        life, wanted = self.life, json.loads(json.dumps(self.identity))
        found = header.get("identity", {})
        for key, value in wanted.items():
            if found.get(key) != value:
                raise InvalidRunError(
                    f"{self.path}: belongs to another run: its {_WORDS[key]} is {_short(found.get(key))}, here it is "
                    f"{_short(value)}; give another checkpoint_file, or delete this one to start anew"
                )
        try:
            life.check(header["run"], arrays, int(header["agent"]["t"]))
            take_state(
                life.agent, header["agent"],
                {name.removeprefix("agent_"): a for name, a in arrays.items() if name.startswith("agent_")},
            )  # fmt: skip
            life.take_up(header["run"], arrays)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
            raise RUN_FILE.damaged(self.path, f"{type(error).__name__}: {error}") from error
        return True


_WORDS = {
    "agent": "agent", "settings": "agent's settings", "seed": "seed", "grid": "list of checkpoints",
    "horizon": "horizon", "environment": "environment", "lived": "number of steps lived before",
}  # fmt: skip


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:12] + "…"


def finish_with_checkpoints(
    life: ResumableSimulation, path: str | Path, every: float, progress: Callable[[int, int], None] | None
) -> None:
    """Run to the end, from the file where there is one, keeping it up to date; the finished run stays in it."""
    kept = Checkpoint(life, path, every)
    kept.resume()
    if life.over:
        return
    kept.write()  # a file that cannot be written is better known now than in an hour
    life.finish(progress, pause=kept.write_if_due)
    kept.write()
