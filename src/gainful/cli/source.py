"""What `ENV|TABLE` means on a command line: a named environment, "module:object", a Gymnasium id, a file."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gainful.environments.gymnasium_source import is_gymnasium_id, made_by_gymnasium, model_of
from gainful.errors import InvalidArgumentError, UnknownEnvironmentError, nearest_name
from gainful.experiments.foreign_names import environment_called
from gainful.mdp.model_files import no_reward_models, rates_without_a_table, read_model_file
from gainful.user_modules import is_reference

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

_EXAMPLES = {"--set": "n_states=8", "--column": "state=condition"}
_BARE_WORD = re.compile(r"[^\s\"'\[\]{}]+")


def read_source(
    source: str,
    settings: Sequence[str] = (),
    *,
    rates: bool = False,
    gymnasium: bool = False,
    reward_model: str | None = None,
) -> MDP:
    """The MDP behind `source`; `settings` are `NAME=VALUE` for an environment.

    The names of shipped environments come first (`./name` is then the file), then "module:object" and names that
    packages register, then the ids of Gymnasium environments, such as FrozenLake-v1, then files, if `source` exists or
    looks like one (it has a suffix or a separator).
    """
    from gainful.environments import registry

    parameters = read_settings(settings)
    if rates and gymnasium:
        raise InvalidArgumentError(
            "--rates", hint="leave one of them out", problem="--rates and --gymnasium exclude each other"
        )
    if gymnasium:
        return _table_of(source, made_by_gymnasium(source, parameters))
    path = Path(source)
    named = source in registry.names()
    is_id = not named and not path.exists() and is_gymnasium_id(source)
    called = environment_called(source)
    if is_reference(called) and not path.exists():
        return _table_of(source, _of_module(source, parameters))
    if not named and not is_id and (path.exists() or path.suffix or "/" in source or "\\" in source):
        if parameters:
            raise InvalidArgumentError(
                "--set",
                settings[0],
                hint="leave --set out",
                problem=f"--set {settings[0]}: {source} is a file, which has no parameters",
            )
        return read_model_file(path, rates=rates, reward_model=reward_model)
    if reward_model is not None:
        raise no_reward_models(source)
    if rates:
        raise rates_without_a_table(source)
    if is_id:
        return _table_of(source, made_by_gymnasium(source, parameters))
    try:
        return registry.make(source, **parameters)
    except UnknownEnvironmentError as error:
        known = [*registry.names(), *registry.continuous_names()]
        near = nearest_name(source, known)
        hint = f"did you mean '{near}'? 'gainful list environments' lists all" if near else f"known: {', '.join(known)}"
        raise UnknownEnvironmentError(
            f"'{source}'", name="ENV", found=source, hint=f"{hint}; a file (.csv, .tsv, .parquet) works too"
        ) from error


def read_environment(source: str, settings: Sequence[str] = (), *, rates: bool = False) -> Any:
    """As `read_source`, but also a continuous environment, or a Gymnasium environment without a table."""
    from gainful.environments import registry

    if rates:
        return read_source(source, settings, rates=True)
    if source in registry.continuous_names():
        return registry.make_continuous(source, **read_settings(settings))
    if source in registry.names() or Path(source).exists():
        return read_source(source, settings)
    if is_reference(environment_called(source)):
        return _of_module(source, read_settings(settings))
    if is_gymnasium_id(source):
        return model_of(made_by_gymnasium(source, read_settings(settings)))
    return read_source(source, settings)


def _of_module(source: str, parameters: dict[str, Any]) -> Any:
    """The environment behind "module:object", or behind a name that a package registered."""
    from gainful.experiments.foreign_environments import checked_environment, made_environment

    name = environment_called(source)
    checked = checked_environment(name, parameters)
    for problem in checked.problems.values():
        raise problem
    return made_environment(name, checked.values)


def _table_of(source: str, environment: Any) -> MDP:
    """The MDP that an environment is, or has a table of."""
    from gainful.mdp.model import MDP

    found = model_of(environment) if hasattr(environment, "observation_space") else environment
    if isinstance(found, MDP):
        return found
    if hasattr(found, "observation_space"):
        return MDP.from_gymnasium(found, drop_unreachable=True)  # raises the error that says what is missing
    raise InvalidArgumentError(
        "ENV",
        source,
        hint=f"gainful learn {source} learns in it",
        problem=f"{source} has continuous states, so it is not an MDP",
    )


def read_settings(settings: Sequence[str], option: str = "--set") -> dict[str, Any]:
    """Parameters from settings `NAME=VALUE`: NAME in kebab- or snake-case, VALUE as TOML, JSON or a bare word.

    >>> read_settings(["n-states=4", "rewards=states", "probabilities=[0.2, 0.8]", "law='x y'"])
    {'n_states': 4, 'rewards': 'states', 'probabilities': [0.2, 0.8], 'law': 'x y'}
    """
    parameters: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name.isidentifier():
            example = _EXAMPLES.get(option, "delta=0.1")
            raise InvalidArgumentError(
                option,
                setting,
                f"NAME=VALUE, such as {option} {example}",
                problem=f"{option} {setting} is not NAME=VALUE",
            )
        if name in parameters:
            raise InvalidArgumentError(
                option, setting, hint="set it once", problem=f"{option} {setting}: {name} is set twice"
            )
        parameters[name] = _value(option, setting, text.strip())
    return parameters


def read_number(option: str, text: str, example: str) -> float:
    """The number given to an option; the library checks its range."""
    try:
        return float(text)
    except ValueError:
        raise InvalidArgumentError(
            option, text, f"one such as {example}", problem=f"{option} {text} is not a number"
        ) from None


def _value(option: str, setting: str, text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
        if parsed.keys() == {"value"} and isinstance(parsed["value"], (bool, int, float, str, list)):
            return parsed["value"]
    except tomllib.TOMLDecodeError:
        pass
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return float(text)  # .5 and 5. are neither TOML nor JSON
    except ValueError:
        pass
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _BARE_WORD.fullmatch(text):
        return text
    found = f"the value {text} cannot be read" if text else "there is no value"
    raise InvalidArgumentError(
        option,
        setting,
        "a number, true, false, a word, a quoted text or a list such as [1, 2]",
        problem=f"{option} {setting}: {found}",
    )
