"""The parameters of environments and agents as data: which exist, what type each has, and their canonical values.

Types come from the signatures, through pydantic. A signature's `float` is a finite number, its `int` a whole number
(5.0 is 5), a `Literal` one of its words. A few parameters of agents depend on the run, and may be given as a word:

span                "auto" (the model's own span, which only an oracle knows), "0.5*auto", or a number; an agent that
                    can do without a span has none unless it is given one
horizon             "auto" (the run's), or a number
bins                on continuous states: "auto" (the number of cells per axis that the formula gives for the run's
                    horizon; 10 where L and α are unknown), a number, or for c-scal-plus "doubling" (the cells become
                    finer as the run goes on, so that it needs no horizon)
lipschitz, holder   on continuous states: "auto" (the environment's own), or a number
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, reduce
from operator import or_
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BeforeValidator, StrictBool, StrictStr, TypeAdapter, ValidationError

from gainful.agents import registry as agents
from gainful.arguments import AddedLater, DefaultWas, annotation_of, marks_of
from gainful.environments import registry as environments
from gainful.errors import (
    MISSING,
    GainfulError,
    InvalidArgumentError,
    UnknownAgentError,
    UnknownEnvironmentError,
    suggestion,
)
from gainful.pseudo_counts.named import parse_counts
from gainful.pseudo_counts.provider import Counts
from gainful.simulation.run import MAX_HORIZON

MAX_SEED = 2**63 - 1
MAX_SHOWN_CHARACTERS = 60

AUTO = "auto"
_FROM_THE_ENVIRONMENT = "it comes from the environment; leave it out"
NOT_SETTABLE = {
    **dict.fromkeys(("n_states", "n_actions", "reward_min", "reward_max", "allowed"), _FROM_THE_ENVIRONMENT),
    **dict.fromkeys(("dim", "low", "high", "box", "outside", "stage", "agent_class"), _FROM_THE_ENVIRONMENT),
    "seed": "each run has its own seed, which the agent gets too; write seeds",
    "partition": "cells have equal sides; write bins, their number per axis",
}
"""Agent parameters that a spec may not set, and why."""
_CELLS_OF_THE_HORIZON = "its cells are those for the run's horizon; write bins, their number per axis, for others"


# ---------------------------------------------------------------------- single values


class Span(NamedTuple):
    """A bound on the span: `number`, or `factor` times the model's own span if `number` is None."""

    number: float | None
    factor: float

    def resolve(self, own_span: Callable[[], float]) -> float:
        """The bound as a number; `own_span` is called only if it is needed."""
        return self.factor * own_span() if self.number is None else self.number

    @property
    def is_oracle(self) -> bool:
        """Whether it uses the model's own span, which a learner cannot know."""
        return self.number is None


def parse_span(value: Any) -> Span:
    """Read a span: a positive number, "auto" (the model's own), or a factor times that.

    >>> parse_span(2), parse_span("auto"), parse_span("0.5*auto")
    (Span(number=2.0, factor=1.0), Span(number=None, factor=1.0), Span(number=None, factor=0.5))
    """
    number, factor = _number(value), math.nan
    if number is not None and number > 0.0:
        return Span(number, 1.0)
    found = re.fullmatch(r"(?:([^*]*)\*)?\s*auto\s*", value) if isinstance(value, str) else None
    if found:
        with contextlib.suppress(ValueError):
            factor = 1.0 if found[1] is None else float(found[1])
    if not (math.isfinite(factor) and factor > 0.0):
        raise _refusal("span", value, 'a positive number, "auto" or a factor as in "0.5*auto"')
    return Span(None, factor)


def parse_steps(value: Any, name: str = "horizon") -> int:
    """Read a number of steps: 1000000 or 1e6.

    >>> parse_steps(1e6)
    1000000
    """
    number = _number(value)
    if number is None or number != math.floor(number) or not 1 <= number <= MAX_HORIZON:
        raise _refusal(name, value, f"a whole number of steps from 1 to {MAX_HORIZON:.0e}")
    return int(value)


def parse_horizon(value: Any, run_horizon: int) -> int:
    """Read the horizon given to an agent: a number of steps, or "auto" for the run's."""
    if isinstance(value, str) and value == AUTO:
        return run_horizon
    if isinstance(value, str):
        raise _refusal("horizon", value, 'a number of steps, or "auto" for the run\'s')
    return parse_steps(value)


