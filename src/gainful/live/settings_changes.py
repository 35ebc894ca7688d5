"""Changing the settings of an agent while it is in use."""

from __future__ import annotations

from typing import Any

from gainful.errors import InvalidArgumentError
from gainful.live.receipts import Receipt
from gainful.live.records import RecordKind, pack_change
from gainful.live.requests import receive, remember_answer
from gainful.live.session import JournalSession

_CHANGE = int(RecordKind.CHANGE)


def change_settings(session: JournalSession, settings: dict[str, Any], reason: Any, request_id: str | None) -> Receipt:
    """Record new settings; the next decision begins an episode with them."""
    if not isinstance(reason, str):
        raise InvalidArgumentError("reason", reason, "a string")
    if not settings:
        raise InvalidArgumentError("settings", {}, "at least one setting", "write for instance change(span=5.0)")
    machine = session.machine
    machine.check_change(settings)
    new = {name: float(settings[name]) for name in sorted(settings)}
    payload = pack_change({"settings": new, "reason": reason})
    request, known = receive(machine.ledger, session.layout, request_id, _CHANGE, payload)
    if known is not None:
        return Receipt(known.sequence, True)
    with session.recording():
        if machine.plan_under_way:
            machine.finish_plan()
        sequence = session.append(_CHANGE, payload, request.id)
        machine.apply_change(new, reason, sequence, session.written_at)
        if request.id:
            remember_answer(machine.ledger, request, sequence)
    session.snapshot_if_due()
    return Receipt(sequence)
