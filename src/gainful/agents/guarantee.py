"""The guarantee of an agent, in words that a user can check."""

from __future__ import annotations

from dataclasses import dataclass

from gainful.cards import card


@dataclass(frozen=True)
class Guarantee:
    """What a theorem guarantees for an agent, what it assumes, and whether it applies to the agent's constants.

    Parameters
    ----------
    bound : str
        The regret bound, or "none".
    assumptions : tuple of str
        What the theorem assumes of the environment; it is up to the user to check it.
    source : str
        Where the theorem is published.
    reason_void : str
        Why the bound does not apply to this agent; empty if it does.
    span : float, optional
        c, if the theorem assumes that the optimal bias has span at most c, in units of reward.
    communicating : bool
        Whether it assumes that every state can be reached from every other.
    smoothness : tuple of float, optional
        (L, α), if it assumes that rewards and transitions are Hölder with these constants. What these three say is
        checked where the environment is known (`gainful.agents.conditions`).

    Examples
    --------
    >>> import gainful as gf
    >>> gf.SCALPlus(2, 2, span=1.0).guarantee.holds
    True
    >>> print(gf.SCALPlus(2, 2, span=1.0, bonus_scale=0.1).guarantee)
    no guarantee: bonus_scale is 0.1, the theorem needs 1
    """

    bound: str
    assumptions: tuple[str, ...]
    source: str
    reason_void: str = ""
    span: float | None = None
    communicating: bool = False
    smoothness: tuple[float, float] | None = None

    @property
    def holds(self) -> bool:
        """Whether the constants are the theorem's (it is up to the user to check its assumptions)."""
        return self.bound != "none" and not self.reason_void

    def __repr__(self) -> str:
        return f"Guarantee({self.bound if self.holds else str(self)})"

    def _repr_html_(self) -> str:
        """For notebooks: the bound, whether it holds, and what is left for the user to check."""
        facts = {"bound": self.bound, "holds for these constants": "yes" if self.holds else str(self)}
        if self.assumptions:
            facts["assumes"] = "; ".join(self.assumptions)
        return card("Guarantee", facts | ({"source": self.source} if self.source else {}))

    def __str__(self) -> str:
        if not self.holds:
            return f"no guarantee: {self.reason_void or 'none is known'}"
        return f"{self.bound}, if {' and '.join(self.assumptions)} ({self.source})"
