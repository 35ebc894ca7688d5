"""`gainful serve` in a process that is forked from one which has everything imported and compiled.

Imported by the server that forks: a service then begins in a tenth of a second, so that a thousand can be killed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import gainful.serve.server  # noqa: F401  what the command imports when it runs
from gainful.cli.main import run as command
from gainful.live import open_agent
from tests.serve.service import CONFIG


class ForkedService:
    """The process, and how to reach it."""

    def __init__(self, folder: Path, *options: str) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.serve.forked"])
        with tempfile.NamedTemporaryFile(suffix=".json") as facts:
            arguments = ["serve", str(folder), "--port", "0", "--json", *options]
            self.process: BaseProcess = context.Process(target=_serve, args=(arguments, facts.name), daemon=True)
            self.process.start()
            patience = time.monotonic() + 60.0
            while not (line := Path(facts.name).read_text(encoding="utf-8")).endswith("\n"):
                assert self.process.is_alive()
                assert time.monotonic() < patience
                time.sleep(0.002)
        self.url: str = json.loads(line.splitlines()[0])["url"]

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.process.kill()
        self.process.join()


def _serve(arguments: list[str], facts: str) -> None:
    with open(facts, "w", encoding="utf-8", buffering=1) as out, open(os.devnull, "w") as nothing:
        sys.stdout, sys.stderr = out, nothing
        sys.exit(command(arguments))


def _warm_up() -> None:
    """Compile what an agent needs; no thread may be alive at a fork."""
    with tempfile.TemporaryDirectory() as place:
        agent = open_agent(Path(place) / "agent", CONFIG, fsync="off", planning="inline", snapshot_every=10**9)
        for _ in range(20):
            agent.observe(0, agent.act(0), 0.5, 1)
        agent.close()


if multiprocessing.parent_process() is not None:  # in the server that forks, not in the test that imports the class
    _warm_up()
