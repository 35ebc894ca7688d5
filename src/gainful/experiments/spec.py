"""Experiments as files: which agents run in which environments, how long and how often.

A spec is a TOML file::

    title = "SCAL+ on two rivers"
    notes = "What to look at, in plain words."
    horizon = 1e6                      # steps of every run
    seeds = 5                          # 0, 1, 2, 3, 4; or a list: [3, 14, 15]
    checkpoints = 20                   # regret is recorded so often per decade (the default); or a list of steps

    [[environments]]
    name = "riverswim"                 # `gainful list environments`
    grid = { n_states = [6, 12] }      # one environment for every combination

    [[environments]]
    name = "toy3d"
    label = "three states"             # shown instead of the name
    parameters = { delta = 0.01 }
    horizon = 1e5                      # of the runs in this environment

    [[agents]]
    name = "scal-plus"                 # `gainful list agents`
    label = "SCAL+ ({bonus_scale})"    # {parameter} stands for its value
    bonus_scales = [1.0, 0.1]          # short for grid = { bonus_scale = [1.0, 0.1] }

    [[agents]]
    name = "ucbvi"
    zip = { episode_length = [10, 100], bonus_scale = [0.1, 0.01] }   # side by side: two agents
    only = ["riverswim"]               # names or labels of environments; `except` is the opposite

Every agent runs in every environment with every seed. `parameters` are those of `gainful list`; `grid` and `zip` sweep
over lists of values (`zip` varies fastest). `bonus_scales` sweeps over width_scale for agents that have that instead.
An agent that needs a span is told "auto", the model's own, an oracle's, unless it is given a number or a factor as in
"0.5*auto"; one that needs a horizon is told the run's. On continuous states tabular agents are put on cells; `bins` is
their number per axis, by default the formula's for the horizon.

The horizon of a run is that of its agent, else of its environment, else of the file. Steps in `checkpoints` beyond a
run's horizon are left out. Runs come in the order environment, agent, seed, as written.

Labels are made from the name and the swept parameters (and the parameters given, if two entries have the same name)
unless there is a `label`. Two different agents, or environments, with one label are an error. So are two entries that
are the same run, even if only one of them spells a default out. More than a million runs are refused.

Everything is checked when the file is read: names, parameters, and each environment and agent is made once (of sweeps
over more than 500 environments or 5,000 pairs an even choice; environments of more than 2·10⁷ entries not). An
`InvalidSpecError` lists all problems with their lines.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import string
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path as FilePath
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError

from gainful.agents import registry as agent_registry
from gainful.errors import GainfulError, InvalidArgumentError, InvalidSpecError, UnknownNameError, suggestion
from gainful.experiments.configuration import (
    Configuration,
    agent_parameters,
    agent_problems,
    check_agent,
    checked_seed,
    checkpoint_steps,
    environment_problems,
    is_continuous,
    parse_span,
    parse_steps,
)
from gainful.experiments.differences import shown
from gainful.experiments.toml_positions import KeyPath, TomlPositions, path_text
from gainful.partition import MAX_CELLS

MAX_RUNS = 1_000_000
"""A sweep of more runs is refused."""
MAX_PER_DECADE = 10_000
MAX_CHECKPOINTS = 1_000_000
MAX_CHECKED_ENVIRONMENTS = 500
"""Environments made to see whether they can be; of more, an even choice."""
MAX_CHECKED_PAIRS = 5_000
"""Pairs of agent and environment tried; of more, an even choice."""
MAX_CHECKED_ENTRIES = 20_000_000
"""Environments with more entries are made by the workers only."""
MAX_TRIAL_PAIRS = 200_000
"""Agents for more pairs of state and action are tried on a small problem."""
MAX_SHOWN_PROBLEMS = 25
"""Problems shown of one file."""


class SpecProblem(NamedTuple):
    """What is wrong with one thing in a spec, and where."""

    path: KeyPath
    line: int | None
    message: str


class Labels(NamedTuple):
    """What a run is called where results are shown."""

    environment: str
    agent: str


# ---------------------------------------------------------------------- the file's shape


def _seeds(value: Any) -> tuple[int, ...]:
    if isinstance(value, list | tuple):
        seeds = tuple(checked_seed(seed) for seed in value)
        if not seeds:
            raise InvalidArgumentError("is an empty list, expected at least one seed")
        twice = [seed for seed, group in itertools.groupby(sorted(seeds)) if len(list(group)) > 1]
        if twice:
            raise InvalidArgumentError(f"seed {twice[0]} occurs twice; each seed is one run")
        return seeds
    wanted = "expected their number (5 for 0 … 4) or a list of whole numbers"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidArgumentError(f"is {_short(value)}, {wanted}")
    if value != math.floor(value) or value < 1:
        raise InvalidArgumentError(f"is {_short(value)}, {wanted}")
    if value > MAX_RUNS:
        raise InvalidArgumentError(
            f"asks for {int(value):,} seeds, more than the {MAX_RUNS:,} runs of the largest sweep"
        )
    return tuple(range(int(value)))


def _checkpoints(value: Any) -> int | tuple[int, ...]:
    if isinstance(value, list | tuple):
        steps = tuple(parse_steps(step, "a step") for step in value)
        if not 1 <= len(steps) <= MAX_CHECKPOINTS:
            raise InvalidArgumentError(f"has {len(steps)} steps, expected 1 to {MAX_CHECKPOINTS:,}")
        return steps
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    if not (1 <= number <= MAX_PER_DECADE and number == math.floor(number)):
        raise InvalidArgumentError(
            f"is {_short(value)}, expected a whole number per decade (1 to {MAX_PER_DECADE:,}) or a list of steps"
        )
    return int(number)


def _horizon(value: Any) -> Any:
    return None if value is None else parse_steps(value)


Horizon = Annotated[int, BeforeValidator(_horizon)]
Sweep = dict[str, list[Any]]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Entry(_Table):
    """What [[environments]] and [[agents]] have in common."""

    name: str
    label: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    grid: Sweep = Field(default_factory=dict)
    zip: Sweep = Field(default_factory=dict)
    horizon: Annotated[int | None, BeforeValidator(_horizon)] = None


class EnvironmentEntry(Entry):
    """One [[environments]] table."""


class AgentEntry(Entry):
    """One [[agents]] table."""

    bonus_scales: list[Any] | None = None
    only: list[str] | None = None
    except_: list[str] | None = Field(default=None, alias="except")


class Header(_Table):
    """The keys of a spec that stand outside tables."""

    title: str = ""
    notes: str = ""
    horizon: Horizon
    seeds: Annotated[tuple[int, ...], BeforeValidator(_seeds)]
    checkpoints: Annotated[int | tuple[int, ...], BeforeValidator(_checkpoints)] = 20


class Spec(Header):
    """An experiment: every agent in every environment with every seed. `read_spec` makes and checks one."""

    environments: tuple[EnvironmentEntry, ...]
    agents: tuple[AgentEntry, ...]

    _resolved: _ResolvedSpec | None = PrivateAttr(default=None)
    _source: str = PrivateAttr(default="the spec")
    _text: str = PrivateAttr(default="")

    @property
    def source(self) -> str:
        """The file it came from, as messages call it."""
        return self._source

    @property
    def name(self) -> str:
        """The file's name without its suffix: what its folder of results is called."""
        return "experiment" if self._source == "the spec" else self._source.removesuffix(".toml")

    @property
    def text(self) -> str:
        """As it was written, or as JSON where it was made in Python."""
        return self._text or self.model_dump_json(by_alias=True, exclude_defaults=True, indent=2)

    def configurations(self) -> list[Configuration]:
        """Every run: by environment, then agent, then seed, each as written."""
        return self._runs().configurations()

    @property
    def labels(self) -> list[Labels]:
        """What each run is called, in the order of `configurations`."""
        return [labels for labels, _, _ in self._runs().runs() for _ in self.seeds]

    @property
    def environment_labels(self) -> list[str]:
        """The label of each environment, in order."""
        return [point.label for point in self._runs().environments]

    @property
    def agent_labels(self) -> list[str]:
        """The label of each agent, in order."""
        return [point.label for point in self._runs().agents]

    def __len__(self) -> int:
        return len(self._runs().pairs) * len(self.seeds)

    def _runs(self) -> _ResolvedSpec:
        if self._resolved is None:
            sweep = _ResolvedSpec(self, dict(enumerate(self.environments)), dict(enumerate(self.agents)))
            _raise(self._source, sweep.problems, None)
            self._resolved = sweep
        return self._resolved


