"""Transitions as an agent accepts them: checked before anything is written, in the types that are written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.partitioned import PartitionedAgent
from gainful.arguments import plain_number, whole_below
from gainful.errors import InvalidArgumentError, describe
from gainful.live.batch_counting import cells_of
from gainful.live.records import TransitionColumns


def checked_point(agent: PartitionedAgent, state: Any) -> NDArray[np.float64]:
    """A point the agent accepts, (d,) float64."""
    partition = agent.partition
    partition.index(state)
    x = np.array(state, dtype=np.float64).reshape(-1)
    if partition.outside == "error":  # of a float32 the end of the box may lie a little outside
        np.clip(x, partition.low, partition.high, out=x)
    x += 0.0  # -0.0 is 0.0
    return x


def checked_transition(
    agent: Any, state: Any, action: Any, reward: Any, next_state: Any
) -> tuple[Any, int, float, Any]:
    """State, action, reward and next state that the agent would accept, in plain types."""
    s: Any
    core = agent.core
    a = whole_below("action", action, core.n_actions)
    if core is agent:
        cell = s = whole_below("state", state, core.n_states)
    else:
        s = checked_point(agent, state)
        cell = agent.partition.index(s)
    r, to = checked_outcome(agent, reward, next_state)
    if not core.allowed[cell, a]:
        raise InvalidArgumentError(
            "action", a, problem=f"action {a} at step {core.t + 1}: state {state} does not have it"
        )
    return s, a, r, to


def checked_outcome(agent: Any, reward: Any, next_state: Any) -> tuple[float, Any]:
    """Reward and next state."""
    core = agent.core
    to: Any
    if core is agent:
        to = whole_below("next_state", next_state, core.n_states)
    else:
        to = checked_point(agent, next_state)
    try:
        r = plain_number(reward) + 0.0  # -0.0 is 0.0
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(
            "reward", reward, "a number", problem=f"reward {describe(reward)} at step {core.t + 1}"
        ) from error
    if not core.reward_min <= r <= core.reward_max:
        raise InvalidArgumentError(
            "reward",
            reward,
            f"a number in [{core.reward_min:g}, {core.reward_max:g}]",
            "give the agent the true reward_min and reward_max",
            problem=f"reward {describe(reward)} at step {core.t + 1}",
        )
    return r, to


def checked_rows(agent: Any, states: Any, actions: Any, rewards: Any, next_states: Any) -> TransitionColumns:
    """Columns of transitions; an error names the first bad row."""
    core = agent.core
    chosen = _whole_numbers("actions", actions, core.n_actions)
    n = len(chosen)
    try:
        _refuse_text(rewards)
        paid = np.array(rewards, dtype=np.float64) + 0.0  # -0.0 is 0.0
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError("rewards", rewards, problem=f"rewards are not numbers: {error}") from error
    origin, target = (_states(agent, name, x) for name, x in (("states", states), ("next_states", next_states)))
    lengths = {"states": len(origin), "actions": n, "rewards": paid.size, "next_states": len(target)}
    if len(set(lengths.values())) != 1 or paid.ndim != 1 or n == 0:
        found = ", ".join(f"{m} {name}" for name, m in lengths.items())
        raise InvalidArgumentError(
            "states", lengths, "as many of each, at least 1, in plain sequences", problem=f"found {found}"
        )
    bad = ~((paid >= core.reward_min) & (paid <= core.reward_max))
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InvalidArgumentError(
            f"rewards[{at}]",
            float(paid[at]),
            f"a number in [{core.reward_min:g}, {core.reward_max:g}]",
            f"{int(bad.sum())} of {n} rows are wrong",
        )
    rows = TransitionColumns(origin, chosen.astype(np.uint32), paid, target)
    missing = ~core.allowed[cells_of(agent, rows)[0], chosen]
    if missing.any():
        at = int(np.flatnonzero(missing)[0])
        raise InvalidArgumentError(
            f"actions[{at}]",
            int(chosen[at]),
            problem=f"actions[{at}] is {chosen[at]}, which state {origin[at]} does not have",
        )
    return rows


def _states(agent: Any, name: str, values: Any) -> NDArray[Any]:
    """(n,) numbers of states, or (n, d) points."""
    if agent.dim == 0:
        return _whole_numbers(name, values, agent.core.n_states)
    partition = agent.partition
    try:
        partition.index_many(values)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            name, error.found, error.expected, error.hint, problem=f"{name}: {error.problem}"
        ) from error
    x = np.array(values, dtype=np.float64).reshape(-1, partition.dim) + 0.0  # -0.0 is 0.0
    return np.clip(x, partition.low, partition.high) if partition.outside == "error" else x


def _refuse_text(values: Any) -> NDArray[Any]:
    """The values as they are; a TypeError for text, which NumPy would read as numbers."""
    given = np.asarray(values)
    if given.dtype.kind in "USO" and any(isinstance(x, (str, bytes)) for x in given.ravel().tolist()):
        raise TypeError("text")
    return given


def _whole_numbers(name: str, values: Any, n: int) -> NDArray[np.int64]:
    """Integers in 0 … n-1, or an error that names the first that is not."""
    try:
        given = _refuse_text(values)
        if given.dtype.kind == "b":
            raise TypeError("truth values")
        with np.errstate(invalid="ignore"):  # of NaN, which is found below
            found = given.astype(np.int64) if given.dtype.kind in "iuf" else np.array(given, dtype=np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(name, values, problem=f"{name} are not numbers: {error}") from error
    if found.ndim != 1:
        raise InvalidArgumentError(name, found.shape, "a plain sequence", problem=f"{name} have shape {found.shape}")
    bad = (found < 0) | (found >= n) | (found != given)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise InvalidArgumentError(
            f"{name}[{at}]",
            given[at].item(),
            f"an integer in 0 … {n - 1}",
            f"{int(bad.sum())} of {len(found)} rows are wrong",
        )
    return found
