"""Logs of transitions from before an agent was in use: read, checked row by row, counted as observations."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gainful.agents.partitioned import PartitionedAgent
from gainful.errors import InvalidArgumentError, InvalidMDPError
from gainful.live.agent_config import make_agent
from gainful.live.batch_counting import cells_of, observe_rows
from gainful.live.labels import NO_LABELS
from gainful.live.records import TransitionColumns

if TYPE_CHECKING:
    from gainful.mdp.table_source import Source


def fit_log(
    table: Any,
    config: Any,
    *,
    states: Sequence[Any] | Mapping[Any, int] | None = None,
    actions: Sequence[Any] | Mapping[Any, int] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Any:
    """Fit an agent to a log: it observes every row, in order.

    The rows are counted as observations, whoever chose the actions; no decision is made. `gf.open_agent(path, agent)`
    makes the fitted agent durable.

    Parameters
    ----------
    table : str, Path, DataFrame or dict
        A CSV (.csv, .tsv, also compressed) or Parquet file, a data frame, or a dictionary of columns: `state`,
        `action`, `reward` (or `cost`, its negative), `next_state`; others are ignored. With `unit` and `time` in place
        of `next_state`, it is the state of the unit's next row, as for `gf.fit`. For an agent on points of d
        coordinates the columns are state_0 … state_{d-1} and next_state_0 …; plain `state` and `next_state` for d = 1.
    config : dict or agent
        What `gf.open_agent` takes: a dictionary, or an agent, of which a copy is fitted.
    states, actions : list or mapping, optional
        The numbers of the labels in the table: a list in order, or a mapping from label to number. By default the
        agent's own labels, if it has any, and the integers 0 … n-1 otherwise, or if none of its labels is an integer
        and the column has only integers.
    columns : mapping, optional
        The log's own names of columns: {"state": "condition"}.

    Returns
    -------
    agent
        The fitted agent.

    Raises
    ------
    InvalidMDPError
        If the table cannot be read, or a row is not accepted; the message names the first such row.
    InvalidArgumentError
        If the config or the labels are not accepted.

    Examples
    --------
    >>> log = {"state": [0, 1], "action": [1, 0], "reward": [0.5, 1.0], "next_state": [1, 0]}
    >>> fit_log(log, {"agent": "scal-plus", "n_states": 2, "n_actions": 2, "span": 1.0}).t
    2
    """
    given, _ = make_agent(config)
    agent = copy.deepcopy(given) if given is config else given
    observe_rows(agent, read_log(table, agent, states=states, actions=actions, columns=columns))
    return agent


def read_log(
    table: Any,
    agent: Any,
    *,
    states: Sequence[Any] | Mapping[Any, int] | None = None,
    actions: Sequence[Any] | Mapping[Any, int] | None = None,
    columns: Mapping[str, str] | None = None,
) -> TransitionColumns:
    """The rows of a log, every one checked against the agent's states, actions and range of rewards."""
    from gainful.estimation.log_table import with_names, with_next_states  # pandas: only where a log is read
    from gainful.mdp.table_reading import read_table

    source = with_names(read_table(table), columns or {})
    core = agent.core
    points = bool(agent.dim)
    if not points:
        source = with_next_states(source)
    source.require("action")
    paid = source.one_of("reward", "cost")
    source.require(paid)
    known = agent.labels or NO_LABELS
    origin: NDArray[Any]
    target: NDArray[Any]
    if points:
        origin, target = (_points(source, name, agent) for name in ("state", "next_state"))
    else:
        source.require("state", "next_state")
        origin, target = (
            _numbers(source, name, core.n_states, states, known.states) for name in ("state", "next_state")
        )
    chosen = _numbers(source, "action", core.n_actions, actions, known.actions)
    rewards, low, high = source.numbers(paid), core.reward_min, core.reward_max
    if paid == "cost":
        low, high = 0.0 - high, 0.0 - low
    _check(source, paid, (rewards < low) | (rewards > high), f"a number in [{low:g}, {high:g}]")
    if paid == "cost":
        rewards = 0.0 - rewards
    rows = TransitionColumns(origin, chosen.astype(np.uint32), rewards, target)
    if not points:
        _check(source, "action", ~core.allowed[origin.astype(np.int64), chosen], "an action that the state has")
    else:
        cells, _ = cells_of(agent, rows)
        _check(source, "action", ~core.allowed[cells, chosen], "an action that the cell has")
    return rows


def _check(source: Source, column: str, bad: NDArray[np.bool_], expected: str) -> None:
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        source.fail(at, column, source.shown(source.frame[column].iloc[at]), expected, int(bad.sum()))


def _numbers(
    source: Source,
    column: str,
    n: int,
    labels: Sequence[Any] | Mapping[Any, int] | None,
    known: tuple[str, ...] | None,
) -> NDArray[np.int64]:
    """A column of states or actions as numbers 0 … n-1; `known` are the agent's own labels."""
    found = source.labels(column)
    if labels is None and known is not None and not _all_numbers(found, known):
        labels = known
    argument = "actions" if column == "action" else "states"
    if labels is None:
        if found.dtype != np.int64:
            whole = np.array([_whole(x) for x in found], dtype=np.int64)
            _check(source, column, whole < 0, f"an integer in 0 … {n - 1}; give labels their numbers with {argument}=")
            found = whole
        _check(source, column, (found < 0) | (found >= n), f"an integer in 0 … {n - 1}")
        return found
    number = labels if isinstance(labels, Mapping) else {label: i for i, label in enumerate(labels)}
    table = {str(label): i for label, i in number.items()}
    for label, i in table.items():
        if isinstance(i, bool) or not isinstance(i, int | np.integer) or not 0 <= i < n:  # type: ignore[redundant-expr]
            raise InvalidArgumentError(
                argument, i, f"0 … {n - 1}", problem=f"label '{label}' of column '{column}' has number {i!r}"
            )
    numbers = np.array([table.get(str(x), -1) for x in found], dtype=np.int64)
    _check(source, column, numbers < 0, f"one of the {len(table)} labels of {argument}")
    return numbers


def _all_numbers(found: NDArray[Any], known: tuple[str, ...]) -> bool:
    """Whether a column is one of numbers: it has only integers, and none of the agent's labels is one."""
    return found.dtype == np.int64 and not any(label.lstrip("+-").isdecimal() for label in known)


def _whole(text: Any) -> int:
    try:
        return int(text)
    except (TypeError, ValueError):
        return -1


def _points(source: Source, name: str, agent: PartitionedAgent) -> NDArray[np.float64]:
    d = agent.dim
    columns = [name] if d == 1 and name in source.columns() else [f"{name}_{i}" for i in range(d)]
    source.require(*columns)
    points = np.stack([source.numbers(column) for column in columns], axis=1)
    try:
        agent.partition.index_many(points)
    except InvalidArgumentError:
        for row in range(len(points)):
            try:
                agent.partition.index(points[row])
            except InvalidArgumentError as error:
                raise InvalidMDPError(
                    f"{source.place(row)}, column '{columns[0]}': {error.problem}",
                    name=columns[0],
                    found=error.found,
                    expected=error.expected,
                    hint=error.hint,
                ) from error
        raise
    return points


def log_digest(rows: TransitionColumns) -> str:
    """A digest that tells one log from another."""
    found = hashlib.sha256()
    for column in (np.asarray(rows.states, dtype=np.float64), rows.actions, rows.rewards, rows.next_states):
        found.update(np.ascontiguousarray(column, dtype=np.float64).tobytes())
    return found.hexdigest()[:32]
