"""The durable agent: every decision and observation is in its journal before the call returns."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gainful.agents.guarantee import Guarantee
from gainful.agents.scal_plus import SCALPlus
from gainful.agents.statistics import Statistics
from gainful.agents.stepwise import StepwiseAgent
from gainful.archive import read_archive
from gainful.errors import (
    ConflictError,
    DamagedJournalError,
    InvalidArgumentError,
    JournalError,
    PlanningError,
    UnknownAgentError,
    UnknownDecisionError,
)
from gainful.live.accepting import checked_number, checked_outcome, checked_point, checked_rows, checked_transition
from gainful.live.configuration import plain
from gainful.live.folder import HEADER_SIZE, Description, Folder
from gainful.live.journal import Journal, Segment, check_covered, damaged, make_durable, read_segments
from gainful.live.life import Life, Planning
from gainful.live.memory import LONGEST_REQUEST, Answer
from gainful.live.records import NUMBERS, REPORTED, Kind, Layout, Rows, asked, pack_change
from gainful.live.results import Change, Decision, JournalWarning, Pending, Receipt
from gainful.live.snapshots import SNAPSHOT, Snapshots
from gainful.locks import FolderLock

_DECISION, _OBSERVATION = int(Kind.DECISION), int(Kind.OBSERVATION)


class DurableAgent:
    """An agent that lives in a folder and survives its process; made by `gf.open_agent`.

    `act`, `observe`, `report`, `observe_many`, `abandon` and `change` write a record to the journal, then take effect,
    then return. What was returned from is there when the folder is opened again: statistics, policy, random
    numbers, decisions waiting for outcomes. How far that holds after a power cut is the choice of `fsync`. Calls may
    come from several threads; they are taken one after the other. A `with` block closes the agent at its end.

    Randomness: the first decision after t observations draws what the agent itself would draw; each further one before
    the next observation draws from a stream of its own, so that decisions made side by side are independent.

    Episodes: whether a pair has used up its executions is judged by the outcomes known when a decision is made. With k
    decisions waiting, an episode may exceed its limit by k executions.
    """

    def __init__(
        self, folder: Folder, lock: FolderLock, *, sync_seconds: float | None, planning: Planning,
        snapshot_every: int | None,
    ) -> None:  # fmt: skip
        self._folder, self._lock = folder, lock
        self._sync_seconds, self._planning, self._every = sync_seconds, planning, snapshot_every
        self._mutex = threading.RLock()
        self._closed = False
        self._sequence = self._written_at = 0
        self.notices: list[str] = []
        """What happened that its owner should know, such as a torn last record that was dropped; also warned of."""
        self._load(folder.describe())

    # ------------------------------------------------------------------ opening

    def _load(self, description: Description) -> None:
        """The last snapshot, and every record since."""
        self._description = description
        self._layout = Layout(description.salt, description.dim)
        for path in self._folder.leftovers():
            path.unlink(missing_ok=True)
        segments, torn = read_segments(self._folder, description, self._layout)
        if not segments:
            raise damaged(
                self._folder, self._folder.segment(1), 0, 0, "there is no segment of the journal", "one is always there"
            )
        self._life, covered = self._last_snapshot()
        self._sequence = covered
        check_covered(self._folder, segments, torn, covered)
        self._replay(segments)
        make_durable(self._folder, segments, torn)
        if torn is not None:
            self._notice(
                f"{torn.path}: the last {torn.length} bytes were an unfinished record, number {torn.record}; they were "
                "dropped"
            )
        if self._life.differing:
            self._notice(
                f"{self._folder.path}: {self._life.differing} decisions would be others today: the journal was written "
                "by another version of gainful or on another machine. What was done stands; plans made from now on are "
                "this version's"
            )
        self._life.ready()
        self._journal = Journal(self._folder, description.identity, segments[-1].number, self._sync_seconds)
        self._snapshots = Snapshots(
            self._folder, description, self._layout, self._journal, self.notices, every=self._every, last=covered,
            size=self._folder.snapshot(covered).stat().st_size,
        )  # fmt: skip
        self._stale = False

    def _last_snapshot(self) -> tuple[Life, int]:
        found = self._folder.snapshots()
        if not found:
            raise DamagedJournalError(
                f"{self._folder.path}: no snapshot; run gainful recover {self._folder.path} OUT, or restore a copy",
                str(self._folder.path),
            )
        sequence, path = found[0]
        header, arrays = read_archive(SNAPSHOT, path)
        try:
            if int(header["sequence"]) != sequence:
                raise ValueError(f"it covers record {header['sequence']}, not {sequence}")
            life = Life(self._description, self._planning, header, arrays)
        except UnknownAgentError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
            raise SNAPSHOT.damaged(path, f"{type(error).__name__}: {error}; or run gainful recover") from error
        return life, sequence

    def _replay(self, segments: list[Segment]) -> None:
        """Every record that the snapshot does not cover."""
        for segment in segments:
            for record in segment.records:
                if record.sequence <= self._sequence:
                    continue
                if record.sequence != self._sequence + 1:
                    raise damaged(
                        self._folder, segment.path, HEADER_SIZE, self._sequence,
                        f"it goes on with record {record.sequence}, not {self._sequence + 1}", "records are missing",
                    )  # fmt: skip
                try:
                    self._life.replay(record)
                except DamagedJournalError as error:
                    raise DamagedJournalError(f"{segment.path}: {error}", str(segment.path), 0, error.intact) from error
                self._sequence = record.sequence

    def _notice(self, text: str) -> None:
        self.notices.append(text)
        warnings.warn(text, JournalWarning, stacklevel=5)

    def _ready(self) -> None:
        if self._closed:
            raise JournalError(f"{self._folder.path}: this agent is closed; gf.open_agent(path) opens it again")
        if self._stale:
            self._wait_for_snapshot()
            with contextlib.suppress(JournalError, OSError):
                self._journal.close()
            self._load(self._description)

    # ------------------------------------------------------------------ writing

    def _append(self, kind: int, payload: bytes, request: bytes = b"", flags: int = 0) -> int:
        """Write a record, and before it those owed for what has happened already; its sequence number."""
        if os.getpid() != self._lock.pid:
            raise JournalError(
                f"{self._folder.path}: was opened by process {self._lock.pid}, this one is its child; a forked process "
                "must not write: open agents after the fork"
            )
        sequence, pack = self._sequence + 1, self._layout.pack
        now = self._written_at = time.time_ns()
        if owed := self._life.owed:
            data = b""
            for earlier, told in owed:
                data += pack(earlier, 0, sequence, now, told)
                sequence += 1
            self._journal.append(data + pack(kind, flags, sequence, now, payload, request))
            owed.clear()
        else:
            self._journal.append(pack(kind, flags, sequence, now, payload, request))
        self._sequence = sequence
        return sequence

    @contextlib.contextmanager
    def _certain(self) -> Iterator[None]:
        """Whatever interrupts this block but a clean refusal, the state is read from the files again."""
        try:
            yield
        except JournalError:
            raise
        except BaseException:
            self._stale = True
            raise

    def _request(self, request_id: str | None) -> bytes:
        if request_id is None:
            return b""
        if not (isinstance(request_id, str) and request_id):  # type: ignore[redundant-expr]
            raise InvalidArgumentError(f"request_id is {request_id!r}, expected a word")
        request = request_id.encode("utf-8", "surrogatepass")
        if len(request) > LONGEST_REQUEST:
            raise InvalidArgumentError(f"request_id has {len(request)} bytes, expected at most {LONGEST_REQUEST}")
        return request

    def _answer(self, request: bytes, kind: int, contents: int) -> Answer | None:
        """What was answered to this request before; a ConflictError where it asked for something else."""
        known = self._life.memory.requests.get(request)
        if known is not None and (known.kind != kind or known.asked != contents):
            raise ConflictError(
                f"request_id {request.decode('utf-8', 'replace')!r} was used before, for record {known.sequence}, with "
                "other contents; give every request an id of its own"
            )
        return known

    def _known(
        self, request_id: str | None, kind: int, payload: bytes, flags: int = 0
    ) -> tuple[bytes, int, Receipt | None]:
        """A request as it is written, a checksum of what it asks, and the receipt if it was answered before."""
        request = self._request(request_id)
        if not request:
            return b"", 0, None
        contents = asked(self._layout, kind, flags, payload)
        known = self._answer(request, kind, contents)
        return request, contents, None if known is None else Receipt(known.sequence, True)

    # ------------------------------------------------------------------ acting

    def act(self, state: Any, *, request_id: str | None = None) -> Decision:
        """The action to take in `state`: an int that carries `decision_id`.

        Every call is a decision of its own. A call with a `request_id` that was answered before (among the last
        `remember`, also before a crash) gives the same decision again.

        Raises InvalidArgumentError for a state that is none, ConflictError for a request id used for something else,
        JournalError where the journal cannot be written (nothing has happened then), PlanningError where no plan can be
        made.
        """
        with self._mutex:
            if self._closed or self._stale:
                self._ready()
            life, where = self._life, state
            if life.points:
                where = checked_point(life.agent, state)
                told = self._layout.state.pack(*where)
            else:
                where = checked_number("state", state, life.core.n_states)
                told = self._layout.state.pack(where)
            request = b""
            if request_id is not None:
                request = self._request(request_id)
                known = self._answer(request, _DECISION, asked(self._layout, _DECISION, 0, told + bytes(4)))
                if known is not None:
                    return Decision(known.action, known.sequence, state)
            try:
                life.refine_if_due()
                begin_plans = not self._snapshots.due(self._sequence)  # one needs a moment without a plan
                action = life.choose(life.cell(where), begin_plans)
                payload = told + action.to_bytes(4, "little")
                sequence = self._append(_DECISION, payload, request)
                life.decided(sequence, where, action)
                if request:
                    contents = asked(self._layout, _DECISION, 0, payload)
                    life.memory.answered(request, Answer(sequence, contents, action, _DECISION))
            except JournalError:
                raise
            except BaseException:
                self._stale = True
                raise
            self._snapshot_if_due()
            return Decision(action, sequence, state)

    def predict(self, state: Any) -> int:
        """The greedy action of the present policy; decides nothing and writes nothing."""
        with self._mutex:
            self._ready()
            return int(self._life.agent.predict(state))

    # ------------------------------------------------------------------ observing

    def observe(
        self, state: Any, action: int, reward: float, next_state: Any, *, decision_id: int | None = None,
        request_id: str | None = None,
    ) -> Receipt:  # fmt: skip
        """What happened: any valid transition, whether or not the agent chose it.

        With `decision_id` it is that decision's outcome, as for `report`. Without, it is the outcome of the decision
        given as `action` (what `act` returned), or, for a plain int, of the oldest decision waiting that has this state
        and action; of none, if there is none. The record says of which.
        The record is in the journal before anything is learned from it.

        Raises InvalidArgumentError, ConflictError, UnknownDecisionError; JournalError where the journal cannot be
        written: then nothing has happened, and the call can be made again.
        """
        with self._mutex:
            if self._closed or self._stale:
                self._ready()
            s, a, r, to = checked_transition(self._life.agent, state, action, reward, next_state)
            memory, told = self._life.memory, 0
            if decision_id is not None:
                receipt = self._expected(decision_id, r, to)
                if receipt is not None:
                    return receipt
                decision_id = self._id(decision_id)
                waiting = memory.pending[decision_id]
                if waiting.action != a or not self._life.same(waiting.state, s):
                    raise ConflictError(
                        f"decision {decision_id} was action {waiting.action} in state {waiting.state}, not {a} in {s}; "
                        "report(decision_id, reward, next_state) needs neither"
                    )
                told = decision_id
            elif isinstance(action, Decision):
                waiting_for = memory.pending.get(action.decision_id)
                if waiting_for is not None and waiting_for.action == a and self._life.same(waiting_for.state, s):
                    told = action.decision_id
            elif memory.pending:
                told = memory.oldest(s, a)
            return self._observed(s, a, r, to, told, 0, request_id)

    def report(self, decision_id: int, reward: float, next_state: Any, *, request_id: str | None = None) -> Receipt:
        """The outcome of a decision, however late. The same outcome told again is ignored: `repeated` is True then.

        Raises UnknownDecisionError for an id that no decision waiting has, ConflictError where another outcome was
        told before, InvalidArgumentError, JournalError (nothing has happened then).
        """
        with self._mutex:
            if self._closed or self._stale:
                self._ready()
            i = self._id(decision_id)
            r, to = checked_outcome(self._life.agent, reward, next_state)
            if request_id is not None:
                contents = asked(self._layout, _OBSERVATION, REPORTED, self._packed(None, 0, r, to, i))
                known = self._answer(self._request(request_id), _OBSERVATION, contents)
                if known is not None:
                    return Receipt(known.sequence, True)
            waiting = self._life.memory.pending.get(i)
            if waiting is None:
                receipt = self._expected(i, r, to)
                assert receipt is not None
                return receipt
            return self._observed(waiting.state, waiting.action, r, to, i, REPORTED, request_id)

    def _id(self, decision_id: Any) -> int:
        if isinstance(decision_id, Decision):
            return decision_id.decision_id
        if isinstance(decision_id, bool) or not isinstance(decision_id, (int, np.integer)):
            raise UnknownDecisionError(f"decision_id is {decision_id!r}, expected the number that act gave")
        if not 1 <= decision_id < 1 << 63:
            raise UnknownDecisionError(f"no decision {decision_id} waits for its outcome: ids are 1, 2, 3, …")
        return int(decision_id)

    def _expected(self, decision_id: Any, reward: float, next_state: Any) -> Receipt | None:
        """None for a decision waiting; a receipt for one whose very outcome this is; an error for any other."""
        i = self._id(decision_id)
        if i in self._life.memory.pending:
            return None
        known = self._life.memory.reported.get(i)
        if known is None:
            raise UnknownDecisionError(
                f"no decision {i} waits for its outcome: it was never made, or closed before the last "
                f"{self._life.memory.remember} that were; agent.pending lists those waiting"
            )
        sequence, outcome = known
        if not outcome:
            raise UnknownDecisionError(
                f"decision {i} was abandoned"
                + ("" if sequence else f": more than {self._life.memory.max_pending} decisions were waiting")
                + "; observe(state, action, reward, next_state) records what happened all the same"
            )
        values = self._layout.outcome.unpack(outcome)
        if values != self._layout.outcome.unpack(self._packed_outcome(reward, next_state)):
            before = values[1] if len(values) == 2 else list(values[1:])
            raise ConflictError(
                f"decision {i} was reported before (record {sequence}) with reward {values[0]:g} and next state "
                f"{before}, now with {reward:g} and {next_state}; an outcome is told once"
            )
        return Receipt(sequence, True)

    def _observed(
        self, s: Any, a: int, r: float, to: Any, decision_id: int, flags: int, request_id: str | None
    ) -> Receipt:
        """Write an observation that has been checked, then learn from it."""
        payload = self._packed(s, a, r, to, decision_id)
        request = b""
        if request_id is not None:
            request = self._request(request_id)
            contents = asked(self._layout, _OBSERVATION, flags, payload)
            known = self._answer(request, _OBSERVATION, contents)
            if known is not None:
                return Receipt(known.sequence, True)
        try:
            sequence = self._append(_OBSERVATION, payload, request, flags)
            self._life.observed(s, a, r, to, decision_id, sequence, payload)
            if request:
                self._life.memory.answered(request, Answer(sequence, contents, -1, _OBSERVATION))
        except JournalError:
            raise
        except BaseException:
            self._stale = True
            raise
        self._snapshot_if_due()
        return Receipt(sequence)

    def _packed(self, s: Any, a: int, r: float, to: Any, decision_id: int) -> bytes:
        if self._life.points:
            origin = np.zeros(self._layout.dim) if s is None else s
            return self._layout.observation.pack(*origin, a, r, *to, decision_id)
        return self._layout.observation.pack(s or 0, a, r, to, decision_id)

    def _packed_outcome(self, r: float, to: Any) -> bytes:
        return self._layout.outcome.pack(r, *to) if self._life.points else self._layout.outcome.pack(r, to)

    def observe_many(
        self, states: ArrayLike, actions: ArrayLike, rewards: ArrayLike, next_states: ArrayLike, *,
        request_id: str | None = None,
    ) -> Receipt:  # fmt: skip
        """Many transitions, in order, in one record: all or none of them, also after a crash.

        They are the outcomes of no decision. Raises InvalidArgumentError that names the first bad row.
        """
        with self._mutex:
            self._ready()
            rows = checked_rows(self._life.agent, states, actions, rewards, next_states)
            if len(rows.actions) > self._layout.most_rows:
                raise InvalidArgumentError(
                    f"{len(rows.actions)} rows, expected at most {self._layout.most_rows} at once; tell them in parts"
                )
            return self._observed_rows(rows, 0, request_id)

    def _observed_rows(self, rows: Rows, flags: int, request_id: str | None = None) -> Receipt:
        kind, payload = int(Kind.BATCH), self._layout.pack_rows(rows)
        request, contents, known = self._known(request_id, kind, payload, flags)
        if known is not None:
            return known
        with self._certain():
            sequence = self._append(kind, payload, request, flags)
            self._life.observed_rows(rows)
            if request:
                self._life.memory.answered(request, Answer(sequence, contents, -1, kind))
        self._snapshot_if_due()
        return Receipt(sequence)

    def abandon(self, decision_id: int, *, request_id: str | None = None) -> Receipt:
        """The outcome of a decision will never be known; it no longer waits.

        Raises UnknownDecisionError where it does not wait, ConflictError for a request id used for something else.
        """
        with self._mutex:
            self._ready()
            i, kind = self._id(decision_id), int(Kind.ABANDONED)
            payload = NUMBERS.pack(i, 0)
            request, contents, known = self._known(request_id, kind, payload)
            if known is not None:
                return known
            if i not in self._life.memory.pending:
                raise UnknownDecisionError(f"no decision {i} waits for its outcome; agent.pending lists those that do")
            with self._certain():
                sequence = self._append(kind, payload, request)
                self._life.memory.closed(i, sequence, b"")
                if request:
                    self._life.memory.answered(request, Answer(sequence, contents, -1, kind))
            self._snapshot_if_due()
            return Receipt(sequence)

    # ------------------------------------------------------------------ changing settings

    def set_span(self, span: float, *, reason: str = "", request_id: str | None = None) -> Receipt:
        """Another bound c on the span of the bias, from the next episode on; see `change`."""
        return self.change(reason=reason, request_id=request_id, span=span)

    def set_bonus_scale(self, scale: float, *, reason: str = "", request_id: str | None = None) -> Receipt:
        """Another factor of the bonus (`width_scale` for agents with confidence sets); see `change`."""
        name = "bonus_scale" if "bonus_scale" in self._life.agent.settings() else "width_scale"
        return self.change(reason=reason, request_id=request_id, **{name: scale})

    def change(self, *, reason: str = "", request_id: str | None = None, **settings: float) -> Receipt:
        """Change `span`, `bonus_scale` or `width_scale`, whichever the agent has, from the next decision on.

        The next decision begins an episode. The change is recorded, with the `reason`, in the journal and in
        `changes`; the theorems are about constants that stay as they are, so there is no guarantee any more.

        Raises InvalidArgumentError for a setting that the agent does not have or does not accept, ConflictError for a
        request id used for something else.
        """
        with self._mutex:
            self._ready()
            if not isinstance(reason, str):
                raise InvalidArgumentError(f"reason is {reason!r}, expected words")
            if not settings:
                raise InvalidArgumentError("nothing to change; say for instance change(span=5.0)")
            self._life.check_change(settings)
            new = {name: float(settings[name]) for name in sorted(settings)}
            kind, payload = int(Kind.CHANGE), pack_change({"settings": new, "reason": reason})
            request, contents, known = self._known(request_id, kind, payload)
            if known is not None:
                return known
            with self._certain():
                if self._life.plan_under_way:
                    self._life.finish_plan()
                sequence = self._append(kind, payload, request)
                self._life.changed(new, reason, sequence, self._written_at)
                if request:
                    self._life.memory.answered(request, Answer(sequence, contents, -1, kind))
            self._snapshot_if_due()
            return Receipt(sequence)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Every setting that was changed, in order."""
        return tuple(self._life.changes)

    # ------------------------------------------------------------------ snapshots

    def _snapshot_if_due(self) -> None:
        if not self._snapshots.due(self._sequence) or self._snapshots.busy:
            return
        if self._life.twin is not None and self._life.twin.made:
            with contextlib.suppress(JournalError, PlanningError):
                self._settle()
        if self._quiet:
            self._snapshots.begin(self._sequence, self._life)

    @property
    def _quiet(self) -> bool:
        """Whether memory and journal agree, and no plan is under way: the moment for a snapshot."""
        return not (self._life.owed or self._life.plan_under_way or self._stale or self._journal.trouble)

    def _wait_for_snapshot(self) -> None:
        self._snapshots.wait()

    def snapshot(self) -> None:
        """Write a snapshot now, and compact the journal; on return it is durable.

        A plan under way is finished and adopted first. Raises JournalError where it cannot be written; the journal has
        everything all the same.
        """
        with self._mutex:
            self._ready()
            self._settle()
            self._wait_for_snapshot()
            if self._folder.snapshot(self._sequence).exists():
                return
            self._snapshots.begin(self._sequence, self._life)
            self._wait_for_snapshot()
            if self._snapshots.problem:
                raise JournalError(
                    f"{self._folder.path}: no snapshot was made, or the journal not compacted: "
                    f"{self._snapshots.problem}; the journal has everything"
                )

    def _settle(self) -> None:
        """Finish a plan under way, and write what is owed."""
        life = self._life
        with self._certain():
            if life.plan_under_way:
                life.finish_plan()
            if life.owed:
                last = life.owed.pop()
                try:
                    self._append(*last)
                except JournalError:
                    life.owed.append(last)
                    raise

    def sync(self) -> None:
        """Make every record so far durable, whatever the policy; other calls go on meanwhile."""
        with self._mutex:
            self._ready()
            journal = self._journal
        journal.sync()

    def close(self) -> None:
        """Make all durable, write a last snapshot, and let others open the folder. Closing twice is harmless."""
        with self._mutex:
            if self._closed:
                return
            try:
                if not self._stale and os.getpid() == self._lock.pid:
                    with contextlib.suppress(PlanningError, JournalError):
                        self._settle()
                    self._wait_for_snapshot()
                    if self._quiet and self._sequence > self._snapshots.last:
                        self._snapshots.begin(self._sequence, self._life)
                self._wait_for_snapshot()
            finally:
                self._closed = True
                try:
                    self._journal.close()
                finally:
                    self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------------ what it is

    @property
    def path(self) -> Path:
        """Its folder."""
        return self._folder.path

    @property
    def kind(self) -> str:
        """The name of the agent's class."""
        return type(self._life.agent).__name__

    @property
    def t(self) -> int:
        """Observations so far, with those it began with."""
        return self._life.core.t

    @property
    def sequence(self) -> int:
        """The number of the last record."""
        return self._sequence

    @property
    def n_states(self) -> int:
        """The number of states, or cells."""
        return self._life.core.n_states

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return self._life.core.n_actions

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """(S,A) the actions that each state has."""
        return self._life.core.allowed

    @property
    def n_episodes(self) -> int:
        """The number of episodes so far."""
        return len(self._life.core.records)

    @property
    def n_pending(self) -> int:
        """The number of decisions whose outcomes are not known."""
        return len(self._life.memory.pending)

    def answered(self, request_id: str) -> bool:
        """Whether a request with this id was answered before, as far as is remembered."""
        return request_id.encode("utf-8", "surrogatepass") in self._life.memory.requests

    def bonuses(self) -> NDArray[np.float64] | None:
        """(S,A) the bonus of every pair if a plan were made now, without what a cell adds; None for other agents."""
        core = self._life.core
        return core.bonuses() - core.model_error if isinstance(core, SCALPlus) else None

    @property
    def dim(self) -> int:
        """0 where states are numbered; the number of coordinates where they are points."""
        return self._description.dim

    @property
    def statistics(self) -> Statistics:
        """What has been seen; to be read, not changed."""
        return self._life.core.statistics

    @property
    def episodes(self) -> NDArray[Any]:
        """One record per episode, see `gainful.agents.episodic.EPISODE_RECORD`."""
        return self._life.core.episodes

    @property
    def settings(self) -> dict[str, Any]:
        """The agent's present settings."""
        return plain(self._life.agent.settings())

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The decisions whose outcomes are not known, the oldest first."""
        with self._mutex:
            return tuple(Pending(i, w.state, w.action, w.t) for i, w in self._life.memory.pending.items())

    @property
    def planning_under_way(self) -> bool:
        """Whether a plan is being made beside the decisions."""
        return self._life.plan_under_way

    @property
    def actions(self) -> NDArray[np.int64] | None:
        """(S,) the present policy's greedy actions; None before the first plan, or where values decide."""
        plan = self._life.core.current
        if plan is None or isinstance(self._life.core, StepwiseAgent):
            return None
        return plan.actions.copy() if plan.probabilities is None else plan.probabilities.argmax(axis=1)

    @property
    def gain_bounds(self) -> tuple[float, float] | None:
        """The bracket of the present plan's optimistic gain; None before the first."""
        return None if self._life.core.current is None else self._life.core.current.gain_bounds

    @property
    def vacuous(self) -> bool:
        """Whether the present plan ignores the data, for agents that know."""
        return self._life.vacuous

    @property
    def guarantee(self) -> Guarantee:
        """What is promised: the agent's own guarantee, void where this life is not the theorem's.

        The theorems are about the agent's own trajectory. It is void after a change of settings, with a prior model,
        after observations that are of no decision of its own (batches, logs, what others chose), once a plan was
        adopted later than it was made, and once an outcome was told after others than its decision had seen.
        """
        return self._life.guarantee

    def status(self) -> dict[str, Any]:
        """Where it stands, in plain types for JSON."""
        with self._mutex:
            bounds = self.gain_bounds
            return {
                "agent": self.kind, "settings": self.settings, "observations": self.t,
                "sequence": self._sequence, "episodes": self.n_episodes,
                "pending": self.n_pending, "planning_under_way": self.planning_under_way,
                "gain_bounds": None if bounds is None else list(bounds), "guarantee": str(self.guarantee),
                "guarantee_holds": self.guarantee.holds, "changes": [asdict(c) for c in self._life.changes],
                "notices": list(self.notices), "trouble": self._journal.trouble,
            }  # fmt: skip

    def copy(self) -> Any:
        """A plain agent in the same state: for simulation, `save`, or a look; it writes no journal."""
        with self._mutex:
            self._ready()
            self._settle()
            return self._life.copy()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{self._life.core.t:,} observations"
        return f"DurableAgent({type(self._life.agent).__name__} in {self._folder.path}, {state})"
