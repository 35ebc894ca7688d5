"""What an agent promises, in words a user can check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    """A bound, what it assumes, and whether it applies to this agent's constants."""

    bound: str
    """The regret bound, or "none"."""
    assumptions: tuple[str, ...]
    source: str
    reason_void: str = ""
    """Why the bound does not apply here; empty where it does."""

    @property
    def holds(self) -> bool:
        """Whether the theorem's constants are untouched (its assumptions are the user's to check)."""
        return self.bound != "none" and not self.reason_void

    def __str__(self) -> str:
        if not self.holds:
            return f"no guarantee: {self.reason_void or 'none is known'}"
        return f"{self.bound}, if {' and '.join(self.assumptions)} ({self.source})"
