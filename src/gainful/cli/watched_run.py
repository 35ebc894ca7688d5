"""A single run of `gainful learn` while it lasts: its progress line, and what Ctrl-C leaves."""

from __future__ import annotations

import contextlib
import math
import time
from typing import Any

from gainful.cli import console
from gainful.cli.failures import JobInterruptedError
from gainful.mdp.units import Units
from gainful.progress import duration, live_line, short_rate
from gainful.simulation.simulate import run_simulation
from gainful.stop_request import StopRequest

RATE_AFTER = 1.0
"""Seconds of a run after which its speed, and the time left, are known well enough to be shown."""
CONTINUES = ", and the same command continues it"


def watched_run(simulation: Any, checkpoint: str | None) -> None:
    """Run to the end, from and into the checkpoint file if there is one, and report progress.

    Ctrl-C raises a JobInterruptedError that says what was done and what is kept. If there is a file, the run is saved
    to it first: then Ctrl-C waits for the end of a slice, a fraction of a second, and a second Ctrl-C does not.
    """
    stop, saved = StopRequest(), False
    with live_line(_RunText(simulation)) as show, contextlib.ExitStack() as block:
        if checkpoint is not None:
            block.enter_context(stop.on_signals())

        def note(step: int, horizon: int) -> None:
            nonlocal saved
            show(step, horizon)
            if stop.made and step < horizon:
                saved = True
                raise KeyboardInterrupt  # the run is saved, see `finish_with_checkpoints`

        try:
            run_simulation(simulation, progress=note, checkpoint_file=checkpoint)
        except KeyboardInterrupt:
            raise JobInterruptedError(_what_is_kept(simulation, checkpoint, saved)) from None


def _what_is_kept(simulation: Any, file: str | None, saved: bool) -> str:
    """How far an interrupted run came, and where it is saved, as it is or as it was when the file was due."""
    made = f"after {simulation.t:,} of {int(simulation.checkpoints[-1]):,} steps"
    if file is not None:
        return f"{made}; {file} has the run" + ("" if saved else " up to half a minute ago") + CONTINUES
    if simulation.restarts_because:
        return f"{made}; nothing is kept"
    return f"{made}; nothing is kept (with --checkpoint FILE the same command continues where it stopped)"


class _RunText:
    """The progress line: steps, speed, time left, what was earned, and the regret so far."""

    def __init__(self, simulation: Any) -> None:
        mdp = getattr(simulation, "mdp", None)
        self.simulation, self.units = simulation, Units() if mdp is None else mdp.units
        self._began, self._first = time.perf_counter(), -1

    def __call__(self, step: int, horizon: int) -> str:
        """The line at step `step`."""
        if self._first < 0:
            self._first = step  # a resumed run has made steps before
        simulation, units = self.simulation, self.units
        gain, total, records = simulation.gain, simulation.total, simulation.agent.core.records
        parts = [f"{step:,} of {horizon:,} steps"]
        passed = time.perf_counter() - self._began
        if passed >= RATE_AFTER:
            rate = max(step - self._first, 1) / passed
            parts += [f"{short_rate(rate)} steps/s", f"{duration((horizon - step) / rate)} left"]
        parts += [f"{units.gain_name} {units.sign * total / step / units.step_duration:.4g}"]
        if not math.isnan(gain):
            optimal = units.sign * gain / units.step_duration
            parts += [f"optimal {optimal:.4g}", f"realised regret {step * gain - total:,.0f}"]
        return console.one_line([*parts, f"episode {len(records):,}"])
