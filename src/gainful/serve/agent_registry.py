"""The agents of a service and their files.

DIR/lock                        held by the one service of this folder
DIR/admin.key                   the admin key, readable by its owner only
DIR/agents/ID/card.json         display name, hash of the key, when it was created and by which request
DIR/agents/ID/journal/          the durable agent (`gainful.live`)
DIR/archive/ID-TIME/            agents that were taken out of service, complete

An agent's record (card.json) is written first, then the agent is created. A record without an agent was never
acknowledged, and the request that wrote it can be sent again. An agent without a record, whose folder was put there by
hand, is served to the admin key. Folders are created for their owner only. Nothing is removed except what an agent that
was never created leaves behind, file by file.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from gainful.atomic_files import make_folder, sync_folder, write_file
from gainful.checked_json import from_checked_json, to_checked_json
from gainful.errors import GainfulError, InvalidArgumentError, JournalError
from gainful.live import DurableAgent, is_live, open_agent
from gainful.live.end_marker import END_FILE
from gainful.live.folder import DESCRIPTION_FILE, SEGMENT_HEADER_SIZE
from gainful.locks import LOCK_FILE, FolderLock
from gainful.serve.agent_slot import AgentSlot, OpenOptions
from gainful.serve.allowed_classes import check_class_allowed
from gainful.serve.keys import Keyring, derived_key, hashed, new_key
from gainful.serve.limits import Limits, check_size
from gainful.serve.models import ID_PATTERN, NewAgent
from gainful.serve.problem_details import ProblemError
from gainful.serve.worker_pool import WorkerPool

RECORD_FILE = "card.json"
RECORDS_WITHOUT_CHECKSUM, RECORD_VERSION = "1", "2"
"""Records of the first version may have no checksum; those of the second say their version, and must have one."""
JOURNAL_FOLDER = "journal"
CONSTRUCTION_ERRORS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError)
"""What a class may raise when it is given arguments that it never expected."""
CHECK_THE_DISK = "check the disk and its permissions"


@dataclass
class AgentRecord:
    """What the service stores about an agent, next to the agent itself."""

    id: str
    name: str = ""
    key: str = ""
    """SHA-256 of the agent's key; if empty, only the admin key gives access."""
    created: str = ""
    request: str = ""
    """The id of the request that created it."""
    asked: str = ""
    """A digest of the contents of that request."""
    nonce: str = ""


