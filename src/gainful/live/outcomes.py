"""Observing: transitions and the outcomes of decisions, in the journal before anything is learned from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gainful.agents.labels import AgentLabels
from gainful.errors import ConflictError, InvalidArgumentError, JournalError, UnknownDecisionError
from gainful.live.labels import LabelledDecision
from gainful.live.receipts import Decision, Receipt
from gainful.live.records import BY_REPORT, TWO_NUMBERS, RecordKind, RecordLayout
from gainful.live.requests import receive, remember_answer
from gainful.live.session import JournalSession
from gainful.live.validation import checked_outcome, checked_rows, checked_transition

_OBSERVATION, _BATCH, _ABANDONED = int(RecordKind.OBSERVATION), int(RecordKind.BATCH), int(RecordKind.ABANDONED)


class OutcomeRecorder:
    """Records the observations of a session, and has the agent learn from them."""

    def __init__(self, session: JournalSession) -> None:
        self._session = session

    def observe(
        self,
        state: Any,
        action: Any,
        reward: Any,
        next_state: Any,
        decision_id: int | None,
        request_id: str | None,
    ) -> Receipt:
        """Record a transition, as the outcome of the decision that it belongs to, if any."""
        machine = self._session.machine
        ledger, decision = machine.ledger, 0
        s, a, r, to = checked_transition(machine.agent, state, action, reward, next_state)
        if decision_id is not None:
            decision = decision_number(decision_id)
            waiting = ledger.pending.get(decision)
            if waiting is None:
                return self._reported_before(decision, r, to)
            if waiting.action != a or not machine.same(waiting.state, s):
                raise ConflictError(
                    f"decision {decision} was action {waiting.action} in state {waiting.state}, not {a} in {s}",
                    name="decision_id",
                    found=decision,
                    hint="report(decision_id, reward, next_state) needs neither",
                )
        elif isinstance(action, Decision):
            waiting = ledger.pending.get(action.decision_id)
            if waiting is not None and waiting.action == a and machine.same(waiting.state, s):
                decision = action.decision_id
        elif ledger.pending:
            decision = ledger.oldest(s, a)
        return self._record(s, a, r, to, decision, 0, request_id)

    def report(self, decision_id: Any, reward: Any, next_state: Any, request_id: str | None) -> Receipt:
        """Record the outcome of a decision; the same outcome reported again changes nothing."""
        session = self._session
        machine, i = session.machine, decision_number(decision_id)
        r, to = checked_outcome(machine.agent, reward, next_state)
        if request_id is not None:
            contents = _pack(session.layout, None, 0, r, to, i)
            _, known = receive(machine.ledger, session.layout, request_id, _OBSERVATION, contents, BY_REPORT)
            if known is not None:
                return Receipt(known.sequence, True)
        waiting = machine.ledger.pending.get(i)
        if waiting is None:
            return self._reported_before(i, r, to)
        return self._record(waiting.state, waiting.action, r, to, i, BY_REPORT, request_id)

    def _record(
        self, s: Any, a: int, r: float, to: Any, decision_id: int, flags: int, request_id: str | None
    ) -> Receipt:
        """Write an observation that has been checked, then learn from it."""
        session = self._session
        machine = session.machine
        payload = _pack(session.layout, s, a, r, to, decision_id)
        request, known = receive(machine.ledger, session.layout, request_id, _OBSERVATION, payload, flags)
        if known is not None:
            return Receipt(known.sequence, True)
        try:
            sequence = session.append(_OBSERVATION, payload, request.id, flags)
            machine.apply_observation(s, a, r, to, decision_id, sequence, payload)
            if request.id:
                remember_answer(machine.ledger, request, sequence)
        except JournalError:
            raise
        except BaseException:
            session.stale = True
            raise
        session.snapshot_if_due()
        return Receipt(sequence)

    def _reported_before(self, i: int, reward: float, next_state: Any) -> Receipt:
        """The receipt of a decision that no longer waits, if this is its very outcome; an error if it is not."""
        ledger, layout = self._session.machine.ledger, self._session.layout
        known = ledger.reported.get(i)
        if known is None:
            raise UnknownDecisionError(
                f"no decision {i} waits for its outcome: it was never made, or closed before the last "
                f"{ledger.remember} that were",
                name="decision_id",
                found=i,
                hint="agent.pending lists those waiting",
            )
        sequence, outcome = known
        if not outcome:
            crowded = "" if sequence else f": more than {ledger.max_pending} decisions were waiting"
            raise UnknownDecisionError(
                f"decision {i} was abandoned{crowded}",
                name="decision_id",
                found=i,
                hint="observe(state, action, reward, next_state) records what happened all the same",
            )
        values = layout.outcome.unpack(outcome)
        now = (reward, *next_state) if layout.dim else (reward, next_state)
        if values != layout.outcome.unpack(layout.outcome.pack(*now)):
            before = values[1] if len(values) == 2 else list(values[1:])
            raise ConflictError(
                f"decision {i} was reported before (record {sequence}) with {self._in_words(values[0], before)}, "
                f"now with {self._in_words(reward, next_state)}",
                name="decision_id",
                found=i,
                hint="a decision has one outcome",
            )
        return Receipt(sequence, True)

    def _in_words(self, reward: float, next_state: Any) -> str:
        """An outcome as its user writes it: a cost stays a cost, a state has its label."""
        labels = self._session.labels or AgentLabels()
        place = next_state if labels.states is None else repr(labels.states[int(next_state)])
        return f"{labels.objective} {labels.sign * reward:g} and next state {place}"

    def observe_many(
        self, states: Any, actions: Any, rewards: Any, next_states: Any, request_id: str | None
    ) -> Receipt:
        """Record many transitions, the outcomes of no decision, in one record."""
        session = self._session
        rows = checked_rows(session.machine.agent, states, actions, rewards, next_states)
        if len(rows.actions) > session.layout.most_rows:
            raise InvalidArgumentError(
                "actions",
                len(rows.actions),
                f"at most {session.layout.most_rows} at once",
                "observe them in parts",
                problem=f"{len(rows.actions)} rows were given",
            )
        payload, ledger = session.layout.pack_rows(rows), session.machine.ledger
        request, known = receive(ledger, session.layout, request_id, _BATCH, payload)
        if known is not None:
            return Receipt(known.sequence, True)
        with session.recording():
            sequence = session.append(_BATCH, payload, request.id)
            session.machine.apply_batch(rows)
            if request.id:
                remember_answer(ledger, request, sequence)
        session.snapshot_if_due()
        return Receipt(sequence)

    def abandon(self, decision_id: Any, request_id: str | None) -> Receipt:
        """Record that the outcome of a decision will never be known."""
        session = self._session
        i, ledger = decision_number(decision_id), session.machine.ledger
        payload = TWO_NUMBERS.pack(i, 0)
        request, known = receive(ledger, session.layout, request_id, _ABANDONED, payload)
        if known is not None:
            return Receipt(known.sequence, True)
        if i not in ledger.pending:
            raise UnknownDecisionError(
                f"no decision {i} waits for its outcome",
                name="decision_id",
                found=i,
                hint="agent.pending lists those that do",
            )
        with session.recording():
            sequence = session.append(_ABANDONED, payload, request.id)
            ledger.closed(i, sequence, b"")
            if request.id:
                remember_answer(ledger, request, sequence)
        session.snapshot_if_due()
        return Receipt(sequence)


def decision_number(decision_id: Any) -> int:
    """The number of a decision, given as such or as what `act` returned."""
    if isinstance(decision_id, (Decision, LabelledDecision)):
        return decision_id.decision_id
    if isinstance(decision_id, bool) or not isinstance(decision_id, (int, np.integer)):
        raise UnknownDecisionError(
            f"decision_id is {decision_id!r}",
            name="decision_id",
            found=decision_id,
            expected="the decision_id that act returned",
        )
    if not 1 <= decision_id < 1 << 63:
        raise UnknownDecisionError(
            f"no decision {decision_id} waits for its outcome",
            name="decision_id",
            found=decision_id,
            hint="ids are 1, 2, 3, …",
        )
    return int(decision_id)


def _pack(layout: RecordLayout, s: Any, a: int, r: float, to: Any, decision_id: int) -> bytes:
    """The payload of an observation; `s` is None if it does not matter."""
    if layout.dim:
        origin = np.zeros(layout.dim) if s is None else s
        return layout.observation.pack(*origin, a, r, *to, decision_id)
    return layout.observation.pack(s or 0, a, r, to, decision_id)
