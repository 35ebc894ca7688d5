"""One run as data: what is run, and its identity.

A `Configuration` holds plain JSON. Parameters that depend on the environment's solution stay words in it ("auto"; see
`gainful.experiments.parameters`).

The identity of a run is a hash of its canonical form, in which every parameter of the environment and of the agent is
written out, defaults too, each as the kind of number its signature asks for (5.0 for an integer is 5, 1 for a real
number is 1.0, -0.0 is 0.0). Floats are written as Python's repr: the shortest decimals that give the same float64 back,
so that two spellings of one float64 (0.1, 1e-1) are one and two neighbouring floats are two.

A parameter that was added after runs had been stored is marked `AddedLater(old_value)` in its signature. At that value
it is left out of the canonical form, so that runs stored before it existed keep their identity. Its default may be
another value, and a default may change (`DefaultWas`): leaving the parameter out then means another run than before.
`earlier_meanings` are the runs that it meant.

What does not come with gainful is identified by its name, its parameters and a digest: of the source of the module, or
of the content of a table (`gainful.experiments.foreign_names`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any

from gainful.agents import registry as agents
from gainful.errors import MISSING, InvalidArgumentError
from gainful.experiments.foreign_names import is_foreign_agent, is_foreign_environment, on_points
from gainful.experiments.parameters import (
    agent_parameters,
    check_agent,
    check_agent_parameters,
    check_environment_parameters,
    environment_parameters,
    parse_seed,
    parse_steps,
    toml_text,
)
from gainful.simulation.run import checked_checkpoints, log_checkpoints

RESULTS_VERSION = 1
"""Raised when the same configuration and seed give other bits; part of every run's identity."""


def checkpoint_steps(checkpoints: int | Iterable[int], horizon: int) -> tuple[int, ...]:
    """Explicit steps from a number per decade, or from a list; the last is the horizon.

    >>> checkpoint_steps(2, 100), checkpoint_steps([10], 100)
    ((1, 3, 10, 32, 100), (10, 100))
    """
    if isinstance(checkpoints, int):
        return tuple(int(step) for step in log_checkpoints(horizon, checkpoints))
    return tuple(int(step) for step in checked_checkpoints(list(checkpoints), horizon))


def canonical_environment_parameters(environment: str, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an environment in canonical form, as they are part of a run's identity."""
    if is_foreign_environment(environment):  # complete and checked already
        return given
    checked = check_environment_parameters(environment, given)
    if checked.problems:
        name, error = next(iter(checked.problems.items()))
        raise InvalidArgumentError(name, given.get(name), problem=f"{environment}: {name}: {error}")
    found: dict[str, Any] = json.loads(_dumped(checked.canonical(environment_parameters(environment))))
    return found


@lru_cache(maxsize=4096)
def _canonical_parameters(environment: str, environment_json: str, agent: str, agent_json: str) -> str:
    """Both sets of parameters in canonical form, as JSON; problems of all of them in one error.

    Those of an agent or environment that does not come with gainful are complete and checked already.
    """
    given_environment, given_agent = json.loads(environment_json), json.loads(agent_json)
    continuous = on_points(environment, given_environment)
    canonical = {"environment_parameters": given_environment, "agent_parameters": given_agent}
    problems: dict[str, str] = {}
    if not is_foreign_environment(environment):
        of_environment = check_environment_parameters(environment, given_environment)
        problems |= {name: f"{environment}: {name}: {error}" for name, error in of_environment.problems.items()}
        canonical["environment_parameters"] = of_environment.canonical(environment_parameters(environment))
    if not is_foreign_agent(agent):
        check_agent(agent)
        if agent in agents.PARTITIONED and not continuous:
            raise InvalidArgumentError(
                "agent", agent, problem=f"{agent} is for points, and {environment} has finitely many states"
            )
        of_agent = check_agent_parameters(agent, given_agent, continuous)
        problems |= {name: f"{agent}: {name}: {error}" for name, error in of_agent.problems.items()}
        canonical["agent_parameters"] = of_agent.canonical(agent_parameters(agent, continuous))
    if problems:
        raise InvalidArgumentError(next(iter(problems)), problem="; ".join(problems.values()))
    return _dumped(canonical)


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
        """The form that identifies the run: two configurations with equal canonical forms are the same run.

        Every parameter has its default, as the type its signature says; one that was added later is left out at the
        value that changes nothing. Environment and agent may be built from it.
        """
        horizon, seed = parse_steps(self.horizon), parse_seed(self.seed)
        steps = tuple(self.checkpoints)
        if not steps or list(steps) != sorted(set(steps)) or steps[0] < 1 or steps[-1] != horizon:
            raise InvalidArgumentError(
                "checkpoints",
                list(steps),
                f"increasing steps from 1 on that end at {horizon}",
                problem=f"checkpoints are {toml_text(list(steps))}",
            )
        try:
            given = _dumped(self.environment_parameters), _dumped(self.agent_parameters)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError("parameters", problem=f"a parameter is not plain JSON: {error}") from error
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

    def earlier_meanings(self) -> list[Configuration]:
        """The runs that this configuration asked for in earlier versions, whose defaults differ from today's."""
        if is_foreign_agent(self.agent):
            return []
        continuous = on_points(self.environment, self.environment_parameters)
        old = {
            name: parameter.earlier_default
            for name, parameter in agent_parameters(self.agent, continuous).items()
            if name not in self.agent_parameters and parameter.earlier_default is not MISSING
        }
        return [
            replace(self, agent_parameters={**self.agent_parameters, **{name: old[name] for name in names}})
            for n in range(len(old), 0, -1)
            for names in combinations(old, n)
        ]

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
            raise InvalidArgumentError(
                "configuration", text, problem=f"the configuration is not JSON: {error}"
            ) from error
        if not isinstance(found, dict) or set(found) != set(FIELDS):
            has = sorted(found) if isinstance(found, dict) else type(found).__name__
            raise InvalidArgumentError(
                "configuration", found, str(sorted(FIELDS)), problem=f"the configuration has {has}"
            )
        for name, kind in FIELDS.items():
            if not isinstance(found[name], kind) or isinstance(found[name], bool):
                raise InvalidArgumentError(
                    name, found[name], problem=f"the configuration's {name} is {toml_text(found[name])}"
                )
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
