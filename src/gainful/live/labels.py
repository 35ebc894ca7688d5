"""The user's words at the edges of a durable agent: labels become numbers going in, and labels again coming out.

Below, everything works with numbers and rewards to be maximised. A string is always a label, an integer always a
number, and an answer has the form of its question: a label in, a label out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gainful.agents.labels import AgentLabels, label_number
from gainful.arguments import finite
from gainful.errors import InvalidArgumentError, describe
from gainful.live.earnings import Earnings, EarningsOverTime, Outcome
from gainful.live.receipts import Decision, Pending

NO_LABELS = AgentLabels()


class LabelledDecision(str):
    """The label of an action, which carries the id of its decision; it is a str, and can be used as one.

    Parameters
    ----------
    label : str
        The label of the action.
    decision : Decision
        The decision in numbers.
    state : str
        The label of the state that the decision was made for.

    Examples
    --------
    >>> decision = LabelledDecision("service", Decision(1, decision_id=7, state=0), "worn")
    >>> decision == "service", decision.decision_id, decision.number
    (True, 7, 1)
    """

    __slots__ = ("decision_id", "number", "state")
    decision_id: int
    number: int
    state: str

    def __new__(cls, label: str, decision: Decision, state: str) -> Self:
        """Attach the decision's id, number and state to the label of its action."""
        made = super().__new__(cls, label)
        made.decision_id, made.number, made.state = decision.decision_id, int(decision), state
        return made

    @property
    def action(self) -> str:
        """The label of the action as a plain str."""
        return str.__str__(self)

    def __repr__(self) -> str:
        return f"LabelledDecision(action={self.action!r}, decision_id={self.decision_id}, state={self.state!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return LabelledDecision, (self.action, Decision(self.number, self.decision_id, None), self.state)


class LabelTranslation:
    """Between the words of a user and the numbers of one agent.

    Parameters
    ----------
    labels : AgentLabels or None
        The labels and the sign; None if there are only numbers, and rewards.
    n_states, n_actions, dim : int
        The sizes of the agent; `dim` is 0 if states are numbers.
    """

    def __init__(self, labels: AgentLabels | None, n_states: int, n_actions: int, dim: int) -> None:
        self.labels = labels
        self._known = NO_LABELS if labels is None else labels
        point = "a number" if dim == 1 else f"a list of {dim} numbers"
        self._state_form = point if dim else f"an integer in 0 … {n_states - 1}"
        self._action_form = f"an integer in 0 … {n_actions - 1}"

    # ------------------------------------------------------------------ in

    def state(self, name: str, value: Any) -> Any:
        """A state as the agent takes it."""
        if not isinstance(value, str):
            return value
        return label_number(self._known.state_numbers, name, value, self._state_form)

    def action(self, value: Any) -> Any:
        """An action as the agent takes it; what `act` answered keeps its decision."""
        if not isinstance(value, str):
            return value
        if isinstance(value, LabelledDecision):
            return Decision(value.number, value.decision_id, value.state)
        return label_number(self._known.action_numbers, "action", value, self._action_form)

    def transition(self, core: Any, state: Any, action: Any, reward: Any, next_state: Any) -> tuple[Any, Any, Any, Any]:
        """State, action, reward and next state as the agent takes them; an error about them has the user's words."""
        s, a, to = self.state("state", state), self.action(action), self.state("next_state", next_state)
        if isinstance(state, str) and type(a) in (int, Decision) and 0 <= a < core.n_actions and not core.allowed[s, a]:
            has = ", ".join(repr(self.action_name(int(b))) for b in np.flatnonzero(core.allowed[s]))
            problem = f"action {describe(action)} at step {core.t + 1}: state {state!r} does not have it"
            raise InvalidArgumentError("action", action, hint=f"it has {has}", problem=problem)
        return s, a, reward, to

    def column(self, name: str, values: Any) -> Any:
        """A column of states or actions, in which any entry may be a label."""
        if isinstance(values, np.ndarray) and values.dtype.kind not in "UO":
            return values
        entries = values.tolist() if isinstance(values, np.ndarray) else values
        if not isinstance(entries, Sequence) or isinstance(entries, str) or str not in {type(x) for x in entries}:
            return values
        known = (self._known.state_numbers, self._state_form)
        if name == "actions":
            known = (self._known.action_numbers, self._action_form)
        numbers, otherwise = known
        return [
            label_number(numbers, f"{name}[{i}]", x, otherwise) if isinstance(x, str) else x
            for i, x in enumerate(entries)
        ]

    # ------------------------------------------------------------------ out

    def decision(self, decision: Decision, state: str) -> Decision | LabelledDecision:
        """The answer to a state that was given by its label."""
        actions = self._known.actions
        return decision if actions is None else LabelledDecision(actions[decision], decision, state)

    def action_name(self, action: int) -> Any:
        """The label of an action, or the action itself."""
        return action if self._known.actions is None else self._known.actions[action]

    def state_name(self, state: int) -> Any:
        """The label of a state, or the state itself."""
        return state if self._known.states is None else self._known.states[state]

    def pending(self, decision_id: int, state: Any, action: int, t: int) -> Pending:
        """A waiting decision, with the labels of its state and action if they have any."""
        known = self._known
        return Pending(
            decision_id,
            state,
            action,
            t,
            None if known.states is None else known.states[state],
            None if known.actions is None else known.actions[action],
        )

    def earnings(self, earned: Earnings, t: int) -> EarningsOverTime:
        """What an agent earned until step t, in the user's words: costs stay costs."""
        known, sign = self._known, -1.0 if self._known.objective == "cost" else 1.0
        first = t - len(earned.transitions) + 1
        outcomes = tuple(
            Outcome(
                step, self._place(s), a if known.actions is None else known.actions[a], sign * r + 0.0, self._place(to)
            )
            for step, (s, a, r, to) in enumerate(earned.transitions, first)
        )
        averages = np.array(earned.sums) / earned.length * sign + 0.0
        return EarningsOverTime(earned.before, earned.length, averages, outcomes)

    def _place(self, state: Any) -> Any:
        """A state by its label or number, or the coordinates of a point."""
        if isinstance(state, np.ndarray):
            return state.tolist()
        return int(state) if self._known.states is None else self._known.states[int(state)]

    def policy(self, actions: NDArray[np.int64]) -> dict[Any, Any]:
        """The action of every state, in labels where there are any."""
        return {self.state_name(s): self.action_name(a) for s, a in enumerate(actions.tolist())}

    def bounds(self, low: float, high: float) -> tuple[float, float]:
        """A bracket on rewards, as one on costs if the user's numbers are costs."""
        return (low, high) if self._known.objective == "reward" else (0.0 - high, 0.0 - low)


