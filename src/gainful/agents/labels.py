"""The user's words for an agent's states and actions, and whether rewards are costs, as files keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Objective: TypeAlias = Literal["reward", "cost"]


@dataclass(frozen=True)
class AgentLabels:
    """Labels of states and actions, and the sign of rewards.

    Parameters
    ----------
    states, actions : tuple of str, optional
        One label for every state and every action; None if there are only numbers.
    objective : "reward" or "cost"
        "cost" if the user's numbers are costs, so that the agent's rewards are their negatives.

    Examples
    --------
    >>> AgentLabels(("new", "worn"), ("run", "service"), "cost").to_json()
    {'states': ['new', 'worn'], 'actions': ['run', 'service'], 'objective': 'cost'}
    """

    states: tuple[str, ...] | None = None
    actions: tuple[str, ...] | None = None
    objective: Objective = "reward"

    def to_json(self) -> dict[str, Any]:
        """The labels in plain values, as files have them."""
        return {
            "states": None if self.states is None else list(self.states),
            "actions": None if self.actions is None else list(self.actions),
            "objective": self.objective,
        }

    @classmethod
    def from_json(cls, kept: Any, n_states: int | None = None, n_actions: int | None = None) -> AgentLabels | None:
        """What `to_json` returned, or None; a ValueError unless there is one label for each state and action.

        Parameters
        ----------
        kept : dict or None
            What a file holds.
        n_states, n_actions : int, optional
            How many labels there must be.

        Returns
        -------
        AgentLabels or None
            None if the agent has no labels.
        """
        if kept is None:
            return None
        if not isinstance(kept, dict) or not set(kept) <= {"states", "actions", "objective"}:
            raise ValueError("the labels are not an object with states, actions and objective")
        objective = kept.get("objective", "reward")
        if objective not in ("reward", "cost"):
            raise ValueError(f"the objective is {objective!r}, not 'reward' or 'cost'")
        states = _checked_names("states", kept.get("states"), n_states)
        return cls(states, _checked_names("actions", kept.get("actions"), n_actions), objective)


def _checked_names(name: str, found: Any, n: int | None) -> tuple[str, ...] | None:
    if found is None:
        return None
    if not isinstance(found, Sequence) or isinstance(found, str) or not all(isinstance(x, str) for x in found):
        raise ValueError(f"the labels of {name} are not a list of text")
    if n is not None and len(found) != n:
        raise ValueError(f"{len(found)} labels for {n} {name}")
    if len(set(found)) != len(found):
        raise ValueError(f"two {name} have the same label")
    return tuple(found)
