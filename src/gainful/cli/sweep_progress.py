"""The progress of a sweep on stderr: bars on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from gainful.cli import console, numbers
from gainful.progress import LINE_EVERY, duration, short_rate, stderr_console

if TYPE_CHECKING:
    from gainful.experiments.pool import RunFailed
    from gainful.experiments.sweep import SweepProgress


STARTING_MATTERS = 20.0
"""Seconds below which the time for starting workers is worth a word."""


def amount(size: float) -> str:
    """A number of bytes in words.

    >>> amount(3.2e6), amount(2e9), amount(900)
    ('3.2 MB', '2 GB', '900 B')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"


class SweepProgressLine:
    """A `SweepWatcher` that prints to stderr."""

    def __init__(self) -> None:
        self._due = 0.0
        self._live: Any = None
        self._console = stderr_console() if sys.stderr.isatty() else None
        self._stopping = False
        self._told: set[str] = set()
        self._folders: set[str] = set()

    def preparing(self, words: str) -> None:
        """Print what is being prepared."""
        self._say(f"{words} …", transient=True)

    def noticed(self, words: str) -> None:
        """Print what was damaged and made good, and what else the user should know; the same words once."""
        if words not in self._told:
            self._told.add(words)
            self._say(f"warning: {words}")

    def started(self, sweep: SweepProgress) -> None:
        """Print how many runs there are to make, and the estimated cost; more runs in the same folder are one line."""
        title = sweep.title if sweep.title.endswith(("?", "!", ".")) else f"{sweep.title}:"
        self._due = time.monotonic() + LINE_EVERY
        if str(sweep.folder) in self._folders:
            left = f", about {duration(max(1.0, sweep.seconds_left))}" if sweep.device == "cpu" else ""
            self._say(f"{title} {numbers.count(sweep.left, 'more run')}{left}")
            return
        self._folders.add(str(sweep.folder))
        self._say(
            f"{title} {sweep.left:,} of {sweep.planned:,} runs to make in {sweep.folder}"
            + (f" ({sweep.stored:,} are stored)" if sweep.stored else "")
            + f", {sweep.jobs} at a time; {amount(sweep.left * sweep.estimate.disk_per_run)} of disk and "
            f"{self._time(sweep)}"
        )

    @staticmethod
    def _time(sweep: SweepProgress) -> str:
        """The estimated time; a short sweep spends most of it on starting workers, which load all compiled code."""
        if sweep.device != "cpu":
            agents = numbers.count(len(sweep.planned_by_agent), "agent")
            return f"a time that is mostly compiling for the GPU, 10 to 20 s for each of {agents}"
        if sweep.seconds_left >= STARTING_MATTERS:
            return f"about {duration(sweep.seconds_left)}"
        return f"about {duration(max(1.0, sweep.seconds_left))} once the workers have started, which takes some seconds"

    def progressed(self, sweep: SweepProgress) -> None:
        """Update the bars, or print a line if one is due."""
        if sweep.stopping and not self._stopping:
            self._stopping = True
            doing = (
                "runs on a GPU are given up" if sweep.device != "cpu" else "active runs are writing their checkpoints"
            )
            self._say(f"stopping: {doing} (Ctrl-C again stops at once)")
        if self._console is None:
            if time.monotonic() >= self._due:
                self._due = time.monotonic() + LINE_EVERY
                print(self._line(sweep), file=sys.stderr, flush=True)
            return
        from rich.live import Live

        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        if time.monotonic() >= self._due - LINE_EVERY + 0.25:
            self._due = time.monotonic() + LINE_EVERY
            self._live.update(self._bar(sweep), refresh=True)

    def failed(self, sweep: SweepProgress, failure: RunFailed, attempt: int, again: bool) -> None:
        """Print a failure at once, in one line."""
        environment, agent = sweep.labels[failure.task.run_id]
        what_next = f"starting try {attempt + 1}" if again else "left out until the next gainful run"
        what = f"{failure.kind}: {failure.message.splitlines()[0]}"
        if what in self._told:
            what = f"the same {failure.kind}"
        self._told.add(f"{failure.kind}: {failure.message.splitlines()[0]}")
        self._say(f"failed: {agent} in {environment}, seed {failure.task.configuration['seed']}: {what}; {what_next}")

    def end(self) -> None:
        """Remove the bars."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _say(self, text: str, transient: bool = False) -> None:
        text = console.printable(text)
        if self._console is None:
            if not transient or time.monotonic() >= self._due:
                self._due = time.monotonic() + LINE_EVERY
                print(text, file=sys.stderr, flush=True)
        elif transient:
            from rich.live import Live
            from rich.text import Text

            if self._live is None:
                self._live = Live(console=self._console, auto_refresh=False, transient=True)
                self._live.start()
            self._live.update(Text(text), refresh=True)
        else:
            self._console.print(text)

    def _line(self, sweep: SweepProgress) -> str:
        made = sweep.stored + sweep.finished
        if not sweep.workload.steps and not sweep.failed:
            doing = "starting the workers" if sweep.device == "cpu" else "compiling for the GPU"
            return f"{made:,} of {sweep.planned:,} runs; {doing}, {duration(sweep.seconds)}"
        rate = sweep.workload.steps / max(sweep.seconds, 1e-9)
        text = f"{made:,} of {sweep.planned:,} runs, {short_rate(rate)} steps/s, {duration(sweep.seconds)}"
        if sweep.left:
            text += f", about {duration(sweep.seconds_left)} left"
        return text + (f", {sweep.failed:,} failed" if sweep.failed else "")

    def _bar(self, sweep: SweepProgress) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        agents = Table.grid(padding=(0, 1))
        for name, planned in list(sweep.planned_by_agent.items())[:20]:
            done = sweep.finished_by_agent[name]
            agents.add_row(
                Text(console.printable(name)),
                ProgressBar(total=planned, completed=done, width=20, finished_style="green"),
                Text(f"{done:,}/{planned:,}"),
            )
        whole = Table.grid()  # a bar by itself does not end its line
        so_far = sweep.stored + sweep.finished + sweep.under_way
        whole.add_row(ProgressBar(total=sweep.planned, completed=so_far, width=60, finished_style="green"))
        return Group(agents, whole, Text(self._line(sweep)))
