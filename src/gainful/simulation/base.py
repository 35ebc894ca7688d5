"""The base of all simulations: an agent, checkpoints, and the state that is saved to a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gainful.simulation.callbacks import Callback, show_checkpoint
from gainful.simulation.slices import SliceLength


class Simulation:
    """One agent's run and its total reward at each checkpoint; a subclass implements `advance` and its state.

    The agent had observed `steps_before` steps before the run.
    """

    gain: float
    """The optimal gain g* per step; NaN if it is unknown."""
    callback: Callback = None
    """Called at every checkpoint that is passed from now on."""

    def __init__(self, agent: Any, seed: int, grid: NDArray[np.int64]) -> None:
        self.agent, self.seed, self.checkpoints, self.steps_before = agent, seed, grid, agent.t
        self.checkpoints_passed = 0
        self.planning_seconds = self.acting_seconds = 0.0
        self.rewards = np.zeros(grid.size)
        self.restarts_because = ""
        """Why a run that is killed has to begin anew; empty if it can be saved to a file and continued."""

    @property
    def t(self) -> int:
        """Steps made in this run."""
        raise NotImplementedError

    @property
    def total(self) -> float:
        """The sum of rewards so far."""
        raise NotImplementedError

    def advance(self, target: int) -> None:
        """Continue to step `target` at most; afterwards the agent has counted every step made."""
        raise NotImplementedError

    @property
    def finished(self) -> bool:
        """Whether the last checkpoint has been passed."""
        return self.checkpoints_passed == self.checkpoints.size

    @property
    def next_checkpoint(self) -> int:
        """The step of the next checkpoint."""
        return int(self.checkpoints[self.checkpoints_passed])

    def record_checkpoint(self) -> None:
        """Record the total reward, if this is a checkpoint."""
        if not self.finished and self.t == self.checkpoints[self.checkpoints_passed]:
            self.rewards[self.checkpoints_passed] = self.total
            self.checkpoints_passed += 1

    def regrets_at(self, i: int) -> dict[str, float]:
        """The regret at checkpoint i, which has been passed, by its three measures; NaN if they are unknown."""
        regret = float(self.checkpoints[i] * self.gain - self.rewards[i])
        return {"regret": regret, "pseudo_regret": float("nan"), "expected_regret": float("nan")}

    def pass_checkpoint(self) -> None:
        """Record the checkpoint, if this is one, and show it to the callback."""
        passed = self.checkpoints_passed
        self.record_checkpoint()
        if self.callback is not None and self.checkpoints_passed > passed:
            show_checkpoint(self.callback, self)

    def finish(
        self, progress: Callable[[int, int], None] | None = None, pause: Callable[[], None] | None = None
    ) -> None:
        """Run to the last checkpoint; `pause()` is called between advances, when the agent is up to date."""
        length = SliceLength()
        while not self.finished:
            t = self.t
            length.begin()
            self.advance(min(self.next_checkpoint, t + length.steps))
            length.end(self.t - t)
            self.pass_checkpoint()
            if progress is not None:
                progress(self.t, int(self.checkpoints[-1]))
            if pause is not None:
                pause()


class ResumableSimulation(Simulation):
    """A simulation that can be saved to a file: `state_arrays` hold its state apart from the agent."""

    added_later: ClassVar[tuple[str, ...]] = ()
    """State arrays, one entry per checkpoint, that files of earlier versions lack: NaN at the checkpoints passed."""

    @property
    def fingerprint(self) -> str:
        """A digest of everything in the environment that a run depends on."""
        raise NotImplementedError

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that hold the state of the run; resuming fills them in place."""
        raise NotImplementedError

    def step_of(self, arrays: dict[str, NDArray[Any]]) -> int:
        """The step that such arrays belong to; raises ValueError if no run can have them."""
        raise NotImplementedError

    def state_to_save(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state of the run apart from the agent, as a header and arrays: what `resume_from` needs."""
        header = {
            "lived": self.steps_before,
            "passed": self.checkpoints_passed,
            "planning_seconds": self.planning_seconds,
            "acting_seconds": self.acting_seconds,
        }
        return header, self.state_arrays()

    def _completed(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The arrays of a file, with those that an earlier version did not write."""
        unknown = np.zeros(self.checkpoints.size)
        unknown[: int(header["passed"])] = np.nan
        return dict.fromkeys(self.added_later, unknown) | arrays

    def check(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]], agent_t: int) -> None:
        """Raise ValueError unless `state_to_save` of such a run, with an agent at step `agent_t`, can return this."""
        arrays = self._completed(header, arrays)
        for name, array in self.state_arrays().items():
            if arrays[name].shape != array.shape or arrays[name].dtype != array.dtype:
                raise ValueError(f"array '{name}' has shape {arrays[name].shape} and dtype {arrays[name].dtype}")
        t, passed = self.step_of(arrays), int(header["passed"])
        if not 0 <= t <= self.checkpoints[-1]:
            raise ValueError(f"the clock says {arrays['clock'].tolist()}")
        if passed != int(np.searchsorted(self.checkpoints, t, side="right")) or agent_t != int(header["lived"]) + t:
            raise ValueError(f"{passed} checkpoints passed at step {t}, the agent is at {agent_t}")

    def resume_from(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Continue from what `state_to_save` returned and `check` accepted; the agent has been restored already."""
        arrays = self._completed(header, arrays)
        for name, array in self.state_arrays().items():
            array[...] = arrays[name]
        self.steps_before, self.checkpoints_passed = int(header["lived"]), int(header["passed"])
        self.planning_seconds, self.acting_seconds = float(header["planning_seconds"]), float(header["acting_seconds"])
