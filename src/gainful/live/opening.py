"""Opening a durable agent: one that lives in a folder already, or a new one."""

from __future__ import annotations

import contextlib
import itertools
import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gainful.agents.files import agent_state
from gainful.archive import read_archive, write_archive
from gainful.arguments import choice, finite, flag, whole
from gainful.errors import GainfulError, InvalidArgumentError, JournalError
from gainful.files import sync_folder, write_file
from gainful.live.agent import DurableAgent
from gainful.live.agent_config import (
    class_named,
    make_agent,
    plain_settings,
    rebuild_agent,
    setting_differences,
    statistics_digest,
)
from gainful.live.decision_ledger import DecisionLedger
from gainful.live.folder import (
    DESCRIPTION_FILE,
    SEGMENT_HEADER_SIZE,
    AgentDescription,
    Folder,
    lock_folder,
    segment_header,
)
from gainful.live.logs import log_digest, read_log
from gainful.live.records import FROM_HISTORY, RecordKind, RecordLayout, TransitionRows
from gainful.live.snapshots import SNAPSHOT_FORMAT
from gainful.live.state_machine import Planning
from gainful.locks import LOCK_FILE, FolderLock

DEFAULT_REMEMBER, DEFAULT_MAX_PENDING = 4096, 10_000
MAX_HISTORY_ROWS = 1 << 16
MAX_LOCK_ATTEMPTS = 100


def open_agent(
    path: str | Path,
    config: Any = None,
    *,
    history: Any = None,
    states: Any = None,
    actions: Any = None,
    fsync: Literal["record", "off"] | float = "record",
    planning: Planning = "auto",
    snapshot_every: int | None = None,
    keep_history: bool | None = None,
    remember: int | None = None,
    max_pending: int | None = None,
) -> DurableAgent:
    """The durable agent in folder `path`, to go on where it stopped; a new one if nothing is there.

    `config` is needed for a new one: a dictionary such as {"agent": "scal-plus", "n_states": 6, "n_actions": 2,
    "span": 7.0}, any agent by its name with its own arguments, or an agent object, such as `gf.fit_log` returns. With
    "prior": an MDP and "prior_weight": n it begins as if every pair had been observed n times, as the model has it; no
    theorem covers that. Given for a folder that holds an agent, `config` must be the one it was made with (or its
    present settings), else a JournalError says what differs. `history` is a log of transitions, as for `gf.fit_log`,
    that a new agent observes first; its rows are in the journal.

    `fsync` says what a power cut can take: "record" makes every record durable before a call returns, a number does so
    every so many milliseconds, "off" leaves it to the operating system. A killed process loses nothing in either case.

    `planning="inline"` plans inside `act`. "background" lets decisions go on from the present plan while the next is
    made in a thread. "auto" lets a decision wait 4 ms for a plan, and goes on from the present one if it takes longer.
    Which plan was adopted when is in the journal.

    `snapshot_every` is the number of records between snapshots; by default one is due when the journal since the last
    is longer than it, and 1 MB. Journal that a snapshot covers is compressed, not deleted, unless `keep_history=False`.
    `remember` (4096) is how many outcomes and request ids are known for repeated calls; `max_pending` (10,000) how many
    decisions may wait for outcomes before the oldest is abandoned. These three are fixed when the folder is made.

    Raises AgentInUseError while another process has it open, DamagedJournalError for a journal damaged before its end,
    JournalError for a folder that cannot be read or written or is something else, InvalidArgumentError.
    """
    if not isinstance(path, (str, Path)):
        raise InvalidArgumentError(f"path is {path!r}, expected the name of a folder")
    seconds = _seconds(fsync)
    choice("planning", planning, ("auto", "inline", "background"))
    every = None if snapshot_every is None else whole("snapshot_every", snapshot_every, 1)
    options: dict[str, Any] = {
        "keep_history": None if keep_history is None else flag("keep_history", keep_history),
        "remember": None if remember is None else whole("remember", remember, 1, 10**7),
        "max_pending": None if max_pending is None else whole("max_pending", max_pending, 1, 10**7),
    }
    folder = Folder(path)
    with _told(folder.path, "opened"):
        _check_place(folder, config)
    lock, made_here = _locked(folder)
    try:
        if folder.description_file.exists():
            _compare(folder, config, history, states, actions, options)
        else:
            _begin(folder, config, history, states, actions, options)
            sync_folder(folder.path.resolve().parent)
        with _told(folder.path, "opened"):
            agent = DurableAgent(folder, lock, sync_seconds=seconds, planning=planning, snapshot_every=every)
    except BaseException:
        if made_here and not folder.description_file.exists():
            _withdraw(folder)
        lock.release()
        raise
    if planning == "background" and not agent.can_plan_in_background:
        agent.close()
        raise InvalidArgumentError(
            f"planning is 'background', but {agent.kind} plans nothing, or more than a thread "
            "can take over; take 'inline' or 'auto'"
        )
    return agent


