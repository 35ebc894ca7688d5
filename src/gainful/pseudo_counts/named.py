"""Counts by name, as specs and command lines write them: "exact", "modulo:buckets=4", "density:shape=4x4"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from gainful.errors import InvalidArgumentError, suggestion
from gainful.pseudo_counts.density import DensityCounts
from gainful.pseudo_counts.features import grid_features
from gainful.pseudo_counts.hashed import HashedCounts

EXACT = "exact"
BuiltIn: TypeAlias = HashedCounts | DensityCounts


class _Kind(NamedTuple):
    options: tuple[str, ...]
    required: tuple[str, ...]
    example: str
    make: Callable[[int, dict[str, Any]], BuiltIn]


def _simhash(n_states: int, options: dict[str, Any]) -> HashedCounts:
    features = grid_features(options.pop("shape", (n_states,)), n_states)
    return HashedCounts.simhash(features, **options)


def _modulo(n_states: int, options: dict[str, Any]) -> HashedCounts:
    return HashedCounts.modulo(n_states, **options)


def _density(n_states: int, options: dict[str, Any]) -> DensityCounts:
    return DensityCounts(grid_features(options.get("shape", (n_states,)), n_states))


_KINDS = {
    EXACT: _Kind((), (), EXACT, lambda n_states, _: HashedCounts(np.arange(n_states))),
    "simhash": _Kind(("bits", "seed", "shape"), ("bits",), "simhash:bits=4,shape=4x4", _simhash),
    "modulo": _Kind(("buckets",), ("buckets",), "modulo:buckets=4", _modulo),
    "density": _Kind(("shape",), (), "density:shape=4x4", _density),
}


class CountsName(NamedTuple):
    """The name of counts, taken apart."""

    kind: str
    options: dict[str, Any]

    def __str__(self) -> str:
        words = [f"{name}={_text(value)}" for name, value in sorted(self.options.items())]
        return f"{self.kind}:{','.join(words)}" if words else self.kind

    def make(self, n_states: int) -> BuiltIn:
        """The counts for so many states."""
        return _KINDS[self.kind].make(n_states, dict(self.options))


def parse_counts(text: str) -> CountsName:
    """Read the name of counts, with its options; an InvalidArgumentError says what is wrong.

    >>> str(parse_counts("simhash:bits=3, shape=4x4"))
    'simhash:bits=3,shape=4x4'
    """
    kind, _, rest = text.strip().partition(":")
    if kind not in _KINDS:
        examples = ", ".join(f'"{one.example}"' for one in _KINDS.values())
        hint = suggestion(kind, _KINDS)
        raise InvalidArgumentError("counts", text, f"one of {examples}", hint, problem=f"counts is {text!r}")
    options = dict(_option(text, kind, word) for word in rest.split(",") if word.strip())
    for name in _KINDS[kind].required:
        if name not in options:
            raise _refusal(text, kind, f"{kind} needs {name}")
    return CountsName(kind, options)


def _option(text: str, kind: str, word: str) -> tuple[str, int | tuple[int, ...]]:
    name, _, value = (part.strip() for part in word.partition("="))
    if name not in _KINDS[kind].options:
        raise _refusal(text, kind, f"{kind} has no option {name!r}")
    numbers = value.split("x")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in numbers):
        raise _refusal(text, kind, f"{name} is {value!r}")
    if name == "shape":
        return name, tuple(map(int, numbers))
    if len(numbers) > 1:
        raise _refusal(text, kind, f"{name} is {value!r}")
    return name, int(value)


def _refusal(text: str, kind: str, problem: str) -> InvalidArgumentError:
    expected = f'for example "{_KINDS[kind].example}"'
    return InvalidArgumentError("counts", text, expected, problem=f"counts is {text!r}: {problem}")


def _text(value: int | Sequence[int]) -> str:
    return str(value) if isinstance(value, int) else "x".join(map(str, value))
