"""Environments that do not come with gainful: made from a module, a Gymnasium id or a file, and identified."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gainful.environments.gymnasium_source import made_by_gymnasium, model_of
from gainful.errors import InvalidArgumentError, InvalidMDPError, describe
from gainful.experiments.foreign_names import (
    FINITE,
    KIND_OF_STATES,
    MODULE_SOURCE,
    ON_POINTS,
    TABLE,
    TABLE_CONTENT,
    is_foreign_environment,
    without_marks,
)
from gainful.experiments.foreign_signatures import named_parameters, owners_of_parameters, raised_by
from gainful.experiments.parameters import CheckedParameters, check_environment_parameters
from gainful.mdp.model import MDP
from gainful.mdp.model_files import read_model_file
from gainful.user_modules import folders_looked_in, is_reference, load_object, source_digest

REWARD_RANGE = ("reward_min", "reward_max")
"""Parameters that a spec may give any Gymnasium environment: the range of its rewards, 0 to 1 if it is not given."""


def checked_environment(name: str, given: Mapping[str, Any]) -> CheckedParameters:
    """The parameters of an environment of any kind, checked, with the marks of one that does not come with gainful."""
    if not is_foreign_environment(name):
        return check_environment_parameters(name, given)
    if name.startswith(TABLE):
        values = {"rates": bool(given.get("rates", False)), TABLE_CONTENT: content_digest(file_of(name, ""))}
        return CheckedParameters({**values, KIND_OF_STATES: FINITE}, {})
    if not is_reference(name):
        return CheckedParameters({**given, KIND_OF_STATES: kind_of_states(made_environment(name, given))}, {})
    found = load_object(name)
    rewards = {p: given[p] for p in REWARD_RANGE if p in given and p not in owners_of_parameters(found)[0]}
    checked = named_parameters(name, found, {p: value for p, value in given.items() if p not in rewards})
    if checked.problems:
        return checked
    environment = made_environment(name, {**checked.values, **rewards})
    for p in () if is_gymnasium(environment) else rewards:
        problem = InvalidArgumentError(p, rewards[p], problem=f"{name} has no such parameter; it knows its rewards")
        return CheckedParameters({}, {p: problem})
    marks = {MODULE_SOURCE: source_digest(name), KIND_OF_STATES: kind_of_states(environment)}
    return CheckedParameters({**checked.values, **rewards, **marks}, {})


def made_environment(name: str, parameters: Mapping[str, Any]) -> Any:
    """A new environment that does not come with gainful; the marks among its parameters, if any, must fit it."""
    given = without_marks(parameters)
    if name.startswith(TABLE):
        file = file_of(name, parameters.get(TABLE_CONTENT, ""))
        return read_model_file(file, rates=given.get("rates", False))
    if not is_reference(name):
        return _with_rewards(model_of(made_by_gymnasium(name, _without_rewards(given))), given)
    found = load_object(name)
    check_source(name, parameters)
    if callable(found) and not _is_environment(found):
        named, open_ended = owners_of_parameters(found)
        with raised_by(name):
            found = found(**(given if open_ended or {*REWARD_RANGE} & {*named} else _without_rewards(given)))
    elif _without_rewards(given):
        raise InvalidArgumentError(
            next(iter(given)), given, hint="leave it out", problem=f"{name} is an environment, which has no parameters"
        )
    if not _is_environment(found):
        raise InvalidArgumentError(
            "name",
            name,
            "an MDP, a ContinuousEnvironment, a gymnasium.Env, or a class or function that makes one",
            problem=f"{name} is {describe(found)}",
        )
    return _with_rewards(model_of(found), given) if is_gymnasium(found) else found


def is_gymnasium(environment: Any) -> bool:
    """Whether it is a Gymnasium environment, which has a state that nobody knows."""
    return hasattr(environment, "observation_space") and hasattr(environment, "reset")


def _without_rewards(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in REWARD_RANGE}


def _with_rewards(environment: Any, given: Mapping[str, Any]) -> Any:
    """The environment, which says the range of its rewards if a spec gives it: Gymnasium does not know it."""
    if is_gymnasium(environment) and any(name in given for name in REWARD_RANGE):
        environment.reward_min, environment.reward_max = given.get("reward_min", 0.0), given.get("reward_max", 1.0)
    return environment


def _is_environment(found: Any) -> bool:
    from gainful.environments.continuous.environment import ContinuousEnvironment

    if isinstance(found, MDP | ContinuousEnvironment):
        return True
    return not inspect.isclass(found) and hasattr(found, "observation_space") and hasattr(found, "step")


def kind_of_states(environment: Any) -> str:
    """Whether the states of an environment are points or finitely many."""
    if isinstance(environment, MDP):
        return FINITE
    return FINITE if type(getattr(environment, "observation_space", None)).__name__ == "Discrete" else ON_POINTS


def check_source(name: str, parameters: Mapping[str, Any]) -> None:
    """Raise an InvalidArgumentError if the code of "module:object" is not the one that identifies the run."""
    expected = parameters.get(MODULE_SOURCE)
    if expected is not None and source_digest(name) != expected:
        module = name.partition(":")[0]
        raise InvalidArgumentError(
            "name",
            name,
            hint="run the same command again; workers elsewhere need the same file",
            problem=f"the code of {module} is not the one that this run was planned with",
        )


# ---------------------------------------------------------------------- tables


def file_of(name: str, content: str) -> Path:
    """The file behind "table=PATH": the one with this content, in the folders of the spec and the current folder."""
    path = Path(name.removeprefix(TABLE))
    candidates = [Path(folder) / path for folder in folders_looked_in()]
    existing = [file for file in candidates if file.is_file()]
    if not existing:
        raise InvalidMDPError(
            f"{path}: no such file",
            name=str(path),
            found=str(path),
            hint=f"a path is relative to the spec (looked in {', '.join(folders_looked_in())})",
        )
    if not content:
        return existing[0]
    for file in existing:
        if content_digest(file) == content:
            return file
    raise InvalidMDPError(
        f"{existing[0]} has another content than when its runs were planned",
        name=str(path),
        found=str(path),
        hint="put the old file back, or run the changed one into another folder (--out)",
    )


def content_digest(file: Path) -> str:
    """A digest of the bytes of a file: 32 hexadecimal digits."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:32]
    except OSError as error:
        raise InvalidMDPError(f"{file} cannot be read: {error.strerror or error}", name=str(file)) from error