# ---------------------------------------------------------------------- reading


def read_spec(source: str | FilePath | Mapping[str, Any]) -> Spec:
    """The spec in a file, of a name that is shipped, in a TOML text, or in a dict of the same shape; checked.

    Raises InvalidSpecError with every problem of it.
    """
    if isinstance(source, Mapping):
        return _checked(dict(source), "the spec", None)
    name, text = _text_of(source)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidSpecError(_syntax(name, str(error))) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; brackets in brackets in ...
        what = "nested too deeply" if isinstance(error, RecursionError) else "a number with too many digits"
        raise InvalidSpecError(f"{name}: {what}") from error
    spec = _checked(data, name, TomlPositions(text))
    spec._text = text
    return spec


def shipped() -> list[tuple[str, str]]:
    """The names and titles of the specs that come with gainful."""
    return [(name, tomllib.loads(shipped_text(name)).get("title", "")) for name in _shipped_names()]


def shipped_text(name: str) -> str:
    """The TOML text of a spec that comes with gainful."""
    names = _shipped_names()
    if name not in names:
        raise InvalidSpecError(f"'{name}' is no spec that comes with gainful; {suggestion(name, names)}")
    return str((_shipped_folder() / f"{name}.toml").read_text(encoding="utf-8"))


def _shipped_folder() -> Any:
    return resources.files("gainful.experiments") / "specs"


