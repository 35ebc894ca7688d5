"""Changing the settings of an agent while it is in use."""

from __future__ import annotations

from typing import Any

from gainful.errors import InvalidArgumentError
from gainful.live.records import Kind, pack_change
from gainful.live.requests import receive, remember_answer
from gainful.live.results import Receipt
from gainful.live.session import JournalSession

_CHANGE = int(Kind.CHANGE)


def change_settings(session: JournalSession, settings: dict[str, Any], reason: Any, request_id: str | None) -> Receipt:
    """Record new settings; the next decision begins an episode with them."""
    if not isinstance(reason, str):
        raise InvalidArgumentError("reason", reason, "a string")
    if not settings:
        raise InvalidArgumentError("settings", {}, "at least one setting", "write for instance change(span=5.0)")
    life = session.life
    life.check_change(settings)
    new = {name: float(settings[name]) for name in sorted(settings)}
    payload = pack_change({"settings": new, "reason": reason})
    request, known = receive(life.memory, session.layout, request_id, _CHANGE, payload)
    if known is not None:
        return Receipt(known.sequence, True)
    with session.recording():
        if life.plan_under_way:
            life.finish_plan()
        sequence = session.append(_CHANGE, payload, request.id)
        life.changed(new, reason, sequence, session.written_at)
        if request.id:
            remember_answer(life.memory, request, sequence)
    session.snapshot_if_due()
    return Receipt(sequence)