def _seconds(fsync: Any) -> float | None:
    """0: every record; None: never; else the seconds between."""
    if fsync == "record":
        return 0.0
    if fsync == "off":
        return None
    if not finite(fsync) or not 1.0 <= fsync <= 3_600_000.0:
        raise InvalidArgumentError(f"fsync is {fsync!r}, expected 'record', 'off' or milliseconds, at least 1")
    return float(fsync) / 1000.0


def _check_place(folder: Folder, config: Any) -> None:
    """An error for a place that holds something else, or nothing when nothing is to be made."""
    path = folder.path
    if not path.exists():
        if config is None:
            raise JournalError(f"{path}: no durable agent there; give a config to begin one")
        return
    if not path.is_dir():
        raise JournalError(f"{path}: is a file, expected a folder; choose another name")
    try:
        foreign_files = [] if folder.description_file.exists() else folder.foreign_files()
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror or error}; check permissions") from error
    if foreign_files:
        raise JournalError(
            f"{path}: holds other files ({', '.join(foreign_files[:3])}) and no durable agent",
            name="path",
            found=str(path),
            hint="choose a folder of its own",
        )
    if config is None and not folder.description_file.exists():
        folder.read_description()  # raises


def _compare(folder: Folder, config: Any, history: Any, states: Any, actions: Any, options: dict[str, Any]) -> None:
    """An error where what is given is not what the folder holds."""
    stored = folder.read_description()
    found = [
        f"{name}: stored {stored.options[name]!r}, given {value!r}"
        for name, value in options.items()
        if value is not None and value != stored.options[name]
    ]
    agent = None
    if config is not None:
        agent, prior = make_agent(config)
        if type(agent).__name__ != stored.agent:
            found.append(f"agent: stored {stored.agent}, given {type(agent).__name__}")
        else:
            given = plain_settings(agent.settings())
            first = setting_differences(stored.settings, given)
            if first and setting_differences(_present(folder, stored), given):
                found += first
            elif not first and (
                agent.core.t != stored.initial["t"] or statistics_digest(agent) != stored.initial["digest"]
            ):
                found.append(
                    f"what it knew at first: stored {stored.initial['t']} observations, given {agent.core.t}"
                    + (" others" if agent.core.t == stored.initial["t"] else "")
                )
        if prior != stored.prior:
            found.append(f"prior: stored {stored.prior}, given {prior}")
    if history is not None:
        agent = agent if agent is not None else rebuild_agent(stored.agent, stored.settings, None)
        if log_digest(read_log(history, agent, states=states, actions=actions)) != stored.history:
            found.append("history: not the log it began with; observe_many adds observations")
    if found:
        raise JournalError(
            f"{folder.path}: holds another agent than asked for ({'; '.join(found)}); open it without config to go on "
            "with what is there, or choose another folder"
        )


def _present(folder: Folder, stored: AgentDescription) -> dict[str, Any]:
    """The settings in force, changes included, as far as a snapshot knows."""
    for _, path in folder.snapshots()[:1]:
        with contextlib.suppress(GainfulError):
            settings: dict[str, Any] = read_archive(SNAPSHOT_FORMAT, path)[0]["agent"]["settings"]
            return settings
    return stored.settings


