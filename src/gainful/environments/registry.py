"""Environments by name, as the command line and experiment files use them."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable
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
from gainful.environments.riverswim_bourel import riverswim_bourel
from gainful.environments.riverswim_ergodic import riverswim_ergodic
from gainful.environments.riverswim_maillard import riverswim_maillard
from gainful.environments.server_routing import server_routing
from gainful.environments.six_arms import six_arms
from gainful.environments.taxi import taxi
from gainful.environments.toy3d import toy3d
from gainful.environments.two_state_toy import two_state_toy
from gainful.environments.weakly_communicating_toy import weakly_communicating_toy
from gainful.errors import InvalidArgumentError, MemoryLimitError, UnknownEnvironmentError, suggestion
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
        riverswim_bourel,
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

# each in a module of its own name, loaded on first use because they need compiled code
_CONTINUOUS = (
    "continuous-inventory",
    "continuous-riverswim",
    "lqg",
    "mountain-car",
    "planar-mixture",
    "replacement",
    "rough-mixture",
    "ship-steering",
)


@dataclass(frozen=True)
class EnvironmentDescription:
    """The name of an environment, a one-line summary, and its parameters.

    Attributes
    ----------
    name : str
        In kebab-case.
    summary : str
        The first line of its documentation.
    parameters : dict
        Its parameters with their defaults.

    Examples
    --------
    >>> print(describe("toy3d"))
    toy3d(delta=0.005): Toy3D: the diameter grows like 1/delta while the span of the bias stays near 1.
    """

    name: str
    summary: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({_listed(self.parameters)}): {self.summary}"


def names() -> list[str]:
    """The names of all environments with finitely many states, sorted.

    Returns
    -------
    list of str
        In kebab-case, as `make` takes them.

    Examples
    --------
    >>> names()[:2]
    ['access-control-queue', 'admission-control']
    """
    return sorted(_FACTORIES)


def continuous_names() -> list[str]:
    """The names of all environments with continuous states, sorted.

    Returns
    -------
    list of str
        In kebab-case, as `make_continuous` takes them.

    Examples
    --------
    >>> continuous_names()[:2]
    ['continuous-inventory', 'continuous-riverswim']
    """
    return sorted(_CONTINUOUS)


def make(name: str, **parameters: Any) -> MDP:
    """Make an environment with finitely many states by its name.

    Parameters
    ----------
    name : str
        One of `names()`.
    **parameters
        Its parameters; `describe` lists them.

    Returns
    -------
    MDP

    Raises
    ------
    UnknownEnvironmentError
        If there is no such environment.
    InvalidArgumentError
        If a parameter is unknown or invalid, or the states are continuous.

    Examples
    --------
    >>> make("riverswim", n_states=4)
    MDP('riverswim', 4 states, 2 actions, 14 transitions)
    """
    if name in _CONTINUOUS:
        raise InvalidArgumentError(
            "name",
            name,
            hint=f"'gainful learn {name}' learns in it; in Python make_continuous('{name}') makes it, and oracle_gain "
            "computes its gain",
            problem=f"{name} has continuous states, so it is not an MDP",
        )
    if name not in _FACTORIES:
        raise _unknown(name, [*_FACTORIES, *_CONTINUOUS])
    mdp: MDP = _made(name, _FACTORIES[name], parameters)
    return mdp


def make_continuous(name: str, **parameters: Any) -> ContinuousEnvironment:
    """Make an environment with continuous states by its name.

    Parameters
    ----------
    name : str
        One of `continuous_names()`.
    **parameters
        Its parameters; `describe` lists them.

    Returns
    -------
    ContinuousEnvironment

    Raises
    ------
    UnknownEnvironmentError
        If there is no such environment.
    InvalidArgumentError
        If a parameter is unknown or invalid, or there are finitely many states.

    Examples
    --------
    >>> make_continuous("lqg", n_actions=9)
    ContinuousEnvironment('lqg', dim 1, 9 actions, L = 6.383, α = 1)
    """
    if name in _FACTORIES:
        raise InvalidArgumentError(
            "name", name, hint=f"make('{name}') makes it", problem=f"{name} has finitely many states"
        )
    if name not in _CONTINUOUS:
        raise _unknown(name, _CONTINUOUS)
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


def _unknown(name: str, known: Iterable[str]) -> UnknownEnvironmentError:
    return UnknownEnvironmentError(f"'{name}'", name="name", found=name, hint=suggestion(str(name), known))


def _made(name: str, factory: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """Call the factory; errors list its parameters."""
    defaults = _parameters(factory)
    unknown = [p for p in parameters if p not in defaults]
    if unknown:
        nearest = difflib.get_close_matches(unknown[0], defaults, n=1)
        meant = f"did you mean '{nearest[0]}'? " if nearest else ""
        raise InvalidArgumentError(
            unknown[0],
            parameters[unknown[0]],
            hint=f"{meant}it has {_listed(defaults) or 'none'}",
            problem=f"{name} has no parameter '{unknown[0]}'",
        )
    try:
        return factory(**parameters)
    except MemoryLimitError:
        raise
    except InvalidArgumentError as error:
        hint = f"its parameters are {_listed(defaults)}"
        raise InvalidArgumentError(
            error.name,
            error.found,
            error.expected,
            f"{error.hint}; {hint}" if error.hint else hint,
            problem=f"{name}: {error.problem}",
        ) from error


def describe(name: str) -> EnvironmentDescription:
    """Describe an environment, with finitely many or continuous states.

    Parameters
    ----------
    name : str
        One of `names()` or `continuous_names()`.

    Returns
    -------
    EnvironmentDescription
        Its name, the first line of its documentation, and its parameters with their defaults.

    Raises
    ------
    UnknownEnvironmentError
        If there is no such environment.

    Examples
    --------
    >>> describe("toy3d").parameters
    {'delta': 0.005}
    """
    factory = _factory(name)
    doc = inspect.getdoc(factory)
    assert doc, f"{name} has no docstring"
    return EnvironmentDescription(name, doc.splitlines()[0], _parameters(factory))


def _factory(name: str) -> Callable[..., Any]:
    if name in _CONTINUOUS:
        return continuous_factory(name)
    if name not in _FACTORIES:
        raise _unknown(name, [*_FACTORIES, *_CONTINUOUS])
    return _FACTORIES[name]


def _parameters(factory: Callable[..., Any]) -> dict[str, Any]:
    return {p.name: p.default for p in inspect.signature(factory).parameters.values()}


def _listed(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={default!r}" for name, default in parameters.items())
