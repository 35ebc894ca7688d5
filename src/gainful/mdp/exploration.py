"""A model written as a function: its reachable states are explored, and become an MDP."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gainful.arguments import whole
from gainful.errors import InvalidArgumentError, InvalidMDPError, TooLargeError
from gainful.machine import check_memory
from gainful.mdp.choices import ordered_choices
from gainful.mdp.units import Objective
from gainful.progress import Progress, shown_progress

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

    Model = TypeVar("Model", bound=MDP)

MOST_EXPLORED = 10_000_000
"""States after which exploration stops, unless another number is given."""
LABELS_UP_TO = 100_000
"""States up to which they are labelled without being asked for."""
EXPLORED_STATE_BYTES, EXPLORED_ENTRY_BYTES = 500.0, 60.0
"""What a state and a transition take while a model is explored and built (measured, with tuples as states)."""
_TELL_EVERY = 1024  # states


def from_function(
    cls: type[Model],
    start: Any,
    actions: Callable[[Any], Iterable[Hashable]] | Sequence[Hashable],
    outcomes: Callable[[Any, Any], Iterable[tuple[Any, float, float]]],
    *,
    objective: Objective = "reward",
    name: str | None = None,
    labels: bool | Callable[[Any], str] | None = None,
    max_states: int = MOST_EXPLORED,
    progress: Progress = None,
) -> Model:
    """Build an MDP from functions, on the states that can be reached from the start.

    States are numbered in the order in which they are found, breadth first, and actions in the order in which they
    first occur. Equal outcomes of a pair are merged. A transition takes 20 bytes while states are explored.

    Parameters
    ----------
    cls : type
        `MDP` or a subclass.
    start : hashable, or mapping
        The start state, or a distribution: {state: probability}.
    actions : callable or sequence
        actions(state) lists the actions of a state; a sequence means the same ones in all states.
    outcomes : callable
        outcomes(state, action) lists (next state, probability, reward or cost).
    objective : {"reward", "cost"}
        Whether the third number is maximised or minimised.
    name : str, optional
        A name to show.
    labels : bool or callable, optional
        Whether to label states with str(state), or the function that does; by default for up to 100,000 states.
    max_states : int
        States after which to give up, because the state space may be infinite.
    progress : bool or callable, optional
        True shows the progress on stderr; a function is called with (states explored, states known).

    Returns
    -------
    MDP

    Raises
    ------
    InvalidMDPError
        If the functions do not describe a decision process; the message names the state and the action.
    TooLargeError
        If more than `max_states` states can be reached.
    """
    if not callable(outcomes):
        raise InvalidArgumentError("outcomes", outcomes, "a function of a state and an action")
    found = _Exploration(actions, outcomes, whole("max_states", max_states, 1))
    weights = _start_weights(start)
    for state in weights:
        found.number_of(state)
    with shown_progress(progress, "exploring", "states") as tell:
        found.explore(tell)
    return _built(cls, found, weights, objective, name, _labels(found.states, labels))


class _Exploration:
    """States as they are found, and the rows of their actions."""

    def __init__(self, actions: Any, outcomes: Callable[[Any, Any], Any], max_states: int) -> None:
        self.actions = actions if callable(actions) else _always(actions)
        self.outcomes, self.max_states = outcomes, max_states
        self.states: list[Any] = []
        self.number: dict[Any, int] = {}
        self.action_number: dict[Any, int] = {}
        self.choice_state, self.choice_action, self.choice_end = array("q"), array("q"), array("q")
        self.target, self.probability, self.reward = array("i"), array("d"), array("d")

    def number_of(self, state: Any) -> int:
        """The number of a state, a new one if it was not known."""
        try:
            number = self.number.get(state)
        except TypeError as error:
            raise InvalidMDPError(
                f"state {state!r} is not hashable",
                name="state",
                found=state,
                expected="a string, a number or a tuple",
                hint="turn lists and arrays into tuples",
            ) from error
        if number is None:
            number = len(self.states)
            if number >= self.max_states:
                raise TooLargeError(
                    f"more than {self.max_states:,} states can be reached; the last one is {state!r}",
                    name="max_states",
                    found=self.max_states,
                    hint="is the state space finite? If so, raise max_states",
                )
            self.number[state] = number
            self.states.append(state)
        return number

    def explore(self, tell: Any) -> None:
        """Visit every state once; new ones are appended meanwhile."""
        for s, state in enumerate(self.states):
            if s % _TELL_EVERY == 0:
                self._check_memory()
                if tell is not None:
                    tell(s, len(self.states))
            before = len(self.choice_state)
            for action in self.actions(state):
                self._add_choice(s, state, action)
            if len(self.choice_state) == before:
                raise InvalidMDPError(
                    f"state {state!r} has no action",
                    name="actions",
                    found=state,
                    hint="a state that ends the process can loop on itself or restart",
                )
        if tell is not None:
            tell(len(self.states), len(self.states))

    def _check_memory(self) -> None:
        """MemoryLimitError if what was found so far takes more than one model may."""
        needed = EXPLORED_STATE_BYTES * len(self.states) + EXPLORED_ENTRY_BYTES * len(self.target)
        thing = f"a model with {len(self.states):,} states and {len(self.target):,} transitions"
        check_memory("outcomes", len(self.states), needed, thing)

    def _add_choice(self, s: int, state: Any, action: Any) -> None:
        a = self.action_number.setdefault(action, len(self.action_number))
        self.choice_state.append(s)
        self.choice_action.append(a)
        known, target, probability, reward = self.number, self.target, self.probability, self.reward
        try:
            for next_state, p, r in self.outcomes(state, action):
                number = known.get(next_state)
                target.append(self.number_of(next_state) if number is None else number)
                probability.append(p)
                reward.append(r)
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidMDPError):
                raise
            raise InvalidMDPError(
                f"the outcomes of state {state!r}, action {action!r} cannot be read: {error}",
                name="outcomes",
                found=state,
                expected="(next state, probability, reward) for each outcome",
            ) from error
        if len(target) == (self.choice_end[-1] if self.choice_end else 0):
            raise InvalidMDPError(
                f"state {state!r}, action {action!r} has no outcome",
                name="outcomes",
                found=state,
                expected="at least one",
            )
        self.choice_end.append(len(target))


def _always(actions: Any) -> Callable[[Any], Sequence[Hashable]]:
    if isinstance(actions, str) or not isinstance(actions, Iterable):
        raise InvalidArgumentError("actions", actions, "a function of the state, or a sequence of actions")
    fixed = tuple(actions)
    return lambda state: fixed  # noqa: ARG005


def _start_weights(start: Any) -> dict[Any, float]:
    if not isinstance(start, Mapping):
        return {start: 1.0} if isinstance(start, Hashable) else _unhashable(start)
    if not start:
        raise InvalidArgumentError("start", start, "a state, or a distribution over at least one")
    return dict(start)


def _unhashable(start: Any) -> dict[Any, float]:
    raise InvalidArgumentError("start", start, "a string, a number or a tuple, or a distribution over such states")


def _labels(states: list[Any], wanted: bool | Callable[[Any], str] | None) -> list[str] | None:
    """The labels of states; None if they are not wanted, or are 0 … S-1 in order anyway."""
    if wanted is False or (wanted is None and len(states) > LABELS_UP_TO):
        return None
    if all(type(state) is int and state == s for s, state in enumerate(states)):
        return None
    name = wanted if callable(wanted) else str
    labels = [name(state) for state in states]
    if wanted is None and len(set(labels)) < len(labels):  # 1 and "1"
        labels = [repr(state) for state in states]
    return labels


def _built(
    cls: type[Model],
    found: _Exploration,
    weights: dict[Any, float],
    objective: Objective,
    name: str | None,
    labels: list[str] | None,
) -> Model:
    S, A = len(found.states), len(found.action_number)
    state, action = (np.frombuffer(column, dtype=np.int64) for column in (found.choice_state, found.choice_action))
    ends = np.frombuffer(found.choice_end, dtype=np.int64)
    lengths = np.diff(ends, prepend=0)
    _check_choices(found, state, action, A)
    rows = ordered_choices(S, A, state, action, lengths)
    target = np.frombuffer(found.target, dtype=np.int32)
    probability, reward = np.frombuffer(found.probability), np.frombuffer(found.reward)
    if rows.entries is not None:
        target, probability, reward = target[rows.entries], probability[rows.entries], reward[rows.entries]
    rewards, constant = _rewards(rows.indptr, reward, probability, S, A)
    start = np.zeros(S)
    for s, weight in weights.items():
        start[found.number[s]] = weight
    names = [str(x) for x in found.action_number]
    plain = all(type(x) is int and x == i for i, x in enumerate(found.action_number))
    return cls.from_rows(
        rows.indptr,
        target,
        probability,
        rewards if constant else reward,
        n_actions=A,
        start=start,
        state_labels=labels,
        action_labels=None if plain else names,
        objective=objective,
        name=name,
    )


def _check_choices(found: _Exploration, state: NDArray[np.int64], action: NDArray[np.int64], A: int) -> None:
    pairs, count = np.unique(state * A + action, return_counts=True)
    if pairs.size < state.size:
        s, a = divmod(int(pairs[count > 1][0]), A)
        named = list(found.action_number)[a]
        raise InvalidMDPError(
            f"state {found.states[s]!r} has the action {named!r} twice", name="actions", found=named, expected="once"
        )


def _rewards(
    indptr: NDArray[np.int64], reward: NDArray[np.float64], probability: NDArray[np.float64], S: int, A: int
) -> tuple[NDArray[np.float64], bool]:
    """The reward of each pair, and whether its possible outcomes all have it."""
    pair = np.repeat(np.arange(S * A), np.diff(indptr))
    possible = probability > 0.0
    of_pair = np.zeros(S * A)
    of_pair[pair[possible]] = reward[possible]
    constant = bool(np.all(of_pair[pair[possible]] == reward[possible]))
    return of_pair.reshape(S, A), constant
