"""What the methods of a durable agent return: decisions, receipts, changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self


class JournalWarning(UserWarning):
    """Something about a journal that its owner should know; no acknowledged record was lost."""


class Decision(int):
    """An action that carries the id of its decision; it is an int, and can be used as one.

    Parameters
    ----------
    action : int
        The action.
    decision_id : int
        The number to report the outcome by.
    state : int or array_like
        The state that the decision was made for.

    Examples
    --------
    >>> decision = Decision(1, decision_id=7, state=0)
    >>> decision + 1, decision.decision_id
    (2, 7)
    """

    decision_id: int
    state: Any

    def __new__(cls, action: int, decision_id: int, state: Any) -> Self:
        """Attach the decision's id and state to its action."""
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
    """What became of a call that records something.

    Attributes
    ----------
    sequence : int
        The number of the record.
    repeated : bool
        Whether the same was recorded before, by an earlier call; it has no further effect then.

    Examples
    --------
    >>> receipt = Receipt(sequence=3)
    >>> receipt.sequence, receipt.repeated
    (3, False)
    """

    sequence: int
    repeated: bool = False


class Pending(NamedTuple):
    """A decision that waits for its outcome.

    Attributes
    ----------
    decision_id : int
        The number to report the outcome by.
    state : int or array_like
        The state that the decision was made for.
    action : int
        The action.
    t : int
        The number of observations when it was made.
    state_label, action_label : str or None
        The labels of the state and of the action; None if they have none.

    Examples
    --------
    >>> waiting = Pending(decision_id=7, state=0, action=1, t=41)
    >>> f"decision {waiting.decision_id}: action {waiting.action} in state {waiting.state}"
    'decision 7: action 1 in state 0'
    """

    decision_id: int
    state: Any
    action: int
    t: int
    state_label: str | None = None
    action_label: str | None = None


@dataclass(frozen=True)
class Change:
    """A setting that was changed while the agent was in use, in force from the next episode on.

    Attributes
    ----------
    sequence : int
        The number of the record.
    time : int
        When, in nanoseconds since 1970.
    t : int
        The number of observations made before.
    name : str
        The setting.
    old, new : float
        Its value before and after; `old` is None if it had none.
    reason : str
        Why, in the words of whoever changed it.

    Examples
    --------
    >>> change = Change(sequence=12, time=0, t=10, name="span", old=7.0, new=5.0, reason="new pump")
    >>> f"{change.name}: {change.old:g} to {change.new:g} ({change.reason})"
    'span: 7 to 5 (new pump)'
    """

    sequence: int
    time: int
    t: int
    name: str
    old: float | None
    new: float
    reason: str = ""
