"""The line at the top of a page that is renewed while its experiment runs."""

from __future__ import annotations

from dataclasses import dataclass

from gainful.report.writing import escaped


@dataclass(frozen=True)
class LiveNote:
    """How far the experiment is, and the version of the page: a page asks for another one if it changes."""

    version: str
    planned: int
    finished: int
    running: bool
    """Whether a process is writing to the folder now."""

    @property
    def complete(self) -> bool:
        """Whether every planned run is stored."""
        return self.finished >= self.planned

    @property
    def text(self) -> str:
        """The state of the experiment in words."""
        runs = f"{self.finished:,} of {self.planned:,} runs"
        if self.complete:
            return f"Complete: {runs}."
        if self.running:
            return f"Running: {runs}. This page renews itself."
        return f"Not running: {runs}. gainful run continues; this page then renews itself."


def live_note(note: LiveNote) -> str:
    """The line as HTML; the script keeps it up to date."""
    share = note.finished / note.planned if note.planned else 0.0
    return (
        f'<div class="live" id="live" role="status" data-version="{escaped(note.version)}" '
        f'style="--share:{share:.4f}">{escaped(note.text)}</div>\n'
    )