def parse_bins(value: Any) -> int | None:
    """Read the number of cells per axis; None for "auto"."""
    if isinstance(value, str) and value == AUTO:
        return None
    number = _number(value)
    if number is None or number != math.floor(number) or number < 1:
        raise _refusal("bins", value, 'a whole number of at least 1, or "auto"')
    return int(number)


def parse_seed(value: Any) -> int:
    """Read a seed: an integer from 0 to 2^63 - 1."""
    number = _number(value)
    if number is None or number != math.floor(number) or not 0 <= int(value) <= MAX_SEED:
        raise _refusal("seed", value, "a whole number from 0 to 2^63 - 1")
    return int(value)


def toml_text(value: Any) -> str:
    """A value as it is written in a spec, shortened if it is long.

    >>> toml_text("big"), toml_text(True), toml_text(2.0)
    ('"big"', 'true', '2.0')
    """
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 3] + "..."


def _refusal(name: str, value: Any, expected: str) -> InvalidArgumentError:
    return InvalidArgumentError(name, value, expected, problem=f"{name} is {toml_text(value)}")


def _number(value: Any) -> float | None:
    """A finite float, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


# ---------------------------------------------------------------------- types


def _finite(value: Any) -> float:
    number = _number(value)
    if number is None:
        raise ValueError
    return number + 0.0  # -0.0 is 0.0


def _whole(value: Any) -> int:
    if _finite(value) != math.floor(value):
        raise ValueError
    return int(value)


def _plain(value: Any) -> Any:
    """Plain JSON; numbers inside lists are floats, so that [1, 2] and [1.0, 2.0] are the same."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, list | tuple):
        return [_finite(v) if isinstance(v, int) and not isinstance(v, bool) else _plain(v) for v in value]
    raise ValueError


def _canonical_span(value: Any) -> float | str:
    span = parse_span(value)
    if span.number is not None:
        return span.number
    return AUTO if span.factor == 1.0 else f"{repr(span.factor).removesuffix('.0')}*{AUTO}"


def _canonical_horizon(value: Any) -> int | str:
    return AUTO if value == AUTO else parse_horizon(value, 1)


def _canonical_bins(value: Any) -> int | str:
    return DOUBLING if value == DOUBLING else parse_bins(value) or AUTO