class AgentRegistry:
    """All agents of a folder, each in its slot.

    Parameters
    ----------
    folder : Path
        The folder of the service, with its subfolder `agents`.
    admin_key : str
        The key that gives access to all agents.
    options : OpenOptions
        How agents are opened.
    limits : Limits
        How large and how many they may be.
    lock : FolderLock
        The lock of the folder; `close` releases it.
    """

    def __init__(self, folder: Path, admin_key: str, options: OpenOptions, limits: Limits, lock: FolderLock) -> None:
        self.folder, self._options, self._limits, self._lock = folder, options, limits, lock
        self.keys = Keyring(admin_key)
        self._workers = WorkerPool(options.fsync if isinstance(options.fsync, float) else None)
        self.slots: dict[str, AgentSlot] = {}
        self.records: dict[str, AgentRecord] = {}
        self._requests: dict[str, str] = {}
        self._requests_archived: dict[str, tuple[AgentRecord, str]] = {}
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}
        self._making: set[str] = set()
        self._archiving: set[str] = set()
        self.warnings: list[str] = []
        for agent_folder in sorted((folder / "agents").iterdir()):
            if agent_folder.is_dir() and not agent_folder.name.startswith("."):
                self._load(agent_folder)
        if (folder / "archive").is_dir():
            for archived in sorted((folder / "archive").iterdir()):
                self._remember_archived(archived)

    def _remember_archived(self, folder: Path) -> None:
        """Remember the request that created an agent in the archive, so that it creates no second one."""
        try:
            record = _parse_record((folder / RECORD_FILE).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return
        except (OSError, ValueError, TypeError) as error:
            self.warnings.append(
                f"{folder / RECORD_FILE}: cannot be read ({error}); the request that created this agent, sent again, "
                "creates another"
            )
            return
        if record.request:
            self._requests_archived[record.request] = record, folder.name

    def _load(self, folder: Path) -> None:
        """Serve the agent in this folder, or say why it is not served."""
        if not re.fullmatch(ID_PATTERN, folder.name):
            self.warnings.append(f"{folder}: not served, because its name is not a valid id ({ID_PATTERN})")
            return
        try:
            record = _read_record(folder)
        except (OSError, ValueError, TypeError) as error:
            self.warnings.append(
                f"{folder / RECORD_FILE}: cannot be read ({error}); only the admin key gives access to this agent"
            )
            record = AgentRecord(folder.name)
        journal = folder / JOURNAL_FOLDER
        if is_live(journal):
            self._add(record)
        if is_live(folder):
            self.warnings.append(f"{folder}: not served, because it is itself a durable agent; move it to {journal}")
        elif folder.name not in self.slots and (found := _foreign_file(folder)):
            if found.startswith(f"{JOURNAL_FOLDER}/"):
                self.warnings.append(f"{journal}: not served, because agent.json is missing; run gainful recover")
            else:
                self.warnings.append(
                    f"{folder}: not served, because it contains {found} but no agent; move that elsewhere"
                )

    def _add(self, record: AgentRecord) -> AgentSlot:
        journal = self._agent_folder(record.id) / JOURNAL_FOLDER
        slot = AgentSlot(record.id, journal, self._options, self._workers, self._limits.queue)
        self.slots[record.id], self.records[record.id] = slot, record
        self.keys.put(record.id, record.key)
        if record.request:
            self._requests[record.request] = record.id
        return slot

    def _agent_folder(self, agent_id: str) -> Path:
        return self.folder / "agents" / agent_id

    def slot(self, agent_id: str) -> AgentSlot:
        """The slot of an agent; 404 if there is no such agent."""
        self._record(agent_id)
        return self.slots[agent_id]

    def _record(self, agent_id: str) -> AgentRecord:
        record = self.records.get(agent_id)
        if record is None:
            raise ProblemError(
                404, f"there is no agent {agent_id[:80]!r}", where="path", hint="GET /agents lists the agents"
            )
        return record

    def open_all(self) -> None:
        """Start opening every agent; requests for an agent wait until it is open."""
        for slot in self.slots.values():
            slot.call(lambda _: None).add_done_callback(lambda done: done.exception())

    async def close(self) -> None:
        """Answer the requests in the queues, and close all agents."""
        await asyncio.gather(*(slot.close() for slot in self.slots.values()))
        await asyncio.get_running_loop().run_in_executor(None, self._workers.shutdown)
        self._lock.release()

    @contextlib.asynccontextmanager
    async def _one_at_a_time(self, name: str) -> AsyncIterator[None]:
        """One lock for each agent and each request id: an agent that takes long delays no other."""
        lock, users = self._locks.get(name, (asyncio.Lock(), 0))
        self._locks[name] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(name)
            if users > 1:
                self._locks[name] = lock, users - 1

    # ------------------------------------------------------------------ creating agents

    async def make(self, wanted: NewAgent) -> tuple[AgentRecord, str]:
        """Create an agent and its key; a repeated request gets the first answer."""
        digest = hashlib.sha256(wanted.model_dump_json(exclude={"request_id"}).encode()).hexdigest()
        agent_id = wanted.id or f"agent-{secrets.token_hex(4)}"
        request = wanted.request_id
        async with self._one_at_a_time(f"request {request}") if request else contextlib.nullcontext():
            known = self._requests.get(request or "")
            if known is not None:
                return self._repeat(self.records[known], digest)
            if request in self._requests_archived:
                raise _already_archived(*self._requests_archived[request], digest)
            self._check_room_for(agent_id)
            config = wanted.config.given()
            check_size(config, self._limits)
            nonce = secrets.token_bytes(32) if request else b""
            key = derived_key(self.keys.admin_key, nonce) if nonce else new_key()
            record = AgentRecord(
                id=agent_id,
                name=wanted.name,
                key=hashed(key),
                created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                request=request or "",
                asked=digest,
                nonce=nonce.hex(),
            )
            self._making.add(agent_id)
            try:
                loop = asyncio.get_running_loop()
                agent = await loop.run_in_executor(self._workers.administration, self._create, record, config, wanted)
                self._add(record).put_agent(agent)
            finally:
                self._making.discard(agent_id)
            return record, key

    def _check_room_for(self, agent_id: str) -> None:
        if agent_id in self.slots or agent_id in self._making:
            raise ProblemError(
                409,
                f"there is already an agent {agent_id!r}",
                where="body.id",
                found=agent_id,
                hint="choose another id, or leave it out",
            )
        if len(self.slots) + len(self._making) >= self._limits.agents:
            raise ProblemError(
                507,
                f"the service already holds {len(self.slots)} agents",
                where="service",
                expected=f"at most {self._limits.agents}",
                hint="archive an agent with DELETE",
            )

    def _repeat(self, record: AgentRecord, digest: str) -> tuple[AgentRecord, str]:
        """The first answer to the request that created this agent."""
        if record.asked != digest:
            raise _other_contents(record)
        key = derived_key(self.keys.admin_key, bytes.fromhex(record.nonce))
        if hashed(key) != record.key:
            raise ProblemError(
                409,
                f"this request created agent {record.id!r}, but its key or the admin key has changed since",
                where="body.request_id",
                hint=f"POST /agents/{record.id}/key gives it a new key",
            )
        return record, key

    def _create(self, record: AgentRecord, config: dict[str, Any], wanted: NewAgent) -> DurableAgent:
        check_class_allowed(str(config.get("agent")), self._options.allow)
        folder = self._agent_folder(record.id)
        self._make_folder(folder, record.id)
        try:
            _write_record(folder, record)
            sync_folder(folder.parent)
            return open_agent(
                folder / JOURNAL_FOLDER,
                config,
                fsync=self._options.agent_fsync,
                planning=self._options.planning,
                allow=self._options.allow,
                remember=wanted.remember,
                max_pending=max(10_000, self._limits.pending + 1),
                keep_history=wanted.keep_history,
            )
        except BaseException as error:
            with contextlib.suppress(OSError):
                _remove_unfinished(folder, created=True)
            if isinstance(error, OSError):
                raise JournalError(
                    f"the agent cannot be created: {error.strerror or error}", name=record.id, hint=CHECK_THE_DISK
                ) from error
            if isinstance(error, CONSTRUCTION_ERRORS) and not isinstance(error, GainfulError):
                raise InvalidArgumentError(
                    "config", problem=f"config: such an agent cannot be created: {error}"
                ) from error
            raise

    def _make_folder(self, folder: Path, agent_id: str) -> None:
        """An empty folder for a new agent; 409 if there is one that holds anything of value."""
        try:
            found = _foreign_file(folder)
            if not found:
                _remove_unfinished(folder)  # by a request that was never acknowledged
                folder.mkdir(mode=0o700)
        except OSError as error:
            if not os.path.lexists(folder):
                raise JournalError(
                    f"the folder cannot be created: {error.strerror or error}", name=agent_id, hint=CHECK_THE_DISK
                ) from error
            found = error.strerror or str(error)
        if found:
            raise ProblemError(
                409,
                f"the folder of {agent_id!r} is not empty",
                where="body.id",
                found=found,
                expected="nothing, or what an agent that was never created leaves behind",
                hint="choose another id; for the operator of the service: a durable agent belongs in "
                "agents/ID/journal, and gainful recover saves what is left of one",
            )

    # ------------------------------------------------------------------ keys and the archive

    async def new_key(self, agent_id: str) -> str:
        """Give an agent a new key; the previous key no longer works. This never waits for the agent."""
        if agent_id in self._archiving:
            raise ProblemError(
                409,
                f"agent {agent_id!r} is being archived, and its key no longer works",
                where="path",
                hint="GET /agents lists the agents",
            )
        async with self._one_at_a_time(f"agent {agent_id}"):
            key = new_key()
            record = replace(self._record(agent_id), key=hashed(key))
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._workers.files, _write_record, self._agent_folder(agent_id), record)
            self.records[agent_id] = record
            self.keys.put(agent_id, record.key)
            return key

    async def archive(self, agent_id: str) -> str:
        """Close an agent and move its folder to the archive; nothing is deleted. Returns its name there.

        Its key stops working at once, and requests in its queue are rejected; then this waits for what the agent is
        doing.
        """
        async with self._one_at_a_time(f"agent {agent_id}"):
            record = self._record(agent_id)
            self._archiving.add(agent_id)
            try:
                self.keys.drop(agent_id)
                await self.slots[agent_id].close(answer=False)
                name = await self._archived(record)
            finally:
                self._archiving.discard(agent_id)
            return name

    async def _archived(self, record: AgentRecord) -> str:
        """Move the folder of an agent that was closed; it is served again if that is impossible."""
        try:
            loop = asyncio.get_running_loop()
            name = await loop.run_in_executor(self._workers.files, self._move_to_archive, record.id)
        except BaseException:
            self._add(record)
            raise
        del self.slots[record.id], self.records[record.id]
        if self._requests.pop(record.request, None) is not None:
            self._requests_archived[record.request] = record, name
        return name

    def _move_to_archive(self, agent_id: str) -> str:
        archive = self.folder / "archive"
        name = f"{agent_id}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"
        try:
            with contextlib.suppress(FileExistsError):
                make_folder(archive, mode=0o700)
            os.replace(self._agent_folder(agent_id), archive / name)
            for changed in (archive, self.folder / "agents"):
                sync_folder(changed)
        except OSError as error:
            raise JournalError(
                f"the folder cannot be moved to the archive: {error.strerror or error}",
                name=agent_id,
                hint=CHECK_THE_DISK,
            ) from error
        return name


