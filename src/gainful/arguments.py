"""Checks of arguments; each error states what was found and what was expected."""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, get_type_hints

import numpy as np

from gainful.errors import InvalidArgumentError


@dataclass(frozen=True)
class AddedLater:
    """Marks a parameter that runs stored by earlier versions did not have: `Annotated[str, AddedLater("doubling")]`.

    `old_value` gives what the code computed before the parameter existed, and mostly is the default. A run that has
    this value keeps the identity it had then (`gainful.experiments.configuration`), and an agent saved without the
    parameter is loaded with it.
    """

    old_value: Any


@dataclass(frozen=True)
class DefaultWas:
    """Marks a parameter whose default has changed: `Annotated[float, DefaultWas(1.0)]`.

    A sweep that was stored when `old_default` was the default keeps its meaning (`gainful.experiments.store`).
    """

    old_default: Any


def annotation_of(factory: Callable[..., Any], name: str) -> Any:
    """The type hint of one parameter of a class or function, with its marks.

    >>> annotation_of(finite, "value")
    typing.Any
    """
    code = inspect.unwrap(factory.__init__ if inspect.isclass(factory) else factory)
    alone = types.SimpleNamespace(__annotations__={name: inspect.signature(factory).parameters[name].annotation})
    return get_type_hints(alone, globalns=getattr(code, "__globals__", {}), include_extras=True)[name]


def marks_of(hint: Any) -> tuple[AddedLater | DefaultWas, ...]:
    """The marks of a type hint that tell its history."""
    return tuple(mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, (AddedLater, DefaultWas)))


@cache
def settings_before(factory: Callable[..., Any]) -> dict[str, Any]:
    """The parameters that files of earlier versions lack, with the values that they stand for."""
    found = {}
    for name, parameter in inspect.signature(factory).parameters.items():
        if "AddedLater" not in str(parameter.annotation):
            continue
        for mark in marks_of(annotation_of(factory, name)):
            if isinstance(mark, AddedLater):
                found[name] = mark.old_value
    return found


REWARD_LIMIT = 1e150
"""The largest absolute reward. Squares of rewards, and their sums over many steps, stay in the range of float64."""
SMALLEST_RANGE = 1e-150
"""The smallest range of rewards that a learner accepts, for the same reason."""


def reward_range(reward_min: Any, reward_max: Any) -> tuple[float, float]:
    """The ends of a learner's range of rewards.

    >>> reward_range(0, 1)
    (0.0, 1.0)
    """
    problem = f"rewards in [{reward_min}, {reward_max}]"
    if not (finite(reward_min) and finite(reward_max) and reward_min < reward_max):
        raise InvalidArgumentError("reward_max", reward_max, "reward_min < reward_max", problem=problem)
    low, high = float(reward_min), float(reward_max)
    if max(abs(low), abs(high)) > REWARD_LIMIT or high - low < SMALLEST_RANGE:
        raise InvalidArgumentError(
            "reward_max",
            high,
            f"absolute values of at most {REWARD_LIMIT:g}, at least {SMALLEST_RANGE:g} apart",
            "squares beyond that leave the range of float64: use another unit for the rewards",
            problem=problem,
        )
    return low, high


def finite(value: Any) -> bool:
    """Whether it is a real number that a float can hold: no word, no truth value, not infinite.

    >>> finite(2), finite("2"), finite(float("inf")), finite(10**400)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def whole(name: str, value: Any, at_least: int, at_most: int | None = None) -> int:
    """An integer in [at_least, at_most]."""
    wanted = f"an integer of at least {at_least}" if at_most is None else f"an integer from {at_least} to {at_most}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidArgumentError(name, value, wanted)
    number = int(value)
    if number < at_least or (at_most is not None and number > at_most):
        raise InvalidArgumentError(name, number, wanted)
    return number


def number_of(things: str, name: str, value: Any, at_least: int = 1) -> int:
    """A whole number of things, such as steps; 1e7 is accepted as an integer.

    >>> number_of("steps", "horizon", 1e7)
    10000000
    """
    if not (finite(value) and value >= at_least and int(value) == value):
        raise InvalidArgumentError(name, value, f"a whole number of {things}, at least {at_least}")
    return int(value)


def positive_scale(name: str, value: Any, usual: str = "the theorem's is 1") -> float:
    """A factor for the widths or the bonus of an algorithm, which its theorem sets to 1, or `usual` says what else."""
    if not (finite(value) and value > 0.0):
        raise InvalidArgumentError(name, value, "a positive number", usual)
    return float(value)


def whole_below(name: str, value: Any, end: int) -> int:
    """An integer in 0 … end - 1; a whole number of any type is accepted.

    A truth value is not: `True` is more likely a mistake than state 1.
    """
    if type(value) is int and 0 <= value < end:
        return value
    try:
        if isinstance(value, bool) or _kind(value) == "b":
            raise TypeError("a truth value")
        number = int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(name, value, f"an integer in 0 … {end - 1}") from error
    if number != value or not 0 <= number < end:
        raise InvalidArgumentError(name, value, f"an integer in 0 … {end - 1}")
    return number


def plain_number(value: Any) -> float:
    """A number of any type as a float; a TypeError for text, which `float` would read.

    >>> plain_number(np.float32(0.5)), plain_number(True)
    (0.5, 1.0)
    >>> plain_number("0")
    Traceback (most recent call last):
    TypeError: text
    """
    if isinstance(value, (str, bytes, bytearray, memoryview)) or _kind(value) in "USOV":
        raise TypeError("text")
    return float(value)


def _kind(value: Any) -> str:
    """The kind of a NumPy scalar or array: "b" for truth values, "U" for text; "-" for anything else."""
    return str(getattr(getattr(value, "dtype", None), "kind", "-"))


def real(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    low_open: bool = False,
    high_open: bool = False,
) -> float:
    """A finite number between low and high; an end that is open is excluded."""
    wanted = "a finite number"
    if low > -math.inf and high < math.inf:
        wanted = f"a number in {'(' if low_open else '['}{low:g}, {high:g}{')' if high_open else ']'}"
    elif low > -math.inf:
        wanted = f"a finite number {'above' if low_open else 'of at least'} {low:g}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidArgumentError(name, value, wanted)
    number = float(value) if finite(value) else math.nan
    below = number <= low if low_open else number < low
    above = number >= high if high_open else number > high
    if not math.isfinite(number) or below or above:
        raise InvalidArgumentError(name, number if math.isfinite(number) else value, wanted)
    return number


def choice(name: str, value: Any, among: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in among:
        raise InvalidArgumentError(name, value, f"one of {', '.join(repr(x) for x in among)}")
    return value


def reals(name: str, values: Any, at_least: int = 1) -> list[float]:
    """A sequence of at least `at_least` finite numbers."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InvalidArgumentError(name, values, "a sequence of numbers")
    numbers = [real(f"{name}[{i}]", x) for i, x in enumerate(values)]
    if len(numbers) < at_least:
        raise InvalidArgumentError(name, values, f"at least {at_least}", problem=f"{name} has {len(numbers)} entries")
    return numbers


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidArgumentError(name, value, "True or False")
    return bool(value)