def _canonical_counts(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return str(parse_counts(value))


def _number_or_auto(value: Any) -> float | str:
    return AUTO if value == AUTO else _finite(value)


class _ValueType(NamedTuple):
    """A type that pydantic checks, and what messages call it."""

    type: Any
    expected: str


FINITE_NUMBER = _ValueType(Annotated[float, BeforeValidator(_finite)], "a finite number")
WHOLE_NUMBER = _ValueType(Annotated[int, BeforeValidator(_whole)], "a whole number")
PLAIN_VALUE = _ValueType(
    Annotated[Any, BeforeValidator(_plain)], "a finite number, a word, true, false or a list of them"
)
COUNTS_NAME = _ValueType(
    Annotated[str, BeforeValidator(_canonical_counts)], 'the name of counts, such as "exact" or "modulo:buckets=4"'
)
_SIMPLE_TYPES = {
    int: WHOLE_NUMBER,
    float: FINITE_NUMBER,
    bool: _ValueType(StrictBool, "true or false"),
    str: _ValueType(StrictStr, "a word in quotes"),
}
_AGENT_TYPES = {
    "span": _ValueType(Annotated[Any, BeforeValidator(_canonical_span)], "a span"),
    "horizon": _ValueType(Annotated[Any, BeforeValidator(_canonical_horizon)], "a number of steps"),
    "bins": _ValueType(Annotated[Any, BeforeValidator(_canonical_bins)], "a number of cells per axis"),
    "lipschitz": _ValueType(
        Annotated[Any, BeforeValidator(_number_or_auto)], 'a finite number, or "auto" for the environment\'s own'
    ),
}
_AGENT_TYPES["holder"] = _AGENT_TYPES["lipschitz"]
_OMITTED_WHEN_AUTO = ("bins", "lipschitz", "holder")
DOUBLING = "doubling"
"""The `bins` of an agent whose cells become finer as its horizon doubles."""


def _value_type(hint: Any) -> _ValueType:
    """What a spec may write for a parameter with this type hint; anything plain if the hint is not a simple type."""
    if hint in _SIMPLE_TYPES:
        return _SIMPLE_TYPES[hint]
    if hint == Counts:
        return COUNTS_NAME
    origin, members = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _ValueType(hint, f"one of {', '.join(toml_text(word) for word in members)}")
    if origin is Annotated:
        return _value_type(members[0])
    if origin in (list, Sequence, tuple) and members:
        item = _value_type(members[0])
        if item is FINITE_NUMBER:
            return _ValueType(list[item.type], "a list of numbers")  # type: ignore[name-defined]
    if origin in (Union, types.UnionType):
        found = [_value_type(member) for member in members if member is not type(None)]
        if all(one is not PLAIN_VALUE for one in found):
            if len(found) == 1:
                return found[0]
            either = reduce(or_, (one.type for one in found))
            return _ValueType(either, " or ".join(one.expected for one in found))
    return PLAIN_VALUE


@dataclass(frozen=True)
class Parameter:
    """One parameter of an environment or an agent."""

    name: str
    expected: str
    """What its values are, in words."""
    adapter: TypeAdapter[Any]
    default: Any = MISSING
    history: AddedLater | DefaultWas | None = None
    omitted_when_auto: bool = False

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    def check(self, value: Any) -> Any:
        """The canonical value, plain JSON; InvalidArgumentError for a value of another type."""
        if value is None and self.default is None:
            return None
        try:
            return self.adapter.validate_python(value)
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
            cause = found.get("ctx", {}).get("error")
            if isinstance(cause, InvalidArgumentError):
                raise cause from error
            place = [part for part in found["loc"] if isinstance(part, int)]
            if place:
                raise _refusal(f"{self.name}[{place[0]}]", found["input"], FINITE_NUMBER.expected) from error
            raise _refusal(self.name, value, self.expected) from error

    @cached_property
    def canonical_default(self) -> Any:
        """The default as `check` returns it."""
        return self.check(self.default)

    @cached_property
    def earlier_default(self) -> Any:
        """What leaving it out meant in an earlier version, if that was something else; MISSING otherwise."""
        if self.history is None:
            return MISSING
        mark = self.history
        old = self.check(mark.old_value if isinstance(mark, AddedLater) else mark.old_default)
        return MISSING if old == self.canonical_default else old

    def at_old_value(self, value: Any) -> bool:
        """Whether it was added later and this value changes nothing: a run's identity leaves it out."""
        return isinstance(self.history, AddedLater) and bool(value == self.check(self.history.old_value))


def signature_parameters(factory: Callable[..., Any], names: Sequence[str] | None = None) -> dict[str, Parameter]:
    """The parameters of a class or function, typed by its signature; only those in `names` if given.

    >>> from gainful.environments.riverswim import riverswim
    >>> {name: parameter.expected for name, parameter in signature_parameters(riverswim).items()}
    {'n_states': 'a whole number', 'reward_law': 'one of "deterministic", "bernoulli"'}
    """
    if names is None:
        names = list(inspect.signature(factory).parameters)
    return {name: _signature_parameter(factory, name) for name in names}


@cache
def _signature_parameter(factory: Callable[..., Any], name: str) -> Parameter:
    p = inspect.signature(factory).parameters[name]
    hint = annotation_of(factory, name)
    default = MISSING if p.default is inspect.Parameter.empty else p.default
    marks = marks_of(hint)
    kind = _value_type(hint)
    return Parameter(name, kind.expected, TypeAdapter(kind.type), default, marks[0] if marks else None)


# ---------------------------------------------------------------------- what there is to set


def is_continuous(environment: str) -> bool:
    """Whether the states of the environment with this name are points; UnknownEnvironmentError for an unknown name."""
    if environment in environments.continuous_names():
        return True
    known = environments.names()
    if environment not in known:
        near = suggestion(environment, [*known, *environments.continuous_names()])
        raise UnknownEnvironmentError(f"'{environment}'", name="environment", found=environment, hint=near)
    return False


def check_agent(name: str) -> None:
    """Raise UnknownAgentError, with the nearest name, unless an experiment can have the agent called `name`."""
    if name == "discretized":
        raise UnknownAgentError(
            "'discretized' needs no name of its own",
            name="agent",
            found=name,
            hint="write the tabular agent's name; the agent is discretised if states are points",
        )
    if name not in agents.PARTITIONED:
        known = [*agents.AGENTS, *(n for n in agents.PARTITIONED if n != "discretized")]
        if name not in known and name not in agents.NOT_IMPLEMENTABLE:
            raise UnknownAgentError(f"'{name}'", name="agent", found=name, hint=suggestion(name, known))
        agents.agent_class(name)


def environment_factory(name: str) -> Callable[..., Any]:
    """The function that makes the environment called `name`, a table or continuous."""
    return environments.continuous_factory(name) if is_continuous(name) else environments.factory(name)


@cache
def environment_parameters(name: str) -> dict[str, Parameter]:
    """Every parameter of the environment called `name`."""
    return signature_parameters(environment_factory(name))


def run_parameter(name: str) -> Parameter:
    """A parameter of an agent that depends on the run: span, horizon, bins, lipschitz or holder; "auto" by default."""
    kind = _AGENT_TYPES[name]
    return Parameter(name, kind.expected, TypeAdapter(kind.type), AUTO, omitted_when_auto=name in _OMITTED_WHEN_AUTO)


@cache
def agent_parameters(name: str, continuous: bool) -> dict[str, Parameter]:
    """Every parameter of the agent called `name` that a configuration may set, on continuous states or on a table.

    >>> list(agent_parameters("scal", False))
    ['span', 'delta', 'width_scale', 'episodes']
    """
    check_agent(name)
    partitioned = name in agents.PARTITIONED
    made: Any = agents.continuous_class(name) if partitioned else agents.agent_class(name)
    settable = [
        p for p in inspect.signature(made).parameters if p not in NOT_SETTABLE and not (partitioned and p == "horizon")
    ]
    of_the_run = ["span", "horizon", *(["lipschitz", "holder"] if partitioned else [])]
    found = signature_parameters(made, settable)
    if continuous or partitioned:
        settable.append("bins")
        of_the_run.append("bins")
    for p in settable:
        if p in of_the_run:
            without = p == "span" and found[p].default is None  # it can do without a span
            found[p] = replace(run_parameter(p), default=None if without else AUTO)
    return found


# ---------------------------------------------------------------------- values


class CheckedParameters(NamedTuple):
    """What `check_environment_parameters` and `check_agent_parameters` find."""

    values: dict[str, Any]
    """Every parameter that is sound, defaults too, with its canonical value; "auto" left out if that is allowed."""
    problems: dict[str, GainfulError]
    """What is wrong with the others, by name."""

    def canonical(self, known: Mapping[str, Parameter]) -> dict[str, Any]:
        """The values that belong to a run's identity."""
        return {name: value for name, value in self.values.items() if not known[name].at_old_value(value)}


def check_environment_parameters(name: str, given: Mapping[str, Any]) -> CheckedParameters:
    """The parameters of the environment called `name`, checked."""
    return _checked(name, given, environment_parameters(name), lambda _: "")


def check_agent_parameters(name: str, given: Mapping[str, Any], continuous: bool) -> CheckedParameters:
    """The parameters of the agent called `name`, checked."""

    def why_not(parameter: str) -> str:
        if parameter in NOT_SETTABLE:
            return f"{name} cannot be given {parameter}: {NOT_SETTABLE[parameter]}"
        if parameter == "horizon" and name in agents.PARTITIONED:
            return f"{name} cannot be given horizon: {_CELLS_OF_THE_HORIZON}"
        if parameter == "bins" and not continuous:
            return "there are finitely many states, and no cells; leave it out"
        return ""

    return _checked(name, given, agent_parameters(name, continuous), why_not)


def _checked(
    owner: str, given: Mapping[str, Any], known: Mapping[str, Parameter], why_not: Callable[[str], str]
) -> CheckedParameters:
    values: dict[str, Any] = {}
    problems: dict[str, GainfulError] = {}
    for name, value in given.items():
        if name not in known:
            near = suggestion(str(name), known) if known else "it has none"
            problems[name] = InvalidArgumentError(
                name, value, problem=why_not(name) or f"{owner} has no such parameter; {near}"
            )
        else:
            try:
                values[name] = known[name].check(value)
            except InvalidArgumentError as error:
                problems[name] = error
    for name, parameter in known.items():
        if name not in given:
            if parameter.required:
                problems[name] = InvalidArgumentError(
                    name, expected=parameter.expected, problem=f"is missing, and {owner} needs it"
                )
            else:
                values[name] = parameter.canonical_default
    kept = (n for n in known if n in values and not (known[n].omitted_when_auto and values[n] == AUTO))
    return CheckedParameters({name: values[name] for name in kept}, problems)