def open_registry(
    folder: Path, admin_key: str, options: OpenOptions, limits: Limits, lock: FolderLock
) -> AgentRegistry:
    """Open the agents of a folder whose lock is held."""
    with contextlib.suppress(FileExistsError):
        make_folder(folder / "agents", mode=0o700)
    return AgentRegistry(folder, admin_key, options, limits, lock)


def _other_contents(record: AgentRecord) -> ProblemError:
    return ProblemError(
        409,
        f"request_id {record.request!r} was already used to create agent {record.id!r}, with other contents",
        where="body.request_id",
        hint="give every request its own id",
    )


def _already_archived(record: AgentRecord, name: str, digest: str) -> ProblemError:
    """The answer to a request whose agent was created and archived: nothing happens twice."""
    if record.asked != digest:
        return _other_contents(record)
    return ProblemError(
        409,
        f"this request created agent {record.id!r}, which was archived as {name}",
        where="body.request_id",
        hint="to create another agent, send the request with another request_id",
    )


# ---------------------------------------------------------------------- files

_RECORD, _DESCRIPTION = re.escape(RECORD_FILE), re.escape(DESCRIPTION_FILE)
_FIRST_FILES = rf"snapshot-0\.npz|journal-000001\.log|{END_FILE}"
_TEMPORARY = r"\.[0-9a-f]{12}\.tmp"
_UNFINISHED_JOURNAL = re.compile(rf"{_FIRST_FILES}|{LOCK_FILE}|\.({_FIRST_FILES}|{_DESCRIPTION}){_TEMPORARY}")
_RECORD_FILES = re.compile(rf"{_RECORD}|\.{_RECORD}{_TEMPORARY}")


