"""A life to be killed: acts, observes, reports late, and tells through shared memory what it was promised.

Imported by a server that forks lives: everything is compiled once, so that a life begins in milliseconds.
"""

from __future__ import annotations

import mmap
import os
import random
import resource
import signal
import struct
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gainful.errors import GainfulError, JournalError
from gainful.live import DurableAgent, open_agent
from gainful.live import snapshots as _snapshots
from tests.live.lives import CONFIG, QUICK, journal_size, lived, reward_at, state_at, wait_for

snapshots: Any = _snapshots
NOTHING, SNAPSHOT, COMPACTION, WRITE_FAILED = range(4)
SLOTS = struct.Struct("<QQQQQQ")
ACKNOWLEDGED, OPENED, STAGE, FAILURES, DECIDED, WRONG = range(6)
UNLIMITED = resource.RLIM_INFINITY


class Board:
    """A few numbers that outlive the process that writes them."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(SLOTS.size))
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), SLOTS.size)

    def __getitem__(self, slot: int) -> int:
        return int(struct.unpack_from("<Q", self._map, 8 * slot)[0])

    def __setitem__(self, slot: int, value: int) -> None:
        struct.pack_into("<Q", self._map, 8 * slot, value)


def _marked(board: Board, stage: int, work: Callable[..., Any]) -> Callable[..., Any]:
    def marked(*arguments: Any, **options: Any) -> Any:
        board[STAGE] = stage
        try:
            return work(*arguments, **options)
        finally:
            board[STAGE] = NOTHING

    return marked


def life(path: Path, board_path: Path, seed: int, options: dict[str, Any], until: int) -> None:
    """Live until killed, or until so many observations; now and then nothing more can be written for a while."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    board, chance = Board(board_path), random.Random(seed)
    snapshots.write_archive = _marked(board, SNAPSHOT, snapshots.write_archive)
    snapshots.compact = _marked(board, COMPACTION, snapshots.compact)
    agent = open_agent(path, CONFIG, **options)
    board[ACKNOWLEDGED] = board[OPENED] = agent.t  # what is shown must stay
    while agent.t < until:
        if chance.random() < 0.05:
            _without_room(agent, board, chance)
        _step(agent, board)
    agent.close()


def _step(agent: DurableAgent, board: Board) -> None:
    """One decision and its outcome, as `lives.lived` has them; the same calls whatever happened before."""
    t = agent.t
    waiting = agent.pending
    decision = waiting[-1].decision_id if waiting else agent.act(state_at(t)).decision_id
    action = agent.pending[-1].action
    board[DECIDED] = decision
    if t % 3 == 0:
        agent.report(decision, reward_at(t, action), state_at(t + 1))
    else:
        agent.observe(state_at(t), action, reward_at(t, action), state_at(t + 1))
    board[ACKNOWLEDGED] = agent.t


def _without_room(agent: DurableAgent, board: Board, chance: random.Random) -> None:
    """Let files grow no further than in the middle of the next record, until a call fails; then make room again."""
    wait_for("gainful-snapshot")
    size = journal_size(agent.path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + chance.randrange(60), UNLIMITED))
    try:
        for _ in range(3):
            before = agent.t
            try:
                _step(agent, board)
            except JournalError:
                board[FAILURES] += 1
                if agent.t != before:
                    board[WRONG] = 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))


def racer(path: Path, start: Any, over: Any, answers: Any) -> None:
    """Begin an agent at the same instant as others; the one who has it keeps it until all others have answered."""
    start.wait(30)
    try:
        agent = open_agent(path, CONFIG, **QUICK)
    except GainfulError as error:
        answers.put((type(error).__name__, str(error)))
        over.wait(30)
    else:
        agent.observe(0, 0, 0.5, 1)
        over.wait(30)  # until all others were refused
        agent.observe(0, 0, 0.5, 1)
        answers.put(("won", ""))
    answers.close()
    answers.join_thread()
    os._exit(0)


def killed_before_the_sync(path: Path) -> None:
    """Write a record, and be killed before it is synced."""
    agent = open_agent(path, fsync="record", planning="inline")
    os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
    agent.observe(0, 0, 0.5, 1, request_id="r")


def _warm_up() -> None:
    """Compile what a life needs, in the process that forks them; no thread may be alive at a fork."""
    with tempfile.TemporaryDirectory() as place:
        agent = open_agent(Path(place) / "agent", CONFIG, fsync="off", planning="inline", snapshot_every=10**9)
        lived(agent, 60)
        agent.copy()
        agent.close()


_warm_up()
