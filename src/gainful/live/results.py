"""What a durable agent gives back: decisions, receipts, changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self


class JournalWarning(UserWarning):
    """Something about a journal that its owner should know; nothing acknowledged was lost."""


class Decision(int):
    """An action, which is an int, with the `decision_id` to report its outcome by, and the `state` it is for."""

    decision_id: int
    state: Any

    def __new__(cls, action: int, decision_id: int, state: Any) -> Self:
        """One decision."""
        made = super().__new__(cls, action)
        made.decision_id, made.state = decision_id, state
        return made

    @property
    def action(self) -> int:
        """The action as a plain int."""
        return int(self)

    def __repr__(self) -> str:
        return f"Decision(action={int(self)}, decision_id={self.decision_id}, state={self.state})"

    __str__ = int.__repr__

    def __reduce__(self) -> tuple[Any, ...]:
        return Decision, (int(self), self.decision_id, self.state)


class Receipt(NamedTuple):
    """What became of an observation: the number of its record, and whether it was told before, and ignored now."""

    sequence: int
    repeated: bool = False


class Pending(NamedTuple):
    """A decision whose outcome is not known, made after `t` observations."""

    decision_id: int
    state: Any
    action: int
    t: int


@dataclass(frozen=True)
class Change:
    """A setting that was changed on the living agent, in force from the next episode on."""

    sequence: int
    time: int
    """Nanoseconds since 1970."""
    t: int
    """Observations made before it."""
    name: str
    old: float
    new: float
    reason: str = ""