def _foreign_file(folder: Path) -> str:
    """The first file in an agent's folder that someone may still want; empty if there is none.

    Only the files of an agent that was never created may be lost: its record, and the journal that was started after
    the record, with a snapshot of nothing and a segment without entries.
    """
    if not os.path.lexists(folder):
        return ""
    if folder.is_symlink() or not folder.is_dir():
        return folder.name
    for found in sorted(folder.iterdir()):
        if found.name != JOURNAL_FOLDER and not (_RECORD_FILES.fullmatch(found.name) and found.is_file()):
            return found.name
    journal = folder / JOURNAL_FOLDER
    if not os.path.lexists(journal):
        return ""
    if journal.is_symlink() or not journal.is_dir():
        return JOURNAL_FOLDER
    for found in sorted(journal.iterdir()):
        unfinished = _UNFINISHED_JOURNAL.fullmatch(found.name) and found.is_file() and not found.is_symlink()
        if not unfinished or (found.suffix == ".log" and found.stat().st_size > SEGMENT_HEADER_SIZE):
            return f"{JOURNAL_FOLDER}/{found.name}"
    with contextlib.suppress(OSError, ValueError, TypeError):
        if _read_record(folder).created:
            return ""
    return f"{JOURNAL_FOLDER}/ without {RECORD_FILE}"


def _remove_unfinished(folder: Path, *, created: bool = False) -> None:
    """Remove an agent that was never acknowledged, by the names of its files; OSError if there are others."""
    journal_files = re.compile(f"{_UNFINISHED_JOURNAL.pattern}|{_DESCRIPTION}") if created else _UNFINISHED_JOURNAL
    for place, names in ((folder / JOURNAL_FOLDER, journal_files), (folder, _RECORD_FILES)):
        if place.is_dir():
            for found in list(place.iterdir()):
                if names.fullmatch(found.name):
                    found.unlink()
            place.rmdir()


def _read_record(folder: Path) -> AgentRecord:
    try:
        content = (folder / RECORD_FILE).read_bytes()
    except FileNotFoundError:
        return AgentRecord(folder.name)
    record = _parse_record(content)
    if record.id != folder.name:
        raise ValueError("it belongs to another agent")
    return record


def _parse_record(content: bytes) -> AgentRecord:
    members, checked = from_checked_json(content)
    version = members.pop("version", RECORDS_WITHOUT_CHECKSUM)
    if version != RECORDS_WITHOUT_CHECKSUM and not checked:
        raise ValueError("its checksum is missing")
    if version not in (RECORDS_WITHOUT_CHECKSUM, RECORD_VERSION):
        raise ValueError(f"it is of version {version!r}, this gainful reads up to {RECORD_VERSION}")
    known = {field.name for field in fields(AgentRecord)}
    if not set(members) <= known or "id" not in members or not all(isinstance(x, str) for x in members.values()):
        raise ValueError("it is not the record of an agent")
    return AgentRecord(**members)


def _write_record(folder: Path, record: AgentRecord) -> None:
    try:
        write_file(folder / RECORD_FILE, to_checked_json({"version": RECORD_VERSION, **asdict(record)}), mode=0o600)
    except OSError as error:
        raise JournalError(
            f"{RECORD_FILE} cannot be written: {error.strerror or error}", name=record.id, hint=CHECK_THE_DISK
        ) from error