def reward_of(core: Any, reward: Any, cost: Any) -> Any:
    """The reward of an outcome that is given as a reward or as a cost, which is checked here."""
    if cost is None:
        if reward is None:
            raise InvalidArgumentError(
                "reward", hint="give a reward, or cost=", problem="there is neither reward nor cost"
            )
        return reward
    if reward is not None:
        raise InvalidArgumentError(
            "cost", cost, hint="leave one of them out", problem="both a reward and a cost are given"
        )
    low, high = 0.0 - core.reward_max, 0.0 - core.reward_min
    if not finite(cost) or not low <= cost <= high:
        raise InvalidArgumentError(
            "cost",
            cost,
            f"a number in [{low:g}, {high:g}]",
            "give the agent the true range of costs",
            problem=f"cost {describe(cost)} at step {core.t + 1}",
        )
    return 0.0 - float(cost)


def rewards_of(core: Any, rewards: Any, costs: Any) -> Any:
    """The rewards of many outcomes that are given as rewards or as costs, which are checked here."""
    if (rewards is None) == (costs is None):
        problem = "there are neither rewards nor costs" if costs is None else "both rewards and costs are given"
        raise InvalidArgumentError("rewards", hint="give one of rewards and costs=", problem=problem)
    if costs is None:
        return rewards
    try:
        given = np.asarray(costs)
        if given.dtype.kind not in "iuf":
            raise TypeError(f"they have dtype {given.dtype}")
        found = 0.0 - given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError("costs", costs, problem=f"costs are not numbers: {error}") from error
    bad = ~((found >= core.reward_min) & (found <= core.reward_max))
    if bad.any():
        at = int(np.flatnonzero(bad.reshape(-1))[0])
        low, high = 0.0 - core.reward_max, 0.0 - core.reward_min
        hint = f"{int(bad.sum())} of {bad.size} rows are wrong"
        raise InvalidArgumentError(
            f"costs[{at}]", float(given.reshape(-1)[at]), f"a number in [{low:g}, {high:g}]", hint
        )
    return found


# ---------------------------------------------------------------------- in a config


def labels_in(given: dict[str, Any], sizes: bool) -> AgentLabels | None:
    """Take labels and costs out of a config; the numbers of states and actions, and the range of rewards, follow.

    "state_labels" and "action_labels" are lists; "objective" is "reward" or "cost"; "cost_min" and "cost_max" stand for
    reward_max and reward_min with the other sign. With `sizes`, there is one label for every state.
    """
    names = {kind: given.pop(f"{kind}_labels", None) for kind in ("state", "action")}
    objective = given.pop("objective", None)
    ends = {name: given.pop(name) for name in ("cost_min", "cost_max") if name in given}
    if objective not in (None, "reward", "cost"):
        raise InvalidArgumentError("config['objective']", objective, "'reward' or 'cost'")
    if ends:
        objective = _with_costs(given, ends, objective)
    if names["state"] is not None and not sizes:
        raise InvalidArgumentError(
            "config['state_labels']", names["state"], hint="leave them out", problem="points have no labels"
        )
    found = {kind: _checked(f"{kind}_labels", labels, given, f"n_{kind}s") for kind, labels in names.items()}
    made = AgentLabels(found["state"], found["action"], objective or "reward")
    return None if made == NO_LABELS else made


def _with_costs(given: dict[str, Any], ends: Mapping[Any, Any], objective: Any) -> str:
    if objective == "reward" or "reward_min" in given or "reward_max" in given:
        raise InvalidArgumentError(
            "config", sorted(ends), hint="give the range of one of them", problem="config has costs and rewards"
        )
    for name, other in (("cost_min", "reward_max"), ("cost_max", "reward_min")):
        value = ends.get(name, 0.0 if name == "cost_min" else 1.0)
        if not finite(value):
            raise InvalidArgumentError(f"config[{name!r}]", value, "a finite number")
        given[other] = 0.0 - float(value)
    return "cost"


def _checked(name: str, labels: Any, given: dict[str, Any], size: str) -> tuple[str, ...] | None:
    """Distinct labels; their number is that of the states or actions if the config does not say it."""
    if labels is None:
        return None
    where = f"config[{name!r}]"
    if isinstance(labels, str) or not isinstance(labels, Sequence) or not all(isinstance(x, str) for x in labels):
        raise InvalidArgumentError(where, labels, "a list of text")
    if len(set(labels)) != len(labels):
        twice = next(x for x in labels if labels.count(x) > 1)
        raise InvalidArgumentError(where, twice, hint="labels must be distinct", problem=f"{where} has {twice!r} twice")
    if given.setdefault(size, len(labels)) != len(labels):
        raise InvalidArgumentError(
            where, len(labels), f"{given[size]}, as {size} says", problem=f"{where} has {len(labels)} labels"
        )
    return tuple(labels)
