"""From the entries of a spec to its runs: sweeps are expanded, labels made, and everything is checked.

`ResolvedSpec` collects the problems it finds, each with the place in the file that causes it, and resolves what is
sound, so that one reading reports all mistakes.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from gainful.agents import registry as agent_registry
from gainful.environments.gymnasium_source import check_gymnasium_id
from gainful.errors import GainfulError, UnknownAgentError, UnknownEnvironmentError, UnknownNameError, suggestion
from gainful.experiments.agent_factory import AgentFactory
from gainful.experiments.configuration import Configuration, checkpoint_steps
from gainful.experiments.differences import shown
from gainful.experiments.foreign_agents import check_agent_called, checked_agent, foreign_parameters, is_on_points
from gainful.experiments.foreign_environments import checked_environment, file_of, is_gymnasium, made_environment
from gainful.experiments.foreign_names import TABLE, is_foreign_agent, is_foreign_environment, on_points
from gainful.experiments.parameters import (
    DOUBLING,
    CheckedParameters,
    agent_parameters,
    check_agent_parameters,
    environment_factory,
    is_continuous,
    parse_span,
    toml_text,
)
from gainful.experiments.toml_positions import KeyPath, path_text
from gainful.partition import MAX_CELLS
from gainful.user_modules import is_reference, load_object

if TYPE_CHECKING:
    from gainful.experiments.spec import AgentEntry, Entry, EnvironmentEntry, Header

MAX_RUNS = 1_000_000
"""A sweep of more runs is refused."""
MAX_CHECKED_ENVIRONMENTS = 500
"""Environments that are made to check them; of more, an even selection."""
MAX_CHECKED_PAIRS = 5_000
"""Pairs of agent and environment that are checked; of more, an even selection."""
MAX_CHECKED_ENTRIES = 20_000_000
"""Environments with more entries are not made when a spec is checked."""
MAX_TRIAL_PAIRS = 200_000
"""Agents for more pairs of state and action are checked on a small problem instead."""
MAX_SHOWN_PROBLEMS = 25
"""The most problems that an error lists."""


class Labels(NamedTuple):
    """The names of a run's environment and agent in tables and plots."""

    environment: str
    agent: str


@dataclass(frozen=True)
class _Point:
    """One environment or agent of the spec, with one choice of its swept parameters."""

    place: KeyPath
    """The path of its entry, such as ("agents", 1)."""
    name: str
    given: dict[str, Any]
    origin: dict[str, KeyPath]
    """Where each parameter is written."""
    swept: tuple[str, ...]
    horizon: int | None
    label: str = ""
    identity: str = field(default="", compare=False)

    def path(self, parameter: str) -> KeyPath:
        return self.origin.get(parameter, (*self.place, "parameters", parameter))

    @property
    def settings(self) -> str:
        return ", ".join(f"{p} = {shown(self.given[p])}" for p in self.swept)


