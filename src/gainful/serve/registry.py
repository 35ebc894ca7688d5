"""The agents of a service and where they are kept.

DIR/lock                        held by the one service
DIR/admin.key                   the admin key, readable by its owner only
DIR/agents/ID/card.json         name, hash of the key, when it was made and by which request
DIR/agents/ID/journal/          the durable agent (`gainful.live`)
DIR/archive/ID-TIME/            agents that were taken out of service, whole

The card is written first, then the agent is begun. A card without an agent was never acknowledged, and the request that
made it can be sent again. A folder put there by hand, an agent without a card, is served to the admin key. Folders are
made for their owner only. Nothing is removed but what an agent that was never begun leaves, file by file.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import secrets
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gainful.errors import GainfulError, InvalidArgumentError, JournalError
from gainful.files import sync_folder, write_file
from gainful.live import DurableAgent, is_live, open_agent
from gainful.live.folder import DESCRIPTION, HEADER_SIZE
from gainful.locks import LOCK_FILE, FolderLock
from gainful.serve.crew import Crew
from gainful.serve.keys import Keyring, derived_key, hashed, new_key
from gainful.serve.limits import Limits, check_size
from gainful.serve.models import ID, NewAgent
from gainful.serve.refusals import RefusedError
from gainful.serve.seat import Policy, Seat

CARD, JOURNAL = "card.json", "journal"
IMPOSSIBLE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, MemoryError)
"""What a class may raise that is given arguments it never expected."""


@dataclass
class Card:
    """What the service keeps about an agent beside the agent itself."""

    id: str
    name: str = ""
    key: str = ""
    """SHA-256 of its key; empty: only the admin key opens it."""
    created: str = ""
    request: str = ""
    """The id of the request that made it."""
    asked: str = ""
    """A digest of what that request asked for."""
    nonce: str = ""


class Registry:
    """All agents of a folder, each in its seat."""

    def __init__(self, folder: Path, admin_key: str, policy: Policy, limits: Limits, lock: FolderLock) -> None:
        self.folder, self._policy, self._limits, self._lock = folder, policy, limits, lock
        self.keys = Keyring(admin_key)
        self._crew = Crew(policy.fsync if isinstance(policy.fsync, float) else None)
        self.seats: dict[str, Seat] = {}
        self.cards: dict[str, Card] = {}
        self._requests: dict[str, str] = {}
        self._making = asyncio.Lock()
        self.problems: list[str] = []
        for place in sorted((folder / "agents").iterdir()):
            if place.is_dir() and not place.name.startswith("."):
                self._admit(place)

    def _admit(self, place: Path) -> None:
        if not re.fullmatch(ID, place.name):
            self.problems.append(f"{place}: not served: the name is no id ({ID})")
            return
        try:
            card = _read(place)
        except (OSError, ValueError, TypeError) as error:
            self.problems.append(f"{place / CARD}: cannot be read ({error}); only the admin key opens this agent")
            card = Card(place.name)
        if is_live(place / JOURNAL):
            self._seat(card)
        if is_live(place):
            self.problems.append(f"{place}: not served: it is a durable agent itself; move it to {place / JOURNAL}")
        elif place.name not in self.seats and (found := _remains(place)):
            if found.startswith(f"{JOURNAL}/"):
                self.problems.append(f"{place / JOURNAL}: not served: agent.json is missing; run gainful recover")
            else:
                self.problems.append(f"{place}: not served: it holds {found} and no agent; move that elsewhere")

    def _seat(self, card: Card) -> Seat:
        seat = Seat(card.id, self._place(card.id) / JOURNAL, self._policy, self._crew, self._limits.queue)
        self.seats[card.id], self.cards[card.id] = seat, card
        self.keys.put(card.id, card.key)
        if card.request:
            self._requests[card.request] = card.id
        return seat

    def _place(self, agent_id: str) -> Path:
        return self.folder / "agents" / agent_id

    def open_all(self) -> None:
        """Begin to open every agent; requests for one wait until it is."""
        for seat in self.seats.values():
            seat.call(lambda _: None).add_done_callback(lambda done: done.exception())

    async def close(self) -> None:
        """Answer what waits, and close all agents."""
        await asyncio.gather(*(seat.close() for seat in self.seats.values()))
        self._crew.dismiss()
        self._lock.release()

    # ------------------------------------------------------------------ making

    async def make(self, wanted: NewAgent) -> tuple[Card, str]:
        """A new agent and its key; for a request made before, the first answer."""
        asked = hashlib.sha256(wanted.model_dump_json(exclude={"request_id"}).encode()).hexdigest()
        async with self._making:
            known = self._requests.get(wanted.request_id or "")
            if known is not None:
                return self._again(self.cards[known], asked)
            agent_id = wanted.id or f"agent-{secrets.token_hex(4)}"
            if agent_id in self.seats:
                raise RefusedError(
                    409, f"there is an agent {agent_id!r} already", where="body.id", found=agent_id,
                    then="choose another id, or leave it out",
                )  # fmt: skip
            if len(self.seats) >= self._limits.agents:
                raise RefusedError(
                    507, f"the service holds {len(self.seats)} agents", where="service",
                    expected=f"at most {self._limits.agents}", then="DELETE an agent, which archives it",
                )  # fmt: skip
            config = wanted.config.given()
            check_size(config, self._limits)
            nonce = secrets.token_bytes(32) if wanted.request_id else b""
            key = derived_key(self.keys.admin_key, nonce) if nonce else new_key()
            card = Card(
                agent_id, wanted.name, hashed(key), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                wanted.request_id or "", asked, nonce.hex(),
            )  # fmt: skip
            loop = asyncio.get_running_loop()
            agent = await loop.run_in_executor(self._crew.pool, self._begin, card, config, wanted)
            self._seat(card).take_over(agent)
            return card, key

    def _again(self, card: Card, asked: str) -> tuple[Card, str]:
        if card.asked != asked:
            raise RefusedError(
                409, f"request_id {card.request!r} was used before, to make agent {card.id!r}, with other contents",
                where="body.request_id", then="give every request an id of its own",
            )  # fmt: skip
        key = derived_key(self.keys.admin_key, bytes.fromhex(card.nonce))
        if hashed(key) != card.key:
            raise RefusedError(
                409, f"agent {card.id!r} was made by this request, but its key or the admin key was changed since",
                where="body.request_id", then=f"POST /agents/{card.id}/key gives it a new key",
            )  # fmt: skip
        return card, key

    def _begin(self, card: Card, config: dict[str, Any], wanted: NewAgent) -> DurableAgent:
        place = self._place(card.id)
        try:
            remains = _remains(place)
            if not remains:
                _clear(place)  # of a request that was never acknowledged
                place.mkdir(mode=0o700)
        except OSError as error:
            if not os.path.lexists(place):
                raise JournalError(f"no folder can be made: {error.strerror or error}; look after the disk") from error
            remains = error.strerror or str(error)
        if remains:
            raise RefusedError(
                409, f"the folder of {card.id!r} holds something already", where="body.id", found=remains,
                expected="nothing, or what an agent leaves that was never begun",
                then="choose another id; for who runs the service: a durable agent belongs in agents/ID/journal, and "
                "gainful recover saves what is left of one",
            )  # fmt: skip
        try:
            _write(place, card)
            sync_folder(place.parent)
            return open_agent(
                place / JOURNAL, config, fsync=self._policy.live, planning=self._policy.planning,
                remember=wanted.remember, max_pending=max(10_000, self._limits.pending + 1),
                keep_history=wanted.keep_history,
            )  # fmt: skip
        except BaseException as error:
            with contextlib.suppress(OSError):
                _clear(place, begun=True)
            if isinstance(error, OSError):
                raise JournalError(f"the agent cannot be begun: {error.strerror or error}; look after disk") from error
            if isinstance(error, IMPOSSIBLE) and not isinstance(error, GainfulError):
                raise InvalidArgumentError(f"config: such an agent cannot be made: {error}") from error
            raise

    # ------------------------------------------------------------------ keys and the archive

    async def new_key(self, agent_id: str) -> str:
        """Another key for an agent; the one before opens nothing any more."""
        async with self._making:
            card = self._card(agent_id)
            key = new_key()
            new = Card(**{**asdict(card), "key": hashed(key)})
            await asyncio.get_running_loop().run_in_executor(self._crew.pool, _write, self._place(agent_id), new)
            self.cards[agent_id] = new
            self.keys.put(agent_id, new.key)
            return key

    async def archive(self, agent_id: str) -> str:
        """Close an agent and move its folder out of service; nothing of it is deleted."""
        async with self._making:
            card = self._card(agent_id)
            await self.seats[agent_id].close()
            try:
                name = await asyncio.get_running_loop().run_in_executor(self._crew.pool, self._put_away, agent_id)
            except BaseException:
                self._seat(card)
                raise
            self.keys.drop(agent_id)
            del self.seats[agent_id], self.cards[agent_id]
            self._requests.pop(card.request, None)
            return name

    def _put_away(self, agent_id: str) -> str:
        shelf = self.folder / "archive"
        name = f"{agent_id}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(2)}"
        try:
            shelf.mkdir(exist_ok=True, mode=0o700)
            os.replace(self._place(agent_id), shelf / name)
            for changed in (shelf, self.folder / "agents"):
                sync_folder(changed)
        except OSError as error:
            raise JournalError(f"the folder cannot be moved: {error.strerror or error}; look after the disk") from error
        return name

    def _card(self, agent_id: str) -> Card:
        card = self.cards.get(agent_id)
        if card is None:
            raise RefusedError(404, f"there is no agent {agent_id[:80]!r}", where="path", then="GET /agents lists them")
        return card

    def seat(self, agent_id: str) -> Seat:
        """The seat of an agent, or 404."""
        self._card(agent_id)
        return self.seats[agent_id]


def open_registry(folder: Path, admin_key: str, policy: Policy, limits: Limits, lock: FolderLock) -> Registry:
    """The agents of a folder whose lock is held."""
    with contextlib.suppress(FileExistsError):
        (folder / "agents").mkdir(mode=0o700)
    return Registry(folder, admin_key, policy, limits, lock)


_CARD, _DESCRIPTION = re.escape(CARD), re.escape(DESCRIPTION)
_FIRST = r"snapshot-0\.npz|journal-000001\.log"
_TEMPORARY = r"\.[0-9a-f]{12}\.tmp"
_UNBEGUN = re.compile(rf"{_FIRST}|{LOCK_FILE}|\.({_FIRST}|{_DESCRIPTION}){_TEMPORARY}")
_OURS = re.compile(rf"{_CARD}|\.{_CARD}{_TEMPORARY}")


def _remains(place: Path) -> str:
    """The first thing in the place of an agent that somebody may want; empty where all is ours, and never begun.

    Ours are the card, and the journal that was made after it: a snapshot of nothing, a segment without records.
    """
    if not os.path.lexists(place):
        return ""
    if place.is_symlink() or not place.is_dir():
        return place.name
    for found in sorted(place.iterdir()):
        if found.name != JOURNAL and not (_OURS.fullmatch(found.name) and found.is_file()):
            return found.name
    journal = place / JOURNAL
    if not os.path.lexists(journal):
        return ""
    if journal.is_symlink() or not journal.is_dir():
        return JOURNAL
    for found in sorted(journal.iterdir()):
        mine = _UNBEGUN.fullmatch(found.name) and found.is_file() and not found.is_symlink()
        if not mine or (found.suffix == ".log" and found.stat().st_size > HEADER_SIZE):
            return f"{JOURNAL}/{found.name}"
    with contextlib.suppress(OSError, ValueError, TypeError):
        if _read(place).created:
            return ""
    return f"{JOURNAL}/ without a card"


def _clear(place: Path, *, begun: bool = False) -> None:
    """Take away an agent that was never answered for, by the names of its files: OSError where there is more."""
    of_journal = re.compile(f"{_UNBEGUN.pattern}|{_DESCRIPTION}") if begun else _UNBEGUN
    for folder, names in ((place / JOURNAL, of_journal), (place, _OURS)):
        if folder.is_dir():
            for found in list(folder.iterdir()):
                if names.fullmatch(found.name):
                    found.unlink()
            folder.rmdir()


def _read(place: Path) -> Card:
    try:
        kept = json.loads((place / CARD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Card(place.name)
    card = Card(**kept)
    if card.id != place.name or not all(isinstance(value, str) for value in kept.values()):
        raise ValueError("it is the card of another agent")
    return card


def _write(place: Path, card: Card) -> None:
    try:
        write_file(place / CARD, json.dumps(asdict(card), indent=2).encode(), mode=0o600)
    except OSError as error:
        raise JournalError(f"the card cannot be written: {error.strerror or error}; look after the disk") from error
