"""One run as data: what is run, and its identity.

A `Configuration` holds plain JSON. What depends on the environment's solution stays a word in it: `span` may be "auto"
(the model's own span, an oracle's), "0.5*auto" or a number, an agent's `horizon` "auto" (the run's) or a number. On
continuous states `bins` absent is the formula's number of cells per axis for the run's horizon (10 without L and α),
and `lipschitz` and `holder` absent are the environment's own; "auto" is another way to write that.

The identity of a run is a hash of its canonical form, in which every parameter of the environment and of the agent is
written out, defaults too, each as the kind of number its signature asks for (5.0 for an integer is 5, 1 for a real
number is 1.0, -0.0 is 0.0). Floats are written as Python's repr: the shortest decimals that give the same float64 back,
so that two spellings of one float64 (0.1, 1e-1) are one and two neighbouring floats are two.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple

from gainful.agents import registry as agents
from gainful.environments import registry as environments
from gainful.errors import InvalidArgumentError, UnknownAgentError, UnknownEnvironmentError, suggestion
from gainful.simulation.run import checked_checkpoints, log_checkpoints

RESULTS_VERSION = 1
"""Raised when the same configuration and seed give other bits; part of every run's identity."""
MAX_HORIZON = 10**15
"""Steps of the longest run: a year of the fastest loop there is makes fewer."""
MAX_SEED = 2**63 - 1

AUTO = "auto"
_ABSENT = ("bins", "smoothness")  # kinds that are left out where they are "auto"
_OF_THE_ENVIRONMENT = "it comes from the environment; leave it out"
NOT_SETTABLE = {
    **dict.fromkeys(("n_states", "n_actions", "reward_min", "reward_max", "allowed"), _OF_THE_ENVIRONMENT),
    **dict.fromkeys(("dim", "low", "high", "box", "outside", "stage", "agent_class"), _OF_THE_ENVIRONMENT),
    "seed": "each run has its own, which is the agent's too; write seeds",
    "partition": "cells have equal sides; write bins, their number per axis",
}
"""Agent parameters that nobody may give, and why."""
_PLANNED_CELLS = "its cells are those of the run's horizon; write bins, their number per axis, for others"


class Parameter(NamedTuple):
    """One parameter of an environment or an agent: what kind of value it takes, and its default."""

    name: str
    kind: str
    default: Any
    required: bool


class Span(NamedTuple):
    """A bound on the span: `number`, or where that is None `factor` times the model's own."""

    number: float | None
    factor: float

    def resolve(self, own_span: Callable[[], float]) -> float:
        """The number; the model's own span is asked for only where it is needed."""
        return self.factor * own_span() if self.number is None else self.number

    @property
    def is_oracle(self) -> bool:
        """Whether it uses the model's own span, which a learner could not know."""
        return self.number is None


# ---------------------------------------------------------------------- single values


def parse_span(value: Any) -> Span:
    """A span as written: a positive number, "auto" (the model's own), or a factor times that.

    >>> parse_span(2), parse_span("auto"), parse_span("0.5*auto")
    (Span(number=2.0, factor=1.0), Span(number=None, factor=1.0), Span(number=None, factor=0.5))
    """
    wanted = f'span is {_shown(value)}, expected a positive number, "auto" or a factor as in "0.5*auto"'
    if isinstance(value, str):
        found = re.fullmatch(r"(?:([^*]*)\*)?\s*auto\s*", value)
        if not found:
            raise InvalidArgumentError(wanted)
        try:
            factor = 1.0 if found[1] is None else float(found[1])
        except ValueError as error:
            raise InvalidArgumentError(wanted) from error
        if not (math.isfinite(factor) and factor > 0.0):
            raise InvalidArgumentError(wanted)
        return Span(None, factor)
    number = _number(value)
    if number is None or number <= 0.0:
        raise InvalidArgumentError(wanted)
    return Span(number, 1.0)


def parse_steps(value: Any, what: str = "horizon") -> int:
    """A number of steps: 1000000 or 1e6.

    >>> parse_steps(1e6)
    1000000
    """
    number = _number(value)
    if number is None or number != math.floor(number) or not 1 <= number <= MAX_HORIZON:
        raise InvalidArgumentError(
            f"{what} is {_shown(value)}, expected a whole number of steps from 1 to {MAX_HORIZON:.0e}"
        )
    return int(value)


def parse_horizon(value: Any, run_horizon: int) -> int:
    """The horizon an agent is told: the run's where it is "auto", or a number of its own."""
    if isinstance(value, str) and value == AUTO:
        return run_horizon
    if isinstance(value, str):
        raise InvalidArgumentError(f'horizon is {_shown(value)}, expected a number of steps or "auto", the run\'s')
    return parse_steps(value)