class ResolvedSpec:
    """The runs of the entries that are sound, and the problems of the others."""

    def __init__(
        self,
        header: Header | None,
        environments: dict[int, EnvironmentEntry],
        agents: dict[int, AgentEntry],
        mentioned: Sequence[str] = (),
    ) -> None:
        self.problems: list[tuple[KeyPath, str]] = []
        self.header = header
        self.environments: list[_Point] = []
        self.agents: list[_Point] = []
        self.pairs: list[tuple[_Point, _Point]] = []
        self._entries = agents
        self._mentioned = set(mentioned)
        for entry in environments.values():
            self._mentioned |= {entry.name, entry.title, *([entry.label] if entry.label else [])}
        n_seeds = len(header.seeds) if header is not None else 1
        for key, entries in (("environments", environments), ("agents", agents)):
            points = sum(_count(entry) for entry in entries.values())
            if points * n_seeds > MAX_RUNS:
                self._too_many((key,), points * n_seeds, f"{points:,} {key} with {n_seeds:,} seeds")
                return
        self._environments(environments)
        self._lost = bool(self.problems or mentioned)  # an agent may have run in an environment with a problem
        self._agents(agents)
        self._cross()
        if header is not None:
            if len(self.pairs) * n_seeds > MAX_RUNS:
                whole = f"{len(self.environments):,} environments, {len(self.agents):,} agents and {n_seeds:,} seeds"
                self._too_many((), len(self.pairs) * n_seeds, whole)
                return
            self._check_steps()
            if not self.problems:
                self._check_duplicates()
        if len(self.problems) < MAX_SHOWN_PROBLEMS:
            self._try()

    def runs(self) -> Iterator[tuple[Labels, _Point, _Point]]:
        """Every pair with its labels."""
        for environment, agent in self.pairs:
            yield Labels(environment.label, agent.label), environment, agent

    def configurations(self) -> list[Configuration]:
        """Every run, in the order environment, agent, seed."""
        assert self.header is not None
        steps: dict[int, tuple[int, ...]] = {}
        found: list[Configuration] = []
        for environment, agent in self.pairs:
            horizon = self._horizon(environment, agent)
            if horizon not in steps:
                steps[horizon] = self._steps(horizon)
            for seed in self.header.seeds:
                found.append(
                    Configuration(
                        environment.name, environment.given, agent.name, agent.given, horizon, steps[horizon], seed
                    )
                )
        return found

    # ------------------------------------------------------------------ points

    def _problem(self, path: KeyPath, message: str) -> None:
        self.problems.append((path, message))

    def _too_many(self, path: KeyPath, runs: int, of: str) -> None:
        self._problem(path, f"{runs:,} runs ({of}), more than {MAX_RUNS:,}; use shorter lists or fewer seeds")

    def _points(self, place: KeyPath, entry: Entry, sweeps: dict[str, tuple[KeyPath, list[Any]]]) -> Iterator[_Point]:
        """Every combination of the sweeps, zipped ones side by side; none if they contradict each other."""
        sound = True
        for name in entry.zip:
            if name in sweeps:
                self._problem((*place, "zip", name), "is swept twice; keep one of the two")
                sound = False
            sweeps[name] = ((*place, "zip", name), entry.zip[name])
        for name, (path, values) in sweeps.items():
            if name in entry.parameters:
                self._problem(path, f"is in {path_text((*place, 'parameters'))} too; keep one of the two")
                sound = False
            if not values:
                self._problem(path, "is an empty list, expected at least one value")
                sound = False
        lengths = {name: len(values) for name, values in entry.zip.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {n}" for name, n in lengths.items())
            self._problem((*place, "zip"), f"lists of different lengths: {listed}; expected equal lengths, or use grid")
            sound = False
        if not sound:
            return
        fixed = {name: (*place, "parameters", name) for name in entry.parameters}
        axes = [[((name, i),) for i in range(len(v))] for name, (_, v) in sweeps.items() if name not in entry.zip]
        if entry.zip:
            axes.append([tuple((name, i) for name in entry.zip) for i in range(max(lengths.values()))])  # type: ignore[misc]
        for choice in itertools.product(*axes):
            chosen = dict(itertools.chain.from_iterable(choice))
            given = {**entry.parameters, **{name: sweeps[name][1][i] for name, i in chosen.items()}}
            origin = {**fixed, **{name: (*sweeps[name][0], i) for name, i in chosen.items()}}
            yield _Point(place, entry.name, given, origin, tuple(chosen), entry.horizon)

    def _environments(self, entries: dict[int, EnvironmentEntry]) -> None:
        shared = _shared_names(entries.values())
        for i, entry in entries.items():
            place: KeyPath = ("environments", i)
            if not self._known(place, entry.name, entry.table):
                continue
            sweeps = {name: ((*place, "grid", name), values) for name, values in entry.grid.items()}
            for point in self._points(place, entry, sweeps):
                given = {"rates": entry.rates or False} if entry.table is not None else point.given
                checked = self._made(point, checked_environment, point.name, given)
                if checked is not None and self._kept(point, entry, checked, shared, self.environments):
                    self._mentioned.add(self.environments[-1].label)
        self._check_labels(self.environments)

    def _known(self, place: KeyPath, name: str, table: str | None) -> bool:
        """Whether there is an environment of this name, as far as can be said without its parameters."""
        try:
            if table is not None:
                file_of(name, "")
            elif is_reference(name):
                load_object(name)
            elif is_foreign_environment(name):
                check_gymnasium_id(name)
            else:
                is_continuous(name)
        except UnknownNameError as error:
            known_kind = isinstance(error, UnknownEnvironmentError)
            self._problem((*place, "name"), f"unknown environment {error}" if known_kind else str(error))
        except GainfulError as error:
            self._problem((*place, "name" if table is None else "table"), str(error))
        else:
            return True
        return False

    def _agents(self, entries: dict[int, AgentEntry]) -> None:
        shared = _shared_names(entries.values())
        for i, entry in entries.items():
            place: KeyPath = ("agents", i)
            try:
                check_agent_called(entry.name)
            except UnknownNameError as error:
                known_kind = isinstance(error, UnknownAgentError)
                self._problem((*place, "name"), f"unknown agent {error}" if known_kind else str(error))
                continue
            except GainfulError as error:
                self._problem((*place, "name"), str(error))
                continue
            sweeps = {name: ((*place, "grid", name), values) for name, values in entry.grid.items()}
            if entry.bonus_scales is not None:
                path: KeyPath = (*place, "bonus_scales")
                foreign = is_foreign_agent(entry.name)
                known = foreign_parameters(entry.name, True)[0] if foreign else agent_parameters(entry.name, True)
                scale = next((name for name in ("bonus_scale", "width_scale") if name in known), None)
                if scale is None:
                    self._problem(path, f"{entry.name} has neither bonus_scale nor width_scale; leave it out")
                    continue
                if scale in sweeps or scale in entry.zip:
                    self._problem(path, f"{scale} is swept in grid or zip too; keep one of the two")
                    continue
                sweeps[scale] = (path, entry.bonus_scales)
            for name in [*(entry.only or ()), *(entry.except_ or ())]:
                if name not in self._mentioned:
                    key = "only" if name in (entry.only or ()) else "except"
                    at = (entry.only if key == "only" else entry.except_) or []
                    near = suggestion(name, self._mentioned)
                    self._problem((*place, key, at.index(name)), f"no environment here is called '{name}'; {near}")
            kinds = {on_points(point.name, point.given) for point in self.environments if _runs_in(entry, point)}
            continuous = _is_for_points(entry.name) or kinds == {True}
            for point in self._points(place, entry, sweeps):
                # on both kinds of states what a finite one refuses (bins) is refused
                checked = checked_agent(point.name, point.given, continuous)
                self._kept(point, entry, checked, shared, self.agents)
        self._check_labels(self.agents)

    def _kept(
        self, point: _Point, entry: Entry, checked: CheckedParameters, shared: set[str], points: list[_Point]
    ) -> bool:
        """Add the point, with canonical values, unless something is wrong with it."""
        for name, error in checked.problems.items():
            self._problem(point.path(name), str(error))
        if checked.problems:
            return False
        values = checked.values
        foreign = is_foreign_agent(point.name) or is_foreign_environment(point.name)
        given = dict(values) if foreign else {name: values[name] for name in point.given if name in values}
        label = self._label(point, entry, values, shared)
        if label is None:
            return False
        identity = json.dumps([point.name, values, point.horizon], sort_keys=True)
        points.append(_Point(point.place, point.name, given, point.origin, point.swept, point.horizon, label, identity))
        return True

    def _label(self, point: _Point, entry: Entry, values: dict[str, Any], shared: set[str]) -> str | None:
        if entry.label is None:
            named = [*point.swept] if point.name not in shared else [*point.given]
            parts = [f"{p} = {shown(values[p])}" for p in named if p in values]
            if point.name in shared and point.horizon is not None:
                parts.append(f"{point.horizon:,} steps")
            return ", ".join([entry.title, *parts])
        path = (*point.place, "label")
        label = ""
        try:
            for text, name, form, conversion in string.Formatter().parse(entry.label):
                label += text
                if name is None:
                    continue
                known = {"name": entry.title, **values}
                if name not in known or form or conversion:
                    near = suggestion(name, known) if name not in known else "write the name alone"
                    self._problem(path, f"'{{{name}{':' + form if form else ''}}}' is not a parameter; {near}")
                    return None
                label += shown(known[name])
        except ValueError as error:
            self._problem(path, f"{toml_text(entry.label)}: {error}; write a literal brace twice")
            return None
        if not label.strip():
            self._problem(path, "is empty; leave it out or write some text")
            return None
        return label

    def _check_labels(self, points: list[_Point]) -> None:
        seen: dict[str, _Point] = {}
        same: dict[str, _Point] = {}
        for point in points:
            kind = str(point.place[0])
            first = same.setdefault(point.identity, point)
            if first is not point:
                where = path_text(first.place) if first.place != point.place else "another value of the sweep"
                at = point.path(point.swept[0]) if point.swept else point.place
                self._problem(at, f"'{point.label}' is the same as {where}; keep one of the two")
                continue
            first = seen.setdefault(point.label, point)
            if first is point:
                continue
            if first.place == point.place:
                marks = "".join(f"{{{p}}}" for p in point.swept if first.given[p] != point.given[p])
                self._problem(
                    (*point.place, "label"),
                    f"label '{point.label}' stands for {first.settings} and for {point.settings}; put {marks} into it",
                )
            else:
                self._problem(
                    point.place,
                    f"label '{point.label}' is also the label of {path_text(first.place)}, which differs; give one "
                    f"of the two {kind} another label",
                )

    # ------------------------------------------------------------------ pairs

    def _cross(self) -> None:
        """Pair every agent with every environment it can run in."""
        used: set[int] = set()
        refused: set[tuple[KeyPath, KeyPath]] = set()
        kinds = [on_points(point.name, point.given) for point in self.environments]
        limit = 2 * MAX_RUNS
        matches: dict[KeyPath, set[int]] = {}
        for i, entry in self._entries.items():
            matches[("agents", i)] = {k for k, point in enumerate(self.environments) if _runs_in(entry, point)}
        by_environment: list[list[_Point]] = [[] for _ in self.environments]
        n = 0
        for agent in self.agents:
            for k in sorted(matches[agent.place]):
                environment = self.environments[k]
                if _is_for_points(agent.name) and not kinds[k]:
                    refused.add((agent.place, environment.place))
                    continue
                n += 1
                used.add(id(agent))
                if n <= limit:
                    by_environment[k].append(agent)
        self.pairs = [(e, agent) for e, found in zip(self.environments, by_environment, strict=True) for agent in found]
        if n > limit:
            self._too_many((), n, "and more with every seed")
            self.pairs = []
        for place, at in sorted(refused, key=str):
            names = {p.place: p for p in (*self.environments, *self.agents)}
            self._problem(
                place,
                f"{names[place].name} is for continuous states, and {names[at].name} has finitely many; use only or "
                "except",
            )
        for i, entry in self._entries.items():
            if self.environments and not matches[("agents", i)] and not any(p == ("agents", i) for p, _ in refused):
                named = {*(entry.only or ()), *(entry.except_ or ())}
                if named <= self._mentioned and not self._lost and any(a.place == ("agents", i) for a in self.agents):
                    self._problem(("agents", i), f"{entry.name} runs in no environment; check its only and except")

    def _horizon(self, environment: _Point, agent: _Point) -> int:
        assert self.header is not None
        return agent.horizon or environment.horizon or self.header.horizon

    def _steps(self, horizon: int) -> tuple[int, ...]:
        assert self.header is not None
        points = self.header.checkpoints
        return checkpoint_steps(points if isinstance(points, int) else [s for s in points if s <= horizon], horizon)

    def _check_steps(self) -> None:
        assert self.header is not None
        if isinstance(self.header.checkpoints, int) or not self.pairs:
            return
        longest = max(self._horizon(*pair) for pair in self.pairs)
        beyond = [i for i, step in enumerate(self.header.checkpoints) if step > longest]
        if beyond:
            step = self.header.checkpoints[beyond[0]]
            self._problem(("checkpoints", beyond[0]), f"step {step:,} is beyond the longest run, {longest:,} steps")

    def _check_duplicates(self) -> None:
        """Find one run under two labels: entries that differ only in a horizon that is the same in effect."""
        bare = {id(p): json.dumps(json.loads(p.identity)[:2]) for p in (*self.environments, *self.agents)}
        seen: dict[tuple[str, str, int], tuple[_Point, _Point]] = {}
        reported: set[tuple[KeyPath, KeyPath]] = set()
        for environment, agent in self.pairs:
            identity = (bare[id(environment)], bare[id(agent)], self._horizon(environment, agent))
            there, by = seen.setdefault(identity, (environment, agent))
            first, second = (by, agent) if by is not agent else (there, environment)
            if first is not second and (first.place, second.place) not in reported:
                reported.add((first.place, second.place))
                self._problem(
                    second.place,
                    f"'{agent.label}' in '{environment.label}' is the same run as '{by.label}' in '{there.label}' "
                    f"({path_text(first.place)}); keep one of the two",
                )

    # ------------------------------------------------------------------ made once

    def _try(self) -> None:
        """Make environments and agents once, so that a bad value is found here and not in a worker."""
        agents_of: dict[int, list[_Point]] = {id(point): [] for point in self.environments}
        for environment, agent in _evenly(self.pairs, MAX_CHECKED_PAIRS):
            agents_of[id(environment)].append(agent)
        refused: set[int] = set()
        for environment in _evenly(self.environments, MAX_CHECKED_ENVIRONMENTS):
            made = None
            foreign = is_foreign_environment(environment.name)
            if foreign or _entries(checked_environment(environment.name, environment.given).values) <= (
                MAX_CHECKED_ENTRIES
            ):
                made = self._made(environment, _make_environment, environment.name, environment.given)
                if made is None:
                    continue
            elif is_continuous(environment.name):
                continue
            for agent in agents_of[id(environment)]:
                if id(agent) not in refused and not self._tried(agent, environment, made):
                    refused.add(id(agent))  # the same would be said in every environment

    def _made(self, point: _Point, make: Callable[..., Any], *arguments: Any) -> Any:
        """What `make` makes; None after an error, which is recorded at the parameter that it names."""
        try:
            return make(*arguments)
        except GainfulError as error:
            named = re.match(r"\w*", error.name)  # the parameter in "priorities[1]"
            parameter = named[0] if named else ""
            self._problem(point.path(parameter) if parameter in point.given else point.place, f"{point.name}: {error}")
        except (ValueError, TypeError, OverflowError, MemoryError, ImportError, AttributeError) as error:
            self._problem(point.place, f"{point.name}: {str(error) or type(error).__name__}")
        return None

    def _tried(self, agent: _Point, environment: _Point, made: Any) -> bool:
        points = on_points(environment.name, environment.given)
        foreign = is_foreign_agent(agent.name)
        values = agent.given if foreign else check_agent_parameters(agent.name, agent.given, points).values
        horizon = self._horizon(environment, agent) if self.header is not None else 1000
        if is_gymnasium(made) or foreign:
            return self._made(agent, _make_agent, agent.name, values, made, horizon) is not None
        if points:
            oracle = values.get("span") is not None and parse_span(values["span"]).is_oracle
            if oracle and not made.has_oracle:
                self._problem(
                    agent.path("span") if "span" in agent.given else agent.place,
                    f'{agent.name}: span = "auto" needs a model, and {environment.name} has none; give it a number',
                )
                return False
            cells = 1 if values.get("bins") == DOUBLING else values.get("bins", 1) ** made.dim
            if cells > MAX_CELLS:
                self._problem(
                    agent.path("bins"),
                    f"{values['bins']} bins per axis make {cells:.3g} cells, expected at most {MAX_CELLS}",
                )
                return False
            if cells * made.n_actions > MAX_TRIAL_PAIRS:
                values["bins"] = 2
        elif made is None or made.n_states * made.n_actions > MAX_TRIAL_PAIRS:
            if "policy" in agent.given:
                return True
            made = _make_environment("two-state-toy", {})
        return self._made(agent, _make_agent, agent.name, values, made, horizon) is not None


def _make_environment(name: str, given: Mapping[str, Any]) -> Any:
    if is_foreign_environment(name):
        return made_environment(name, given)
    return environment_factory(name)(**given)


def _make_agent(name: str, values: Mapping[str, Any], environment: Any, horizon: int) -> Any:
    """The agent as a worker makes it, but with a span of 1 for the model's own."""
    return AgentFactory.from_parameters(name, environment, values, 0, horizon, own_span=1.0).make()


def _is_for_points(agent: str) -> bool:
    return is_on_points(agent) if is_foreign_agent(agent) else agent in agent_registry.PARTITIONED


def _count(entry: Entry) -> int:
    """The number of points of an entry, without making them."""
    n = math.prod(len(values) for values in entry.grid.values())
    n *= max((len(values) for values in entry.zip.values()), default=1)
    scales = getattr(entry, "bonus_scales", None)
    return n * len(scales) if scales is not None else n


def _shared_names(entries: Iterable[Entry]) -> set[str]:
    """The names that several entries without a label have."""
    names = [entry.name for entry in entries if entry.label is None]
    return {name for name in names if names.count(name) > 1}


def _runs_in(entry: AgentEntry, environment: _Point) -> bool:
    called = {environment.name, environment.name.removeprefix(TABLE), environment.label}
    return (entry.only is None or bool(called & set(entry.only))) and not called & set(entry.except_ or ())


def _entries(values: Mapping[str, Any]) -> int:
    """An upper estimate of the size of an environment: the product of its integer parameters."""
    sizes = [v for name, v in values.items() if type(v) is int and name != "instance" and not name.startswith("good_")]
    return math.prod(max(1, abs(v)) for v in sizes)


def _evenly(items: Sequence[Any], most: int) -> Sequence[Any]:
    if len(items) <= most:
        return items
    return [items[i * (len(items) - 1) // (most - 1)] for i in range(most)]
