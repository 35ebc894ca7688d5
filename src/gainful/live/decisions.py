"""Deciding: the action for a state, in the journal before it is returned."""

from __future__ import annotations

from typing import Any

from gainful.arguments import whole_below
from gainful.errors import JournalError
from gainful.live.receipts import Decision
from gainful.live.records import RecordKind
from gainful.live.requests import receive, remember_answer
from gainful.live.session import JournalSession
from gainful.live.validation import checked_point

_DECISION = int(RecordKind.DECISION)
_NO_ACTION = bytes(4)


class DecisionMaker:
    """Makes and records the decisions of a session."""

    def __init__(self, session: JournalSession) -> None:
        self._session = session

    def decide(self, state: Any, request_id: str | None) -> Decision:
        """Choose an action, after beginning an episode if one is due, and record it."""
        session = self._session
        machine, layout = session.machine, session.layout
        where: Any
        if machine.points:
            where = checked_point(machine.agent, state)
            packed_state = layout.state.pack(*where)
        else:
            where = whole_below("state", state, machine.core.n_states)
            packed_state = layout.state.pack(where)
        request, known = receive(machine.ledger, layout, request_id, _DECISION, packed_state + _NO_ACTION)
        if known is not None:
            return Decision(known.action, known.sequence, state)
        try:
            machine.refine_if_due()
            begin_plans = not session.snapshots.due(session.sequence)  # a snapshot needs a moment without a plan
            action = machine.choose(machine.cell(where), begin_plans)
            payload = packed_state + action.to_bytes(4, "little")
            sequence = session.append(_DECISION, payload, request.id)
            machine.apply_decision(sequence, where, action)
            if request.id:
                remember_answer(machine.ledger, request, sequence, action)
        except JournalError:
            raise
        except BaseException:
            session.stale = True
            raise
        session.snapshot_if_due()
        return Decision(action, sequence, state)