def _shipped_names() -> list[str]:
    return sorted(
        file.name.removesuffix(".toml") for file in _shipped_folder().iterdir() if file.name.endswith(".toml")
    )


def _text_of(source: str | FilePath) -> tuple[str, str]:
    """What to call the spec, and its text."""
    if isinstance(source, str):
        is_file = os.path.isfile(source)
        if "\n" in source or ("=" in source and not is_file):
            return "the spec", source
        if source in _shipped_names() and not is_file:
            return f"{source}.toml", shipped_text(source)
    file = FilePath(source)
    try:
        return file.name, file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSpecError(f"{file}: byte {error.start} is not UTF-8, expected a TOML text") from error
    except FileNotFoundError as error:
        near = suggestion(file.name.removesuffix(".toml"), _shipped_names()).removeprefix("known: ")
        raise InvalidSpecError(
            f"{file}: no such file, and no spec of that name is shipped; {_or_shipped(near)}"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidSpecError(f"{file}: cannot be read: {reason}; expected a TOML file") from error


def _or_shipped(near: str) -> str:
    return near if near.startswith("did you") else f"shipped are {near}"


def _syntax(name: str, message: str) -> str:
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    if found:
        return f"{name}, line {found[2]}, column {found[3]}: {found[1]}"
    return f"{name}: {message.replace('(at end of document)', 'at the end of the file')}"


def _checked(data: dict[str, Any], name: str, positions: TomlPositions | None) -> Spec:
    problems: list[tuple[KeyPath, str]] = []
    head = {key: value for key, value in data.items() if key not in ("environments", "agents")}
    header = _validated(Header, head, (), problems, [*Spec.model_fields])
    entries: dict[str, dict[int, Any]] = {}
    mentioned: list[str] = []
    for key, model in (("environments", EnvironmentEntry), ("agents", AgentEntry)):
        entries[key] = {}
        raw = data.get(key)
        if raw is None or raw == []:
            problems.append(((key,) if key in data else (), f"{key} is missing; write [[{key}]] and a name below it"))
        elif not isinstance(raw, list | tuple) or not all(isinstance(one, Mapping | Entry) for one in raw):
            problems.append(((key,), f"is {_kind(raw)}, expected an array of tables; write [[{key}]]"))
        else:
            for i, one in enumerate(raw):
                found = one if isinstance(one, Entry) else _validated(model, one, (key, i), problems, None)
                if found is not None:
                    entries[key][i] = found
                elif key == "environments":
                    mentioned += [one[k] for k in ("name", "label") if isinstance(one.get(k), str)]
    sweep = _ResolvedSpec(header, entries["environments"], entries["agents"], mentioned)
    _raise(name, [*problems, *sweep.problems], positions)
    assert header is not None
    spec = Spec.model_construct(
        **{key: getattr(header, key) for key in Header.model_fields},
        environments=tuple(entries["environments"].values()), agents=tuple(entries["agents"].values()),
    )  # fmt: skip
    spec._resolved, spec._source = sweep, name
    return spec


def _validated(
    model: type[BaseModel],
    raw: Mapping[str, Any],
    at: KeyPath,
    problems: list[tuple[KeyPath, str]],
    known: list[str] | None,
) -> Any:
    try:
        return model.model_validate(dict(raw))
    except ValidationError as error:
        for found in error.errors(include_url=False):
            path, kind, value = (*at, *found["loc"]), found["type"], found["input"]
            if kind == "extra_forbidden":
                keys = known or [f.alias or key for key, f in model.model_fields.items()]
                message = f"no such key here; {suggestion(str(path[-1]), keys)}"
            elif kind == "missing":
                message = _MISSING[str(path[-1])]
                path = path[:-1]
            elif kind == "value_error":
                message = found["msg"].removeprefix("Value error, ")
            else:
                message = f"is {_kind(value)}, expected {_WANTED.get(kind, found['msg'])}"
            problems.append((path, message))
        return None


_MISSING = {
    "name": "name is missing; write name = \"...\"",
    "horizon": "horizon is missing; write horizon = 1e6",
    "seeds": "seeds is missing; write seeds = 5",
}  # fmt: skip
_WANTED = {"string_type": "a text in quotes", "list_type": "a list", "dict_type": "a table", "mapping_type": "a table"}


def _kind(value: Any) -> str:
    return "a table" if isinstance(value, Mapping) else _short(value)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _raise(name: str, found: Iterable[tuple[KeyPath, str]], positions: TomlPositions | None) -> None:
    """One error with every problem, by line."""
    unique = dict.fromkeys(found)
    problems = [SpecProblem(path, positions.line_of(path) if positions else None, message) for path, message in unique]
    if not problems:
        return
    problems.sort(key=lambda problem: problem.line or 0)
    said = []
    for path, line, message in problems:
        place = name if line is None else f"{name}, line {line}"
        said.append(
            f"{place}: {path_text(path)}: {message}" if path else f"{place if positions is None else name}: {message}"
        )
    if len(said) == 1:
        raise InvalidSpecError(said[0], problems)
    more = [f"and {len(said) - MAX_SHOWN_PROBLEMS:,} more"] if len(said) > MAX_SHOWN_PROBLEMS else []
    numbered = [f"{i}. {one}" for i, one in enumerate(said[:MAX_SHOWN_PROBLEMS], 1)]
    raise InvalidSpecError("\n".join([f"{name} has {len(said):,} problems:", *numbered, *more]), problems)


# ---------------------------------------------------------------------- resolving


@dataclass(frozen=True)
class _Point:
    """One environment or agent of a sweep."""

    place: KeyPath
    """("agents", 1): its entry."""
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


class _ResolvedSpec:
    """All runs of the entries that are sound, and the problems of the others."""

    def __init__(
        self, header: Header | None, environments: dict[int, EnvironmentEntry], agents: dict[int, AgentEntry],
        mentioned: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.problems: list[tuple[KeyPath, str]] = []
        self.header = header
        self.environments: list[_Point] = []
        self.agents: list[_Point] = []
        self.pairs: list[tuple[_Point, _Point]] = []
        self._entries = agents
        self._mentioned = set(mentioned)
        for entry in environments.values():
            self._mentioned |= {entry.name, *([entry.label] if entry.label else [])}
        n_seeds = len(header.seeds) if header is not None else 1
        for key, entries in (("environments", environments), ("agents", agents)):
            points = sum(_count(entry) for entry in entries.values())
            if points * n_seeds > MAX_RUNS:
                self._too_many((key,), points * n_seeds, f"{points:,} {key} with {n_seeds:,} seeds")
                return
        self._environments(environments)
        self._lost = bool(self.problems or mentioned)  # an environment with a problem, where an agent may have run
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
        self._problem(path, f"{runs:,} runs ({of}), more than {MAX_RUNS:,}; take shorter lists or fewer seeds")

    def _points(self, place: KeyPath, entry: Entry, sweeps: dict[str, tuple[KeyPath, list[Any]]]) -> Iterator[_Point]:
        """Every combination of the sweeps; zipped ones side by side. Nothing where they contradict each other."""
        sound = True
        for name in entry.zip:
            if name in sweeps:
                self._problem((*place, "zip", name), "is swept twice; keep one")
                sound = False
            sweeps[name] = ((*place, "zip", name), entry.zip[name])
        for name, (path, values) in sweeps.items():
            if name in entry.parameters:
                self._problem(path, f"is in {path_text((*place, 'parameters'))} too; keep one")
                sound = False
            if not values:
                self._problem(path, "is an empty list, expected at least one value")
                sound = False
        lengths = {name: len(values) for name, values in entry.zip.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} has {n}" for name, n in lengths.items())
            self._problem((*place, "zip"), f"lists of different lengths: {told}; expected equal lengths, or use grid")
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
            try:
                is_continuous(entry.name)
            except UnknownNameError as error:
                self._problem((*place, "name"), f"unknown environment {error}")
                continue
            sweeps = {name: ((*place, "grid", name), values) for name, values in entry.grid.items()}
            for point in self._points(place, entry, sweeps):
                values, wrong = environment_problems(point.name, point.given)
                if self._kept(point, entry, values, wrong, shared, self.environments):
                    self._mentioned.add(self.environments[-1].label)
        self._check_labels(self.environments)

    def _agents(self, entries: dict[int, AgentEntry]) -> None:
        shared = _shared_names(entries.values())
        for i, entry in entries.items():
            place: KeyPath = ("agents", i)
            try:
                check_agent(entry.name)
            except UnknownNameError as error:
                self._problem((*place, "name"), f"unknown agent {error}")
                continue
            sweeps = {name: ((*place, "grid", name), values) for name, values in entry.grid.items()}
            if entry.bonus_scales is not None:
                path: KeyPath = (*place, "bonus_scales")
                known = agent_parameters(entry.name, continuous=True)
                scale = next((name for name in ("bonus_scale", "width_scale") if name in known), None)
                if scale is None:
                    self._problem(path, f"{entry.name} has neither bonus_scale nor width_scale; leave it out")
                    continue
                if scale in sweeps or scale in entry.zip:
                    self._problem(path, f"{scale} is swept in grid or zip too; keep one")
                    continue
                sweeps[scale] = (path, entry.bonus_scales)
            for name in [*(entry.only or ()), *(entry.except_ or ())]:
                if name not in self._mentioned:
                    key = "only" if name in (entry.only or ()) else "except"
                    at = (entry.only if key == "only" else entry.except_) or []
                    near = suggestion(name, self._mentioned)
                    self._problem((*place, key, at.index(name)), f"no environment here is called '{name}'; {near}")
            kinds = {is_continuous(point.name) for point in self.environments if _runs_in(entry, point)}
            continuous = entry.name in agent_registry.PARTITIONED or kinds == {True}
            for point in self._points(place, entry, sweeps):
                # on both kinds of states what a finite one refuses (bins) is refused
                values, wrong = agent_problems(point.name, point.given, continuous)
                self._kept(point, entry, values, wrong, shared, self.agents)
        self._check_labels(self.agents)

    def _kept(
        self, point: _Point, entry: Entry, values: dict[str, Any], wrong: dict[str, str], shared: set[str],
        points: list[_Point],
    ) -> bool:  # fmt: skip
        """Add the point, with its values as the kind of number they are, unless something is wrong with it."""
        for name, message in wrong.items():
            self._problem(point.path(name), message)
        if wrong:
            return False
        given = {name: values[name] for name in point.given if name in values}
        label = self._label(point, entry, values, shared)
        if label is None:
            return False
        identity = json.dumps([point.name, values, point.horizon], sort_keys=True)
        points.append(_Point(point.place, point.name, given, point.origin, point.swept, point.horizon, label, identity))
        return True

    def _label(self, point: _Point, entry: Entry, values: dict[str, Any], shared: set[str]) -> str | None:
        if entry.label is None:
            told = [*point.swept] if point.name not in shared else [*point.given]
            parts = [f"{p} = {shown(values[p])}" for p in told if p in values]
            if point.name in shared and point.horizon is not None:
                parts.append(f"{point.horizon:,} steps")
            return ", ".join([point.name, *parts])
        path = (*point.place, "label")
        label = ""
        try:
            for text, name, form, conversion in string.Formatter().parse(entry.label):
                label += text
                if name is None:
                    continue
                known = {"name": point.name, **values}
                if name not in known or form or conversion:
                    near = suggestion(name, known) if name not in known else "write the name alone"
                    self._problem(path, f"'{{{name}{':' + form if form else ''}}}' is no parameter; {near}")
                    return None
                label += shown(known[name])
        except ValueError as error:
            self._problem(path, f"{_short(entry.label)}: {error}; a brace itself is written twice")
            return None
        if not label.strip():
            self._problem(path, "is empty; leave it out or write a text")
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
                self._problem(at, f"'{point.label}' is the same as {where}; keep one")
                continue
            first = seen.setdefault(point.label, point)
            if first is point:
                continue
            if first.place == point.place:
                told = "".join(f"{{{p}}}" for p in point.swept if first.given[p] != point.given[p])
                self._problem(
                    (*point.place, "label"),
                    f"label '{point.label}' is that of {first.settings} and of {point.settings}; put {told} into it",
                )
            else:
                self._problem(
                    point.place,
                    f"label '{point.label}' is that of {path_text(first.place)} too, which differs; give one of the "
                    f"two {kind} another label",
                )

    # ------------------------------------------------------------------ pairs

    def _cross(self) -> None:
        """Every agent in every environment it is for."""
        used: set[int] = set()
        refused: set[tuple[KeyPath, KeyPath]] = set()
        kinds = [is_continuous(point.name) for point in self.environments]
        limit = 2 * MAX_RUNS
        matches: dict[KeyPath, set[int]] = {}
        for i, entry in self._entries.items():
            matches[("agents", i)] = {k for k, point in enumerate(self.environments) if _runs_in(entry, point)}
        by_environment: list[list[_Point]] = [[] for _ in self.environments]
        n = 0
        for agent in self.agents:
            for k in sorted(matches[agent.place]):
                environment = self.environments[k]
                if agent.name in agent_registry.PARTITIONED and not kinds[k]:
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
                f"{names[place].name} is for continuous states, and {names[at].name} has finitely many; write only or "
                "except",
            )
        for i, entry in self._entries.items():
            if self.environments and not matches[("agents", i)] and not any(p == ("agents", i) for p, _ in refused):
                named = {*(entry.only or ()), *(entry.except_ or ())}
                if named <= self._mentioned and not self._lost and any(a.place == ("agents", i) for a in self.agents):
                    self._problem(("agents", i), f"{entry.name} runs in no environment; see its only and except")

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
        """One run under two labels: the same but for a horizon that an entry repeats."""
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
                    f"({path_text(first.place)}); keep one",
                )

    # ------------------------------------------------------------------ made once

    def _try(self) -> None:
        """Make environments and agents, so that a bad value is found here and not in a worker."""
        agents_of: dict[int, list[_Point]] = {id(point): [] for point in self.environments}
        for environment, agent in _evenly(self.pairs, MAX_CHECKED_PAIRS):
            agents_of[id(environment)].append(agent)
        refused: set[int] = set()
        for environment in _evenly(self.environments, MAX_CHECKED_ENVIRONMENTS):
            made = None
            values, _ = environment_problems(environment.name, environment.given)
            if _entries(values) <= MAX_CHECKED_ENTRIES:
                made = self._made(environment, _make_environment, environment.name, environment.given)
                if made is None:
                    continue
            elif is_continuous(environment.name):
                continue
            for agent in agents_of[id(environment)]:
                if id(agent) not in refused and not self._tried(agent, environment, made):
                    refused.add(id(agent))  # the same would be said in every environment

    def _made(self, point: _Point, make: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return make(*arguments)
        except (GainfulError, ValueError, TypeError, OverflowError, MemoryError, ImportError) as error:
            text = str(error) or type(error).__name__
            named = [p for p in point.given if re.search(rf"\b{re.escape(p)}\b", text.split("; its parameters")[0])]
            text = text.split("; its parameters are")[0].removeprefix(f"{point.name}: ")
            self._problem(point.path(named[0]) if named else point.place, f"{point.name}: {text}")
            return None

    def _tried(self, agent: _Point, environment: _Point, made: Any) -> bool:
        values, _ = agent_problems(agent.name, agent.given, is_continuous(environment.name))
        horizon = self._horizon(environment, agent) if self.header is not None else 1000
        if is_continuous(environment.name):
            if "span" in values and parse_span(values["span"]).is_oracle and not (made.law or made.grid_model):
                self._problem(
                    agent.path("span") if "span" in agent.given else agent.place,
                    f'{agent.name}: span = "auto" needs a model, and {environment.name} has none; give it a number',
                )
                return False
            cells = values.get("bins", 1) ** made.dim
            if cells > MAX_CELLS:
                self._problem(agent.path("bins"), f"{values['bins']} bins per axis are {cells:.3g} cells, too many")
                return False
            if cells * made.n_actions > MAX_TRIAL_PAIRS:
                values["bins"] = 2
        elif made is None or made.n_states * made.n_actions > MAX_TRIAL_PAIRS:
            if "policy" in agent.given:
                return True
            made = _make_environment("two-state-toy", {})
        return self._made(agent, _make_agent, agent.name, values, made, horizon) is not None


def _make_environment(name: str, given: Mapping[str, Any]) -> Any:
    from gainful.environments import registry

    return registry.make_continuous(name, **given) if is_continuous(name) else registry.make(name, **given)


def _make_agent(name: str, values: Mapping[str, Any], environment: Any, horizon: int) -> Any:
    """The agent as a worker makes it, but with a span of 1 for the model's own."""
    from gainful.experiments.agent_factory import AgentFactory

    return AgentFactory.from_parameters(name, environment, values, 0, horizon, own_span=1.0).make()


def _count(entry: Entry) -> int:
    """The points of an entry, without making them."""
    n = math.prod(len(values) for values in entry.grid.values())
    n *= max((len(values) for values in entry.zip.values()), default=1)
    scales = getattr(entry, "bonus_scales", None)
    return n * len(scales) if scales is not None else n


def _shared_names(entries: Iterable[Entry]) -> set[str]:
    """Names of more than one entry without a label."""
    names = [entry.name for entry in entries if entry.label is None]
    return {name for name in names if names.count(name) > 1}


def _runs_in(entry: AgentEntry, environment: _Point) -> bool:
    called = {environment.name, environment.label}
    return (entry.only is None or bool(called & set(entry.only))) and not called & set(entry.except_ or ())


def _entries(values: Mapping[str, Any]) -> int:
    """How many numbers an environment may have, from its sizes."""
    sizes = [v for name, v in values.items() if type(v) is int and name != "instance" and not name.startswith("good_")]
    return math.prod(max(1, abs(v)) for v in sizes)


def _evenly(items: Sequence[Any], most: int) -> Sequence[Any]:
    if len(items) <= most:
        return items
    return [items[i * (len(items) - 1) // (most - 1)] for i in range(most)]
