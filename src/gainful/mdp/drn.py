"""Storm's explicit format (DRN): models of the model checker Storm, to an MDP and back.

The format is described at https://www.stormchecker.org/documentation/background/drn.html: a header of sections that
begin with @, then for each state its rewards and labels, its actions with their rewards, and their transitions.
"""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gainful.atomic_files import replace_file
from gainful.errors import InvalidArgumentError, InvalidMDPError, suggestion
from gainful.mdp.choices import ordered_choices
from gainful.mdp.drn_reader import DrnReader, open_drn
from gainful.mdp.units import Objective

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

    Model = TypeVar("Model", bound=MDP)

SUFFIXES = (".drn", ".drn.gz", ".drn.xz")
PAIRS_PER_CHOICE = 16
"""Names of actions are used unless states times names are more than this many times the choices."""
_NO_LABEL = "__NOLABEL__"
_COST_NAMES = ("cost", "costs")


def from_drn(
    cls: type[Model],
    path: str | Path,
    *,
    reward_model: str | None = None,
    objective: Objective | None = None,
    name: str | None = None,
) -> Model:
    """Build an MDP from a DRN file of type MDP, DTMC or CTMC, also compressed by gzip or xz.

    The reward of a pair is the reward of its state plus that of its action, as Storm's long-run average counts them. In
    a CTMC the reward of a state is earned per unit of time and that of an action at each jump, and the gain is per unit
    of time. Several initial states are equally likely. Labels of states become names if every state has one of its own;
    names of actions are kept if no state has one twice.

    Parameters
    ----------
    cls : type
        `MDP` or a subclass.
    path : str or Path
        The file.
    reward_model : str, optional
        Which reward model to use; needed if there are several.
    objective : {"reward", "cost"}, optional
        Whether to maximise or to minimise; by default "cost" for a reward model that is called cost or costs.
    name : str, optional
        A name to show.

    Returns
    -------
    MDP

    Raises
    ------
    InvalidMDPError
        Naming the file and the line of the first error.
    """
    reader = DrnReader(Path(path))
    with open_drn(reader.path) as file:
        reader.read(file)
    number = _chosen_reward(reader, reward_model)
    if objective is None:
        chosen = reader.reward_names[number] if number < len(reader.reward_names) else ""
        objective = "cost" if chosen in _COST_NAMES else "reward"
    return _model(cls, reader, number, objective, name)


def to_drn(mdp: MDP, path: str | Path | None = None) -> str | None:
    """Write an MDP in the DRN format; see `MDP.to_drn`."""
    if path is None:
        return "".join(_lines(mdp))
    target = Path(path)
    try:
        with replace_file(target) as file:
            if target.name.endswith(".xz"):
                with lzma.open(file, "wb") as packed:
                    _write(mdp, packed)
            elif target.name.endswith(".gz"):
                with gzip.open(file, "wb") as packed:
                    _write(mdp, packed)
            else:
                _write(mdp, file)
    except OSError as error:
        raise InvalidArgumentError(
            "path",
            str(path),
            hint="check the folder, space and permissions",
            problem=f"cannot write {path}: {error.strerror or error}",
        ) from error
    return None


def _write(mdp: MDP, file: Any) -> None:
    for line in _lines(mdp):
        file.write(line.encode())


# ---------------------------------------------------------------------- writing


def _lines(mdp: MDP) -> Iterator[str]:
    rewards = mdp.units.reward(mdp.pair_rewards) / mdp.units.step_duration
    actions = _action_words(mdp)
    labels = _state_words(mdp)
    yield "// Written by gainful\n@type: MDP\n@value_type: double\n@parameters\n\n"
    yield f"@reward_models\n{mdp.units.objective}\n@nr_states\n{mdp.n_states}\n@nr_choices\n{mdp.n_pairs}\n@model\n"
    indptr, values = mdp.indptr.tolist(), rewards.tolist()
    for s in range(mdp.n_states):
        yield f"state {s} [0]{' init' if mdp.start[s] > 0.0 else ''}{labels[s] if labels else ''}\n"
        for a in np.flatnonzero(mdp.allowed[s]).tolist():
            k = s * mdp.n_actions + a
            begin, end = indptr[k], indptr[k + 1]
            yield f"\taction {actions[a]} [{values[k] + 0.0!r}]\n"
            yield "".join(_transitions(mdp, begin, end))


def _transitions(mdp: MDP, begin: int, end: int) -> Iterator[str]:
    """Lines of one row; a next state that is listed with several rewards becomes one line."""
    states, probabilities = mdp.indices[begin:end].tolist(), mdp.probabilities[begin:end].tolist()
    if mdp.entry_rewards is not None:
        merged: dict[int, float] = {}
        for state, p in zip(states, probabilities, strict=True):
            merged[state] = merged.get(state, 0.0) + p
        states, probabilities = list(merged), list(merged.values())
    return (f"\t\t{state} : {p!r}\n" for state, p in zip(states, probabilities, strict=True))


def _action_words(mdp: MDP) -> list[str]:
    """Names of actions without blanks, or numbers where that makes two of them equal."""
    if mdp.action_labels is None:
        return [str(a) for a in range(mdp.n_actions)]
    words = [re.sub(r"[\s\[\]]+", "_", label) for label in mdp.action_labels]
    fine = len(set(words)) == len(words) and all(words) and _NO_LABEL not in words
    return words if fine else [str(a) for a in range(mdp.n_actions)]


def _state_words(mdp: MDP) -> list[str] | None:
    """Labels of states, each after a blank; None without labels, or if the format cannot hold one of them."""
    if mdp.state_labels is None:
        return None
    if any(not re.fullmatch(r'[^"\n\r]+', label) or label in ("init", "deadlock") for label in mdp.state_labels):
        return None
    if any(label.startswith(("[", "{", "!")) for label in mdp.state_labels):
        return None
    return [f' "{label}"' if re.search(r"\s", label) else f" {label}" for label in mdp.state_labels]


