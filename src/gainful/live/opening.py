"""Opening a durable agent: one that a folder holds already, or a new one."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from gainful.agents.rebuilding import complete_settings, module_of
from gainful.archive import read_archive
from gainful.arguments import choice, finite, flag, whole
from gainful.atomic_files import make_folder, sync_folder
from gainful.errors import GainfulError, InvalidArgumentError, JournalError
from gainful.live.agent_config import (
    allow_class,
    import_refusals,
    make_agent,
    plain_settings,
    rebuild_agent,
    setting_differences,
    statistics_digest,
)
from gainful.live.creation import AgentRequest, create_agent, system_errors
from gainful.live.durable_agent import DurableAgent
from gainful.live.folder import AgentDescription, Folder, lock_folder
from gainful.live.logs import log_digest
from gainful.live.snapshots import SNAPSHOT_FORMAT
from gainful.live.state_machine import Planning
from gainful.locks import LOCK_FILE, FolderLock

MAX_LOCK_ATTEMPTS = 100
"""How often a folder is made again that another process withdraws meanwhile."""


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
    allow: Sequence[str] = (),
) -> DurableAgent:
    """Open the durable agent in a folder, and continue where it stopped; create it if the folder is new.

    Parameters
    ----------
    path : str or Path
        The folder of the agent.
    config : dict or agent, optional
        What the agent is; needed for a new one. A dictionary has the agent's name and its arguments, such as
        ``{"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}``; "my_module:MyAgent" is a class of your
        own. With an MDP as "prior" and a
        "prior_weight" n, the agent begins as if every pair had been observed n times, as the model has it; no theorem
        covers that. "state_labels" and "action_labels" are lists of names, and "cost_min" and "cost_max" take the place
        of reward_max and reward_min if your numbers are costs. An agent object, such as `gf.fit_log` or
        `gf.KLSCALPlus.for_mdp` returns, is taken as it is. For a folder that holds an agent,
        `config` must be the one it was made with, or its present settings.
    history : optional
        A log of transitions, as for `gf.fit_log`, that a new agent observes first. Its rows are in the journal.
    states, actions : list or mapping, optional
        The numbers of the labels in `history`, as for `gf.fit_log`; by default the agent's own labels.
    fsync : "record", "off" or float
        What a power cut can lose. "record" makes every record durable before a call returns; a number does so at
        intervals of that many milliseconds; "off" leaves it to the operating system. A killed process loses nothing in
        any case.
    planning : "auto", "inline" or "background"
        "inline" plans inside `act`. "background" makes decisions by the present plan while the next one is made in a
        thread. "auto" lets a decision wait 4 ms for a plan and then uses the present one. The journal records
        which plan was adopted when.
    snapshot_every : int, optional
        Records between snapshots. By default a snapshot is due when the journal since the last one is longer than it,
        and longer than 1 MB.
    keep_history : bool, optional
        Whether the part of the journal that a snapshot covers is compressed and kept (the default), or deleted. Fixed
        when the folder is made.
    remember : int, optional
        How many outcomes and request ids are known for repeated calls, 4096 by default. Fixed when the folder is made.
    max_pending : int, optional
        How many decisions may wait for their outcomes before the oldest is abandoned, 10,000 by default. Fixed when the
        folder is made.
    allow : sequence of str
        Modules that may be imported if the class of the agent in the folder is defined there, such as
        ``["my_module"]``. A class that is imported already needs no permission; no other file causes an import.

    Returns
    -------
    DurableAgent
        The agent, open for writing until `close`, or the end of a `with` block.

    Raises
    ------
    AgentInUseError
        If another process, or another object, has it open.
    DamagedJournalError
        If the journal is damaged before its end; `gf.live.recover` saves what is intact.
    JournalError
        If the folder cannot be read or written, holds something else, or an agent that `config` does not describe.
    InvalidArgumentError
        If an argument is not accepted.

    Examples
    --------
    >>> import tempfile
    >>> config = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with open_agent(f"{place}/pump", config) as agent:
    ...         receipt = agent.observe(state=0, action=1, reward=0.5, next_state=1)
    ...     with open_agent(f"{place}/pump") as agent:
    ...         agent.t
    1
    """
    if not isinstance(path, (str, Path)):
        raise InvalidArgumentError("path", path, "the name of a folder")
    seconds = _sync_seconds(fsync)
    choice("planning", planning, ("auto", "inline", "background"))
    every = None if snapshot_every is None else whole("snapshot_every", snapshot_every, 1)
    options = {
        "keep_history": None if keep_history is None else flag("keep_history", keep_history),
        "remember": None if remember is None else whole("remember", remember, 1, 10**7),
        "max_pending": None if max_pending is None else whole("max_pending", max_pending, 1, 10**7),
    }
    wanted = AgentRequest(config, history, states, actions, options)
    folder = Folder(path)
    with system_errors(folder.path, "opened"):
        _check_folder(folder, config)
    lock, made_here = _locked(folder)
    try:
        if folder.description_file.exists():
            with import_refusals(folder.path):
                allow_class(folder.read_description(), allow)
            _check_same_agent(folder, wanted)
        else:
            create_agent(folder, wanted)
            with system_errors(folder.path, "created"):
                sync_folder(folder.path.resolve().parent)
        with system_errors(folder.path, "opened"):
            agent = DurableAgent(folder, lock, sync_seconds=seconds, planning=planning, snapshot_every=every)
    except BaseException:
        if made_here and not folder.description_file.exists():
            _withdraw(folder)
        lock.release()
        raise
    if planning == "background" and not agent.can_plan_in_background:
        agent.close()
        raise InvalidArgumentError(
            "planning",
            planning,
            "'inline' or 'auto'",
            problem=f"planning is 'background', but {agent.kind} makes no plans, or does more in an episode than plan",
        )
    return agent


def _sync_seconds(fsync: Any) -> float | None:
    """The seconds between two syncs: 0 for every record, None for never."""
    if fsync == "record":
        return 0.0
    if fsync == "off":
        return None
    if not finite(fsync) or not 1.0 <= fsync <= 3_600_000.0:
        raise InvalidArgumentError("fsync", fsync, "'record', 'off' or a number of milliseconds, from 1 to 3,600,000")
    return float(fsync) / 1000.0


def _check_folder(folder: Folder, config: Any) -> None:
    """Raise an error if the folder holds something else, or is empty and there is no config to make an agent."""
    path = folder.path
    if not path.exists():
        if config is None:
            raise JournalError(
                f"{path}: there is no durable agent", name="path", found=str(path), hint="give a config to create one"
            )
        return
    if not path.is_dir():
        raise JournalError(
            f"{path}: is a file", name="path", found=str(path), expected="a folder", hint="choose another name"
        )
    try:
        foreign = [] if folder.description_file.exists() else folder.foreign_files()
    except OSError as error:
        raise JournalError(
            f"{path}: cannot be read: {error.strerror or error}",
            name="path",
            found=str(path),
            hint="check permissions",
        ) from error
    if foreign:
        raise JournalError(
            f"{path}: holds other files ({', '.join(foreign[:3])}) and no durable agent",
            name="path",
            found=str(path),
            hint="choose a folder of its own",
        )
    if config is None and not folder.description_file.exists():
        folder.read_description()  # raises


def _check_same_agent(folder: Folder, wanted: AgentRequest) -> None:
    """Raise a JournalError if the folder holds another agent than the one asked for."""
    stored = folder.read_description()
    found = [
        f"{name}: stored {stored.options[name]!r}, given {value!r}"
        for name, value in wanted.options.items()
        if value is not None and value != stored.options[name]
    ]
    agent = None
    if wanted.config is not None:
        agent, prior = make_agent(wanted.config)
        found += _agent_differences(folder, stored, agent)
        if prior != stored.prior:
            found.append(f"prior: stored {stored.prior}, given {prior}")
    if wanted.history is not None:
        agent = agent if agent is not None else rebuild_agent(vars(stored), None)
        if log_digest(wanted.read_history(agent)) != stored.history:
            found.append("history: not the log it began with; observe_many adds observations")
    if found:
        raise JournalError(
            f"{folder.path}: holds another agent than the one asked for ({'; '.join(found)})",
            name="config",
            found=wanted.config,
            hint="open it without config to continue with what is there, or choose another folder",
        )


def _agent_differences(folder: Folder, stored: AgentDescription, agent: Any) -> list[str]:
    """How an agent differs from the one that a folder was made for, in words."""
    if (type(agent).__name__, module_of(type(agent))) != (stored.agent, stored.module):
        given_class = module_of(type(agent)) or type(agent).__name__
        return [f"agent: stored {stored.module or stored.agent}, given {given_class}"]
    if agent.labels is not None and agent.labels.to_json() != stored.labels:
        return ["labels or sign: stored " + ("none, given some" if stored.labels is None else "others")]
    given, known = plain_settings(agent.settings()), stored.initial
    found = setting_differences(complete_settings(type(agent), stored.settings), given)
    if found:
        present = complete_settings(type(agent), _present_settings(folder, stored))
        return found if setting_differences(present, given) else []
    if agent.core.t != known["t"] or statistics_digest(agent) != known["digest"]:
        others = " others" if agent.core.t == known["t"] else ""
        return [f"what it knew at first: stored {known['t']} observations, given {agent.core.t}{others}"]
    return []


def _present_settings(folder: Folder, stored: AgentDescription) -> dict[str, Any]:
    """The settings in force, changes included, as far as the newest snapshot knows."""
    for _, path in folder.snapshots()[:1]:
        with contextlib.suppress(GainfulError):
            settings: dict[str, Any] = read_archive(SNAPSHOT_FORMAT, path)[0]["agent"]["settings"]
            return settings
    return stored.settings


def _locked(folder: Folder) -> tuple[FolderLock, bool]:
    """The lock of the folder, and whether the folder was made here."""
    for attempt in itertools.count():
        made_here = False
        with system_errors(folder.path, "created"):
            try:
                make_folder(folder.path)
                made_here = True
            except FileExistsError:
                pass
        try:
            return lock_folder(folder.path), made_here
        except JournalError as error:
            withdrawn = isinstance(error.__cause__, FileNotFoundError)  # by another process, since it was made
            if withdrawn and attempt < MAX_LOCK_ATTEMPTS:
                continue
            if made_here:
                with contextlib.suppress(OSError):
                    folder.path.rmdir()  # only if it is empty
            raise
    raise AssertionError  # for the type checker


def _withdraw(folder: Folder) -> None:
    """Remove a folder that was made for an agent that could not be created; its lock is held.

    The lock goes last: from then on the folder may belong to another process, and only an empty one is removed.
    """
    with contextlib.suppress(OSError):
        if not folder.foreign_files():
            for file in folder.path.iterdir():
                if file.name != LOCK_FILE:
                    file.unlink()
            (folder.path / LOCK_FILE).unlink()
            folder.path.rmdir()
