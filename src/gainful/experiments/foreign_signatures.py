"""The parameters of a user's own class or function, from its signature."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gainful.errors import MISSING, GainfulError, InvalidArgumentError, suggestion
from gainful.experiments.parameters import CheckedParameters, Parameter, signature_parameters

_VARIADIC = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def owners_of_parameters(made: Any) -> tuple[dict[str, Callable[..., Any]], bool]:
    """Every named parameter, with the class or function whose signature has it, and whether it takes others too.

    A class that hands **options on to its base has the parameters of the base too.
    """
    found: dict[str, Callable[..., Any]] = {}
    if not callable(made):
        return found, False
    owners = [c for c in made.__mro__ if "__init__" in vars(c)] if inspect.isclass(made) else [made]
    for owner in owners:
        parameters = _signature_of(owner)
        for name, parameter in parameters.items():
            if parameter.kind not in _VARIADIC:
                found.setdefault(name, owner)
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
            return found, False
    return found, True


def _signature_of(made: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(made).parameters
    except (TypeError, ValueError):  # some classes that are written in C
        return {}


def parameters_of(made: Any) -> dict[str, Parameter]:
    """Every named parameter of a class or function, typed by the signature that has it."""
    owners, _ = owners_of_parameters(made)
    return {name: signature_parameters(owner, [name])[name] for name, owner in owners.items()}


def named_parameters(title: str, made: Any, given: Mapping[str, Any]) -> CheckedParameters:
    """What is given to a user's class or function, checked by its signature; defaults too, if they are plain values."""
    if not callable(made):
        problems: dict[str, GainfulError] = {
            name: InvalidArgumentError(name, value, problem=f"{title} is no function, and has no parameters")
            for name, value in given.items()
        }
        return CheckedParameters({}, problems)
    known, open_ended = parameters_of(made), owners_of_parameters(made)[1]
    return checked_by(title, known, given, open_ended=open_ended)


def checked_by(
    title: str, known: Mapping[str, Parameter], given: Mapping[str, Any], *, open_ended: bool, why_not: Any = None
) -> CheckedParameters:
    """Values for these parameters, checked; `why_not(name)` says why one may not be set, if it is not known."""
    values: dict[str, Any] = {}
    problems: dict[str, GainfulError] = {}
    for name, value in given.items():
        reason = why_not(name) if why_not is not None else ""
        if reason or (name not in known and not open_ended):
            near = suggestion(str(name), known) if known else "it has none"
            problems[name] = InvalidArgumentError(
                name, value, problem=reason or f"{title} has no such parameter; {near}"
            )
            continue
        try:
            values[name] = known[name].check(value) if name in known else value
        except InvalidArgumentError as error:
            problems[name] = error
    for name, parameter in known.items():
        if name in given:
            continue
        if parameter.default is MISSING:
            problems[name] = InvalidArgumentError(name, problem=f"is missing, and {title} needs it")
        elif parameter.default is None or isinstance(parameter.default, bool | int | float | str):
            with contextlib.suppress(InvalidArgumentError):  # any other default stays in the code, which has a digest
                values[name] = parameter.canonical_default
    return CheckedParameters(values, problems)


@contextlib.contextmanager
def raised_by(title: str) -> Iterator[None]:
    """Turn errors of a user's own code into one of gainful's that says where they come from."""
    try:
        yield
    except GainfulError:
        raise
    except Exception as error:
        raise InvalidArgumentError(
            "name", title, problem=f"{title} cannot be made: {type(error).__name__}: {error}"
        ) from error
