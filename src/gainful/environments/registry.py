"""Environments by name: what the command line and experiment files use."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Description:
    """An environment in one line: its name, what it is, and its parameters with their defaults."""

    name: str
    summary: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({_listed(self.parameters)}): {self.summary}"


def names() -> list[str]:
    """The names of all environments, in kebab-case, sorted."""
    return sorted(_FACTORIES)


def make(name: str, **parameters: Any) -> MDP:
    """The environment called `name` with these parameters.

    >>> make("riverswim", n_states=4)
    MDP('riverswim', 4 states, 2 actions, 14 transitions)
    """
    factory = _factory(name)
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
    """What `name` is: the first line of its docstring and its parameters with their defaults."""
    factory = _factory(name)
    doc = inspect.getdoc(factory)
    assert doc, f"{name} has no docstring"
    return Description(name, doc.splitlines()[0], _parameters(factory))


def _factory(name: str) -> Callable[..., MDP]:
    if name not in _FACTORIES:
        raise UnknownEnvironmentError(f"'{name}'; {suggestion(str(name), _FACTORIES)}")
    return _FACTORIES[name]


def _parameters(factory: Callable[..., MDP]) -> dict[str, Any]:
    return {p.name: p.default for p in inspect.signature(factory).parameters.values()}


def _listed(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={default!r}" for name, default in parameters.items())