def _begin(folder: Folder, config: Any, history: Any, states: Any, actions: Any, options: dict[str, Any]) -> None:
    """Make the files of a new agent; agent.json, the last, makes them one."""
    for number, path in folder.segments():
        if path.stat().st_size > SEGMENT_HEADER_SIZE:
            raise JournalError(
                f"{folder.path}: segment {number} has records, but {DESCRIPTION_FILE} is missing; gainful recover "
                f"{folder.path} OUT makes it again from a snapshot"
            )
    if any(sequence > 0 for sequence, _ in folder.snapshots()):
        raise JournalError(
            f"{folder.path}: has snapshots, but {DESCRIPTION_FILE} is missing",
            name="path",
            found=str(folder.path),
            hint=f"gainful recover {folder.path} OUT restores it",
        )
    agent, prior = make_agent(config)
    if class_named(type(agent).__name__) is not type(agent):
        raise InvalidArgumentError(f"{type(agent)!r} is not the class of gainful with this name")
    rows = None if history is None else read_log(history, agent, states=states, actions=actions)
    chosen = {"keep_history": True, "remember": DEFAULT_REMEMBER, "max_pending": DEFAULT_MAX_PENDING}
    chosen |= {name: value for name, value in options.items() if value is not None}
    description = AgentDescription(
        identity=secrets.token_hex(16), agent=type(agent).__name__, settings=plain_settings(agent.settings()),
        dim=agent.dim,
        initial={"t": agent.core.t, "digest": statistics_digest(agent)}, prior=prior, options=chosen,
        history="" if rows is None else log_digest(rows),
    )  # fmt: skip
    with _told(folder.path):
        for old in [
            *folder.unfinished_files(),
            *(p for _, p in folder.segments()),
            *(p for _, p in folder.snapshots()),
        ]:
            old.unlink()
        write_archive(SNAPSHOT_FORMAT, folder.snapshot(0), *first_state(agent, description))
        data = segment_header(description.identity)
        if rows is not None:
            data += _history_records(RecordLayout(description.salt, description.dim), rows)
        write_file(folder.segment(1), data)
        write_file(folder.description_file, json.dumps(description.to_json(), indent=2, allow_nan=False).encode())


def _history_records(layout: RecordLayout, rows: TransitionRows) -> bytes:
    now, parts = time.time_ns(), []
    together = min(MAX_HISTORY_ROWS, layout.most_rows)
    for i, at in enumerate(range(0, len(rows.actions), together)):
        some = slice(at, at + together)
        part = TransitionRows(rows.states[some], rows.actions[some], rows.rewards[some], rows.next_states[some])
        parts.append(layout.pack(int(RecordKind.BATCH), FROM_HISTORY, i + 1, now, layout.pack_rows(part)))
    return b"".join(parts)


def first_state(agent: Any, description: AgentDescription) -> tuple[dict[str, Any], dict[str, Any]]:
    """The snapshot of an agent that has not lived in a folder yet."""
    header, arrays = agent_state(agent)
    ledger = DecisionLedger(RecordLayout(description.salt, description.dim), 1, 1).to_arrays()
    live = {"decided": [-1, 0], "renew": False, "late_plans": 0, "late_outcomes": 0, "changes": []}
    return (
        {
            "sequence": 0, "description": description.to_json(), "live": live,
            "agent": {**header, "settings": plain_settings(header["settings"])},
        },
        {f"agent_{name}": np.array(array) for name, array in arrays.items()}
        | {f"memory_{name}": array for name, array in ledger.items()},
    )  # fmt: skip


@contextlib.contextmanager
def _told(path: Path, done: str = "begun") -> Iterator[None]:
    """The system's errors in words that say what to do."""
    try:
        yield
    except InvalidArgumentError as error:  # of write_archive, and of records too large
        raise JournalError(f"{path}: the agent cannot be {done}: {error}") from error
    except OSError as error:
        raise JournalError(
            f"{path}: the agent cannot be {done}: {error.strerror or error}; check the name, space and permissions"
        ) from error


def _locked(folder: Folder) -> tuple[FolderLock, bool]:
    """The lock of the folder, and whether the folder was made here."""
    for attempt in itertools.count():
        made_here = False
        with _told(folder.path):
            try:
                folder.path.mkdir(parents=True)
                made_here = True
            except FileExistsError:
                pass
        try:
            return lock_folder(folder.path), made_here
        except JournalError as error:
            if (
                isinstance(error.__cause__, FileNotFoundError) and attempt < MAX_LOCK_ATTEMPTS
            ):  # withdrawn by another process
                continue
            if made_here:
                with contextlib.suppress(OSError):
                    folder.path.rmdir()  # only if it is empty
            raise
    raise AssertionError  # for the type checker


def _withdraw(folder: Folder) -> None:
    """Leave nothing of a folder that was made for an agent that could not be begun; its lock is held.

    The lock goes last: from then on the folder may be another process's, and only an empty one is removed.
    """
    with contextlib.suppress(OSError):
        if not folder.foreign_files():
            for file in folder.path.iterdir():
                if file.name != LOCK_FILE:
                    file.unlink()
            (folder.path / LOCK_FILE).unlink()
            folder.path.rmdir()
