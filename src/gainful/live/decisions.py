"""Deciding: the action for a state, in the journal before it is returned."""

from __future__ import annotations

from typing import Any

from gainful.errors import JournalError
from gainful.live.accepting import checked_number, checked_point
from gainful.live.records import Kind
from gainful.live.requests import receive, remember_answer
from gainful.live.results import Decision
from gainful.live.session import JournalSession

_DECISION = int(Kind.DECISION)
_NO_ACTION = bytes(4)


class DecisionMaker:
    """Makes and records the decisions of a session."""

    def __init__(self, session: JournalSession) -> None:
        self._session = session

    def decide(self, state: Any, request_id: str | None) -> Decision:
        """Choose an action, beginning an episode where one is due, and record it."""
        session = self._session
        life, layout = session.life, session.layout
        where: Any
        if life.points:
            where = checked_point(life.agent, state)
            told = layout.state.pack(*where)
        else:
            where = checked_number("state", state, life.core.n_states)
            told = layout.state.pack(where)
        request, known = receive(life.memory, layout, request_id, _DECISION, told + _NO_ACTION)
        if known is not None:
            return Decision(known.action, known.sequence, state)
        try:
            life.refine_if_due()
            begin_plans = not session.snapshots.due(session.sequence)  # a snapshot needs a moment without a plan
            action = life.choose(life.cell(where), begin_plans)
            payload = told + action.to_bytes(4, "little")
            sequence = session.append(_DECISION, payload, request.id)
            life.decided(sequence, where, action)
            if request.id:
                remember_answer(life.memory, request, sequence, action)
        except JournalError:
            raise
        except BaseException:
            session.stale = True
            raise
        session.snapshot_if_due()
        return Decision(action, sequence, state)
