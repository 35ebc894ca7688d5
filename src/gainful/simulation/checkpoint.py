"""An unfinished run in one plain file, from which it continues bit for bit.

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

import numpy as np
from numpy.typing import NDArray

from gainful.agents.files import agent_state, take_state
from gainful.agents.rebuilding import complete_settings
from gainful.archive import Format, read_archive, write_archive
from gainful.errors import InvalidRunError, MemoryLimitError
from gainful.simulation.base import ResumableSimulation

RUN_FILE = Format("gainful-run", 2, "run", "simulate(checkpoint_file=...)", InvalidRunError, checked_since=2)


class Checkpoint:
    """The file in which a simulation is saved.

    Parameters
    ----------
    simulation : ResumableSimulation
        The simulation, which has not begun.
    path : str or Path
        The file.
    every : float
        Seconds between two versions of the file, see `write_if_due`.
    """

    def __init__(self, simulation: ResumableSimulation, path: str | Path, every: float) -> None:
        self.simulation, self.path, self.every = simulation, Path(path), every
        self._last = time.monotonic()
        self.identity: dict[str, Any] = {
            "agent": type(simulation.agent).__name__,
            "settings": simulation.agent.settings(),
            "seed": simulation.seed,
            "grid": _grid_digest(simulation.checkpoints),
            "horizon": int(simulation.checkpoints[-1]),
            "environment": simulation.fingerprint,
            "lived": simulation.steps_before,
        }
        """What must be the same for a file to belong to this run: known before it begins."""

    def write(self) -> None:
        """Replace the file by the present state."""
        agent_header, agent_arrays = agent_state(self.simulation.agent)
        header, arrays = self.simulation.state_to_save()
        write_archive(
            RUN_FILE,
            self.path,
            {"identity": self.identity, "run": header, "agent": agent_header},
            arrays | {f"agent_{name}": array for name, array in agent_arrays.items()},
        )
        self._last = time.monotonic()

    def write_if_due(self) -> None:
        """Replace the file if it was written `every` seconds ago or earlier."""
        if time.monotonic() - self._last >= self.every:
            self.write()

    def resume(self) -> bool:
        """Continue from the file.

        Returns
        -------
        bool
            Whether there is a file.

        Raises
        ------
        InvalidRunError
            If the file belongs to another run, or is damaged.
        """
        if not self.path.exists():
            return False
        header, arrays = read_archive(RUN_FILE, self.path)
        self._check_identity(header.get("identity", {}))
        simulation = self.simulation
        try:
            simulation.check(header["run"], arrays, int(header["agent"]["t"]))
            agent_arrays = {name.removeprefix("agent_"): a for name, a in arrays.items() if name.startswith("agent_")}
            take_state(simulation.agent, header["agent"], agent_arrays)
            simulation.resume_from(header["run"], arrays)
        except MemoryLimitError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
            raise RUN_FILE.damaged(self.path, f"{type(error).__name__}: {error}") from error
        return True

    def _check_identity(self, found: dict[str, Any]) -> None:
        """An error if a file with the identity `found` belongs to another run.

        Settings that the version which wrote it did not have yet are those that they stood for.
        """
        if isinstance(found.get("settings"), dict):
            complete = complete_settings(type(self.simulation.agent), found["settings"])
            found = {**found, "settings": json.loads(json.dumps(complete))}
        for key, value in json.loads(json.dumps(self.identity)).items():
            if found.get(key) != value:
                raise InvalidRunError(
                    f"{self.path}: belongs to another run: its {_WORDS[key]} is {_short(found.get(key))}, here it is "
                    f"{_short(value)}",
                    name=str(self.path),
                    found=found.get(key),
                    hint="give another checkpoint_file, or delete this one to start anew",
                )


def begun_with(path: str | Path, checkpoints: NDArray[np.int64]) -> bool:
    """Whether there is a file at `path` of a run with these checkpoints; InvalidRunError if it is damaged."""
    if not Path(path).exists():
        return False
    header, _ = read_archive(RUN_FILE, path)
    return bool(header.get("identity", {}).get("grid") == _grid_digest(checkpoints))


def _grid_digest(checkpoints: NDArray[np.int64]) -> str:
    return hashlib.sha256(checkpoints.tobytes()).hexdigest()


_WORDS = {
    "agent": "agent",
    "settings": "agent's settings",
    "seed": "seed",
    "grid": "list of checkpoints",
    "horizon": "horizon",
    "environment": "environment",
    "lived": "number of steps before the run",
}


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 200 else text[:12] + "…"


def finish_with_checkpoints(
    simulation: ResumableSimulation, path: str | Path, every: float, progress: Callable[[int, int], None] | None
) -> None:
    """Run to the end, from the file if there is one, and keep it up to date; the finished run stays in it.

    A `progress` that raises KeyboardInterrupt ends the run between two steps: it is saved as it is then.
    """
    checkpoint = Checkpoint(simulation, path, every)
    checkpoint.resume()
    if simulation.finished:
        return
    checkpoint.write()  # if the file cannot be written, report it now and not in an hour

    def tell(step: int, horizon: int) -> None:
        if progress is None:
            return
        try:
            progress(step, horizon)
        except KeyboardInterrupt:
            checkpoint.write()
            raise

    simulation.finish(tell, pause=checkpoint.write_if_due)
    checkpoint.write()