def parse_bins(value: Any) -> int | None:
    """Cells per axis, or None for "auto"."""
    if isinstance(value, str) and value == AUTO:
        return None
    number = _number(value)
    if number is None or number != math.floor(number) or number < 1:
        raise InvalidArgumentError(f'bins is {_shown(value)}, expected a whole number of at least 1, or "auto"')
    return int(number)


def checkpoint_steps(checkpoints: int | Iterable[int], horizon: int) -> tuple[int, ...]:
    """Explicit steps from so many per decade, or from a list; the last is the horizon.

    >>> checkpoint_steps(2, 100), checkpoint_steps([10], 100)
    ((1, 3, 10, 32, 100), (10, 100))
    """
    if isinstance(checkpoints, int):
        return tuple(int(step) for step in log_checkpoints(horizon, checkpoints))
    return tuple(int(step) for step in checked_checkpoints(list(checkpoints), horizon))


# ---------------------------------------------------------------------- what there is to set


def is_continuous(environment: str) -> bool:
    """Whether the environment of this name has points for states; an unknown name is an error."""
    if environment in environments.continuous_names():
        return True
    known = environments.names()
    if environment not in known:
        near = suggestion(environment, [*known, *environments.continuous_names()])
        raise UnknownEnvironmentError(f"'{environment}'; {near}")
    return False


@cache
def environment_parameters(name: str) -> dict[str, Parameter]:
    """Every parameter of the environment called `name`."""
    made_by: Any = environments.continuous_factory(name) if is_continuous(name) else environments.factory(name)
    return {p.name: _parameter(p) for p in inspect.signature(made_by).parameters.values()}


def check_agent(name: str) -> None:
    """Raise UnknownAgentError, with the nearest name, unless an experiment can have the agent called `name`."""
    if name == "discretized":
        raise UnknownAgentError(
            "'discretized' needs no name of its own: write the tabular agent's, which is put on cells where states are "
            "points"
        )
    if name not in agents.PARTITIONED:
        known = [*agents.AGENTS, *(n for n in agents.PARTITIONED if n != "discretized")]
        if name not in known and name not in agents.NOT_IMPLEMENTABLE:
            raise UnknownAgentError(f"'{name}'; {suggestion(name, known)}")
        agents.agent_class(name)


@cache
def agent_parameters(name: str, continuous: bool) -> dict[str, Parameter]:
    """Every parameter of the agent called `name` that a configuration may set, on points or on a table.

    >>> [p for p in agent_parameters("scal", False)]
    ['span', 'delta', 'width_scale']
    """
    check_agent(name)
    partitioned = name in agents.PARTITIONED
    made: Any = agents.continuous_class(name) if partitioned else agents.agent_class(name)
    found: dict[str, Parameter] = {}
    for p in inspect.signature(made).parameters.values():
        if p.name in NOT_SETTABLE or (partitioned and p.name == "horizon"):
            continue
        if p.name in ("span", "horizon"):
            found[p.name] = Parameter(p.name, p.name, AUTO, False)
        elif partitioned and p.name in ("lipschitz", "holder"):
            found[p.name] = Parameter(p.name, "smoothness", AUTO, False)
        else:
            found[p.name] = _parameter(p)
    if continuous or partitioned:
        found["bins"] = Parameter("bins", "bins", AUTO, False)
    return found


_KINDS = {"int": "whole number", "float": "number", "bool": "truth value", "Sequence[float]": "list of numbers"}
_WORDS = ("Bonus", "Mixture", "Replanning", "str")


def _parameter(p: inspect.Parameter) -> Parameter:
    required = p.default is inspect.Parameter.empty
    default = None if required else p.default
    annotation = str(p.annotation)
    kind = "anything"
    for part in annotation.split(" | "):
        if part in _KINDS:
            kind = _KINDS[part]
        elif part in _WORDS or part.startswith("Literal["):
            kind = "word"
    return Parameter(p.name, kind, default, required)


# ---------------------------------------------------------------------- canonical values


