"""The user's words for an agent's states and actions, and whether rewards are costs, as files keep them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from gainful.arguments import whole_below
from gainful.errors import InvalidArgumentError, describe, nearest_name

MOST_COMPARED, LONGEST_COMPARED, MOST_LISTED = 200, 100, 10
"""Labels, and characters of one, up to which the nearest one is looked for; labels that a message lists."""

Objective: TypeAlias = Literal["reward", "cost"]


@dataclass(frozen=True)
class AgentLabels:
    """Labels of states and actions, and the sign of rewards.

    A string is always a label, and an integer always a number: with the labels "1", "2", "3" the first state is "1" or
    0. An answer has the form of the question: a label in, a label out.

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

    @classmethod
    def of(cls, environment: Any) -> AgentLabels | None:
        """The labels and the sign of a model or an environment; None if it has only numbers, and rewards.

        Parameters
        ----------
        environment : MDP, ContinuousEnvironment or any other
            An object that may have `state_labels`, `action_labels` and `units`.

        Returns
        -------
        AgentLabels or None
        """
        units = getattr(environment, "units", None)
        made = cls(
            getattr(environment, "state_labels", None) or None,
            getattr(environment, "action_labels", None) or None,
            "reward" if units is None else units.objective,
        )
        return None if made == cls() else made

    @property
    def sign(self) -> float:
        """+1 for rewards, -1 for costs."""
        return 1.0 if self.objective == "reward" else -1.0

    @cached_property
    def state_numbers(self) -> Mapping[str, int]:
        """The number of every state's label; empty if states have none."""
        return {label: i for i, label in enumerate(self.states or ())}

    @cached_property
    def action_numbers(self) -> Mapping[str, int]:
        """The number of every action's label; empty if actions have none."""
        return {label: i for i, label in enumerate(self.actions or ())}

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


def state_number(labels: AgentLabels | None, name: str, value: Any, n_states: int) -> int:
    """The number of a state that is given by its number or its label; `name` is what a message calls it."""
    if type(value) is int and 0 <= value < n_states:
        return value
    if isinstance(value, str):
        known = None if labels is None else labels.state_numbers
        return label_number(known, name, value, f"an integer in 0 … {n_states - 1}")
    return whole_below(name, value, n_states)


def action_number(labels: AgentLabels | None, value: Any, n_actions: int) -> int:
    """The number of an action that is given by its number or its label."""
    if type(value) is int and 0 <= value < n_actions:
        return value
    if isinstance(value, str):
        known = None if labels is None else labels.action_numbers
        return label_number(known, "action", value, f"an integer in 0 … {n_actions - 1}")
    return whole_below("action", value, n_actions)


def label_number(numbers: Mapping[str, int] | None, name: str, label: str, otherwise: str) -> int:
    """The number of a label, or an InvalidArgumentError: what to give `otherwise`, or the nearest label."""
    found = None if numbers is None else numbers.get(label)
    if found is not None:
        return found
    kind = name.split("[")[0].removeprefix("next_").removeprefix("next ").removesuffix("s")
    if not numbers:
        raise InvalidArgumentError(
            name,
            label,
            otherwise,
            problem=f"{name} is {describe(label)}, and the {kind}s of this agent have no labels",
        )
    raise InvalidArgumentError(name, label, hint=_hint(label, numbers), problem=f"there is no {kind} {describe(label)}")


def _hint(label: str, numbers: Mapping[str, int]) -> str:
    """The nearest label, if it is quickly found, or the first ones."""
    few = len(numbers) <= MOST_COMPARED and len(label) <= LONGEST_COMPARED
    near = nearest_name(label, numbers) if few else ""
    if near:
        return f"did you mean {near!r}?"
    shown = ", ".join(repr(one[:LONGEST_COMPARED]) for one in list(numbers)[:MOST_LISTED])
    return f"labels are {shown}{', …' if len(numbers) > MOST_LISTED else ''}"


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
