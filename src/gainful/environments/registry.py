"""Environments by name: what the command line and experiment files use."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gainful.environments.access_control_queue import access_control_queue
from gainful.environments.admission_control import admission_control
from gainful.environments.four_rooms import four_rooms
from gainful.environments.frozen_lake import frozen_lake
from gainful.environments.garnet import garnet
from gainful.environments.hard_family import hard_family
from gainful.environments.inventory_control import inventory_control
from gainful.environments.machine_replacement import machine_replacement
from gainful.environments.riverswim import riverswim
from gainful.environments.riverswim_ergodic import riverswim_ergodic
from gainful.environments.riverswim_maillard import riverswim_maillard
from gainful.environments.server_routing import server_routing
from gainful.environments.six_arms import six_arms
from gainful.environments.taxi import taxi
from gainful.environments.toy3d import toy3d
from gainful.environments.two_state_toy import two_state_toy
from gainful.environments.weakly_communicating_toy import weakly_communicating_toy
from gainful.errors import InvalidArgumentError, UnknownEnvironmentError, suggestion
from gainful.mdp.model import MDP

if TYPE_CHECKING:
    from gainful.environments.continuous.environment import ContinuousEnvironment

_FACTORIES: dict[str, Callable[..., MDP]] = {
    factory.__name__.replace("_", "-"): factory
    for factory in (
        access_control_queue,
        admission_control,
        four_rooms,
        frozen_lake,
        garnet,
        hard_family,
        inventory_control,
        machine_replacement,
        riverswim,
        riverswim_ergodic,
        riverswim_maillard,
        server_routing,
        six_arms,
        taxi,
        toy3d,
        two_state_toy,
        weakly_communicating_toy,
    )
}

# each in a module of its own name; loaded when asked for, as they bring compiled code along
_CONTINUOUS = (
    "continuous-inventory",
    "continuous-riverswim",
    "lqg",
    "mountain-car",
    "replacement",
    "ship-steering",
)


@dataclass(frozen=True)
class Description:
    """An environment in one line: its name, what it is, and its parameters with their defaults."""

    name: str
    summary: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({_listed(self.parameters)}): {self.summary}"


def names() -> list[str]:
    """The names of all environments that are tables (an MDP), in kebab-case, sorted."""
    return sorted(_FACTORIES)


def continuous_names() -> list[str]:
    """The names of all environments with continuous states, in kebab-case, sorted."""
    return sorted(_CONTINUOUS)


def make(name: str, **parameters: Any) -> MDP:
    """The environment called `name` with these parameters.

    >>> make("riverswim", n_states=4)
    MDP('riverswim', 4 states, 2 actions, 14 transitions)
    """
    if name in _CONTINUOUS:
        raise InvalidArgumentError(
            f"{name} has continuous states, so it is no MDP; make_continuous('{name}') makes it, "
            "and oracle_gain of that is its gain"
        )
    if name not in _FACTORIES:
        raise UnknownEnvironmentError(f"'{name}'; {suggestion(str(name), [*_FACTORIES, *_CONTINUOUS])}")
    mdp: MDP = _made(name, _FACTORIES[name], parameters)
    return mdp


def make_continuous(name: str, **parameters: Any) -> ContinuousEnvironment:
    """The continuous environment called `name` with these parameters.

    >>> make_continuous("lqg", n_actions=9)
    ContinuousEnvironment('lqg', dim 1, 9 actions, L = 6.383, α = 1)
    """
    if name in _FACTORIES:
        raise InvalidArgumentError(f"{name} has finitely many states; make('{name}') makes it")
    if name not in _CONTINUOUS:
        raise UnknownEnvironmentError(f"'{name}'; {suggestion(str(name), _CONTINUOUS)}")
    env: ContinuousEnvironment = _made(name, continuous_factory(name), parameters)
    return env


def factory(name: str) -> Callable[..., MDP]:
    """The function that makes the MDP `name`."""
    return _FACTORIES[name]


def continuous_factory(name: str) -> Callable[..., ContinuousEnvironment]:
    """The function that makes the continuous environment `name`."""
    word = name.replace("-", "_")
    factory: Callable[..., ContinuousEnvironment] = getattr(
        importlib.import_module(f"gainful.environments.continuous.{word}"), word
    )
    return factory


def _made(name: str, factory: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    defaults = _parameters(factory)
    unknown = [p for p in parameters if p not in defaults]
    if unknown:
        if not defaults:
            raise InvalidArgumentError(f"{name} has no parameter '{unknown[0]}'; it has none")
        known = suggestion(unknown[0], defaults)
        said = "" if known.startswith("known") else f" {known}"
        raise InvalidArgumentError(f"{name} has no parameter '{unknown[0]}';{said} it has {_listed(defaults)}")
    try:
        return factory(**parameters)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{name}: {error}; its parameters are {_listed(defaults)}") from error


def describe(name: str) -> Description:
    """What `name` is, a table or continuous: the first line of its docstring, its parameters with their defaults."""
    factory = _factory(name)
    doc = inspect.getdoc(factory)
    assert doc, f"{name} has no docstring"
    return Description(name, doc.splitlines()[0], _parameters(factory))


def _factory(name: str) -> Callable[..., Any]:
    if name in _CONTINUOUS:
        return continuous_factory(name)
    if name not in _FACTORIES:
        raise UnknownEnvironmentError(f"'{name}'; {suggestion(str(name), [*_FACTORIES, *_CONTINUOUS])}")
    return _FACTORIES[name]


def _parameters(factory: Callable[..., Any]) -> dict[str, Any]:
    return {p.name: p.default for p in inspect.signature(factory).parameters.values()}


def _listed(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={default!r}" for name, default in parameters.items())
