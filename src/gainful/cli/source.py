"""What `ENV|TABLE` means on a command line: a named environment, a Gymnasium id, a table or a saved MDP."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gainful.errors import InvalidArgumentError, InvalidMDPError, UnknownEnvironmentError, nearest_name

if TYPE_CHECKING:
    from gainful.mdp.model import MDP

_GYMNASIUM_ID = re.compile(r"([\w:.-]+/)?[\w:.-]+-v\d+")
_TABLE_FILE = re.compile(r".+\.(csv|tsv|parquet|pq)(\.(gz|bz2|xz|zip))?", re.IGNORECASE)
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

    The names of shipped environments come first (`./name` is then the file), then the ids of Gymnasium environments,
    such as FrozenLake-v1, then files, if `source` exists or looks like one (it has a suffix or a separator).
    """
    from gainful.environments import registry

    parameters = read_settings(settings)
    if rates and gymnasium:
        raise InvalidArgumentError(
            "--rates", hint="leave one of them out", problem="--rates and --gymnasium exclude each other"
        )
    if gymnasium:
        return _from_gymnasium(source, parameters)
    path = Path(source)
    named = source in registry.names()
    is_id = not named and not path.exists() and _GYMNASIUM_ID.fullmatch(source) is not None
    if not named and not is_id and (path.exists() or path.suffix or "/" in source or "\\" in source):
        if parameters:
            raise InvalidArgumentError(
                "--set",
                settings[0],
                hint="leave --set out",
                problem=f"--set {settings[0]}: {source} is a file, which has no parameters",
            )
        return _from_file(path, rates, reward_model)
    if reward_model is not None:
        raise _no_reward_models(source)
    if rates:
        raise _rates_without_a_table(source)
    if is_id:
        return _from_gymnasium(source, parameters)
    try:
        return registry.make(source, **parameters)
    except UnknownEnvironmentError as error:
        known = [*registry.names(), *registry.continuous_names()]
        near = nearest_name(source, known)
        hint = f"did you mean '{near}'? 'gainful list environments' lists all" if near else f"known: {', '.join(known)}"
        raise UnknownEnvironmentError(
            f"'{source}'", name="ENV", found=source, hint=f"{hint}; a file (.csv, .tsv, .parquet) works too"
        ) from error


def _rates_without_a_table(source: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        "--rates",
        str(source),
        "a .csv, .tsv or .parquet file",
        problem=f"--rates needs a table of rates, found '{source}'",
    )


def read_environment(source: str, settings: Sequence[str] = (), *, rates: bool = False) -> Any:
    """As `read_source`, but also a continuous environment, or a Gymnasium environment without a table."""
    import gymnasium

    from gainful.environments import registry

    if rates:
        return read_source(source, settings, rates=True)
    if source in registry.continuous_names():
        return registry.make_continuous(source, **read_settings(settings))
    if source in registry.names() or Path(source).exists() or _GYMNASIUM_ID.fullmatch(source) is None:
        return read_source(source, settings)
    try:
        gymnasium.spec(source)
    except gymnasium.error.Error:
        return read_source(source, settings)  # raises the error that says what is wrong
    env = _made_by_gymnasium(source, read_settings(settings))
    if hasattr(env.unwrapped, "P"):
        env.close()
        return read_source(source, settings)
    return env


def _no_reward_models(source: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        "--reward-model",
        str(source),
        "a .drn file",
        problem=f"--reward-model chooses among those of a .drn file, found '{source}'",
    )


def _from_file(path: Path, rates: bool, reward_model: str | None) -> MDP:
    from gainful.mdp.drn import SUFFIXES
    from gainful.mdp.model import MDP

    if not path.exists():
        raise InvalidMDPError(f"{path}: no such file", name=str(path), hint="check the path")
    if path.is_dir():
        raise InvalidMDPError(
            f"{path} is a folder", name=str(path), expected="a table (.csv, .tsv, .parquet), a .drn file or a saved MDP"
        )
    if path.name.lower().endswith(SUFFIXES) and not rates:
        return MDP.from_drn(path, name=path.name, reward_model=reward_model)
    if reward_model is not None:
        raise _no_reward_models(path)
    if _TABLE_FILE.fullmatch(path.name):
        if rates:
            return MDP.from_rates(path, name=path.name)
        return MDP.from_table(path, name=path.name)
    if rates:
        raise _rates_without_a_table(path)
    try:
        with path.open("rb") as file:
            beginning = file.read(4)
    except OSError as error:
        raise InvalidMDPError(
            f"{path} cannot be read: {error.strerror}", name=str(path), hint="check its permissions"
        ) from error
    if beginning and beginning != b"PK\x03\x04":
        raise InvalidMDPError(
            f"{path} is neither a table (named .csv, .tsv or .parquet), nor in Storm's format (.drn), nor an MDP "
            "written by mdp.save",
            name=str(path),
            hint="rename or convert it",
        )
    return MDP.load(path)


def _from_gymnasium(name: str, parameters: dict[str, Any]) -> MDP:
    import gymnasium

    from gainful.mdp.model import MDP

    try:
        gymnasium.spec(name)
    except gymnasium.error.Error as error:
        detail = str(error).strip().rstrip(".")
        raise UnknownEnvironmentError(
            f"'{name}' is not a Gymnasium environment; Gymnasium says: {detail}", name="ENV", found=name
        ) from error
    if not parameters:
        return MDP.from_gymnasium(name, drop_unreachable=True)
    env = _made_by_gymnasium(name, parameters)
    try:
        return MDP.from_gymnasium(env, drop_unreachable=True)
    finally:
        env.close()


def _made_by_gymnasium(name: str, parameters: dict[str, Any]) -> Any:
    import gymnasium

    try:
        return gymnasium.make(name, **parameters)
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, KeyError) as error:
        listed = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        raise InvalidArgumentError(
            "--set",
            parameters,
            problem=f"Gymnasium cannot make '{name}'{' with ' + listed if listed else ''}: {error}",
        ) from error


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
            example = "n_states=8" if option == "--set" else "delta=0.1"
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