# ---------------------------------------------------------------------- to a model


def _chosen_reward(reader: DrnReader, wanted: str | None) -> int:
    """The number of the reward model to use."""
    names = reader.reward_names
    given = max(map(len, (*reader.state_rewards, *reader.choice_rewards)), default=0)
    names += [f"rew{i}" for i in range(len(names), given)]
    if not names:
        raise InvalidMDPError(
            f"{reader.path}: the model has no rewards",
            name=str(reader.path),
            found=0,
            expected="a reward model",
            hint="export it from Storm with its rewards (--buildfull, or a property that has them)",
        )
    if wanted is None and len(names) > 1:
        raise InvalidMDPError(
            f"{reader.path}: the model has {len(names)} reward models: {', '.join(names)}",
            name="reward_model",
            found=names,
            hint=f"choose one: reward_model='{names[0]}' (--reward-model {names[0]})",
        )
    if wanted is not None and wanted not in names:
        raise InvalidArgumentError(
            "reward_model",
            wanted,
            hint=suggestion(wanted, names),
            problem=f"{reader.path}: there is no reward model '{wanted}'",
        )
    return 0 if wanted is None else names.index(wanted)


def _column(rewards: list[tuple[float, ...]], number: int) -> NDArray[np.float64]:
    return np.array([values[number] if number < len(values) else 0.0 for values in rewards])


def _model(cls: type[Model], reader: DrnReader, number: int, objective: Objective, name: str | None) -> Model:
    S = reader.declared_states
    first = np.array([*reader.first_choice, len(reader.choice_action)], dtype=np.int64)
    ends = np.array([*reader.first_transition[1:], len(reader.targets)], dtype=np.int64)
    lengths = ends - np.array(reader.first_transition, dtype=np.int64)
    state = np.repeat(np.arange(S), np.diff(first))
    rewards = _column(reader.state_rewards, number)[state] + _column(reader.choice_rewards, number)
    options: dict[str, Any] = {"start": _start(reader, S), "state_labels": _names_of_states(reader), "name": name}
    targets, values = np.frombuffer(reader.targets, dtype=np.int64), np.frombuffer(reader.probabilities)
    action, n_actions, labels = _actions(reader, state, first, S)
    if reader.kind == "CTMC":
        return _from_ctmc(cls, reader, number, objective, (lengths, targets, values), options)
    if reader.kind == "DTMC" and n_actions > 1:
        raise InvalidMDPError(f"{reader.path}: a DTMC with {n_actions} actions", name=str(reader.path), expected="one")
    ordered = ordered_choices(S, n_actions, state, action, lengths)
    table = np.zeros(S * n_actions)
    table[ordered.pair] = rewards
    if ordered.entries is not None:
        targets, values = targets[ordered.entries], values[ordered.entries]
    return cls.from_rows(
        ordered.indptr,
        targets,
        values,
        table.reshape(S, n_actions),
        action_labels=labels,
        objective=objective,
        **options,
    )


def _start(reader: DrnReader, n_states: int) -> NDArray[np.float64] | None:
    """The initial states, equally likely; None (the first state) if none is marked."""
    if not reader.initial:
        return None
    start = np.zeros(n_states)
    start[reader.initial] = 1.0 / len(reader.initial)
    return start


def _names_of_states(reader: DrnReader) -> list[str] | None:
    """The labels, if every state has exactly one and no two are the same."""
    labels = reader.state_labels
    return labels if labels is not None and len(set(labels)) == len(labels) else None


def _actions(
    reader: DrnReader, state: NDArray[np.int64], first: NDArray[np.int64], n_states: int
) -> tuple[NDArray[np.int64], int, list[str] | None]:
    """The number of each choice's action, how many actions there are, and their names.

    Names are kept if no state has one twice, and the pairs they make are not many more than the choices. Otherwise the
    actions of a state are numbered in the order of the file.
    """
    names = list(reader.action_numbers)
    action = np.frombuffer(reader.choice_action, dtype=np.int64)
    if all(name.isdecimal() and len(name) < 10 for name in names):
        values = np.array([int(name) for name in names])
        place = np.argsort(np.argsort(values))
        action, names = place[action], [str(x) for x in np.sort(values)]
    twice = np.unique(state * len(names) + action).size < action.size
    if twice or _NO_LABEL in names or n_states * len(names) > PAIRS_PER_CHOICE * action.size:
        action = np.arange(action.size) - first[:-1][state]
        return action, int(action.max()) + 1, None
    plain = names == [str(i) for i in range(len(names))]
    return action, len(names), None if plain else names


def _from_ctmc(
    cls: type[Model],
    reader: DrnReader,
    number: int,
    objective: Objective,
    rows: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]],
    options: dict[str, Any],
) -> Model:
    """The uniformised chain of rates; a jump reward is earned at the exit rate."""
    import scipy.sparse as sp

    lengths, targets, values = rows
    S = reader.declared_states
    if len(reader.choice_action) != S:
        raise InvalidMDPError(f"{reader.path}: a CTMC with several actions", name=str(reader.path), expected="one each")
    rates = sp.csr_array((values, targets, np.concatenate([[0], np.cumsum(lengths)])), shape=(S, S))
    total = np.asarray(rates.sum(axis=1)).reshape(-1)
    per_time = _column(reader.state_rewards, number) + total * _column(reader.choice_rewards, number)
    key = "costs" if objective == "cost" else "rewards"
    return cls.from_rates([rates], **{key: per_time.reshape(S, 1)}, **options)
