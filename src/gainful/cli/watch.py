"""`gainful watch`: the report of an experiment in a browser, renewed while it runs."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gainful.cli import console, failures, options

if TYPE_CHECKING:
    from gainful.report.live_note import LiveNote
    from gainful.report.watching import WatchServer

LOOK_EVERY = 2.0
"""Seconds between looks at the folder, for the lines on the terminal."""
WAIT_FOR_BEGINNING = 30.0
"""Seconds to wait for a `gainful run` that has just been started to make the folder."""


def watch(
    folder: options.ExperimentFolder,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="N",
            help="The port; by default 8765, or a free one if that is taken.",
            show_default=False,
        ),
    ] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    until_complete: Annotated[
        bool, typer.Option("--until-complete", help="End when every planned run is stored.")
    ] = False,
    debug: failures.Debug = False,  # noqa: ARG001
) -> None:
    """Serve the report of an experiment on this machine; the page renews itself while gainful run goes on.

    \b
    gainful run study.toml --out results/study &
    gainful watch results/study
    """  # noqa: D301
    from gainful.report.watching import WatchServer

    _wait_for_experiment(folder)
    with console.progress("reading the runs"):
        server = WatchServer(folder, port)
    answering = threading.Thread(target=server.serve_forever, name="gainful-watch", daemon=True)
    answering.start()
    try:
        _say(f"{server.address} shows {server.watched.folder}; Ctrl-C ends it")
        if browse:
            import webbrowser

            webbrowser.open(server.address)
        _follow(server, until_complete)
    except KeyboardInterrupt:
        _say("ended; the runs are not affected")
    finally:
        server.shutdown()
        server.server_close()


def _wait_for_experiment(folder: Path) -> None:
    """Give a sweep that is just beginning time to store its plan; whoever opens the store says if there is none."""
    from gainful.experiments.store import STORE_FILE

    store = folder if folder.is_file() else folder / STORE_FILE
    pause, end = threading.Event(), time.monotonic() + WAIT_FOR_BEGINNING
    if not store.exists():
        _say(f"waiting for an experiment in {folder}")
    while not store.exists() and time.monotonic() < end:
        pause.wait(0.2)


def _follow(server: WatchServer, until_complete: bool) -> None:
    """Say when the experiment stops, goes on or is complete, until it is complete or for ever."""
    pause, said = threading.Event(), ""
    while True:
        note = _note(server)
        words = "" if note is None else _words(note, str(server.watched.folder))
        if words and words != said:
            _say(words)
            said = words
        if until_complete and note is not None and note.complete:
            return
        pause.wait(LOOK_EVERY)


def _note(server: WatchServer) -> LiveNote | None:
    """The state of the experiment, or None if the folder cannot be read just now."""
    from gainful.errors import GainfulError

    try:
        return server.watched.progress()
    except GainfulError:
        return None


def _words(note: LiveNote, folder: str) -> str:
    if note.complete:
        return (
            f"complete: {note.finished:,} of {note.planned:,} runs; gainful report {folder} writes the page to a file"
        )
    if note.running:
        return f"gainful run is going on: {note.planned:,} runs are planned"
    return f"gainful run is not running: {note.finished:,} of {note.planned:,} runs are stored"


def _say(text: str) -> None:
    typer.echo(console.printable(text), err=True)