def environment_problems(name: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The environment's parameters in canonical form, and what is wrong with those given, by name."""
    return _canonical(name, given, environment_parameters(name), {})


def agent_problems(name: str, given: Mapping[str, Any], continuous: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """The agent's parameters in canonical form, and what is wrong with those given, by name."""
    reasons = {p: f"{name} cannot be told {p}: {reason}" for p, reason in NOT_SETTABLE.items()}
    if name in agents.PARTITIONED:
        reasons["horizon"] = f"{name} cannot be told horizon: {_PLANNED_CELLS}"
    elif not continuous:
        reasons["bins"] = "there are finitely many states, and no cells; leave it out"
    return _canonical(name, given, agent_parameters(name, continuous), reasons)


def _canonical(
    owner: str, given: Mapping[str, Any], known: dict[str, Parameter], reasons: dict[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in given.items():
        if name not in known:
            said = reasons.get(name)
            near = suggestion(str(name), known) if known else "it has none"
            problems[name] = said or f"{owner} has no such parameter; {near}"
            continue
        try:
            values[name] = _value(known[name], value)
        except InvalidArgumentError as error:
            problems[name] = str(error)
    for name, parameter in known.items():
        if name not in given:
            if parameter.required:
                problems[name] = f"is missing: {owner} needs it, a {parameter.kind}"
            else:
                values[name] = _plain(name, parameter.default)
    for name, parameter in known.items():
        if parameter.kind in _ABSENT and values.get(name) == AUTO:
            del values[name]
    return {name: values[name] for name in known if name in values}, problems


def _value(parameter: Parameter, value: Any) -> Any:
    name, kind = parameter.name, parameter.kind
    if kind == "span":
        span = parse_span(value)
        if span.number is not None:
            return span.number
        return AUTO if span.factor == 1.0 else f"{repr(span.factor).removesuffix('.0')}*{AUTO}"
    if kind == "horizon":
        return AUTO if value == AUTO else parse_horizon(value, 1)
    if kind == "bins":
        return parse_bins(value) or AUTO
    if value is None and parameter.default is None and not parameter.required:
        return None
    if kind == "smoothness" and isinstance(value, str):
        if value == AUTO:
            return AUTO
        raise InvalidArgumentError(f'{name} is {_shown(value)}, expected a number or "auto", the environment\'s own')
    if kind in ("whole number", "number", "smoothness"):
        number = _number(value)
        if number is None:
            wanted = "whole number" if kind == "whole number" else "finite number"
            raise InvalidArgumentError(f"{name} is {_shown(value)}, expected a {wanted}")
        if kind != "whole number":
            return number + 0.0  # -0.0 is 0.0
        if number != math.floor(number):
            raise InvalidArgumentError(f"{name} is {_shown(value)}, expected a whole number")
        return int(value)
    if kind == "truth value":
        if not isinstance(value, bool):
            raise InvalidArgumentError(f"{name} is {_shown(value)}, expected true or false")
        return value
    if kind == "word":
        if not isinstance(value, str):
            raise InvalidArgumentError(f"{name} is {_shown(value)}, expected a word in quotes")
        return value
    if kind == "list of numbers" and not isinstance(value, list | tuple):
        raise InvalidArgumentError(f"{name} is {_shown(value)}, expected a list of numbers")
    return _plain(name, value)


def _plain(name: str, value: Any) -> Any:
    """Plain JSON; numbers inside lists are floats, so that [1, 2] and [1.0, 2.0] are one."""
    if value is None or isinstance(value, bool | str | int | float):
        if isinstance(value, float):
            if not math.isfinite(value):
                raise InvalidArgumentError(f"{name} is {_shown(value)}, expected a finite number")
            return value + 0.0
        return value
    if isinstance(value, list | tuple):
        return [_in_a_list(f"{name}[{i}]", item) for i, item in enumerate(value)]
    raise InvalidArgumentError(f"{name} is {_shown(value)}, expected a number, a word, true, false or a list of them")


def _in_a_list(name: str, value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        number = _number(value)
        if number is None:
            raise InvalidArgumentError(f"{name} is {_shown(value)}, expected a finite number")
        return number
    return _plain(name, value)


def _number(value: Any) -> float | None:
    """A finite float, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    if isinstance(value, bool):
        text = text.lower()
    return text if len(text) <= 60 else text[:57] + "..."


# ---------------------------------------------------------------------- configurations


@lru_cache(maxsize=4096)
def _canonical_parameters(environment: str, environment_json: str, agent: str, agent_json: str) -> str:
    """Both sets of parameters in canonical form, as JSON; problems of all of them in one error."""
    continuous = is_continuous(environment)
    of_environment, wrong = environment_problems(environment, json.loads(environment_json))
    said = [f"{environment}: {p}: {message}" for p, message in wrong.items()]
    check_agent(agent)
    if agent in agents.PARTITIONED and not continuous:
        raise InvalidArgumentError(f"{agent} is for points, and {environment} has finitely many states")
    of_agent, wrong = agent_problems(agent, json.loads(agent_json), continuous)
    said += [f"{agent}: {p}: {message}" for p, message in wrong.items()]
    if said:
        raise InvalidArgumentError("; ".join(said))
    return _dumped({"environment_parameters": of_environment, "agent_parameters": of_agent})


def _dumped(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


@dataclass(frozen=True)
class Configuration:
    """One run: an agent in an environment, for `horizon` steps, with one seed. All values are plain JSON.

    >>> one = Configuration("riverswim", {}, "scal-plus", {}, 1000, (10, 100, 1000), 0)
    >>> two = Configuration("riverswim", {"n_states": 6.0}, "scal-plus", {"bonus_scale": 1}, 1000, (10, 100, 1000), 0)
    >>> one.key == two.key
    True
    """

    environment: str
    environment_parameters: dict[str, Any]
    agent: str
    agent_parameters: dict[str, Any]
    horizon: int
    checkpoints: tuple[int, ...]
    """The steps at which regret is recorded, increasing; the last is the horizon."""
    seed: int

    def __hash__(self) -> int:
        return hash((self.environment, self.agent, self.horizon, self.seed))

    def canonical(self) -> dict[str, Any]:
        """Every parameter with its default, as the kind of number it is; two equal ones are the same run.

        These are the values to build the environment and the agent from.
        """
        horizon, seed = parse_steps(self.horizon), checked_seed(self.seed)
        steps = tuple(self.checkpoints)
        if not steps or list(steps) != sorted(set(steps)) or steps[0] < 1 or steps[-1] != horizon:
            raise InvalidArgumentError(
                f"checkpoints {_shown(list(steps))}, expected increasing steps from 1 on that end at {horizon}"
            )
        try:
            given = _dumped(self.environment_parameters), _dumped(self.agent_parameters)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(f"a parameter is not plain JSON: {error}") from error
        parameters = json.loads(_canonical_parameters(self.environment, given[0], self.agent, given[1]))
        return {
            "environment": self.environment,
            "environment_parameters": parameters["environment_parameters"],
            "agent": self.agent,
            "agent_parameters": parameters["agent_parameters"],
            "horizon": horizon,
            "checkpoints": [int(step) for step in steps],
            "seed": seed,
        }

    @cached_property
    def key(self) -> str:
        """20 hexadecimal digits that name this configuration, whatever version computes it."""
        return hash_of(self.canonical())

    @cached_property
    def run_id(self) -> str:
        """20 hexadecimal digits that name this run's result: another version that gives other bits has another."""
        return hash_of({**self.canonical(), "results_version": RESULTS_VERSION})

    def to_json(self) -> str:
        """The configuration as it is (not its canonical form), for a worker or a file."""
        return _dumped({name: getattr(self, name) for name in FIELDS})

    @classmethod
    def from_json(cls, text: str | Mapping[str, Any]) -> Configuration:
        """What `to_json` wrote, or such an object already read (a canonical form too)."""
        try:
            found = json.loads(text) if isinstance(text, str) else dict(text)
        except json.JSONDecodeError as error:
            raise InvalidArgumentError(f"a configuration that is not JSON: {error}") from error
        if not isinstance(found, dict) or set(found) != set(FIELDS):
            has = sorted(found) if isinstance(found, dict) else type(found).__name__
            raise InvalidArgumentError(f"a configuration with {has}, expected {sorted(FIELDS)}")
        for name, kind in FIELDS.items():
            if not isinstance(found[name], kind) or isinstance(found[name], bool):
                raise InvalidArgumentError(f"a configuration whose {name} is {_shown(found[name])}")
        return cls(**{**found, "checkpoints": tuple(found["checkpoints"])})


FIELDS: dict[str, Any] = {
    "environment": str,
    "environment_parameters": dict,
    "agent": str,
    "agent_parameters": dict,
    "horizon": int,
    "checkpoints": list | tuple,
    "seed": int,
}
"""The fields of a configuration, and their types in JSON."""


def hash_of(canonical: Mapping[str, Any]) -> str:
    """The first 20 hexadecimal digits of the SHA-256 of this as JSON with sorted keys and without spaces."""
    return hashlib.sha256(_dumped(canonical).encode()).hexdigest()[:20]


def checked_seed(value: Any) -> int:
    """An integer from 0 to 2^63 - 1."""
    number = _number(value)
    if number is None or number != math.floor(number) or not 0 <= int(value) <= MAX_SEED:
        raise InvalidArgumentError(f"seed is {_shown(value)}, expected a whole number from 0 to 2^63 - 1")
    return int(value)
