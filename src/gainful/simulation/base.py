"""What every run has in common: an agent, checkpoints, the way to the last of them, and what a file keeps of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAUSE = 1 << 24
"""Steps after which a compiled loop returns to Python at the latest: Ctrl-C and progress."""


class Simulation:
    """One agent's run: what it has earned at each checkpoint. Subclasses say how it advances, and where it is."""

    def __init__(self, agent: Any, seed: int, grid: NDArray[np.int64]) -> None:
        self.agent, self.seed, self.grid, self.lived = agent, seed, grid, agent.t
        self.passed = 0  # checkpoints
        self.planning_seconds = self.acting_seconds = 0.0
        self.rewards = np.zeros(grid.size)

    @property
    def t(self) -> int:
        """Steps made in this run."""
        raise NotImplementedError

    @property
    def total(self) -> float:
        """The sum of rewards so far."""
        raise NotImplementedError

    def advance(self, target: int) -> None:
        """To step `target`, or not so far; then the agent knows all that was lived."""
        raise NotImplementedError

    @property
    def over(self) -> bool:
        """Whether the last checkpoint has been passed."""
        return self.passed == self.grid.size

    @property
    def next_checkpoint(self) -> int:
        """The step of the next checkpoint."""
        return int(self.grid[self.passed])

    def note(self) -> None:
        """What has been earned, if this is a checkpoint."""
        if not self.over and self.t == self.grid[self.passed]:
            self.rewards[self.passed] = self.total
            self.passed += 1

    def finish(
        self, progress: Callable[[int, int], None] | None = None, pause: Callable[[], None] | None = None
    ) -> None:
        """Run to the last checkpoint; `pause()` is called between two advances, when the agent knows all."""
        while not self.over:
            self.advance(min(self.next_checkpoint, self.t + PAUSE))
            self.note()
            if progress is not None:
                progress(self.t, int(self.grid[-1]))
            if pause is not None:
                pause()


class ResumableSimulation(Simulation):
    """A run that a file can keep: `kept` are the arrays that say where it is, beside the agent."""

    @property
    def fingerprint(self) -> str:
        """A digest of everything in the environment that a run depends on."""
        raise NotImplementedError

    def kept(self) -> dict[str, NDArray[Any]]:
        """The arrays of this run, to be filled in place from a file."""
        raise NotImplementedError

    def step_in(self, arrays: dict[str, NDArray[Any]]) -> int:
        """The step at which such arrays are; ValueError where they are those of no run."""
        raise NotImplementedError

    def progress_made(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Where the run is, beside the agent: what `take_up` needs."""
        header = {
            "lived": self.lived, "passed": self.passed, "planning_seconds": self.planning_seconds,
            "acting_seconds": self.acting_seconds,
        }  # fmt: skip
        return header, self.kept()

    def check(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]], agent_t: int) -> None:
        """ValueError unless this is what `progress_made` tells of such a run with an agent at step `agent_t`."""
        for name, array in self.kept().items():
            if arrays[name].shape != array.shape or arrays[name].dtype != array.dtype:
                raise ValueError(f"array '{name}' has shape {arrays[name].shape} and dtype {arrays[name].dtype}")
        t, passed = self.step_in(arrays), int(header["passed"])
        if not 0 <= t <= self.grid[-1]:
            raise ValueError(f"the clock says {arrays['clock'].tolist()}")
        if passed != int(np.searchsorted(self.grid, t, side="right")) or agent_t != int(header["lived"]) + t:
            raise ValueError(f"{passed} checkpoints passed at step {t}, the agent is at {agent_t}")

    def take_up(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Go on where `progress_made` was told; `check` has seen it, and the agent has been taken up already."""
        for name, array in self.kept().items():
            array[...] = arrays[name]
        self.lived, self.passed = int(header["lived"]), int(header["passed"])
        self.planning_seconds, self.acting_seconds = float(header["planning_seconds"]), float(header["acting_seconds"])
