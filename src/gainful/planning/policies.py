"""Policies as people write them: mappings, tables and files, to actions or probabilities by index."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gainful.errors import InvalidArgumentError, InvalidMDPError, suggestion
from gainful.machine import check_memory
from gainful.mdp.labels import are_numbers
from gainful.mdp.model import MDP

Policy = NDArray[np.int64] | NDArray[np.float64]

PROBABILITY_SLACK = 1e-8
"""By how much a probability may exceed 1 through rounding."""
JSON_BYTES = 20.0
"""What a byte of a JSON file takes in memory, at most."""
_NAMES_SHOWN = 5


class PolicyRow(NamedTuple):
    """One state, one action and its probability, by name, and where it was written."""

    place: str
    state: Any
    action: Any
    probability: float


def as_policy_array(mdp: MDP, policy: Any) -> Any:
    """A mapping, a data frame or a file as (S,) actions or (S,A) probabilities; anything else as it is.

    A mapping has an action for each state, or a mapping from actions to probabilities. A table has the columns state
    and action, and one of probabilities if actions are mixed. A file is such a table (.csv, .tsv, .parquet) or JSON: an
    object like the mapping, or what `gainful solve --json` prints. A state with one action only may be left out.
    """
    rows = policy_rows(policy)
    if rows is None:
        return policy
    state_number = index_by_name(mdp.n_states, mdp.state_labels)
    action_number = index_by_name(mdp.n_actions, mdp.action_labels)
    table = _PolicyTable(mdp, str(policy) if isinstance(policy, str | os.PathLike) else "policy")
    for row in rows:
        s, a = state_number(row.state), action_number(row.action)
        if s is None:
            raise _unknown(row.place, "state", row.state, mdp.n_states, mdp.state_labels)
        if a is None:
            raise _unknown(row.place, "action", row.action, mdp.n_actions, mdp.action_labels)
        table.set(row.place, s, a, row.probability)
    return table.finished()


def policy_rows(policy: Any) -> list[PolicyRow] | None:
    """The rows of a policy given by name, or None for one given by arrays."""
    if isinstance(policy, Mapping):
        return _rows_of_mapping(policy, "policy")
    if isinstance(policy, str | os.PathLike):
        return _rows_of_file(Path(policy))
    if hasattr(policy, "columns"):
        return _rows_of_table(policy)
    return None


def index_by_name(n: int, labels: tuple[str, ...] | None) -> Callable[[Any], int | None]:
    """A function from a label, or an index where labels are no numbers, to the index; None if there is none."""
    number = None if labels is None else {label: i for i, label in enumerate(labels)}
    numbered = are_numbers(labels)

    def index(value: Any) -> int | None:
        whole = _whole(value)
        if number is not None and (isinstance(value, str) or numbered or whole is None):
            return number.get(str(value if whole is None else whole))
        return None if whole is None or not 0 <= whole < n else whole

    return index


def _unknown(place: str, kind: str, value: Any, n: int, labels: tuple[str, ...] | None) -> InvalidArgumentError:
    hint = suggestion(str(value), labels) if labels is not None else f"indices are 0 … {n - 1}"
    return InvalidArgumentError("policy", value, hint=hint, problem=f"{place}: there is no {kind} '{value}'")


# ---------------------------------------------------------------------- rows to an array


class _PolicyTable:
    """Probabilities of actions, filled cell by cell; a cell that is filled twice is an error."""

    def __init__(self, mdp: MDP, title: str) -> None:
        self.mdp = mdp
        self.title = title
        self.cells: dict[tuple[int, int], float] = {}
        self.first: dict[int, int] = {}
        self.mixed = False

    def set(self, place: str, s: int, a: int, probability: float) -> None:
        state, action = self.mdp.state_name(s), self.mdp.action_name(a)
        if (s, a) in self.cells:
            raise InvalidArgumentError("policy", state, problem=f"{place}: state {state} has action {action} twice")
        if probability == 0.0:
            return
        self.cells[s, a] = probability
        self.mixed = self.mixed or probability != 1.0
        if self.first.setdefault(s, a) != a and probability == 1.0:
            other = self.mdp.action_name(self.first[s])
            raise InvalidArgumentError(
                "policy",
                state,
                hint="give the probabilities of mixed actions",
                problem=f"{place}: state {state} has two actions, {other} and {action}",
            )

    def finished(self) -> Policy:
        """The policy, if every state that has a choice is in it."""
        mdp = self.mdp
        missing = [s for s in range(mdp.n_states) if s not in self.first]
        choices = [s for s in missing if mdp.allowed[s].sum() > 1]
        if choices:
            names = ", ".join(repr(mdp.state_name(s)) for s in choices[:_NAMES_SHOWN])
            more = f" and {len(choices) - _NAMES_SHOWN} more" if len(choices) > _NAMES_SHOWN else ""
            raise InvalidArgumentError(
                "policy",
                [mdp.state_name(s) for s in choices[:_NAMES_SHOWN]],
                "one for each state that has a choice",
                problem=f"{self.title}: no action for state{'s' if len(choices) > 1 else ''} {names}{more}",
            )
        for s in missing:
            self.first[s] = int(np.flatnonzero(mdp.allowed[s])[0])
            self.cells[s, self.first[s]] = 1.0
        if not self.mixed:
            return np.array([self.first[s] for s in range(mdp.n_states)], dtype=np.int64)
        table = np.zeros((mdp.n_states, mdp.n_actions))
        for (s, a), probability in self.cells.items():
            table[s, a] = probability
        return table


# ---------------------------------------------------------------------- mappings, tables and files to rows


def _rows_of_mapping(policy: Mapping[Any, Any], place: str) -> list[PolicyRow]:
    rows = []
    for state, choice in policy.items():
        if not isinstance(choice, Mapping):
            rows.append(PolicyRow(place, state, choice, 1.0))
            continue
        for action, probability in choice.items():
            rows.append(PolicyRow(place, state, action, _probability(place, state, action, probability)))
    return rows


def _whole(value: Any) -> int | None:
    """An index given as a number, or as text with digits only."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    return None


