"""Environments by their Gymnasium id, as specs and command lines name them."""

from __future__ import annotations

import re
from typing import Any

from gainful.errors import InvalidArgumentError, UnknownEnvironmentError
from gainful.mdp.model import MDP
from gainful.user_modules import import_module

_GYMNASIUM_ID = re.compile(r"([\w:.-]+/)?[\w:.-]+-v\d+")


def is_gymnasium_id(name: str) -> bool:
    """Whether a name looks like "FrozenLake-v1", "gainful/RiverSwim-v0" or "my_module:Pump-v0".

    >>> [is_gymnasium_id(name) for name in ("FrozenLake-v1", "my_module:Pump-v0", "riverswim", "my_module:pump")]
    [True, True, False, False]
    """
    return _GYMNASIUM_ID.fullmatch(name) is not None


def check_gymnasium_id(name: str) -> None:
    """Raise an UnknownEnvironmentError unless Gymnasium knows the id; the module before a colon is imported first."""
    import gymnasium

    module, colon, _ = name.partition(":")
    if colon:
        import_module(module)
    try:
        gymnasium.spec(name)
    except gymnasium.error.Error as error:
        detail = str(error).strip().rstrip(".")
        raise UnknownEnvironmentError(
            f"'{name}' is not a Gymnasium environment; Gymnasium says: {detail}", name="ENV", found=name
        ) from error


def made_by_gymnasium(name: str, parameters: dict[str, Any]) -> Any:
    """A new environment with this id."""
    import gymnasium

    check_gymnasium_id(name)
    try:
        return gymnasium.make(name, **parameters)
    except (gymnasium.error.Error, ImportError, TypeError, ValueError, KeyError) as error:
        listed = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        raise InvalidArgumentError(
            "--set",
            parameters,
            problem=f"Gymnasium cannot make '{name}'{' with ' + listed if listed else ''}: {error}",
        ) from error


def model_of(env: Any) -> Any:
    """The model of a Gymnasium environment that has one (then `env` is closed), else the environment itself.

    One of gainful's own is the MDP or the continuous environment that it was made of. One with a table of transitions
    `P`, such as FrozenLake, becomes an MDP without the states that cannot be reached.
    """
    inside = env.unwrapped
    if type(inside).__module__.startswith("gainful."):
        found = getattr(inside, "mdp", None) or getattr(inside, "environment", None)
        if found is not None:
            env.close()
            return found
    if not hasattr(inside, "P"):
        return env
    try:
        return MDP.from_gymnasium(env, drop_unreachable=True)
    finally:
        env.close()