def _probability(place: str, state: Any, action: Any, value: Any) -> float:
    number = not isinstance(value, bool) and isinstance(value, int | float | np.integer | np.floating)
    if not number or not 0.0 <= value <= 1.0 + PROBABILITY_SLACK:
        raise InvalidArgumentError(
            "policy",
            value,
            "a number in [0, 1]",
            problem=f"{place}: the probability of {action} in {state} is {value!r}",
        )
    return float(value)


def _rows_of_table(table: Any) -> list[PolicyRow]:
    from gainful.mdp.table_reading import read_table

    source = read_table(table)
    source.require("state", "action")
    states, actions = source.labels("state"), source.labels("action")
    weights = np.ones(len(states))
    if "probability" in source.columns():
        source.require("probability")
        weights = source.numbers("probability", low=0.0, expected="a number in [0, 1]")
    rows = enumerate(zip(states, actions, weights.tolist(), strict=True))
    return [PolicyRow(source.place(i), state, action, weight) for i, (state, action, weight) in rows]


def _rows_of_file(path: Path) -> list[PolicyRow]:
    if path.suffix.lower() != ".json":
        return _rows_of_table(path)
    try:
        size = path.stat().st_size
        check_memory(str(path), size, JSON_BYTES * size, f"{path}: the policy")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InvalidMDPError(f"{path}: no such file", name=str(path), hint="check the path") from error
    except UnicodeDecodeError as error:
        raise InvalidMDPError(f"{path}: not UTF-8 text", name=str(path), hint="save it as UTF-8") from error
    except OSError as error:
        raise InvalidMDPError(f"{path}: cannot be read: {error.strerror or error}", name=str(path)) from error
    try:
        content = json.loads(text, object_pairs_hook=lambda pairs: _object(path, pairs))
    except InvalidMDPError:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidMDPError(f"{path}: not JSON: {error}", name=str(path), hint="correct the file") from error
    return _rows_of_json(path, content)


def _object(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidMDPError(f"{path}: '{twice}' occurs twice in one object", name=str(path), found=twice)
    return found


def _rows_of_json(path: Path, content: Any) -> list[PolicyRow]:
    """An object from states to actions; or a list of objects, as the member "policy" of what commands print."""
    if isinstance(content, dict) and isinstance(content.get("policy"), list | dict):
        content = content["policy"]
    if isinstance(content, dict):
        return _rows_of_mapping(content, str(path))
    if not isinstance(content, list) or not all(isinstance(entry, dict) and "state" in entry for entry in content):
        raise InvalidMDPError(
            f"{path}: not a policy",
            name=str(path),
            expected='an object such as {"new": "run"}, or what gainful solve --json prints',
        )
    rows = []
    for i, entry in enumerate(content):
        choice = entry["action"] if "action" in entry else entry.get("probabilities")
        rows += _rows_of_mapping({_name(path, entry["state"]): choice}, f"{path}, entry {i + 1}")
    return rows


def _name(path: Path, value: Any) -> Any:
    if not isinstance(value, str | int):
        problem = f"{path}: a state is {value!r}"
        raise InvalidMDPError(problem, name=str(path), found=value, expected="a name or a number")
    return value
